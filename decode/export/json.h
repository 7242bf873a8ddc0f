/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_JSON_H
#define VMT_EXPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/export/out.h"

/*
 * Writes JSON as it goes, in constant memory however many rows there are. The rules of the command
 * line's contract: hex for 64-bit values, null for what is not known. Text that is not UTF-8 gets
 * U+FFFD in place of each bad byte.
 */
#define VMT_JSON_DEPTH 8

struct vmt_json {
	struct vmt_out *out;
	bool pretty; /* a line a member; false: all on one line */
	unsigned int depth;
	bool has_member[VMT_JSON_DEPTH];
};

/* Containers; name NULL inside an array or at the top. */
void vmt_json_open(struct vmt_json *json, const char *name, char bracket);
void vmt_json_close(struct vmt_json *json, char bracket);

/* Members; name NULL inside an array. */
void vmt_json_text(struct vmt_json *json, const char *name, const char *text); /* NULL: null */
void vmt_json_number(struct vmt_json *json, const char *name, bool known, uint64_t n);
void vmt_json_signed(struct vmt_json *json, const char *name, bool known, int64_t n);
void vmt_json_hex(struct vmt_json *json, const char *name, bool known, uint64_t n);
void vmt_json_bool(struct vmt_json *json, const char *name, bool known, bool value);
void vmt_json_real(struct vmt_json *json, const char *name, double value); /* three decimals */

/* A quoted string, alone. */
void vmt_json_quote(struct vmt_out *out, const char *text);

#endif
