// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vmt_insn_decode against Zydis: validity, length, class and displacement of the code of this
 * machine, of all opcodes with all ModRM bytes, and of random bytes. Only differences in validity
 * are allowed, and only those that a row of known[] explains. Without Zydis' headers at build time
 * the tests are skipped. VMT_TEST_LONG=1: all code of the machine and more random bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/insn/insn.h"
#include "tests/support/code_files.h"
#include "tests/support/zydis_peer.h"

#if defined(__has_include) && __has_include(<Zydis/Zydis.h>)

#define WINDOW	     32
#define SHOW_MAX     20
#define SAMPLE_BYTES (64u << 20)

static const enum vmt_insn_mode modes[] = { VMT_INSN_16, VMT_INSN_32, VMT_INSN_64 };
static struct zydis_peer *peers[3];

static struct {
	uint64_t compared, valid, known, different;
} totals;

/* ---- differences that have a reason ---- */

enum map { ONE, M0F, M0F38, M0F3A, VEX, EVEX, MVEX, XOP };

struct place {
	enum map map;
	uint8_t opcode, modrm;
};

/* Where the opcode is; the bytes go on for at least 4 behind 15. */
static struct place place_of(const uint8_t *p, enum vmt_insn_mode mode)
{
	static const char prefixes[] = "\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3";
	unsigned int i = 0;

	while (i < 14 &&
	       ((p[i] && strchr(prefixes, p[i])) || (mode == VMT_INSN_64 && (p[i] & 0xf0) == 0x40)))
		i++;
	p += i;
	const bool vector = mode == VMT_INSN_64 || p[1] >= 0xc0;

	if (p[0] == 0xc5 && vector)
		return (struct place){ VEX, p[2], p[3] };
	if (p[0] == 0xc4 && vector)
		return (struct place){ VEX, p[3], p[4] };
	if (p[0] == 0x62 && vector)
		return (struct place){ p[2] & 4 ? EVEX : MVEX, p[4], p[5] };
	if (p[0] == 0x8f && (p[1] & 0x1f) >= 8)
		return (struct place){ XOP, p[3], p[4] };
	if (p[0] != 0x0f)
		return (struct place){ ONE, p[0], p[1] };
	if (p[1] == 0x38)
		return (struct place){ M0F38, p[2], p[3] };
	if (p[1] == 0x3a)
		return (struct place){ M0F3A, p[2], p[3] };
	return (struct place){ M0F, p[1], p[2] };
}

struct known_row {
	enum map map;
	uint8_t first, last, modrm_first, modrm_last;
	int own; /* our status; Zydis has the other */
	bool not_64;
	const char *why;
};
static const struct known_row known[] = {
	{ M0F, 0x0f, 0x0f, 0, 255, 1, false,
	  "3DNow!: the last byte selects, its length is the same" },
	{ M0F, 0x05, 0x05, 0, 255, -1, true, "SYSCALL outside 64-bit mode: AMD only" },
	{ M0F, 0x07, 0x07, 0, 255, -1, true, "SYSRET outside 64-bit mode: AMD only" },
	{ M0F, 0xa6, 0xa7, 0xc0, 255, -1, false, "PadLock: VIA only" },
	{ M0F, 0x01, 0x01, 0xc6, 0xc6, 1, false,
	  "WRMSRNS, RDMSRLIST, WRMSRLIST: newer than Zydis 4.0" },
	{ VEX, 0, 255, 0, 255, 1, false, "W, L, vvvv and operands behind VEX change no length" },
	{ EVEX, 0, 255, 0, 255, 1, false, "and behind EVEX" },
	{ XOP, 0, 255, 0, 255, 1, false, "and behind XOP" },
	{ MVEX, 0, 255, 0, 255, -1, false, "Knights Corner: MVEX" },
	{ VEX, 0x18, 0x18, 0, 255, -1, false, "Knights Corner: VPREFETCH" },
	{ VEX, 0x3e, 0x3e, 0, 255, -1, false, "Knights Corner: KEXTRACT" },
	{ VEX, 0x43, 0x49, 0, 255, -1, false, "Knights Corner: KANDNR, KCONCATH, KCONCATL" },
	{ VEX, 0x74, 0x75, 0, 255, -1, false, "Knights Corner: JKZD, JKNZD with a byte" },
	{ VEX, 0x84, 0x85, 0, 255, -1, false, "Knights Corner: JKZD, JKNZD" },
	{ VEX, 0x95, 0x97, 0, 255, -1, false, "Knights Corner: KMERGE2L1H, KMERGE2L1L" },
	{ VEX, 0xae, 0xae, 0, 255, -1, false, "Knights Corner: CLEVICT, DELAY, SPFLT" },
	{ VEX, 0xb8, 0xbd, 0, 255, -1, false, "Knights Corner: POPCNT, TZCNT, TZCNTI, LZCNT" },
	{ VEX, 0xd0, 0xd3, 0, 255, -1, false, "Knights Corner" },
};
static uint64_t known_counts[sizeof(known) / sizeof(known[0])];

