// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The operating system fails at every call, through the table of operations: no space at each
 * write, wholly or in part, once, for a while or for good; EINTR, EAGAIN, short transfers; EMFILE,
 * EACCES and the like. What was written stays readable and what is missing is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/store_sample.h"

#define CHUNKS	   24u
#define NR_RECORDS 12u
#define FILE_ID	   77u

static char folder[] = "/tmp/vmt-system-XXXXXX";
static char path[64];

static const struct vmt_sample_options sample = { CHUNKS, NR_RECORDS, true };

/* What goes wrong, and how often something was called. */
static struct {
	unsigned int fail_at;  /* the writev that fails, from 1; 0: none */
	unsigned int fail_for; /* how many fail */
	int error;
	size_t partial; /* bytes that still get through */
	bool no_truncate, no_seek;
	size_t disk;
	unsigned int writes;
	bool flaky;
	unsigned int calls;
} plan;

/* In a flaky system two of three calls have to be made again. */
static bool flaky_refuses(void)
{
	if (!plan.flaky || plan.calls++ % 3 == 2)
		return false;
	errno = plan.calls % 3 == 1 ? EINTR : EAGAIN;
	return true;
}

static ssize_t first_bytes(int fd, const struct iovec *iov, int n, size_t len)
{
	ssize_t total = 0;

	for (int i = 0; i < n && len; i++) {
		size_t part = iov[i].iov_len < len ? iov[i].iov_len : len;

		if (write(fd, iov[i].iov_base, part) != (ssize_t)part)
			abort();
		len -= part;
		total += (ssize_t)part;
	}
	return total;
}

static ssize_t plan_writev(int fd, const struct iovec *iov, int n)
{
	if (flaky_refuses())
		return -1;
	if (plan.flaky)
		return first_bytes(fd, iov, n, 1 + plan.calls % 97);
	plan.writes++;
	if (!plan.fail_at || plan.writes < plan.fail_at)
		return writev(fd, iov, n);
	if (plan.writes == plan.fail_at && plan.partial)
		return first_bytes(fd, iov, n, plan.partial);
	if (plan.writes >= plan.fail_at + (plan.partial != 0) + plan.fail_for)
		return writev(fd, iov, n);
	errno = plan.error;
	return -1;
}

static int plan_ftruncate(int fd, off_t len)
{
	if (plan.no_truncate) {
		errno = EINVAL;
		return -1;
	}
	return ftruncate(fd, len);
}

static off_t plan_lseek(int fd, off_t offset, int whence)
{
	if (plan.no_seek) {
		errno = ESPIPE;
		return -1;
	}
	return lseek(fd, offset, whence);
}

static ssize_t plan_read(int fd, void *buf, size_t len)
{
	if (flaky_refuses())
		return -1;
	if (plan.flaky && len > 1 + plan.calls % 89)
		len = 1 + plan.calls % 89;
	plan.writes++;
	if (plan.fail_at && plan.writes >= plan.fail_at) {
		errno = plan.error;
		return -1;
	}
	if (plan.fail_at && len > 1000)
		len = 1000;
	return read(fd, buf, len);
}

static struct vmt_io_ops plan_ops(void)
{
	struct vmt_io_ops ops = vmt_io_system;

	ops.writev = plan_writev;
	ops.ftruncate = plan_ftruncate;
	ops.lseek = plan_lseek;
	ops.read = plan_read;
	return ops;
}

struct tally {
	size_t chunks; /* of RECORDS */
	uint64_t lost_records, lost_items;
	size_t attrs, formats, sessions;
	bool closed;
};

