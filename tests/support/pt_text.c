/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/pt_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/packet.h"

struct out {
	uint8_t *bytes;
	size_t len, size;
};

static void put(struct out *o, uint64_t value, unsigned int n)
{
	if (o->size - o->len < n)
		abort();
	for (unsigned int i = 0; i < n; i++)
		o->bytes[o->len++] = (uint8_t)(value >> (8 * i));
}

static void bad(const char *word)
{
	fprintf(stderr, "no such packet: %s\n", word);
	abort();
}

static uint64_t number(const char **p)
{
	char *end;
	uint64_t v = strtoull(*p, &end, 16);

	if (end == *p)
		bad(*p);
	*p = *end == ':' ? end + 1 : end;
	return v;
}

static void put_ip(struct out *o, uint8_t opcode, const char *arg)
{
	if (*arg == '-') {
		put(o, opcode, 1);
		return;
	}
	put(o, opcode | 6u << 5, 1);
	put(o, number(&arg), 8);
}

static void put_tnt(struct out *o, const char *arg)
{
	unsigned int bits = 1;

	for (; *arg == 'T' || *arg == 'N'; arg++)
		bits = bits << 1 | (*arg == 'T');
	put(o, bits << 1, 1);
}

static void put_cyc(struct out *o, uint64_t v)
{
	put(o, 3 | (v > 31 ? 4u : 0) | (v & 31) << 3, 1);
	for (v >>= 5; v; v >>= 7)
		put(o, (v > 127) | (v & 127) << 1, 1);
}

static void put_cfe(struct out *o, const char *arg, bool ip)
{
	const char *end = strchr(arg, ':');
	size_t len = end ? (size_t)(end - arg) : strlen(arg);
	unsigned int kind = 0;

	for (uint8_t k = 0; k < 32; k++) {
		const char *name = vmt_pt_cfe_name(k);

		if (name && strlen(name) == len && !memcmp(name, arg, len))
			kind = k;
	}
	if (!kind)
		bad(arg);
	put(o, 0x1302, 2);
	put(o, kind | (ip ? 0x80u : 0), 1);
	if (end)
		end++;
	put(o, end ? number(&end) : 0, 1);
}

static void put_evd(struct out *o, const char *arg)
{
	static const char kinds[] = "pqr";
	const char *kind = strchr(kinds, *arg);

	if (!kind || !*arg || arg[1] != ':')
		bad(arg);
	arg += 2;
	put(o, 0x5302, 2);
	put(o, (uint64_t)(kind - kinds), 1);
	put(o, number(&arg), 8);
}

static void put_raw(struct out *o, const char *arg)
{
	for (; arg[0] && arg[1]; arg += 2) {
		char pair[3] = { arg[0], arg[1], 0 };

		put(o, strtoul(pair, NULL, 16), 1);
	}
}

static bool put_plain(struct out *o, const char *word)
{
	static const struct {
		const char *name, *bytes;
	} rows[] = {
		{ "psb", "02820282028202820282028202820282" },
		{ "psbend", "0223" },
		{ "ovf", "02f3" },
		{ "pad", "00" },
		{ "stop", "0283" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(word, rows[i].name)) {
			put_raw(o, rows[i].bytes);
			return true;
		}
	return false;
}

static void put_timing(struct out *o, const char *word, const char *arg)
{
	uint64_t v = number(&arg);

	if (!strcmp(word, "tsc")) {
		put(o, 0x19, 1);
		put(o, v, 7);
	} else if (!strcmp(word, "tma")) {
		put(o, 0x7302 | v << 16, 4);
		put(o, 0, 1);
		put(o, number(&arg), 2);
	} else if (!strcmp(word, "mtc")) {
		put(o, 0x59 | v << 8, 2);
	} else if (!strcmp(word, "cbr")) {
		put(o, 0x0302 | v << 16, 4);
	} else if (!strcmp(word, "mode")) {
		put(o, 0x99 | v << 8, 2);
	} else if (!strcmp(word, "vmcs")) {
		put(o, 0xc802, 2);
		put(o, v >> 12, 5);
	} else if (!strcmp(word, "pip")) {
		put(o, 0x4302, 2);
		put(o, number(&arg) >> 5 << 1 | v, 6);
	} else if (!strcmp(word, "cyc")) {
		put_cyc(o, v);
	} else {
		bad(word);
	}
}

static void put_word(struct out *o, char *word)
{
	char *arg = strchr(word, ':');

	if (put_plain(o, word))
		return;
	if (!arg)
		bad(word);
	*arg++ = '\0';
	if (!strcmp(word, "tip"))
		put_ip(o, 0x0d, arg);
	else if (!strcmp(word, "pge"))
		put_ip(o, 0x11, arg);
	else if (!strcmp(word, "pgd"))
		put_ip(o, 0x01, arg);
	else if (!strcmp(word, "fup"))
		put_ip(o, 0x1d, arg);
	else if (!strcmp(word, "tnt"))
		put_tnt(o, arg);
	else if (!strcmp(word, "cfe"))
		put_cfe(o, arg, false);
	else if (!strcmp(word, "cfe+"))
		put_cfe(o, arg, true);
	else if (!strcmp(word, "evd"))
		put_evd(o, arg);
	else if (!strcmp(word, "raw"))
		put_raw(o, arg);
	else
		put_timing(o, word, arg);
}

size_t vmt_pt_text(const char *text, uint8_t *out, size_t size)
{
	struct out o = { .bytes = out, .size = size };
	char word[64];

	while (*text) {
		size_t n = strcspn(text, " \t\n");

		if (n >= sizeof(word))
			abort();
		memcpy(word, text, n);
		word[n] = '\0';
		if (n)
			put_word(&o, word);
		text += n + strspn(text + n, " \t\n");
	}
	return o.len;
}
