// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An instruction is decoded in a window of at least WINDOW_LEN bytes, so that no read of it needs a
 * check: at most 14 prefixes, an opcode of 3 bytes, ModRM and SIB, and a displacement only after
 * the length is known to be at most 15. Fewer bytes are copied into such a window; the state's pos
 * then tells whether an answer, a refusal too, took bytes that were not given.
 */
#include "decode/insn/insn.h"

#include <string.h>

#include "decode/base/cursor.h"
#include "decode/insn/word.h"

#define LEN_MAX	   15
#define WINDOW_LEN 24

/* Mandatory prefix, as VMT_W_NO_* and subtables number it. */
enum { NONE, P66, PF3, PF2 };

struct state {
	const uint8_t *bytes;
	unsigned int pos;   /* of the byte behind those read */
	unsigned int sizes; /* row of sizes[] */
	bool lock;
	uint8_t repeat; /* PF3, PF2 or 0: the last one */
	uint8_t rex;	/* directly before the opcode, or 0 */
};

/* ---- lengths ---- */

/* Bytes from ModRM to the displacement; SIB: there is one, and it may add a displacement. */
#define SIB	       0x80
#define ROW32(a, b, c) a, a, a, a, b, c, a, a
#define MOD32(a, b, c)                                                                             \
	ROW32(a, b, c), ROW32(a, b, c), ROW32(a, b, c), ROW32(a, b, c), ROW32(a, b, c),            \
		ROW32(a, b, c), ROW32(a, b, c), ROW32(a, b, c)
static const uint8_t modrm_32[256] = { MOD32(1, SIB | 2, 5), MOD32(2, 3, 2), MOD32(5, 6, 5),
				       MOD32(1, 1, 1) };
#define ROW16(a, b) a, a, a, a, a, a, b, a
#define MOD16(a, b)                                                                                \
	ROW16(a, b), ROW16(a, b), ROW16(a, b), ROW16(a, b), ROW16(a, b), ROW16(a, b), ROW16(a, b), \
		ROW16(a, b)
static const uint8_t modrm_16[256] = { MOD16(1, 3), MOD16(2, 2), MOD16(3, 3), MOD16(1, 1) };

/* Bytes of immediates, and of the kinds of them that depend on prefixes and mode. */
#define SIZES(address, z, v, moffs, far, j)                                                        \
	{                                                                                          \
		(address) == 16,                                                                   \
		{                                                                                  \
			[VMT_W_I8] = 1, [VMT_W_I16] = 2, [VMT_W_I24] = 3, [VMT_W_I32] = 4,         \
			[VMT_W_IZ] = (z), [VMT_W_IV] = (v), [VMT_W_MOFFS] = (moffs),               \
			[VMT_W_FAR] = (far), [VMT_W_J8] = 1, [VMT_W_JZ] = (j)                      \
		}                                                                                  \
	}
/* The index of a row: the mode, and what prefixes add to it. */
enum {
	SIZES_REX_W = 1,
	SIZES_67 = 2,
	SIZES_66 = 4,
	SIZES_16 = 0,
	SIZES_32 = 8,
	SIZES_64 = 16,
	SIZES_COUNT = 24,
};
struct sizes_row {
	bool address_16;
	uint8_t imm[VMT_W_IMM_COUNT];
};
static const struct sizes_row sizes[SIZES_COUNT] = {
	[SIZES_16] = SIZES(16, 2, 2, 2, 4, 2),
	[SIZES_16 | SIZES_67] = SIZES(32, 2, 2, 4, 4, 2),
	[SIZES_16 | SIZES_66] = SIZES(16, 4, 4, 2, 6, 4),
	[SIZES_16 | SIZES_66 | SIZES_67] = SIZES(32, 4, 4, 4, 6, 4),
	[SIZES_32] = SIZES(32, 4, 4, 4, 6, 4),
	[SIZES_32 | SIZES_67] = SIZES(16, 4, 4, 2, 6, 4),
	[SIZES_32 | SIZES_66] = SIZES(32, 2, 2, 4, 4, 2),
	[SIZES_32 | SIZES_66 | SIZES_67] = SIZES(16, 2, 2, 2, 4, 2),
	[SIZES_64] = SIZES(64, 4, 4, 8, 0, 4),
	[SIZES_64 | SIZES_67] = SIZES(32, 4, 4, 4, 0, 4),
	[SIZES_64 | SIZES_66] = SIZES(64, 2, 2, 8, 0, 4),
	[SIZES_64 | SIZES_66 | SIZES_67] = SIZES(32, 2, 2, 4, 0, 4),
	[SIZES_64 | SIZES_REX_W] = SIZES(64, 4, 8, 8, 0, 4),
	[SIZES_64 | SIZES_REX_W | SIZES_67] = SIZES(32, 4, 8, 4, 0, 4),
	[SIZES_64 | SIZES_REX_W | SIZES_66] = SIZES(64, 4, 8, 8, 0, 4),
	[SIZES_64 | SIZES_REX_W | SIZES_66 | SIZES_67] = SIZES(32, 4, 8, 4, 0, 4),
};

