// SPDX-License-Identifier: LGPL-2.1-or-later
/* The sequential reader, files that are created, and the texts of errors. */
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

#include "decode/io/diagf.h"
#include "decode/io/output.h"
#include "decode/io/reader.h"

#define BIG (3u << 20)

static char folder[] = "/tmp/vmt-io-XXXXXX";
static char path[64], link_path[64];

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 2654435761u >> 11);
}

static void write_file(size_t len)
{
	uint8_t *bytes = malloc(len + 1);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(i);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
	free(bytes);
}

static struct vmt_reader *open_file(void)
{
	struct vmt_reader *reader;

	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	return reader;
}

/* A pipe that a child fills with the file. */
static struct vmt_reader *open_pipe(FILE **cat)
{
	struct vmt_reader *reader;
	char command[80];

	snprintf(command, sizeof(command), "cat %s", path);
	*cat = popen(command, "r");
	assert_non_null(*cat);
	assert_int_equal(vmt_reader_from_fd(&reader, dup(fileno(*cat)), NULL, NULL), 0);
	return reader;
}

static void assert_at(struct vmt_reader *reader, uint64_t offset, size_t n)
{
	const uint8_t *bytes;

	assert_int_equal(vmt_reader_offset(reader), offset);
	assert_true(vmt_reader_peek(reader, n, &bytes, NULL) >= (int64_t)n);
	assert_int_equal(bytes[0], byte_at(offset));
	assert_int_equal(bytes[n - 1], byte_at(offset + n - 1));
}

static void walk(struct vmt_reader *reader)
{
	const uint8_t *bytes;
	uint64_t at = 0;

	for (size_t n = 1; at + n + 5 < BIG; n = n * 3 / 2 + 7) {
		assert_at(reader, at, n);
		assert_int_equal(vmt_reader_skip(reader, n + 5, NULL), 0);
		at += n + 5;
	}
	assert_int_equal(vmt_reader_peek(reader, BIG, &bytes, NULL), BIG - at);
	assert_int_equal(vmt_reader_skip(reader, BIG - at, NULL), 0);
	assert_int_equal(vmt_reader_peek(reader, 1, &bytes, NULL), 0);
	assert_int_equal(vmt_reader_skip(reader, 1, NULL), VMT_E_TRUNCATED);
}

static void files_are_read(void **state)
{
	struct vmt_reader *reader;

	(void)state;
	write_file(BIG);
	reader = open_file();
	assert_int_equal(vmt_reader_size(reader), BIG);
	assert_true(vmt_reader_can_seek(reader));
	walk(reader);
	assert_int_equal(vmt_reader_seek(reader, 12345, NULL), 0);
	assert_at(reader, 12345, 2000000);
	assert_int_equal(vmt_reader_seek(reader, 12346, NULL), 0);
	assert_at(reader, 12346, 10);
	assert_int_equal(vmt_reader_skip(reader, 2500000, NULL), 0);
	assert_at(reader, 2512346, 1);
	vmt_reader_close(reader);
}

static void pipes_are_read(void **state)
{
	struct vmt_reader *reader;
	struct vmt_diag diag = { 0 };
	FILE *cat;

	(void)state;
	write_file(BIG);
	reader = open_pipe(&cat);
	assert_int_equal(vmt_reader_size(reader), 0);
	assert_false(vmt_reader_can_seek(reader));
	assert_int_equal(vmt_reader_seek(reader, 5, &diag), VMT_E_UNSUPPORTED);
	assert_int_equal(vmt_reader_skip_hole(reader), 0);
	walk(reader);
	vmt_reader_close(reader);
	pclose(cat);
}

static void check_read_at(struct vmt_reader *reader, uint64_t offset, size_t len)
{
	uint8_t bytes[512];
	size_t done;

	assert_int_equal(vmt_reader_read_at(reader, offset, bytes, len, &done, NULL), 0);
	assert_int_equal(done, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], byte_at(offset + i));
}

/* Reads elsewhere leave what was peeked and the position as they are. */
static void reads_elsewhere(void **state)
{
	struct vmt_reader *reader;
	const uint8_t *peeked;
	struct vmt_diag diag = { 0 };
	uint8_t bytes[64];
	size_t done;

	(void)state;
	write_file(BIG);
	reader = open_file();
	assert_int_equal(vmt_reader_skip(reader, 4321, NULL), 0);
	assert_true(vmt_reader_peek(reader, 100, &peeked, NULL) >= 100);
	check_read_at(reader, 0, 512);
	check_read_at(reader, BIG - 100, 100);
	assert_int_equal(peeked[99], byte_at(4321 + 99));
	assert_at(reader, 4321, 2000000);
	assert_int_equal(vmt_reader_read_at(reader, BIG - 10, bytes, 64, &done, &diag),
			 VMT_E_TRUNCATED);
	assert_int_equal(done, 10);
	assert_int_equal(bytes[9], byte_at(BIG - 1));
	assert_int_equal(vmt_reader_read_at(reader, UINT64_MAX - 5, bytes, 64, &done, NULL),
			 VMT_E_TRUNCATED);
	vmt_reader_close(reader);
}

