/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_KEY_H
#define VMT_BASE_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "decode/base/event.h"

#define VMT_KEY_TEXT_MAX 48

/*
 * Writes a sub-key as in the command-line contract: msr:0x6e0:w, port:0x3f8:out, gpa:0xfed000f0:r,
 * cpuid:0x4/0x0, vec:236, cr:3:w, dr:7:r, hypercall:0x5, hv:0x5c, apic:0x380:w, user:2; cpuid:0x4
 * when the sub-leaf is not known. The empty string for VMT_KEY_NONE. Returns buf; size >=
 * VMT_KEY_TEXT_MAX.
 */
char *vmt_key_format(char *buf, size_t size, const struct vmt_key *key);

/* The inverse; false when the text is none of them. Access may be left off (VMT_ACCESS_NONE). */
bool vmt_key_parse(const char *text, struct vmt_key *key);

/* Name of the thing (MSR, port, window, vector), or NULL. */
const char *vmt_key_name(const struct vmt_key *key);

bool vmt_key_equal(const struct vmt_key *a, const struct vmt_key *b);

#endif