/* Reads what was written under the plan: each RECORDS is one of the sample's, in order. */
static struct tally read_back(void)
{
	uint8_t expected[NR_RECORDS * VMT_SAMPLE_RECORD];
	struct tally t = { 0 };
	struct vmt_store_reader *store;
	struct vmt_reader *reader;
	struct vmt_item item;
	struct vmt_ledger l;
	uint32_t last = 0;

	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_store_open(&store, reader, NULL), 0);
	while (vmt_store_next(store, &item, NULL) == 1) {
		if (item.type == VMT_ITEM_RECORDS) {
			uint32_t number;

			assert_int_equal(item.len, sizeof(expected));
			memcpy(&number, item.data + 8, sizeof(number));
			assert_true(number > last);
			last = number;
			vmt_sample_records(expected, NR_RECORDS, number);
			assert_memory_equal(item.data, expected, sizeof(expected));
			t.chunks++;
			/* Metadata goes out before any record. */
			assert_true(t.sessions && t.attrs == 3 && t.formats == 3);
		}
		t.attrs += item.type == VMT_ITEM_ATTR;
		t.formats += item.type == VMT_ITEM_FORMAT;
		t.sessions += item.type == VMT_ITEM_SESSION;
		t.closed = t.closed || item.type == VMT_ITEM_END;
		if (item.type == VMT_ITEM_LOSS) {
			t.lost_items++;
			t.lost_records += item.lost_records;
		}
	}
	l = vmt_store_ledger(store);
	assert_int_equal(l.bytes_total, l.bytes_decoded + l.bytes_skipped);
	assert_int_equal(l.truncated, !t.closed);
	vmt_store_close(store);
	return t;
}

/* Writes the sample under the plan; 1 when the file exists, *closed when it was finished. */
static bool write_sample(int *finished)
{
	struct vmt_io_ops ops = plan_ops();
	struct vmt_store_options options = { .ops = &ops, .file_id = FILE_ID };
	struct vmt_store_writer *w;
	struct vmt_diag diag = { 0 };
	int err;

	unlink(path);
	plan.writes = plan.calls = 0;
	err = vmt_store_create(&w, path, &options, &diag);
	if (err) {
		assert_int_equal(access(path, F_OK), -1);
		assert_string_not_equal(diag.what, "");
		return false;
	}
	vmt_sample_append(w, &sample);
	*finished = vmt_store_finish(w, &diag);
	return true;
}

static void fail_each_write(unsigned int fail_for)
{
	static const size_t partials[] = { 0, 1, 40, 80, 200 };
	unsigned int writes;
	int finished;

	memset(&plan, 0, sizeof(plan));
	assert_true(write_sample(&finished));
	writes = plan.writes;
	for (unsigned int i = 1; i <= writes; i++) {
		for (unsigned int j = 0; j < 5 * 3; j++) {
			struct tally t;

			memset(&plan, 0, sizeof(plan));
			plan.fail_at = i;
			plan.fail_for = fail_for;
			plan.error = i % 5 ? ENOSPC : EIO;
			plan.partial = partials[j % 5];
			plan.no_truncate = j / 5 == 1;
			plan.no_seek = j / 5 == 2;
			if (!write_sample(&finished))
				continue;
			t = read_back();
			assert_int_equal(t.closed, finished == 0);
			if (t.closed)
				assert_int_equal(t.chunks * NR_RECORDS + t.lost_records,
						 CHUNKS * NR_RECORDS);
			if (t.chunks < CHUNKS)
				assert_true(t.lost_items > 0);
			if (fail_for < 4 && i < writes - 8)
				assert_true(t.closed && t.chunks + 4 >= CHUNKS);
		}
	}
	print_message("# each of %u writes\n", writes);
}

/* A disk of plan.disk bytes, which its allocation knows. */
static int disk_fallocate(int fd, int mode, off_t offset, off_t len)
{
	if (flaky_refuses())
		return -1;
	if (!(mode & FALLOC_FL_PUNCH_HOLE) && (size_t)(offset + len) > plan.disk) {
		errno = ENOSPC;
		return -1;
	}
	return fallocate(fd, mode, offset, len);
}

static ssize_t disk_writev(int fd, const struct iovec *iov, int n)
{
	size_t room = plan.disk - (size_t)lseek(fd, 0, SEEK_CUR), len = 0;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	assert_true(len <= room);
	return writev(fd, iov, n);
}