/* What is left of a pipe becomes a file; offsets stay those of the pipe. */
static void pipes_are_spooled(void **state)
{
	(void)state;
	write_file(BIG);
	for (uint64_t from = 0; from <= BIG; from += BIG / 2) {
		struct vmt_reader *reader;
		uint8_t byte;
		uint64_t lost = 1;
		size_t done;
		FILE *cat;

		reader = open_pipe(&cat);
		assert_int_equal(vmt_reader_skip(reader, from, NULL), 0);
		assert_int_equal(vmt_reader_read_at(reader, from, &byte, 1, &done, NULL),
				 VMT_E_UNSUPPORTED);
		assert_int_equal(vmt_reader_spool(reader, &lost, NULL), 0);
		assert_int_equal(lost, 0);
		assert_true(vmt_reader_can_seek(reader));
		assert_int_equal(vmt_reader_size(reader), BIG);
		assert_int_equal(vmt_reader_offset(reader), from);
		if (from < BIG) {
			assert_at(reader, from, 1000);
			check_read_at(reader, BIG - 500, 500);
			assert_int_equal(vmt_reader_skip(reader, BIG - from - 5, NULL), 0);
			assert_at(reader, BIG - 5, 5);
			assert_int_equal(vmt_reader_seek(reader, from + 7, NULL), 0);
			assert_at(reader, from + 7, 1);
		}
		if (from)
			assert_int_equal(vmt_reader_seek(reader, 0, NULL), VMT_E_DAMAGED);
		assert_int_equal(vmt_reader_spool(reader, &lost, NULL), 0); /* nothing to do */
		vmt_reader_close(reader);
		pclose(cat);
	}
}

/* A file system without O_TMPFILE: the file has a name for a moment. */
static int openat_named(int dirfd, const char *name, int flags, mode_t mode)
{
	if ((flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return vmt_io_system.openat(dirfd, name, flags, mode);
}

static void spools_without_o_tmpfile(void **state)
{
	struct vmt_io_ops ops = vmt_io_system;
	struct vmt_reader *reader;
	uint64_t lost;
	FILE *cat;

	(void)state;
	write_file(1000);
	setenv("TMPDIR", folder, 1);
	ops.openat = openat_named;
	cat = popen("printf 0123456789", "r");
	assert_non_null(cat);
	assert_int_equal(vmt_reader_from_fd(&reader, dup(fileno(cat)), &ops, NULL), 0);
	assert_int_equal(vmt_reader_spool(reader, &lost, NULL), 0);
	assert_int_equal(vmt_reader_size(reader), 10);
	vmt_reader_close(reader);
	pclose(cat);
	unsetenv("TMPDIR");
	unlink(path); /* nothing else is left: the folder can be removed */
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
}

static void peeks_are_bounded(void **state)
{
	struct vmt_reader *reader;
	const uint8_t *bytes;
	struct vmt_diag diag = { 0 };

	(void)state;
	write_file(100);
	reader = open_file();
	assert_int_equal(vmt_reader_peek(reader, VMT_READER_MAX + 1, &bytes, &diag), VMT_E_LIMIT);
	assert_int_equal(vmt_reader_peek(reader, VMT_READER_MAX, &bytes, NULL), 100);
	vmt_reader_close(reader);
}

static void holes_are_stepped_over(void **state)
{
	struct vmt_reader *reader;
	const uint8_t *bytes;
	int fd;

	(void)state;
	write_file(100);
	assert_int_equal(truncate(path, 50 << 20), 0);
	fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "end", 3), 3);
	close(fd);
	reader = open_file();
	assert_int_equal(vmt_reader_skip_hole(reader), 0);
	assert_at(reader, 0, 100);
	assert_int_equal(vmt_reader_skip(reader, 1 << 20, NULL), 0);
	assert_int_equal(vmt_reader_skip_hole(reader), 49 << 20);
	assert_int_equal(vmt_reader_peek(reader, 3, &bytes, NULL), 3);
	assert_memory_equal(bytes, "end", 3);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(truncate(path, 60 << 20), 0);
	assert_int_equal(vmt_reader_seek(reader, 1000, NULL), 0);
	assert_int_equal(vmt_reader_skip_hole(reader), (60 << 20) - 1000);
	assert_int_equal(vmt_reader_peek(reader, 1, &bytes, NULL), 0);
	vmt_reader_close(reader);
}

static void bad_inputs_are_refused(void **state)
{
	struct vmt_reader *reader;
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_int_equal(vmt_reader_open(&reader, folder, NULL, &diag), VMT_E_IO);
	assert_int_equal(diag.sys_errno, EISDIR);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_reader_open(&reader, "/nonexistent\x1b[2J", NULL, &diag),
			 VMT_E_NOT_FOUND);
	assert_string_equal(diag.what, "cannot open /nonexistent?[2J: No such file or directory");
}