static bool is_known(const uint8_t *bytes, enum vmt_insn_mode mode, int own, int peer)
{
	const struct place at = place_of(bytes, mode);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct known_row *row = &known[i];

		if (row->map == at.map && at.opcode >= row->first && at.opcode <= row->last &&
		    at.modrm >= row->modrm_first && at.modrm <= row->modrm_last &&
		    own == row->own && peer == -own && !(row->not_64 && mode == VMT_INSN_64)) {
			known_counts[i]++;
			return true;
		}
	}
	return false;
}

/* ---- comparing ---- */

static void show(const uint8_t *bytes, size_t m, int own, const struct vmt_insn *a, int peer,
		 const struct vmt_insn *b)
{
	char hex[3 * 15 + 1] = "";

	if (totals.different > SHOW_MAX)
		return;
	for (size_t i = 0; i < 15; i++)
		snprintf(hex + 3 * i, 4, "%02x ", bytes[i]);
	print_message("mode %d: %s\n  own %d: length %u class %u displacement %" PRId32
		      "\n  Zydis %d: length %u class %u displacement %" PRId32 " (%s)\n",
		      (int)modes[m], hex, own, a->len, a->class, a->displacement, peer, b->len,
		      b->class, b->displacement, zydis_peer_name(peers[m], bytes, 15));
}

/* WINDOW bytes are there. Returns the length, or 1 for what is no instruction. */
static size_t compare(const uint8_t *bytes, size_t m)
{
	struct vmt_insn a = { 0 }, b = { 0 };
	const int own = vmt_insn_decode(bytes, WINDOW, modes[m], &a);
	const int peer = zydis_peer_decode(peers[m], bytes, 15, &b);

	totals.compared++;
	if (own == 1 && peer == 1 && a.len == b.len && a.class == b.class && a.direct == b.direct &&
	    a.displacement == b.displacement) {
		totals.valid++;
		return a.len;
	}
	if (own == -1 && peer == -1)
		return 1;
	if (own != peer && is_known(bytes, modes[m], own, peer)) {
		totals.known++;
		return own == 1 ? a.len : 1;
	}
	totals.different++;
	show(bytes, m, own, &a, peer, &b);
	return 1;
}

static void begin(void)
{
	memset(&totals, 0, sizeof(totals));
	memset(known_counts, 0, sizeof(known_counts));
}

static void end(const char *what)
{
	print_message("%s: %" PRIu64 " compared, %" PRIu64 " instructions, %" PRIu64
		      " known differences\n",
		      what, totals.compared, totals.valid, totals.known);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known_counts[i])
			print_message("  %" PRIu64 ": %s\n", known_counts[i], known[i].why);
	}
	assert_int_equal(totals.different, 0);
	assert_true(totals.valid > 0);
}

static bool is_long(void)
{
	return getenv("VMT_TEST_LONG") != NULL;
}

/* ---- opcodes ---- */

struct start {
	uint8_t len, bytes[4];
};

