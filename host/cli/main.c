// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "host/cli/options.h"

/* Everything written to standard output must have arrived: a full disk is an error. */
static int flush_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (status == VMT_STATUS_OK) {
		fprintf(stderr, "vmtrace: error: standard output could not be written\n"
				"  the disk is full, or the reader has gone\n");
		return VMT_STATUS_FAILURE;
	}
	return status;
}

/*
 * A standard descriptor that was closed is opened the wrong way round: its number is not given to
 * a capture, which a message would then damage, and reading or writing it fails.
 */
static void occupy_standard_descriptors(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			_exit(VMT_STATUS_FAILURE);
	}
}

int main(int argc, char **argv)
{
	struct vmt_cli cli;
	const struct vmt_verb_row *verb = NULL;
	bool done;
	int status;

	occupy_standard_descriptors();
	/* At `ulimit -f` a write fails, which is told; a capture is closed in order. */
	signal(SIGXFSZ, SIG_IGN);
	/* A reader that goes away (| head) ends the program quietly. */
	signal(SIGPIPE, SIG_DFL);
	/* Numbers are written and read with a point whatever the locale; no setlocale on purpose.
	 */
	status = vmt_cli_parse(&cli, argc, argv, &verb, &done);
	if (!status && !done)
		status = verb->run(&cli);
	return flush_output(status);
}
