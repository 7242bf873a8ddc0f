// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * measure RESULT COMMAND...: runs the command and appends one line to the file RESULT: wall, user
 * and system time in microseconds, peak RSS in KiB, exit status. Exits with the command's status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static long long us_of(struct timeval t)
{
	return t.tv_sec * 1000000LL + t.tv_usec;
}

int main(int argc, char **argv)
{
	long long start = now_us();
	struct rusage usage;
	int status;
	pid_t pid;
	FILE *out;

	if (argc < 3) {
		fprintf(stderr, "usage: measure RESULT COMMAND...\n");
		return 2;
	}
	pid = fork();
	if (!pid) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
		perror("measure");
		return 1;
	}
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	out = fopen(argv[1], "a");
	if (!out) {
		perror(argv[1]);
		return 1;
	}
	fprintf(out, "%lld %lld %lld %ld %d\n", now_us() - start, us_of(usage.ru_utime),
		us_of(usage.ru_stime), usage.ru_maxrss, status);
	return fclose(out) ? 1 : status;
}
