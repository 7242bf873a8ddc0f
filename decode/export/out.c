// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: len <= VMT_OUT_BUFFER; after a failed write nothing more goes to the descriptor. */
#include "decode/export/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "decode/export/utf8.h"
#include "decode/io/sys.h"

void vmt_out_init(struct vmt_out *out, int fd, const struct vmt_io_ops *ops)
{
	out->fd = fd;
	out->ops = ops ? ops : &vmt_io_system;
	out->len = 0;
	out->sys_errno = 0;
	out->gone = false;
	out->written = 0;
}

void vmt_out_flush(struct vmt_out *out)
{
	size_t done = 0;

	while (done < out->len && !out->sys_errno) {
		struct iovec part = { .iov_base = out->buffer + done, .iov_len = out->len - done };
		ssize_t n = out->ops->writev(out->fd, &part, 1);

		if (n > 0) {
			done += (size_t)n;
			out->written += (uint64_t)n;
		} else if (n == 0) {
			out->sys_errno = EIO;
		} else if (!vmt_io_again(out->fd, errno, true)) {
			out->sys_errno = errno;
			out->gone = errno == EPIPE;
		}
	}
	out->len = 0;
}

int vmt_out_finish(struct vmt_out *out, struct vmt_diag *diag)
{
	bool full;

	vmt_out_flush(out);
	if (!out->sys_errno || out->gone)
		return 0;
	full = out->sys_errno == ENOSPC || out->sys_errno == EDQUOT || out->sys_errno == EFBIG;
	if (diag && diag->code == VMT_OK)
		diag->sys_errno = out->sys_errno;
	if (full)
		return vmt_diag_set(diag, VMT_E_FULL, "the output could not be written in full",
				    "no space left for it, or a quota or size limit was reached");
	return vmt_diag_set(diag, VMT_E_IO, "the output could not be written",
			    strerror(out->sys_errno));
}

void vmt_out_bytes(struct vmt_out *out, const char *bytes, size_t len)
{
	while (len) {
		size_t n = VMT_OUT_BUFFER - out->len;

		if (n == 0) {
			vmt_out_flush(out);
			continue;
		}
		n = n < len ? n : len;
		memcpy(out->buffer + out->len, bytes, n);
		out->len += n;
		bytes += n;
		len -= n;
	}
}

void vmt_out_str(struct vmt_out *out, const char *text)
{
	vmt_out_bytes(out, text, strlen(text));
}

void vmt_out_printf(struct vmt_out *out, const char *format, ...)
{
	char *room;
	va_list args;
	int n;

	va_start(args, format);
	room = vmt_out_room(out, VMT_OUT_ROOM);
	n = vsnprintf(room, VMT_OUT_ROOM, format, args);
	va_end(args);
	if (n > 0)
		out->len += (size_t)n < VMT_OUT_ROOM ? (size_t)n : VMT_OUT_ROOM - 1;
}

void vmt_out_repeat(struct vmt_out *out, char c, size_t n)
{
	while (n--)
		vmt_out_char(out, c);
}

void vmt_out_safe(struct vmt_out *out, const char *text)
{
	while (*text) {
		uint32_t c;
		size_t n = vmt_utf8_next(text, &c);

		if (vmt_utf8_is_harmless(c))
			vmt_out_bytes(out, text, n);
		else
			vmt_out_char(out, '?');
		text += n;
	}
}
