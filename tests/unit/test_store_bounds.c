// SPDX-License-Identifier: LGPL-2.1-or-later
/* The .vmt container: what bounds a file (limit, guard, ring), and what is built on its segments.
 */
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

/* Reads all: how many RECORDS, which first and last number they hold, what was lost. */
struct seen {
	size_t records, sessions, attrs, formats, losses;
	uint32_t first, last;
	uint64_t lost_records, lost_chunks;
	char kinds[128];
	bool metadata_first; /* SESSION, ATTR and FORMAT stood before the first RECORDS */
	bool closed;
};

static void see_loss(struct seen *seen, const struct vmt_item *item)
{
	size_t used;

	seen->losses++;
	seen->lost_records += item->lost_records;
	seen->lost_chunks += item->lost_chunks;
	used = strlen(seen->kinds);
	snprintf(seen->kinds + used, sizeof(seen->kinds) - used, "%s ", item->loss_kind);
}

static struct seen see_store(struct vmt_store_reader *store)
{
	struct seen seen = { 0 };
	struct vmt_item item;

	while (vmt_store_next(store, &item, NULL) == 1) {
		switch (item.type) {
		case VMT_ITEM_RECORDS:
			memcpy(&seen.last, item.data + 8, sizeof(seen.last));
			if (!seen.records++) {
				seen.first = seen.last;
				seen.metadata_first = seen.sessions && seen.attrs && seen.formats;
			}
			break;
		case VMT_ITEM_SESSION:
			seen.sessions++;
			break;
		case VMT_ITEM_ATTR:
			seen.attrs++;
			break;
		case VMT_ITEM_FORMAT:
			seen.formats++;
			break;
		case VMT_ITEM_LOSS:
			see_loss(&seen, &item);
			break;
		case VMT_ITEM_END:
			seen.closed = true;
			break;
		default:
			break;
		}
	}
	assert_true(vmt_store_is_balanced(store));
	vmt_store_close(store);
	return seen;
}

static void put_metadata(struct vmt_store_writer *w)
{
	struct vmt_ring_attr attr = { .type = 2, .config = 1 };
	uint64_t id = 1;

	assert_int_equal(vmt_store_session(w, "{}", NULL), 0);
	assert_int_equal(vmt_store_attr(w, &attr, &id, 1, NULL), 0);
	assert_int_equal(vmt_store_format(w, "name: kvm_exit", NULL), 0);
}

/* n seconds, each with one RECORDS chunk of 128 records and a ROUND. */
static void put_seconds(struct vmt_store_writer *w, uint32_t from, uint32_t n)
{
	uint8_t records[128 * 32];

	for (uint32_t i = from; i < from + n; i++) {
		vmt_store_fill_records(records, 128, i);
		assert_int_equal(vmt_store_append_records(w, records, sizeof(records), i * SECOND,
							  NULL),
				 0);
		assert_int_equal(vmt_store_round(w, i * SECOND, NULL), 0);
	}
}

static void metadata_is_repeated_and_delivered_once(void **state)
{
	struct vmt_store_writer *w =
		vmt_sample_create(files.path,
				  &(struct vmt_store_options){ .segment_bytes = 16384 });
	struct seen seen;

	(void)state;
	put_metadata(w);
	put_seconds(w, 1, 100);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	seen = see_store(vmt_sample_open(files.path));
	assert_int_equal(seen.records, 100);
	assert_int_equal(seen.attrs, 1);
	assert_int_equal(seen.formats, 1);
	assert_in_range(seen.sessions, 20, 30);
	assert_true(seen.closed);
	assert_int_equal(seen.losses, 0);
}

/* Offset of the first block behind the first that the file system holds data for. */
static off_t first_data_behind_head(void)
{
	int fd = open(files.path, O_RDONLY);
	off_t at = lseek(fd, 65536, SEEK_DATA);

	close(fd);
	return at;
}

