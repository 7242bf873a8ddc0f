// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A process that writes a .vmt without a pause is killed with SIGKILL at 200 random moments. What
 * it had handed to the system by then is readable up to the last whole chunk, each time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/store_sample.h"

#define ROUNDS	   200u
#define NR_RECORDS 64u
#define MOMENT_NS  3000000u /* a kill comes within this time after the first chunk */
#define FILE_MAX   (48u << 20)

static char folder[] = "/tmp/vmt-kill-XXXXXX";
static char path[64];

/* Shared with the writing process: how many RECORDS chunks it knows to be in the file. */
static volatile uint32_t *progress;

static void write_without_end(const struct vmt_store_options *options)
{
	uint8_t records[NR_RECORDS * VMT_SAMPLE_RECORD];
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_RECORDS,
					 .nr_parts = 1,
					 .parts = { { records, sizeof(records) } } };
	struct vmt_store_writer *w;
	const struct vmt_sample_options metadata = { 0, 0, false };

	if (vmt_store_create(&w, path, options, NULL) != 0 || vmt_sample_append(w, &metadata) != 0)
		_exit(1);
	for (uint32_t i = 1; vmt_store_totals(w).file_bytes < FILE_MAX; i++) {
		vmt_sample_records(records, NR_RECORDS, i);
		chunk.time_first_ns = chunk.time_last_ns = i * UINT64_C(1000000);
		if (vmt_store_append(w, &chunk, NULL) != 0)
			_exit(1);
		*progress = i;
		if (i % 8 == 0 && vmt_store_round(w, chunk.time_last_ns, NULL) != 0)
			_exit(1);
	}
	for (;;)
		pause();
}

static void read_after_kill(uint32_t known, bool from_first)
{
	uint8_t expected[NR_RECORDS * VMT_SAMPLE_RECORD];
	struct vmt_reader *reader;
	struct vmt_store_reader *store;
	struct vmt_item item;
	struct vmt_ledger l;
	uint32_t last = 0;

	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_store_open(&store, reader, NULL), 0);
	while (vmt_store_next(store, &item, NULL) == 1) {
		uint32_t number;

		if (item.type == VMT_ITEM_LOSS)
			assert_true(!strcmp(item.loss_kind, "truncated") ||
				    (!from_first && !strcmp(item.loss_kind, "keep")));
		if (item.type != VMT_ITEM_RECORDS)
			continue;
		assert_int_equal(item.len, sizeof(expected));
		memcpy(&number, item.data + 8, sizeof(number));
		if (last || from_first)
			assert_int_equal(number, last + 1);
		last = number;
		vmt_sample_records(expected, NR_RECORDS, number);
		assert_memory_equal(item.data, expected, sizeof(expected));
	}
	l = vmt_store_ledger(store);
	assert_int_equal(l.bytes_total, l.bytes_decoded + l.bytes_skipped);
	assert_true(l.truncated);
	/* The chunk that was being written may be in the file as well. */
	assert_true(last == known || last == known + 1);
	vmt_store_close(store);
}

static void kill_at_random_moments(const struct vmt_store_options *options, unsigned int rounds)
{
	uint64_t x = 88172645463325252u;

	for (unsigned int i = 0; i < rounds; i++) {
		struct timespec moment = { 0 };
		int status;
		pid_t pid;

		unlink(path);
		*progress = 0;
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			write_without_end(options);
		while (!*progress && waitpid(pid, &status, WNOHANG) == 0)
			usleep(100);
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		moment.tv_nsec = (long)(x % MOMENT_NS);
		nanosleep(&moment, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		read_after_kill(*progress, !options->keep_ns);
	}
	print_message("# killed %u times\n", rounds);
}

static void killed_while_it_writes(void **state)
{
	(void)state;
	kill_at_random_moments(&(struct vmt_store_options){ 0 }, ROUNDS / 2);
}

static void killed_while_it_compresses(void **state)
{
	(void)state;
	kill_at_random_moments(&(struct vmt_store_options){ .compress = true }, ROUNDS / 4);
}

static void killed_while_it_drops(void **state)
{
	struct vmt_store_options options = { .keep_ns = 200000000u, .segment_bytes = 65536 };

	(void)state;
	kill_at_random_moments(&options, ROUNDS / 4);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.vmt", folder);
	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return progress == MAP_FAILED ? -1 : 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_while_it_writes),
		cmocka_unit_test(killed_while_it_compresses),
		cmocka_unit_test(killed_while_it_drops),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
