// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records of threads and mappings that were there before a capture, on a /proc made of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cursor.h"
#include "decode/io/reader.h"
#include "host/capture/perf_event.h"
#include "host/capture/synth.h"

#define ID 77u

static char top[] = "/tmp/vmt-synth-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[128], *at = path;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	while ((at = strchr(at + 1, '/'))) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void write_maps(void)
{
	static char text[16384];
	size_t len;

	len = (size_t)snprintf(text, sizeof(text),
			       "55d0c0000000-55d0c0100000 r--p 00000000 fe:01 1311 /usr/bin/qemu\n"
			       "55d0c0100000-55d0c0700000 r-xp 00100000 fe:01 1311 "
			       "/usr/bin/qemu system (deleted)\n"
			       "7f0000000000-7f0000001000 rwxs 00000000 00:00 0 \n"
			       "garbage\n"
			       "7f0000002000-7f0000001000 r-xp 00000000 00:00 0 /backwards\n"
			       "7f0000003000-7f0000004000 r-xp 00000000 00:00 0 /");
	memset(text + len, 'x', 5000);
	snprintf(text + len + 5000, sizeof(text) - len - 5000,
		 "\nffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]\n");
	write_file("4711/maps", text);
}

/* Reads the records back as a line each. */
static void read_records(const char *path, char *text, size_t size)
{
	struct vmt_perf_want want = { .pmu_type = 8, .mappings = true };
	struct vmt_ring_attr attr = vmt_perf_ring_attr(&want);
	struct vmt_ring_set *set = vmt_ring_set_new();
	uint64_t id = ID;
	struct vmt_store_reader *store;
	struct vmt_reader *reader;
	struct vmt_item item;
	size_t len = 0;

	assert_int_equal(vmt_ring_set_add(set, &attr, &id, 1), 0);
	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_store_open(&store, reader, NULL), 0);
	while (vmt_store_next(store, &item, NULL) == 1) {
		for (size_t at = 0; item.type == VMT_ITEM_RECORDS && at < item.len;) {
			struct vmt_ring_record r;
			int n = vmt_ring_parse(set, item.data + at, item.len - at, &r, NULL);
			const uint8_t *b = r.body;

			assert_true(n > 0);
			at += (size_t)n;
			assert_true(r.has_tid && r.has_time && !r.time_ns && r.has_id &&
				    r.id == ID);
			assert_int_equal(r.pid, 4711);
			if (r.type == VMT_RING_COMM)
				len += (size_t)snprintf(text + len, size - len, "comm %u %s\n",
							r.tid, (const char *)b + 8);
			else
				len += (size_t)
					snprintf(text + len, size - len,
						 "mmap2 %llx %llx %llx %x:%x %llu %u %u %s\n",
						 (unsigned long long)vmt_load_u64(b + 8),
						 (unsigned long long)vmt_load_u64(b + 16),
						 (unsigned long long)vmt_load_u64(b + 24),
						 vmt_load_u32(b + 32), vmt_load_u32(b + 36),
						 (unsigned long long)vmt_load_u64(b + 40),
						 vmt_load_u32(b + 56), vmt_load_u32(b + 60),
						 (const char *)b + 64);
		}
	}
	vmt_store_close(store);
	vmt_ring_set_free(set);
}

/* What is written of the two domains, one of which has no process. */
static void synthesise(bool mappings, char *text, size_t size)
{
	struct vmt_hostfs fs = { .proc = top };
	struct vmt_domain items[2] = { { .pid = 4711, .fs = &fs }, { .fs = &fs } };
	struct vmt_domains domains = { 2, items };
	struct vmt_store_options options = { .force = true };
	struct vmt_store_writer *w;
	char path[64];

	snprintf(path, sizeof(path), "%s/out.vmt", top);
	assert_int_equal(vmt_store_create(&w, path, &options, NULL), 0);
	assert_int_equal(vmt_synth_domains(&domains, ID, 3, mappings, w, NULL), 0);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	read_records(path, text, size);
	assert_non_null(strstr(text, "comm 4711 qemu-system-x86\n"));
	assert_non_null(strstr(text, "comm 4713 CPU 0/KVM\n"));
}

static void test_records(void **state)
{
	char command[64], text[1024] = "", names[1024] = "";

	(void)state;
	assert_non_null(mkdtemp(top));
	write_file("4711/task/4711/comm", "qemu-system-x86\n");
	write_file("4711/task/4713/comm", "CPU 0/KVM\n");
	write_maps();
	synthesise(true, text, sizeof(text));
	assert_string_equal(strstr(text, "mmap2"),
			    "mmap2 55d0c0100000 600000 100000 fe:1 1311 5 2 "
			    "/usr/bin/qemu system (deleted)\n"
			    "mmap2 7f0000000000 1000 0 0:0 0 7 1 //anon\n"
			    "mmap2 ffffffffff600000 1000 0 0:0 0 4 2 [vsyscall]\n");
	synthesise(false, names, sizeof(names));
	assert_null(strstr(names, "mmap2"));
	snprintf(command, sizeof(command), "rm -r %s", top);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_records) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