static bool is_64(const struct state *s)
{
	return s->sizes >= SIZES_64;
}

/* Bytes from ModRM to the displacement. */
static inline unsigned int modrm_len_32(uint8_t modrm, uint8_t sib)
{
	const unsigned int n = modrm_32[modrm];

	return (n & (SIB - 1)) + ((n / SIB & ((sib & 7) == 5)) << 2);
}

static inline unsigned int modrm_len(const struct sizes_row *row, const uint8_t *p)
{
	return row->address_16 ? modrm_16[p[0]] : modrm_len_32(p[0], p[1]);
}

/* No instruction, which the bytes up to s->pos + extra have told. */
static int bad(struct state *s, unsigned int extra)
{
	s->pos += extra;
	return -1;
}

static int too_long(struct state *s)
{
	s->pos = LEN_MAX;
	return -1;
}

/* Displacement of 1, 2 or 4 bytes that ends at p[bytes]; 8 bytes are readable at p. */
static inline int32_t displacement(const uint8_t *p, unsigned int bytes)
{
	const unsigned int unused_bits = (32 - 8 * bytes) & 31;

	return (int32_t)(vmt_load_u32(p) << unused_bits) >> unused_bits;
}

/* Length and branch of an instruction whose word is known; s->pos is behind the opcode. */
static inline int finish(struct state *s, uint32_t word, struct vmt_insn *out)
{
	const struct sizes_row *row = &sizes[s->sizes];
	const unsigned int imm = word & VMT_W_IMM_MASK, imm_bytes = row->imm[imm];
	const bool direct = imm == VMT_W_J8 || imm == VMT_W_JZ;
	const unsigned int modrm_mask = 0u - (word / VMT_W_MODRM & 1),
			   len = s->pos + imm_bytes +
				 (modrm_len(row, s->bytes + s->pos) & modrm_mask);

	if (len > LEN_MAX)
		return too_long(s);
	s->pos = len;
	out->len = (uint8_t)len;
	out->class = word >> VMT_W_CLASS_SHIFT & VMT_W_CLASS_MASK;
	out->direct = direct;
	out->operand_16 = out->class && row->imm[VMT_W_JZ] == 2;
	out->displacement = direct ? displacement(s->bytes + len - imm_bytes, imm_bytes) : 0;
	return 1;
}

/* ---- what a word with constraints allows ---- */

static unsigned int mandatory(const struct state *s)
{
	return s->repeat ? s->repeat : s->sizes & SIZES_66 ? P66 : NONE;
}

/* The word behind groups; one ModRM byte is there. */
static uint32_t resolve(const struct state *s, uint32_t word)
{
	const uint8_t modrm = s->bytes[s->pos];

	for (;;) {
		const unsigned int sub = word >> VMT_W_SUB_SHIFT;

		switch (word >> VMT_W_KIND_SHIFT & VMT_W_KIND_MASK) {
		case VMT_W_BY_PREFIX:
			word = vmt_insn_sub[sub][mandatory(s)];
			break;
		case VMT_W_BY_REG:
			word = vmt_insn_sub[sub][(modrm >= 0xc0 ? 8 : 0) + (modrm >> 3 & 7)];
			break;
		case VMT_W_BY_RM:
			word = vmt_insn_sub[sub][modrm & 7];
			break;
		default:
			return word;
		}
	}
}