static void a_ring_keeps_the_newest(void **state)
{
	struct vmt_store_options options = { .keep_ns = 20 * SECOND };
	struct vmt_store_writer *w = vmt_sample_create(files.path, &options);
	struct stat st;
	struct seen seen;
	char command[128];
	FILE *cat;
	struct vmt_reader *reader;
	struct vmt_store_reader *store;

	(void)state;
	if (vmt_store_totals(w).keep_unsupported) {
		vmt_store_abandon(w);
		print_message("# skipped: no holes can be punched on the file system of /tmp\n");
		return;
	}
	put_metadata(w);
	put_seconds(w, 1, 1000);
	assert_int_equal(stat(files.path, &st), 0);
	assert_true(st.st_size > 4000000);
	assert_true(first_data_behind_head() > st.st_size - 300000);
	/* Not yet closed: it is readable at any time. */
	seen = see_store(vmt_sample_open(files.path));
	assert_int_equal(seen.last, 1000);
	assert_in_range(seen.first, 960, 980);
	assert_int_equal(seen.records, seen.last - seen.first + 1);
	assert_true(seen.metadata_first);
	assert_string_equal(seen.kinds, "keep truncated ");
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	snprintf(command, sizeof(command), "cat %s", files.path);
	cat = popen(command, "r");
	assert_non_null(cat);
	assert_int_equal(vmt_reader_from_fd(&reader, dup(fileno(cat)), NULL, NULL), 0);
	assert_int_equal(vmt_store_open(&store, reader, NULL), 0);
	seen = see_store(store);
	pclose(cat);
	assert_int_equal(seen.last, 1000);
	assert_in_range(seen.first, 960, 980);
	assert_true(seen.metadata_first);
	assert_true(seen.closed);
	assert_string_equal(seen.kinds, "keep ");
}

/* What is dropped while it is being read is no damage. */
static void a_ring_turns_while_it_is_read(void **state)
{
	struct vmt_store_options options = { .keep_ns = 500 * SECOND };
	struct vmt_store_writer *w = vmt_sample_create(files.path, &options);
	struct vmt_store_reader *store;
	struct vmt_item item;
	struct seen seen;

	(void)state;
	if (vmt_store_totals(w).keep_unsupported) {
		vmt_store_abandon(w);
		return;
	}
	put_metadata(w);
	put_seconds(w, 1, 800);
	store = vmt_sample_open(files.path);
	do
		assert_int_equal(vmt_store_next(store, &item, NULL), 1);
	while (item.type != VMT_ITEM_RECORDS);
	put_seconds(w, 801, 1200);
	seen = see_store(store);
	assert_int_equal(seen.last, 2000);
	assert_string_equal(seen.kinds, "keep truncated ");
	assert_true(seen.lost_chunks > 100);
	vmt_store_abandon(w);
}

static void a_ring_keeps_to_its_size(void **state)
{
	struct vmt_store_options options = { .keep_ns = 1000000 * SECOND, .limit_bytes = 262144 };
	struct vmt_store_writer *w = vmt_sample_create(files.path, &options);
	struct vmt_store_totals totals;
	struct seen seen;

	(void)state;
	if (vmt_store_totals(w).keep_unsupported) {
		vmt_store_abandon(w);
		print_message("# skipped: no holes can be punched on the file system of /tmp\n");
		return;
	}
	put_metadata(w);
	put_seconds(w, 1, 1000);
	totals = vmt_store_totals(w);
	assert_int_equal(totals.lost_chunks, 0);
	assert_true(totals.file_bytes - totals.dropped_bytes <= 262144);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	assert_true(first_data_behind_head() > (off_t)totals.dropped_bytes - 4096);
	seen = see_store(vmt_sample_open(files.path));
	assert_int_equal(seen.last, 1000);
	assert_in_range(seen.records, 40, 62);
	assert_true(seen.metadata_first);
}

static int cannot_punch(int fd, int mode, off_t offset, off_t len)
{
	(void)fd;
	(void)mode;
	(void)offset;
	(void)len;
	errno = EOPNOTSUPP;
	return -1;
}