/* However large the disk: the file is closed, and each record is there or told to be lost. */
static void a_full_disk_is_told_in_order(void **state)
{
	struct vmt_io_ops ops = plan_ops();
	struct vmt_store_options options = { .ops = &ops };

	(void)state;
	ops.fallocate = disk_fallocate;
	ops.writev = disk_writev;
	for (size_t disk = 8000; disk < 30000; disk += 97) {
		struct vmt_store_writer *w;
		struct tally t;

		memset(&plan, 0, sizeof(plan));
		plan.disk = disk;
		unlink(path);
		assert_int_equal(vmt_store_create(&w, path, &options, NULL), 0);
		vmt_sample_append(w, &sample);
		assert_int_equal(vmt_store_finish(w, NULL), 0);
		t = read_back();
		assert_true(t.closed);
		assert_int_equal(t.chunks * NR_RECORDS + t.lost_records, CHUNKS * NR_RECORDS);
	}
}

static void no_space_once(void **state)
{
	(void)state;
	fail_each_write(1);
}

static void no_space_for_a_while(void **state)
{
	(void)state;
	fail_each_write(7);
}

static void no_space_from_then_on(void **state)
{
	(void)state;
	fail_each_write(UINT32_MAX / 2);
}

/* The kernel's own: it writes up to the limit, in the middle of a chunk, and then refuses. */
static void the_kernels_limit_on_file_size(void **state)
{
	struct rlimit before, low;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	int finished = 0;
	struct tally t;

	(void)state;
	memset(&plan, 0, sizeof(plan));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (rlim_t limit = 10001; limit < 24000; limit += 1111) {
		low = (struct rlimit){ limit, before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
		assert_true(write_sample(&finished));
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		t = read_back();
		assert_int_equal(t.closed, finished == 0);
		assert_true(t.chunks > 0);
		assert_true(t.chunks == CHUNKS || t.lost_items > 0);
	}
	signal(SIGXFSZ, handler);
}

static void interrupted_and_short_writes(void **state)
{
	struct vmt_io_ops ops = plan_ops();
	struct vmt_store_options options = { .ops = &ops, .file_id = FILE_ID };
	struct vmt_sample clean, flaky;

	(void)state;
	memset(&plan, 0, sizeof(plan));
	clean = vmt_sample_make(path, &options, &sample);
	plan.flaky = true;
	flaky = vmt_sample_make(path, &options, &sample);
	assert_int_equal(clean.len, flaky.len);
	assert_memory_equal(clean.bytes, flaky.bytes, clean.len);
	vmt_sample_free(&clean);
	vmt_sample_free(&flaky);
}

static struct vmt_store_reader *open_planned(const struct vmt_io_ops *ops, int *err)
{
	struct vmt_reader *reader;
	struct vmt_store_reader *store = NULL;
	struct vmt_diag diag = { 0 };

	*err = vmt_reader_open(&reader, path, ops, &diag);
	if (*err)
		return NULL;
	*err = vmt_store_open(&store, reader, &diag);
	if (*err) {
		assert_string_not_equal(diag.what, "");
		vmt_reader_close(reader);
	}
	return store;
}

static void interrupted_and_short_reads(void **state)
{
	struct vmt_io_ops ops = plan_ops();
	struct vmt_store_reader *store;
	struct vmt_item item;
	size_t records = 0;
	int err;

	(void)state;
	memset(&plan, 0, sizeof(plan));
	assert_true(write_sample(&err));
	plan.flaky = true;
	store = open_planned(&ops, &err);
	assert_non_null(store);
	while (vmt_store_next(store, &item, NULL) == 1) {
		assert_true(item.type != VMT_ITEM_LOSS);
		records += item.type == VMT_ITEM_RECORDS;
	}
	assert_int_equal(records, CHUNKS);
	vmt_store_close(store);
}

static void failed_reads(void **state)
{
	struct vmt_io_ops ops = plan_ops();
	unsigned int n = 1;
	int err;

	(void)state;
	memset(&plan, 0, sizeof(plan));
	assert_true(write_sample(&err));
	for (;; n++) {
		struct vmt_store_reader *store;
		struct vmt_diag diag = { 0 };
		struct vmt_item item;

		memset(&plan, 0, sizeof(plan));
		plan.fail_at = n;
		plan.error = EIO;
		plan.no_seek = n % 2;
		store = open_planned(&ops, &err);
		if (!store) {
			assert_int_equal(err, VMT_E_IO);
			continue;
		}
		do
			err = vmt_store_next(store, &item, &diag);
		while (err == 1);
		vmt_store_close(store);
		if (!err)
			break;
		assert_int_equal(err, VMT_E_IO);
		assert_int_equal(diag.sys_errno, EIO);
	}
	assert_true(n > 10);
	print_message("# each of %u reads\n", n);
}

static int open_error;

static int failing_openat(int dirfd, const char *name, int flags, mode_t mode)
{
	(void)dirfd;
	(void)name;
	(void)flags;
	(void)mode;
	errno = open_error;
	return -1;
}

static void refused_opens(void **state)
{
	static const struct {
		int error;
		enum vmt_err code;
	} rows[] = {
		{ EMFILE, VMT_E_IO },
		{ ENFILE, VMT_E_IO },
		{ EACCES, VMT_E_PERMISSION },
		{ EPERM, VMT_E_PERMISSION },
		{ EROFS, VMT_E_PERMISSION },
		{ ENOENT, VMT_E_NOT_FOUND },
		{ ENOSPC, VMT_E_FULL },
		{ EDQUOT, VMT_E_FULL },
		{ EIO, VMT_E_IO },
	};
	struct vmt_io_ops ops = plan_ops();
	struct vmt_store_options options = { .ops = &ops };

	(void)state;
	ops.openat = failing_openat;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vmt_store_writer *w;
		struct vmt_reader *reader;
		struct vmt_diag diag = { 0 };

		open_error = rows[i].error;
		assert_int_equal(vmt_reader_open(&reader, path, &ops, &diag), rows[i].code);
		assert_int_equal(diag.sys_errno, rows[i].error);
		assert_string_not_equal(diag.cure, "");
		vmt_diag_clear(&diag);
		assert_int_equal(vmt_store_create(&w, path, &options, &diag), rows[i].code);
		assert_int_equal(diag.sys_errno, rows[i].error);
		assert_string_not_equal(diag.cure, "");
	}
}

