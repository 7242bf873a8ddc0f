// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/io/diagf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct errno_row {
	int sys_errno;
	enum vmt_err code;
	const char *cure;
};

static const struct errno_row rows[] = {
	{ EACCES, VMT_E_PERMISSION, "the mode of the file or of a folder above it forbids it" },
	{ EPERM, VMT_E_PERMISSION, "the system forbids it to this user" },
	{ EROFS, VMT_E_PERMISSION, "the file system is mounted read-only" },
	{ ENOENT, VMT_E_NOT_FOUND, "the file or a folder above it does not exist" },
	{ ENOTDIR, VMT_E_NOT_FOUND, "a part of the path is not a folder" },
	{ ENOSPC, VMT_E_FULL, "free space on the file system, or choose another with --output" },
	{ EDQUOT, VMT_E_FULL, "the disk quota of this user is used up" },
	{ EFBIG, VMT_E_FULL, "the file system or `ulimit -f` allows no larger file" },
	{ EEXIST, VMT_E_EXISTS, "choose another name, or --force to replace it" },
	{ ENOMEM, VMT_E_NOMEM, "memory is short" },
	{ EMFILE, VMT_E_IO, "too many open files: raise `ulimit -n`" },
	{ ENFILE, VMT_E_IO, "too many open files on this system (fs.file-max)" },
	{ EISDIR, VMT_E_IO, "it is a folder: name a file in it" },
	{ ELOOP, VMT_E_IO, "it is a symbolic link, which is not followed here" },
	{ EIO, VMT_E_IO, "the device failed: see the kernel's log" },
};

static const struct errno_row *row_of(int sys_errno)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].sys_errno == sys_errno)
			return &rows[i];
	return NULL;
}

enum vmt_err vmt_err_of_errno(int sys_errno)
{
	const struct errno_row *row = row_of(sys_errno);

	return row ? row->code : VMT_E_IO;
}

static void quieten(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

int vmt_diag_printf(struct vmt_diag *diag, enum vmt_err code, int sys_errno, const char *cure,
		    const char *format, ...)
{
	const struct errno_row *row = row_of(sys_errno);
	char what[sizeof(diag->what)];
	va_list args;
	size_t used;

	if (!diag || diag->code)
		return (int)code;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	used = strlen(what);
	if (sys_errno)
		snprintf(what + used, sizeof(what) - used, ": %s", strerror(sys_errno));
	quieten(what);
	diag->sys_errno = sys_errno;
	return vmt_diag_set(diag, code, what, cure ? cure : row ? row->cure : "");
}

void vmt_diag_cure(struct vmt_diag *diag, const char *format, ...)
{
	va_list args;

	if (!diag || !diag->code)
		return;
	va_start(args, format);
	vsnprintf(diag->cure, sizeof(diag->cure), format, args);
	va_end(args);
	quieten(diag->cure);
}
