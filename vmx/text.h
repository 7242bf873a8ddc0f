/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_TEXT_H
#define VMX_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Text into a caller's buffer without printf. Invariant: len < size and buf[len] == 0; what does
 * not fit is cut off, never written beyond. size >= 1.
 */
struct vmx_text {
	char *buf;
	size_t size, len;
};

/* An empty text over buf. */
struct vmx_text vmx_text_of(char *buf, size_t size);

void vmx_text_char(struct vmx_text *t, char c);
void vmx_text_str(struct vmx_text *t, const char *s);
void vmx_text_dec(struct vmx_text *t, uint64_t value);
/* With 0x in front, lower case, no leading zeros: 0x0, 0x3f8. */
void vmx_text_hex(struct vmx_text *t, uint64_t value);

/* `separator` unless the text is still empty, then s: members of a list. */
void vmx_text_item(struct vmx_text *t, const char *separator, const char *s);

/*
 * Reads an unsigned number in C syntax (decimal, 0x hexadecimal, 0 octal) that begins at s. Returns
 * the first character behind it, or NULL when there is no digit or the number exceeds 64 bits.
 */
const char *vmx_text_number(const char *s, uint64_t *value);

#endif