/* Instructions that take LOCK with a memory operand; reg: allowed values of ModRM.reg, by bits. */
struct lock_row {
	uint8_t map, first, last, reg;
};
static const struct lock_row lock_rows[] = {
	{ VMT_MAP_ONE, 0x00, 0x01, 0xff }, { VMT_MAP_ONE, 0x08, 0x09, 0xff },
	{ VMT_MAP_ONE, 0x10, 0x11, 0xff }, { VMT_MAP_ONE, 0x18, 0x19, 0xff },
	{ VMT_MAP_ONE, 0x20, 0x21, 0xff }, { VMT_MAP_ONE, 0x28, 0x29, 0xff },
	{ VMT_MAP_ONE, 0x30, 0x31, 0xff }, { VMT_MAP_ONE, 0x80, 0x83, 0x7f },
	{ VMT_MAP_ONE, 0x86, 0x87, 0xff }, { VMT_MAP_ONE, 0xf6, 0xf7, 0x0c },
	{ VMT_MAP_ONE, 0xfe, 0xff, 0x03 }, { VMT_MAP_0F, 0xab, 0xab, 0xff },
	{ VMT_MAP_0F, 0xb0, 0xb1, 0xff },  { VMT_MAP_0F, 0xb3, 0xb3, 0xff },
	{ VMT_MAP_0F, 0xba, 0xba, 0xe0 },  { VMT_MAP_0F, 0xbb, 0xbb, 0xff },
	{ VMT_MAP_0F, 0xc0, 0xc1, 0xff },  { VMT_MAP_0F, 0xc7, 0xc7, 0x02 },
};

static bool takes_lock(enum vmt_map map, uint8_t opcode, uint8_t modrm)
{
	for (size_t i = 0; i < sizeof(lock_rows) / sizeof(lock_rows[0]); i++) {
		const struct lock_row *row = &lock_rows[i];

		if (row->map == map && opcode >= row->first && opcode <= row->last)
			return modrm < 0xc0 && row->reg >> (modrm >> 3 & 7) & 1;
	}
	return false;
}

static bool allowed(const struct state *s, uint32_t word)
{
	const uint8_t modrm = s->bytes[s->pos];

	if (word & (is_64(s) ? VMT_W_NOT64 : VMT_W_ONLY64))
		return false;
	if (word >> VMT_W_NO_SHIFT >> mandatory(s) & 1)
		return false;
	return !(word & (modrm >= 0xc0 ? VMT_W_MEMORY : VMT_W_REGISTER)) || !(word & VMT_W_MODRM);
}

/* MOV of control and debug registers: CR0, 2, 3, 4, 8; DR0 to 7; always with a register. */
static int move_control(struct state *s, uint8_t opcode, bool debug, struct vmt_insn *out)
{
	const unsigned int reg = (s->bytes[s->pos] >> 3 & 7) | (s->rex & 4 ? 8u : 0);
	uint32_t word = 0;

	if (s->lock || !((debug ? 0xffu : 0x11du) >> reg & 1))
		return bad(s, 1);
	if (opcode == 0x22 && reg == 3)
		word = (uint32_t)VMT_INSN_MOV_CR3 << VMT_W_CLASS_SHIFT;
	s->pos++;
	return finish(s, word, out);
}

static int vector(struct state *s, enum vmt_w_kind kind, struct vmt_insn *out);

/* An instruction whose word has constraints, or that has a LOCK prefix. */
static int special(struct state *s, enum vmt_map map, uint8_t opcode, uint32_t word,
		   struct vmt_insn *out)
{
	const enum vmt_w_kind kind = word >> VMT_W_KIND_SHIFT & VMT_W_KIND_MASK;
	const uint8_t modrm = s->bytes[s->pos];

	switch (kind) {
	case VMT_W_INVALID:
		return -1;
	case VMT_W_REX: /* outside 64-bit mode */
		word = 0;
		break;
	case VMT_W_VEX2:
	case VMT_W_VEX3:
	case VMT_W_EVEX:
		if (is_64(s) || modrm >= 0xc0)
			return vector(s, kind, out);
		word = VMT_W_MODRM;
		break;
	case VMT_W_XOP:
		if ((modrm & 0x1f) >= 8)
			return vector(s, kind, out);
		word = VMT_W_MODRM | VMT_W_BY_REG << VMT_W_KIND_SHIFT |
		       VMT_SUB_8F << VMT_W_SUB_SHIFT;
		break;
	case VMT_W_X87:
		if (modrm < 0xc0 ? !(vmt_insn_x87_memory[opcode & 7] >> (modrm >> 3 & 7) & 1)
				 : !(vmt_insn_x87_register[opcode & 7] >> (modrm & 0x3f) & 1))
			return bad(s, 1);
		word = VMT_W_MODRM;
		break;
	case VMT_W_MOV_CR:
	case VMT_W_MOV_DR:
		return move_control(s, opcode, kind == VMT_W_MOV_DR, out);
	default:
		break;
	}
	word = resolve(s, word);
	if ((word >> VMT_W_KIND_SHIFT & VMT_W_KIND_MASK) == VMT_W_INVALID)
		return bad(s, 1);
	if (!allowed(s, word) || (s->lock && !takes_lock(map, opcode, modrm)))
		return bad(s, word & VMT_W_MODRM ? 1 : 0);
	return finish(s, word, out);
}