static void compare_opcodes(size_t m, const struct start *prefix, const struct start *map)
{
	for (unsigned int n = 0; n < 65536; n++) {
		uint8_t bytes[WINDOW];
		uint8_t *p = bytes;

		memset(bytes, 0x90, sizeof(bytes));
		memcpy(p, prefix->bytes, prefix->len);
		p += prefix->len;
		memcpy(p, map->bytes, map->len);
		p += map->len;
		*p++ = (uint8_t)(n >> 8);
		*p++ = (uint8_t)n;
		*p++ = (uint8_t)(n * 37);
		*p = 0x8a;
		compare(bytes, m);
	}
}

static void opcodes_agree(void **state)
{
	static const struct start prefixes[] = {
		{ 0, { 0 } },	       { 1, { 0x66 } },	      { 1, { 0xf3 } },
		{ 1, { 0xf2 } },       { 1, { 0x67 } },	      { 1, { 0xf0 } },
		{ 1, { 0x2e } },       { 1, { 0x48 } },	      { 1, { 0x44 } },
		{ 2, { 0x66, 0x48 } }, { 2, { 0x66, 0xf2 } }, { 2, { 0x66, 0xf3 } },
		{ 2, { 0xf3, 0x4f } }, { 2, { 0x48, 0x66 } }, { 2, { 0xf2, 0xf3 } },
		{ 2, { 0x66, 0x67 } }, { 2, { 0xf0, 0x66 } },
	};
	static const struct start maps[] = {
		{ 0, { 0 } }, { 1, { 0x0f } }, { 2, { 0x0f, 0x38 } }, { 2, { 0x0f, 0x3a } }
	};

	(void)state;
	begin();
	for (size_t m = 0; m < 3; m++) {
		for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
			for (size_t k = 0; k < sizeof(maps) / sizeof(maps[0]); k++)
				compare_opcodes(m, &prefixes[p], &maps[k]);
		}
	}
	end("opcodes");
}

static void vector_opcodes_agree(void **state)
{
	static const struct start none = { 0, { 0 } }, prefix_67 = { 1, { 0x67 } };

	(void)state;
	begin();
	for (size_t m = 0; m < 3; m++) {
		for (uint8_t pp = 0; pp < 4; pp++) {
			const uint8_t length = (uint8_t)(pp | 0x78 | (pp & 1 ? 0x80 : 0));

			compare_opcodes(m, &none, &(struct start){ 2, { 0xc5, 0xf8 | pp } });
			compare_opcodes(m, &none, &(struct start){ 2, { 0xc5, 0xfc | pp } });
			for (uint8_t map = 0; map < 16; map++) {
				const uint8_t high = 0xe0 | map;

				compare_opcodes(m, &none,
						&(struct start){ 3, { 0xc4, high, length } });
				compare_opcodes(m, &none,
						&(struct start){ 3,
								 { 0xc4, high, length ^ 0x84 } });
				compare_opcodes(m, &prefix_67,
						&(struct start){ 3, { 0x8f, high, 0x78 | pp } });
				compare_opcodes(m, &none,
						&(struct start){
							4, { 0x62, 0xf0 | map, 0x7c | pp, 0x48 } });
				compare_opcodes(m, &none,
						&(struct start){
							4, { 0x62, 0xf0 | map, 0xf4 | pp, 0x29 } });
			}
		}
	}
	end("VEX, EVEX, XOP");
}

/* ---- random bytes ---- */

static uint64_t random_state;

