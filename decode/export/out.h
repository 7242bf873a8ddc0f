/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_OUT_H
#define VMT_EXPORT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "decode/base/diag.h"
#include "decode/io/ops.h"

/*
 * Buffered writer over a descriptor that it does not own. A write that fails is remembered, the
 * rest of the output is thrown away, and vmt_out_finish says what happened. A reader that went away
 * (EPIPE) is no error: `gone` is set, so that the caller may stop early.
 */
#define VMT_OUT_BUFFER 65536u
#define VMT_OUT_ROOM   4096u /* most that vmt_out_room gives */

struct vmt_out {
	int fd;
	const struct vmt_io_ops *ops;
	size_t len;
	int sys_errno; /* of the first failed write, 0 none */
	bool gone;     /* it was EPIPE */
	uint64_t written;
	char buffer[VMT_OUT_BUFFER];
};

/* ops NULL: the system. */
void vmt_out_init(struct vmt_out *out, int fd, const struct vmt_io_ops *ops);

/* Writes what is buffered. */
void vmt_out_flush(struct vmt_out *out);

/* Flushes; 0, also when the reader has gone; VMT_E_FULL when space or quota are exhausted, else
 * VMT_E_IO. */
int vmt_out_finish(struct vmt_out *out, struct vmt_diag *diag);

void vmt_out_bytes(struct vmt_out *out, const char *bytes, size_t len);
void vmt_out_str(struct vmt_out *out, const char *text);
void vmt_out_printf(struct vmt_out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* n times the same character. */
void vmt_out_repeat(struct vmt_out *out, char c, size_t n);

/* Text from a guest, a file or a name, for a terminal: control characters, malformed UTF-8 and
 * characters that turn the direction of writing become '?'. */
void vmt_out_safe(struct vmt_out *out, const char *text);

/* Room for n <= VMT_OUT_ROOM bytes to be written by hand; vmt_out_took says up to where. */
static inline char *vmt_out_room(struct vmt_out *out, size_t n)
{
	if (VMT_OUT_BUFFER - out->len < n)
		vmt_out_flush(out);
	return out->buffer + out->len;
}

static inline void vmt_out_took(struct vmt_out *out, const char *end)
{
	out->len = (size_t)(end - out->buffer);
}

static inline void vmt_out_char(struct vmt_out *out, char c)
{
	char *p = vmt_out_room(out, 1);

	*p = c;
	out->len++;
}

#endif