static void put(struct vmt_output *out, const char *text)
{
	char copy[64];
	struct iovec iov = { copy, strlen(text) };
	size_t written;

	memcpy(copy, text, strlen(text) + 1);
	assert_int_equal(vmt_output_writev(out, &iov, 1, &written, NULL), 0);
	assert_int_equal(written, strlen(text));
}

static void assert_file(const char *name, const char *text)
{
	char bytes[64] = "";
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes) - 1), strlen(text));
	assert_string_equal(bytes, text);
	close(fd);
}

static void outputs_are_exclusive(void **state)
{
	struct vmt_output out;
	struct vmt_diag diag = { 0 };
	struct stat st;

	(void)state;
	umask(0);
	unlink(path);
	assert_int_equal(vmt_output_open(&out, path, false, NULL, NULL), 0);
	put(&out, "one");
	assert_int_equal(vmt_output_finish(&out, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(vmt_output_open(&out, path, false, NULL, &diag), VMT_E_EXISTS);
	assert_file(path, "one");
	/* A replacement is there only once it is complete. */
	assert_int_equal(vmt_output_open(&out, path, true, NULL, NULL), 0);
	put(&out, "two");
	assert_file(path, "one");
	assert_int_equal(vmt_output_finish(&out, NULL), 0);
	assert_file(path, "two");
	assert_int_equal(vmt_output_open(&out, path, true, NULL, NULL), 0);
	vmt_output_close(&out);
	assert_file(path, "two");
	unlink(path);
	assert_int_equal(vmt_output_open(&out, path, false, NULL, NULL), 0);
	vmt_output_discard(&out);
	assert_int_equal(access(path, F_OK), -1);
}

/* Neither written through nor replaced, and no word of --force, which would not help. */
static void outputs_follow_no_link(void **state)
{
	const char *const targets[] = { path, "/nonexistent/file", "/dev/null" };

	(void)state;
	write_file(3);
	for (size_t i = 0; i < 6; i++) {
		struct vmt_diag diag = { 0 };
		struct vmt_output out;
		struct stat st;

		assert_int_equal(symlink(targets[i / 2], link_path), 0);
		assert_int_equal(vmt_output_open(&out, link_path, i % 2, NULL, &diag),
				 VMT_E_EXISTS);
		assert_non_null(strstr(diag.what, "it is a symbolic link"));
		assert_null(strstr(diag.cure, "--force"));
		assert_int_equal(lstat(link_path, &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		unlink(link_path);
	}
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
}

static void devices_stay(void **state)
{
	struct vmt_output out;
	struct stat st;
	char full[] = "x";
	struct iovec iov = { full, 1 };

	(void)state;
	assert_int_equal(vmt_output_open(&out, "/dev/null", true, NULL, NULL), 0);
	put(&out, "gone");
	vmt_output_discard(&out);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(vmt_output_open(&out, "/dev/full", false, NULL, NULL), 0);
	assert_int_equal(vmt_output_writev(&out, &iov, 1, NULL, NULL), VMT_E_FULL);
	vmt_output_close(&out);
	for (int force = 0; force < 2; force++) {
		struct vmt_diag diag = { 0 };

		assert_int_equal(vmt_output_open(&out, folder, force, NULL, &diag), VMT_E_EXISTS);
		assert_null(strstr(diag.cure, "--force"));
	}
}

static void diags_keep_the_first_text(void **state)
{
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_int_equal(vmt_diag_printf(&diag, VMT_E_FULL, ENOSPC, NULL, "%s %d", "cannot", 7),
			 VMT_E_FULL);
	assert_string_equal(diag.what, "cannot 7: No space left on device");
	assert_string_not_equal(diag.cure, "");
	assert_int_equal(vmt_diag_printf(&diag, VMT_E_IO, 0, "other", "later"), VMT_E_IO);
	assert_int_equal(diag.code, VMT_E_FULL);
	vmt_diag_cure(&diag, "try %s\n", "this");
	assert_string_equal(diag.cure, "try this?");
	assert_int_equal(vmt_diag_printf(NULL, VMT_E_IO, 0, NULL, "nobody"), VMT_E_IO);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(link_path, sizeof(link_path), "%s/link", folder);
	return 0;
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
		cmocka_unit_test(files_are_read),
		cmocka_unit_test(pipes_are_read),
		cmocka_unit_test(reads_elsewhere),
		cmocka_unit_test(pipes_are_spooled),
		cmocka_unit_test(spools_without_o_tmpfile),
		cmocka_unit_test(peeks_are_bounded),
		cmocka_unit_test(holes_are_stepped_over),
		cmocka_unit_test(bad_inputs_are_refused),
		cmocka_unit_test(outputs_are_exclusive),
		cmocka_unit_test(outputs_follow_no_link),
		cmocka_unit_test(devices_stay),
		cmocka_unit_test(diags_keep_the_first_text),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
