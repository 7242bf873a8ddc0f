// SPDX-License-Identifier: LGPL-2.1-or-later
/* The buffered writer over a system that interrupts, shortens, fills up and goes away. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/export/out.h"

static struct {
	char bytes[1u << 20];
	size_t len, room; /* room: until the disk is full */
	int fail;	  /* errno when the room is used up */
	unsigned int calls;
	bool awkward; /* EINTR, EAGAIN and short transfers in turn */
} disk;

static ssize_t fake_writev(int fd, const struct iovec *iov, int n)
{
	size_t len = iov[0].iov_len, left = disk.room - disk.len;

	(void)fd;
	assert_int_equal(n, 1);
	disk.calls++;
	if (disk.awkward && disk.calls % 3 != 0) {
		errno = disk.calls % 3 == 1 ? EINTR : EAGAIN;
		return -1;
	}
	if (left == 0) {
		errno = disk.fail;
		return -1;
	}
	if (disk.awkward && len > 1)
		len = 1 + len / 3;
	len = len < left ? len : left;
	memcpy(disk.bytes + disk.len, iov[0].iov_base, len);
	disk.len += len;
	return (ssize_t)len;
}

static const struct vmt_io_ops ops = { .writev = fake_writev };

static struct vmt_out *begin(size_t room, int fail, bool awkward)
{
	struct vmt_out *out = malloc(sizeof(*out));

	assert_non_null(out);
	memset(&disk, 0, sizeof(disk));
	disk.room = room;
	disk.fail = fail;
	disk.awkward = awkward;
	vmt_out_init(out, 1000, &ops);
	return out;
}

static void fill(struct vmt_out *out, size_t lines)
{
	for (size_t i = 0; i < lines; i++)
		vmt_out_printf(out, "line %08zu\n", i);
}

static void all_arrives(void **state)
{
	struct vmt_out *out = begin(sizeof(disk.bytes), 0, true);
	struct vmt_diag diag = { 0 };

	(void)state;
	fill(out, 20000);
	assert_int_equal(vmt_out_finish(out, &diag), 0);
	assert_int_equal(disk.len, (size_t)20000 * 14);
	assert_memory_equal(disk.bytes + (size_t)14 * 12345, "line 00012345\n", 14);
	assert_int_equal(out->written, disk.len);
	free(out);
}

static void full_is_an_error(void **state)
{
	static const struct {
		int sys_errno;
		enum vmt_err code;
	} cases[] = { { ENOSPC, VMT_E_FULL },
		      { EDQUOT, VMT_E_FULL },
		      { EFBIG, VMT_E_FULL },
		      { EIO, VMT_E_IO } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vmt_out *out = begin(100000, cases[i].sys_errno, false);
		struct vmt_diag diag = { 0 };
		unsigned int calls;

		fill(out, 20000);
		calls = disk.calls;
		fill(out, 20000); /* thrown away, not tried again */
		assert_int_equal(disk.calls, calls);
		assert_int_equal(vmt_out_finish(out, &diag), cases[i].code);
		assert_int_equal(diag.code, cases[i].code);
		assert_int_equal(diag.sys_errno, cases[i].sys_errno);
		assert_true(diag.what[0] && diag.cure[0]);
		free(out);
	}
}

static void reader_that_goes_is_none(void **state)
{
	struct vmt_out *out = begin(70000, EPIPE, false);
	struct vmt_diag diag = { 0 };

	(void)state;
	fill(out, 20000);
	assert_true(out->gone);
	assert_int_equal(vmt_out_finish(out, &diag), 0);
	assert_int_equal(diag.code, VMT_OK);
	free(out);
}

static void long_texts_are_cut(void **state)
{
	struct vmt_out *out = begin(sizeof(disk.bytes), 0, false);
	const size_t size = 2 * (size_t)VMT_OUT_BUFFER;
	char *text = malloc(size + 1);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', size);
	text[size] = '\0';
	vmt_out_printf(out, "%s", text);
	assert_int_equal(out->len, VMT_OUT_ROOM - 1);
	vmt_out_str(out, text); /* longer than the buffer: all of it */
	assert_int_equal(vmt_out_finish(out, NULL), 0);
	assert_int_equal(disk.len, VMT_OUT_ROOM - 1 + size);
	free(text);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_arrives),
		cmocka_unit_test(full_is_an_error),
		cmocka_unit_test(reader_that_goes_is_none),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