static uint64_t random_bits(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static void random_bytes_agree(void **state)
{
	static const uint8_t likely[] = { 0x0f, 0x66, 0xf2, 0xf3, 0xf0, 0x48, 0x67, 0xc4,
					  0xc5, 0x62, 0x8f, 0x38, 0x3a, 0xff, 0xe8, 0x2e };
	const unsigned int rounds = is_long() ? 50000000 : 1500000;

	(void)state;
	begin();
	random_state = 1;
	for (size_t m = 0; m < 3; m++) {
		for (unsigned int i = 0; i < rounds; i++) {
			uint64_t words[WINDOW / 8];
			uint8_t *bytes = (uint8_t *)words;
			const uint64_t how = random_bits();

			for (size_t k = 0; k < WINDOW / 8; k++)
				words[k] = random_bits();
			for (unsigned int k = 0; k < (how & 7) && !(how & 8); k++)
				bytes[k] = likely[how >> (8 + 4 * k) & 15];
			compare(bytes, m);
		}
	}
	end("random bytes");
}

/* ---- code of this machine ---- */

static size_t mode_index(enum vmt_insn_mode mode)
{
	return mode == VMT_INSN_16 ? 0 : mode == VMT_INSN_32 ? 1 : 2;
}

/* A linear sweep that goes on one byte behind what is no instruction. */
static bool sweep(void *ctx, const char *path, const uint8_t *bytes, size_t len,
		  enum vmt_insn_mode mode)
{
	const size_t m = mode_index(mode);

	(void)ctx;
	(void)path;
	for (size_t at = 0; at + WINDOW <= len;)
		at += compare(bytes + at, m);
	return true;
}

/* Every instruction once, with one of its first bytes changed. */
static bool mutate(void *ctx, const char *path, const uint8_t *bytes, size_t len,
		   enum vmt_insn_mode mode)
{
	const size_t m = mode_index(mode);
	struct vmt_insn insn;

	(void)ctx;
	(void)path;
	for (size_t at = 0; at + WINDOW <= len;) {
		const uint64_t how = random_bits();
		uint8_t copy[WINDOW];

		memcpy(copy, bytes + at, WINDOW);
		copy[how & 3] = (uint8_t)(how >> 8);
		if (how & 4)
			copy[how >> 3 & 7] ^= (uint8_t)(1u << (how >> 16 & 7));
		compare(copy, m);
		at += vmt_insn_decode(bytes + at, WINDOW, mode, &insn) == 1 ? insn.len : 1;
	}
	return true;
}

static void code_of_the_machine_agrees(void **state)
{
	struct code_files c = { .bytes_max = is_long() ? 0 : SAMPLE_BYTES,
				.section_bytes_max = is_long() ? 0 : 1u << 20,
				.take = sweep };

	(void)state;
	begin();
	code_files_elf(&c);
	print_message("%zu files, %zu bytes\n", c.files, c.bytes);
	end("code of this machine");
}

static void mutated_code_agrees(void **state)
{
	struct code_files c = { .bytes_max = is_long() ? 0 : 8u << 20,
				.section_bytes_max = is_long() ? 0 : 1u << 18,
				.take = mutate };

	(void)state;
	begin();
	random_state = 2;
	code_files_elf(&c);
	end("code with changed bytes");
}

static void rom_code_agrees(void **state)
{
	struct code_files c = { .take = sweep };

	(void)state;
	begin();
	code_files_rom(&c);
	if (!c.files) {
		print_message("no firmware image is installed (package seabios)\n");
		skip();
	}
	end("16-bit and 32-bit firmware");
}

static int make_peers(void **state)
{
	(void)state;
	for (size_t m = 0; m < 3; m++)
		peers[m] = zydis_peer_new(modes[m], false);
	return peers[0] && peers[1] && peers[2] ? 0 : -1;
}

static int free_peers(void **state)
{
	(void)state;
	for (size_t m = 0; m < 3; m++)
		zydis_peer_free(peers[m]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcodes_agree),       cmocka_unit_test(vector_opcodes_agree),
		cmocka_unit_test(random_bytes_agree),  cmocka_unit_test(code_of_the_machine_agrees),
		cmocka_unit_test(mutated_code_agrees), cmocka_unit_test(rom_code_agrees),
	};

	return cmocka_run_group_tests(tests, make_peers, free_peers);
}

#else

static void decoders_agree(void **state)
{
	(void)state;
	print_message("Zydis' header was not there at build time (package libzydis-dev)\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(decoders_agree) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
