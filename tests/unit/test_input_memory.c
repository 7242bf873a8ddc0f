// SPDX-License-Identifier: LGPL-2.1-or-later
/* decode/analyze/input: memory is bounded, however much comes through a pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/analyze/input.h"
#include "tests/support/kvm_load.h"

#ifdef __SANITIZE_ADDRESS__
#define PIPE_RECORDS 100000u
#define LIMIT_KIB    UINT64_MAX /* the sanitizer's own memory says nothing about the program's */
#else
#define PIPE_RECORDS 1000000u
#define LIMIT_KIB    (64u * 1024)
#endif

static void feed_pipe(int fd)
{
	struct vmt_perfdata_file_options options = { .kernel = "6.1",
						     .events = vmt_kvm_load_events,
						     .isa = VMT_ISA_VMX,
						     .cpus = 16,
						     .pipe = true,
						     .fd = fd };
	struct vmt_perfdata_file *file = vmt_perfdata_file_new(&options);
	struct vmt_kvm_load *load = vmt_kvm_load_new(file, VMT_ISA_VMX, 16, 5);

	vmt_kvm_load_fill(load, file, PIPE_RECORDS, 0);
	vmt_perfdata_file_finish(file);
	_exit(0);
}

static uint64_t peak_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void count_event(void *context, const struct vmt_event *event)
{
	*(uint64_t *)context += event->type == VMT_EVENT_EXIT;
}

/* 0 when everything was read within the bound; in a process of its own. */
static int read_bounded(int fd)
{
	static const struct vmt_input_options none;
	struct vmt_reader *reader;
	struct vmt_input *input;
	struct vmt_ledger ledger;
	uint64_t exits = 0;

	if (vmt_reader_from_fd(&reader, fd, NULL, NULL) ||
	    vmt_input_open(&input, reader, &none, NULL) ||
	    vmt_input_run(input, count_event, &exits, NULL))
		return 1;
	ledger = vmt_input_ledger(input);
	vmt_input_close(input);
	if (exits < PIPE_RECORDS / 4 || ledger.bytes_skipped || ledger.bytes_total < PIPE_RECORDS)
		return 2;
	return peak_kib() && peak_kib() <= LIMIT_KIB ? 0 : 3;
}

/* No rounds: the merge is at its bound all the time. */
static void test_memory_is_bounded(void **state)
{
	int fds[2], status = -1;
	pid_t feeder, reader;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	feeder = fork();
	if (!feeder) {
		close(fds[0]);
		feed_pipe(fds[1]);
	}
	close(fds[1]);
	reader = fork();
	if (!reader)
		_exit(read_bounded(fds[0]));
	close(fds[0]);
	assert_true(feeder > 0 && reader > 0);
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(waitpid(feeder, &status, 0), feeder);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
