// SPDX-License-Identifier: LGPL-2.1-or-later
/* The .vmt container: every kind of payload there and back, and what files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/store/layout.h"
#include "decode/store/store.h"
#include "tests/support/store_folder.h"
#include "tests/support/store_sample.h"

#define SECOND UINT64_C(1000000000)

static struct vmt_store_folder files;

static int make_folder(void **state)
{
	(void)state;
	return vmt_store_folder_make(&files) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return vmt_store_folder_remove(&files) ? 0 : -1;
}

static int remove_files(void **state)
{
	(void)state;
	vmt_store_folder_clear(&files);
	return 0;
}

static struct vmt_item next_of(struct vmt_store_reader *store, enum vmt_item_type type)
{
	struct vmt_item item;

	assert_int_equal(vmt_store_next(store, &item, NULL), 1);
	assert_int_equal(item.type, type);
	return item;
}

static void assert_text(const struct vmt_item *item, const char *text)
{
	assert_int_equal(item->len, strlen(text));
	assert_memory_equal(item->data, text, item->len);
}

static int append_struct(struct vmt_store_writer *w, enum vmt_chunk_type type, const void *bytes,
			 size_t len)
{
	struct vmt_store_chunk chunk = {
		.type = type, .cpu = -1, .nr_parts = 1, .parts = { { bytes, len } }
	};

	return vmt_store_append(w, &chunk, NULL);
}

static void every_kind_comes_back(const struct vmt_store_options *options)
{
	struct vmt_store_writer *w = vmt_sample_create(files.path, options);
	struct vmt_ring_attr attr = { 2, 4711, 0x10486, 0, VMT_RING_FLAG_SAMPLE_ID_ALL, 7 };
	uint64_t ids[3] = { 11, 12, UINT64_MAX };
	struct vmt_anchor anchor = { .host_tsc_before = 1, .time_shift = 5, .cpu = 3 };
	struct vmt_vcpu_tsc tsc[2] = { { .vcpu = 0, .offset = -5 }, { .vcpu = 1, .offset = 6 } };
	uint8_t records[40 * 32];
	struct vmt_store_reader *store;
	struct vmt_item item;

	vmt_store_fill_records(records, 40, 1);
	assert_int_equal(vmt_store_session(w, "{\"schema\":\"vmtrace-session/1\"}", NULL), 0);
	assert_int_equal(vmt_store_attr(w, &attr, ids, 3, NULL), 0);
	assert_int_equal(vmt_store_format(w, "name: kvm_exit\nID: 4711\n", NULL), 0);
	assert_int_equal(append_struct(w, VMT_CHUNK_ANCHOR, &anchor, sizeof(anchor)), 0);
	assert_int_equal(append_struct(w, VMT_CHUNK_VCPU_TSC, tsc, sizeof(tsc)), 0);
	assert_int_equal(vmt_store_append_records(w, records, sizeof(records), 5 * SECOND, NULL),
			 0);
	assert_int_equal(vmt_store_round(w, 6 * SECOND, NULL), 0);
	assert_int_equal(vmt_store_mark(w, "{\"name\":\"reset\"}", 7 * SECOND, NULL), 0);
	assert_int_equal(vmt_store_loss(w, 3, "overflow", 64, 2, 8 * SECOND, NULL), 0);
	assert_int_equal(vmt_store_loss(w, 4, "Odd\x1bKind", 1, UINT64_MAX, 0, NULL), 0);
	assert_int_equal(vmt_store_finish(w, NULL), 0);

	store = vmt_sample_open(files.path);
	item = next_of(store, VMT_ITEM_SESSION);
	assert_text(&item, "{\"schema\":\"vmtrace-session/1\"}");
	item = next_of(store, VMT_ITEM_ATTR);
	assert_int_equal(item.attr->type, attr.type);
	assert_int_equal(item.attr->config, attr.config);
	assert_int_equal(item.attr->sample_type, attr.sample_type);
	assert_int_equal(item.attr->read_format, attr.read_format);
	assert_int_equal(item.attr->flags, attr.flags);
	assert_int_equal(item.attr->branch_sample_type, attr.branch_sample_type);
	assert_int_equal(item.nr_ids, 3);
	assert_memory_equal(item.ids, ids, sizeof(ids));
	item = next_of(store, VMT_ITEM_FORMAT);
	assert_text(&item, "name: kvm_exit\nID: 4711\n");
	item = next_of(store, VMT_ITEM_ANCHOR);
	assert_int_equal(item.len, sizeof(anchor));
	assert_memory_equal(item.data, &anchor, sizeof(anchor));
	item = next_of(store, VMT_ITEM_VCPU_TSC);
	assert_int_equal(item.len, sizeof(tsc));
	assert_memory_equal(item.data, tsc, sizeof(tsc));
	item = next_of(store, VMT_ITEM_RECORDS);
	assert_int_equal(item.stream, 3);
	assert_int_equal(item.len, sizeof(records));
	assert_memory_equal(item.data, records, sizeof(records));
	next_of(store, VMT_ITEM_ROUND);
	item = next_of(store, VMT_ITEM_MARK);
	assert_text(&item, "{\"name\":\"reset\"}");
	item = next_of(store, VMT_ITEM_LOSS);
	assert_string_equal(item.loss_kind, "overflow");
	assert_int_equal(item.lost_bytes, 64);
	assert_true(item.has_lost_records);
	assert_int_equal(item.lost_records, 2);
	item = next_of(store, VMT_ITEM_LOSS);
	assert_string_equal(item.loss_kind, "-dd--ind");
	assert_false(item.has_lost_records);
	next_of(store, VMT_ITEM_END);
	assert_int_equal(vmt_store_next(store, &item, NULL), 0);
	assert_int_equal(vmt_store_next(store, &item, NULL), 0);
	assert_true(vmt_store_is_balanced(store));
	assert_int_equal(vmt_store_ledger(store).bytes_skipped, 0);
	assert_int_equal(vmt_store_ledger(store).records_lost, 2);
	assert_int_equal(vmt_store_ledger(store).overflows, 1);
	assert_false(vmt_store_ledger(store).truncated);
	vmt_store_close(store);
}

static void plain_payloads_come_back(void **state)
{
	(void)state;
	every_kind_comes_back(&(struct vmt_store_options){ 0 });
}

static void compressed_payloads_come_back(void **state)
{
	struct stat plain, small;

	(void)state;
	every_kind_comes_back(&(struct vmt_store_options){ 0 });
	assert_int_equal(stat(files.path, &plain), 0);
	unlink(files.path);
	every_kind_comes_back(&(struct vmt_store_options){ .compress = true });
	assert_int_equal(stat(files.path, &small), 0);
	assert_true(small.st_size < plain.st_size);
}

static void the_same_id_gives_the_same_file(void **state)
{
	struct vmt_store_options options = { .file_id = 42 };
	uint8_t bytes[2][4096];
	ssize_t n[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fd;

		every_kind_comes_back(&options);
		fd = open(files.path, O_RDONLY);
		n[i] = read(fd, bytes[i], sizeof(bytes[i]));
		close(fd);
		unlink(files.path);
	}
	assert_true(n[0] > 0 && n[0] == n[1]);
	assert_memory_equal(bytes[0], bytes[1], (size_t)n[0]);
}

static void files_are_private_and_exclusive(void **state)
{
	struct vmt_store_options options = { 0 };
	struct vmt_store_writer *w;
	struct vmt_diag diag = { 0 };
	struct stat st;

	(void)state;
	umask(0);
	vmt_store_abandon(vmt_sample_create(files.path, &options));
	assert_int_equal(stat(files.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(vmt_store_create(&w, files.path, &options, &diag), VMT_E_EXISTS);
	assert_string_not_equal(diag.cure, "");
	options.force = true;
	vmt_store_abandon(vmt_sample_create(files.path, &options));
}

static void links_are_refused(void **state)
{
	struct vmt_store_options options = { 0 };
	struct vmt_store_writer *w;
	struct stat st;

	(void)state;
	assert_int_equal(symlink(files.copy_path, files.path), 0);
	assert_int_equal(vmt_store_create(&w, files.path, &options, NULL), VMT_E_EXISTS);
	options.force = true;
	assert_int_equal(vmt_store_create(&w, files.path, &options, NULL), VMT_E_EXISTS);
	assert_int_equal(lstat(files.path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat(files.copy_path, &st), -1);
}

static void what_is_no_store_is_refused(void **state)
{
	struct vmt_reader *reader;
	struct vmt_store_reader *store;
	struct vmt_diag diag = { 0 };
	int fd = open(files.path, O_CREAT | O_WRONLY, 0600);

	(void)state;
	assert_int_equal(vmt_reader_open(&reader, files.path, NULL, NULL), 0);
	assert_int_equal(vmt_store_open(&store, reader, &diag), VMT_E_TRUNCATED);
	vmt_reader_close(reader);
	assert_int_equal(write(fd, "PERFILE2, not ours", 18), 18);
	close(fd);
	assert_int_equal(vmt_reader_open(&reader, files.path, NULL, NULL), 0);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_store_open(&store, reader, &diag), VMT_E_DAMAGED);
	vmt_reader_close(reader);
	assert_int_equal(vmt_reader_open(&reader, files.folder, NULL, &diag), VMT_E_IO);
}

static void later_versions_are_stepped_over(void **state)
{
	struct vmt_store_writer *w =
		vmt_sample_create(files.path, &(struct vmt_store_options){ .file_id = 5 });
	struct vmt_store_header h = { .version = VMT_STORE_VERSION,
				      .type = 999,
				      .header_len = VMT_STORE_HEADER,
				      .sequence = 3,
				      .file_id = 5 };
	uint8_t head[VMT_STORE_HEADER];
	struct vmt_store_reader *store;
	struct vmt_item item;
	int fd;

	(void)state;
	assert_int_equal(vmt_store_session(w, "{}", NULL), 0);
	assert_int_equal(vmt_store_session(w, "{ }", NULL), 0);
	vmt_store_abandon(w);
	h.payload_hash = UINT64_C(0x2d06800538d394c2); /* XXH3 of nothing */
	vmt_store_header_encode(&h, head);
	fd = open(files.path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, head, sizeof(head)), sizeof(head));
	close(fd);
	store = vmt_sample_open(files.path);
	next_of(store, VMT_ITEM_SESSION);
	next_of(store, VMT_ITEM_SESSION);
	item = next_of(store, VMT_ITEM_LOSS);
	assert_string_equal(item.loss_kind, "unsupported");
	assert_int_equal(item.lost_bytes, 80);
	item = next_of(store, VMT_ITEM_LOSS);
	assert_string_equal(item.loss_kind, "truncated");
	assert_true(vmt_store_is_balanced(store));
	assert_int_equal(vmt_store_ledger(store).bytes_skipped, 80);
	vmt_store_close(store);
}