static void a_ring_that_cannot_drop_says_so(void **state)
{
	struct vmt_io_ops ops = vmt_io_system;
	struct vmt_store_options options = { .ops = &ops, .keep_ns = SECOND };
	struct vmt_store_writer *w = NULL;
	struct vmt_diag diag = { 0 };

	(void)state;
	ops.fallocate = cannot_punch;
	assert_int_equal(vmt_store_create(&w, files.path, &options, &diag), 0);
	assert_int_equal(diag.code, VMT_E_UNSUPPORTED);
	assert_true(vmt_store_totals(w).keep_unsupported);
	put_metadata(w);
	put_seconds(w, 1, 50);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	assert_int_equal(see_store(vmt_sample_open(files.path)).records, 50);
}

static void the_limit_holds_and_the_loss_is_told(void **state)
{
	struct vmt_store_options options = { .limit_bytes = 65536 };
	struct vmt_store_writer *w = vmt_sample_create(files.path, &options);
	uint8_t records[128 * 32];
	size_t written = 0, refused = 0;
	struct stat st;
	struct seen seen;

	(void)state;
	put_metadata(w);
	vmt_store_fill_records(records, 128, 1);
	for (int i = 0; i < 40; i++) {
		int err = vmt_store_append_records(w, records, sizeof(records), SECOND, NULL);

		assert_true(err == 0 || err == VMT_E_FULL);
		written += err == 0;
		refused += err != 0;
	}
	assert_int_equal(written, 15);
	assert_int_equal(vmt_store_totals(w).lost_chunks, refused);
	assert_int_equal(vmt_store_totals(w).lost_records, refused * 128);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	assert_int_equal(stat(files.path, &st), 0);
	assert_true(st.st_size <= 65536);
	seen = see_store(vmt_sample_open(files.path));
	assert_int_equal(seen.records, written);
	assert_int_equal(seen.lost_records, refused * 128);
	assert_int_equal(seen.lost_chunks, refused);
	assert_string_equal(seen.kinds, "size-limit ");
	assert_true(seen.closed);
}

static uint64_t free_now;

static int pretend_free(int fd, uint64_t *bytes)
{
	(void)fd;
	*bytes = free_now;
	return 0;
}

static void the_guard_stops_and_goes_on(void **state)
{
	struct vmt_io_ops ops = vmt_io_system;
	struct vmt_store_options options = { .ops = &ops, .min_free_bytes = 1000 };
	struct vmt_store_writer *w;
	uint8_t records[32];
	struct vmt_diag diag = { 0 };
	struct seen seen;

	(void)state;
	ops.free_bytes = pretend_free;
	vmt_store_fill_records(records, 1, 1);
	free_now = 999;
	w = vmt_sample_create(files.path, &options);
	assert_int_equal(vmt_store_append_records(w, records, 32, SECOND, &diag), VMT_E_FULL);
	assert_string_not_equal(diag.cure, "");
	free_now = 1000;
	while (vmt_store_append_records(w, records, 32, SECOND, NULL) == VMT_E_FULL)
		usleep(50000);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	seen = see_store(vmt_sample_open(files.path));
	assert_int_equal(seen.records, 1);
	assert_string_equal(seen.kinds, "free-space ");
	assert_true(seen.lost_records >= 1);
}