/* No subtable, and the mandatory prefix fits. */
static inline bool is_simple(const struct state *s, uint32_t word)
{
	return !(word & (VMT_W_SLOW | VMT_W_ONLY64 | VMT_W_MEMORY) & ~VMT_W_NO_NP) && !s->lock &&
	       !(word >> VMT_W_NO_SHIFT >> mandatory(s) & 1);
}

static int opcode_0f(struct state *s, struct vmt_insn *out)
{
	enum vmt_map map = VMT_MAP_0F;
	uint8_t opcode = s->bytes[s->pos++];
	uint32_t word = vmt_insn_map[map][opcode];
	const enum vmt_w_kind kind = word >> VMT_W_KIND_SHIFT & VMT_W_KIND_MASK;

	if (kind == VMT_W_0F38 || kind == VMT_W_0F3A) {
		map = kind == VMT_W_0F38 ? VMT_MAP_0F38 : VMT_MAP_0F3A;
		opcode = s->bytes[s->pos++];
		word = vmt_insn_map[map][opcode];
		if (!word)
			return -1;
	}
	if (is_simple(s, word))
		return finish(s, word, out);
	return special(s, map, opcode, word, out);
}

/* ---- VEX, EVEX, XOP ---- */

/* Bytes of the prefix that stand before the opcode, its first one aside. */
static const uint8_t vector_bytes[] = {
	[VMT_W_VEX2] = 1, [VMT_W_VEX3] = 2, [VMT_W_EVEX] = 3, [VMT_W_XOP] = 2
};

/* Row of vmt_insn_vector for a map, and 0 where there is none. */
static const uint8_t vex_map[32] = {
	[1] = VMT_VECTOR_VEX_1, [2] = VMT_VECTOR_VEX_2, [3] = VMT_VECTOR_VEX_3
};
static const uint8_t evex_map[32] = { [1] = VMT_VECTOR_EVEX_1,
				      [2] = VMT_VECTOR_EVEX_2,
				      [3] = VMT_VECTOR_EVEX_3,
				      [5] = VMT_VECTOR_EVEX_5,
				      [6] = VMT_VECTOR_EVEX_6 };
static const uint8_t xop_map[32] = {
	[8] = VMT_VECTOR_XOP_8, [9] = VMT_VECTOR_XOP_9, [10] = VMT_VECTOR_XOP_A
};

static unsigned int vector_row(const uint8_t *p, enum vmt_w_kind kind)
{
	switch (kind) {
	case VMT_W_VEX2:
		return VMT_VECTOR_VEX_1;
	case VMT_W_VEX3:
		return vex_map[p[0] & 0x1f];
	case VMT_W_XOP:
		return xop_map[p[0] & 0x1f];
	default: /* EVEX has one bit that is 0 and one that is 1 */
		return p[0] & 8 || !(p[1] & 4) ? 0 : evex_map[p[0] & 7];
	}
}

/* Immediates: all of the maps 3, and PSHUF, shifts, VCMP, PINSRW, PEXTRW, SHUFP of map 1. */
static uint32_t vector_imm(unsigned int row, uint8_t opcode)
{
	switch (row) {
	case VMT_VECTOR_VEX_1:
	case VMT_VECTOR_EVEX_1:
		return (opcode & 0xfc) == 0x70 || opcode == 0xc2 ||
				       (opcode >= 0xc4 && opcode <= 0xc6)
			       ? VMT_W_I8
			       : 0;
	case VMT_VECTOR_VEX_3:
	case VMT_VECTOR_EVEX_3:
	case VMT_VECTOR_XOP_8:
		return VMT_W_I8;
	case VMT_VECTOR_XOP_A:
		return VMT_W_I32;
	default:
		return 0;
	}
}

/* s->pos is behind the first byte of the prefix. */
static int vector(struct state *s, enum vmt_w_kind kind, struct vmt_insn *out)
{
	const uint8_t *p = s->bytes + s->pos;
	const unsigned int n = vector_bytes[kind], row = vector_row(p, kind);
	const uint8_t opcode = p[n];
	const unsigned int prefix = p[kind == VMT_W_VEX2 ? 0 : 1] & 3;

	if (s->lock || s->sizes & SIZES_66 || s->repeat || s->rex)
		return bad(s, kind == VMT_W_XOP || !is_64(s));
	s->pos += n + 1;
	if (!row || !(vmt_insn_vector[row][prefix][opcode >> 6] >> (opcode & 63) & 1))
		return -1;
	if (row == VMT_VECTOR_VEX_1 && opcode == 0x77) /* VZEROUPPER, VZEROALL */
		return finish(s, 0, out);
	return finish(s, VMT_W_MODRM | vector_imm(row, opcode), out);
}