static int fail_two(int fd)
{
	(void)fd;
	errno = EIO;
	return -1;
}

static int fail_rename(int from_dir, const char *from, int to_dir, const char *to)
{
	(void)from_dir;
	(void)from;
	(void)to_dir;
	(void)to;
	errno = EACCES;
	return -1;
}

static void a_sync_that_fails_is_told(void **state)
{
	struct vmt_io_ops ops = vmt_io_system;
	struct vmt_store_options options = { .ops = &ops };
	struct vmt_store_writer *w;
	struct vmt_diag diag = { 0 };

	(void)state;
	ops.fsync = fail_two;
	assert_int_equal(vmt_store_create(&w, path, &options, NULL), 0);
	vmt_sample_append(w, &sample);
	assert_int_equal(vmt_store_finish(w, &diag), VMT_E_IO);
	assert_int_equal(diag.sys_errno, EIO);
	assert_int_equal(read_back().chunks, CHUNKS);
}

static void a_replacement_that_fails_keeps_the_old(void **state)
{
	struct vmt_io_ops ops = vmt_io_system;
	struct vmt_store_options options = { .ops = &ops, .force = true };
	struct vmt_store_writer *w;
	struct vmt_diag diag = { 0 };
	struct stat st;
	int fd;

	(void)state;
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	ops.renameat = fail_rename;
	assert_int_equal(vmt_store_create(&w, path, &options, &diag), VMT_E_PERMISSION);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 3);
	unlink(path);
	/* The temporary file is gone as well. */
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.vmt", folder);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_full_disk_is_told_in_order, remove_file),
		cmocka_unit_test_teardown(no_space_once, remove_file),
		cmocka_unit_test_teardown(no_space_for_a_while, remove_file),
		cmocka_unit_test_teardown(no_space_from_then_on, remove_file),
		cmocka_unit_test_teardown(the_kernels_limit_on_file_size, remove_file),
		cmocka_unit_test_teardown(interrupted_and_short_writes, remove_file),
		cmocka_unit_test_teardown(interrupted_and_short_reads, remove_file),
		cmocka_unit_test_teardown(failed_reads, remove_file),
		cmocka_unit_test_teardown(refused_opens, remove_file),
		cmocka_unit_test_teardown(a_sync_that_fails_is_told, remove_file),
		cmocka_unit_test_teardown(a_replacement_that_fails_keeps_the_old, remove_file),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