static void a_snapshot_copies_a_window_of_a_live_file(void **state)
{
	struct vmt_store_snapshot options = { .from_ns = 61 * SECOND };
	struct vmt_store_writer *w =
		vmt_sample_create(files.path, &(struct vmt_store_options){ 0 });
	struct vmt_store_totals totals;
	struct vmt_diag diag = { 0 };
	struct seen seen;

	(void)state;
	put_metadata(w);
	put_seconds(w, 1, 100);
	assert_int_equal(vmt_store_snapshot(files.path, files.copy_path, &options, &totals, &diag),
			 0);
	seen = see_store(vmt_sample_open(files.copy_path));
	assert_int_equal(seen.records, 40);
	assert_int_equal(seen.first, 61);
	assert_int_equal(seen.last, 100);
	assert_true(seen.metadata_first);
	assert_true(seen.closed);
	assert_int_equal(seen.losses, 1); /* the front was left out on purpose */
	assert_string_equal(seen.kinds, "keep ");
	assert_int_equal(seen.lost_records, 0);
	assert_int_equal(vmt_store_snapshot(files.path, files.copy_path, &options, NULL, &diag),
			 VMT_E_EXISTS);
	options.store.force = true;
	options.from_ns = 0;
	options.to_ns = 5 * SECOND;
	put_seconds(w, 101, 3);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_store_snapshot(files.path, files.copy_path, &options, NULL, &diag), 0);
	seen = see_store(vmt_sample_open(files.copy_path));
	assert_int_equal(seen.records, 5);
	vmt_store_abandon(w);
}

static void a_failed_snapshot_leaves_the_old_one(void **state)
{
	struct vmt_store_snapshot options = { .store = { .force = true, .limit_bytes = 65536 } };
	struct vmt_store_writer *w =
		vmt_sample_create(files.path, &(struct vmt_store_options){ 0 });
	int fd = open(files.copy_path, O_CREAT | O_WRONLY, 0600);
	struct stat st;

	(void)state;
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	put_metadata(w);
	put_seconds(w, 1, 100);
	assert_int_equal(vmt_store_snapshot(files.path, files.copy_path, &options, NULL, NULL),
			 VMT_E_FULL);
	assert_int_equal(stat(files.copy_path, &st), 0);
	assert_int_equal(st.st_size, 3);
	options.store.force = false;
	unlink(files.copy_path);
	assert_int_equal(vmt_store_snapshot(files.path, files.copy_path, &options, NULL, NULL),
			 VMT_E_FULL);
	assert_int_equal(stat(files.copy_path, &st), -1);
	vmt_store_abandon(w);
}

static void the_index_leads_to_a_time(void **state)
{
	struct vmt_store_writer *w =
		vmt_sample_create(files.path,
				  &(struct vmt_store_options){ .segment_bytes = 16384 });
	struct vmt_store_reader *store;
	struct vmt_item item;
	struct seen seen;

	(void)state;
	put_metadata(w);
	put_seconds(w, 1, 100);
	store = vmt_sample_open(files.path);
	assert_int_equal(vmt_store_seek(store, 90 * SECOND, NULL), VMT_E_UNSUPPORTED);
	assert_int_equal(see_store(store).records, 100);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	store = vmt_sample_open(files.path);
	assert_int_equal(vmt_store_seek(store, 90 * SECOND, NULL), 0);
	seen = see_store(store);
	assert_in_range(seen.first, 86, 90);
	assert_int_equal(seen.last, 100);
	assert_true(seen.metadata_first);
	assert_int_equal(seen.losses, 0);
	store = vmt_sample_open(files.path);
	assert_int_equal(vmt_store_next(store, &item, NULL), 1);
	assert_int_equal(vmt_store_seek(store, 90 * SECOND, NULL), VMT_E_UNSUPPORTED);
	assert_int_equal(see_store(store).records, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(metadata_is_repeated_and_delivered_once, remove_files),
		cmocka_unit_test_teardown(a_ring_keeps_the_newest, remove_files),
		cmocka_unit_test_teardown(a_ring_turns_while_it_is_read, remove_files),
		cmocka_unit_test_teardown(a_ring_keeps_to_its_size, remove_files),
		cmocka_unit_test_teardown(a_ring_that_cannot_drop_says_so, remove_files),
		cmocka_unit_test_teardown(the_limit_holds_and_the_loss_is_told, remove_files),
		cmocka_unit_test_teardown(the_guard_stops_and_goes_on, remove_files),
		cmocka_unit_test_teardown(a_snapshot_copies_a_window_of_a_live_file, remove_files),
		cmocka_unit_test_teardown(a_failed_snapshot_leaves_the_old_one, remove_files),
		cmocka_unit_test_teardown(the_index_leads_to_a_time, remove_files),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