/* ---- prefixes ---- */

/* The first byte behind the prefixes, or -1 when there is none within 15 bytes. */
static int take_prefixes(struct state *s)
{
	for (; s->pos < LEN_MAX; s->pos++) {
		const uint8_t byte = s->bytes[s->pos];

		switch (byte) {
		case 0x66:
			s->sizes |= SIZES_66;
			break;
		case 0x67:
			s->sizes |= SIZES_67;
			break;
		case 0xf0:
			s->lock = true;
			break;
		case 0xf2:
			s->repeat = PF2;
			break;
		case 0xf3:
			s->repeat = PF3;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
			break;
		default:
			if (!is_64(s) || (byte & 0xf0) != 0x40) {
				s->sizes |= s->rex >> 3 & SIZES_REX_W;
				s->pos++;
				return byte;
			}
			s->rex = byte;
			continue;
		}
		s->rex = 0;
	}
	return -1;
}

static int decode(struct state *s, struct vmt_insn *out)
{
	const int opcode = take_prefixes(s);
	uint32_t word;

	if (opcode < 0)
		return -1;
	if (opcode == 0x0f)
		return opcode_0f(s, out);
	word = vmt_insn_map[VMT_MAP_ONE][opcode];
	if (is_simple(s, word))
		return finish(s, word, out);
	return special(s, VMT_MAP_ONE, (uint8_t)opcode, word, out);
}

/*
 * 64-bit code: at most REX before a plain opcode of one or two bytes, which most instructions are.
 * Their bytes steer no branch, since nothing could predict it. False: not one of these.
 */
static inline bool decode_fast(const uint8_t *p, struct vmt_insn *out)
{
	uint64_t bytes = vmt_load_u64(p);
	const unsigned int rex = (bytes & 0xf0) == 0x40, rex_w = rex & (unsigned int)bytes >> 3;

	bytes >>= 8 * rex;
	const unsigned int two = (bytes & 0xff) == 0x0f;

	bytes >>= 8 * two;
	const uint32_t word = vmt_insn_map[two][bytes & 0xff];
	const uint8_t modrm = bytes >> 8 & 0xff, sib = bytes >> 16 & 0xff;
	const unsigned int imm = word >> (VMT_W_LEN_SHIFT + 4 * rex_w) & VMT_W_LEN_MASK,
			   modrm_mask = 0u - (word / VMT_W_MODRM & 1),
			   len = 1 + rex + two + imm + (modrm_len_32(modrm, sib) & modrm_mask);

	if (word & VMT_W_SLOW || (word & VMT_W_MEMORY && modrm >= 0xc0))
		return false;
	out->len = (uint8_t)len;
	out->class = word >> VMT_W_CLASS_SHIFT & VMT_W_CLASS_MASK;
	out->direct = (word & VMT_W_IMM_MASK) >= VMT_W_J8;
	out->operand_16 = false;
	out->displacement = displacement(p + len - imm, imm) & -(int32_t)out->direct;
	return true;
}

/* By mode / 32. */
static const uint8_t mode_sizes[] = { SIZES_16, SIZES_32, SIZES_64 };

static __attribute__((noinline)) int decode_any(const uint8_t *bytes, size_t len,
						enum vmt_insn_mode mode, struct vmt_insn *out)
{
	uint8_t window[WINDOW_LEN] = { 0 };
	struct state s = { .bytes = window, .sizes = mode_sizes[mode / 32] };
	int status;

	memcpy(window, bytes, len < WINDOW_LEN ? len : WINDOW_LEN);
	status = decode(&s, out);
	return s.pos > len && len < LEN_MAX ? 0 : status;
}

int vmt_insn_decode(const uint8_t *bytes, size_t len, enum vmt_insn_mode mode, struct vmt_insn *out)
{
	if (mode == VMT_INSN_64 && len >= WINDOW_LEN && decode_fast(bytes, out))
		return 1;
	return decode_any(bytes, len, mode, out);
}

uint64_t vmt_insn_target(const struct vmt_insn *insn, uint64_t ip, enum vmt_insn_mode mode)
{
	const uint64_t target = ip + insn->len + (uint64_t)(int64_t)insn->displacement;

	if (mode == VMT_INSN_64)
		return target;
	return target & (insn->operand_16 ? 0xffff : 0xffffffff);
}
