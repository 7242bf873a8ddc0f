// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vmx/text.h"

#include <stdbool.h>
#include <string.h>

struct vmx_text vmx_text_of(char *buf, size_t size)
{
	buf[0] = '\0';
	return (struct vmx_text){ .buf = buf, .size = size, .len = 0 };
}

void vmx_text_char(struct vmx_text *t, char c)
{
	if (t->len + 1 >= t->size)
		return;
	t->buf[t->len++] = c;
	t->buf[t->len] = '\0';
}

void vmx_text_str(struct vmx_text *t, const char *s)
{
	while (*s)
		vmx_text_char(t, *s++);
}

static void text_digits(struct vmx_text *t, uint64_t value, unsigned int base)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[n++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (n)
		vmx_text_char(t, digits[--n]);
}

void vmx_text_dec(struct vmx_text *t, uint64_t value)
{
	text_digits(t, value, 10);
}

void vmx_text_hex(struct vmx_text *t, uint64_t value)
{
	vmx_text_str(t, "0x");
	text_digits(t, value, 16);
}

void vmx_text_item(struct vmx_text *t, const char *separator, const char *s)
{
	if (t->len)
		vmx_text_str(t, separator);
	vmx_text_str(t, s);
}

static bool digit_value(char c, unsigned int base, unsigned int *value)
{
	unsigned int v;

	if (c >= '0' && c <= '9')
		v = (unsigned int)(c - '0');
	else if (c >= 'a' && c <= 'f')
		v = (unsigned int)(c - 'a') + 10;
	else if (c >= 'A' && c <= 'F')
		v = (unsigned int)(c - 'A') + 10;
	else
		return false;
	*value = v;
	return v < base;
}

const char *vmx_text_number(const char *s, uint64_t *value)
{
	unsigned int base = 10, digit;
	uint64_t v = 0;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		s += 2;
	} else if (s[0] == '0') {
		base = 8;
	}
	if (!digit_value(*s, base, &digit))
		return NULL;
	for (; digit_value(*s, base, &digit); s++) {
		if (v > (UINT64_MAX - digit) / base)
			return NULL;
		v = v * base + digit;
	}
	*value = v;
	return s;
}