static void wrong_chunks_are_refused(void **state)
{
	struct vmt_store_writer *w =
		vmt_sample_create(files.path, &(struct vmt_store_options){ 0 });
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_END, .cpu = -1 };

	(void)state;
	assert_int_equal(vmt_store_append(w, &chunk, NULL), VMT_E_USAGE);
	chunk.type = VMT_CHUNK_RECORDS;
	chunk.nr_parts = 2;
	chunk.parts[0] = (struct vmt_store_part){ files.folder, VMT_CHUNK_PAYLOAD_MAX };
	chunk.parts[1] = (struct vmt_store_part){ files.folder, 1 };
	assert_int_equal(vmt_store_append(w, &chunk, NULL), VMT_E_LIMIT);
	vmt_store_abandon(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(plain_payloads_come_back, remove_files),
		cmocka_unit_test_teardown(compressed_payloads_come_back, remove_files),
		cmocka_unit_test_teardown(the_same_id_gives_the_same_file, remove_files),
		cmocka_unit_test_teardown(files_are_private_and_exclusive, remove_files),
		cmocka_unit_test_teardown(links_are_refused, remove_files),
		cmocka_unit_test_teardown(what_is_no_store_is_refused, remove_files),
		cmocka_unit_test_teardown(later_versions_are_stepped_over, remove_files),
		cmocka_unit_test_teardown(wrong_chunks_are_refused, remove_files),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
