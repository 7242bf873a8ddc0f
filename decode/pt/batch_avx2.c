// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * 64 bytes at once: a mask of the bytes that would be a packet of one byte (short TNT, PAD, short
 * CYC), so that a run of them is found by counting bits, and a row a byte gives the whole packet.
 * Where a run ends, a packet of several bytes stands, which is taken by its first byte.
 * Invariant of the fast loop: the last IP is known, no PEBS block is open, and there are more bytes
 * than the longest packet reaches, and more room than one round fills. Everything else, and every
 * packet that is seldom or damaged, is taken by vmt_pt_next.
 */
#include "decode/pt/batch_private.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt")))
#define INLINE static inline __attribute__((always_inline))

#define WINDOW 64u
#define STRIDE 8u		 /* rows copied at once; those behind the run are written over */
#define REACH  (WINDOW + 32)	 /* bytes that a round may look at */
#define ROOM   (WINDOW + STRIDE) /* and what skimming holds from before */

_Static_assert(VMT_PT_BATCH_MIN > ROOM, "a batch holds a round");

/* ---- a row a first byte: the whole packet, or what its payload does not change ---- */

#define TOP(b)	  (31 - __builtin_clz((b) | 1))
#define IS_TNT(b) (!((b)&1) && (b) > 2)
#define IS_CYC(b) (((b)&7) == 3) /* of one byte */
#define LOW5(b)	  ((b)&0x1f)
#define BYTES(b)  ((b) >> 5) /* IPBytes */
#define IP_TYPE(b)                                                                                 \
	(LOW5(b) == 0x0d   ? VMT_PT_TIP                                                            \
	 : LOW5(b) == 0x11 ? VMT_PT_TIP_PGE                                                        \
	 : LOW5(b) == 0x01 ? VMT_PT_TIP_PGD                                                        \
	 : LOW5(b) == 0x1d ? VMT_PT_FUP                                                            \
			   : 0)
#define IP_LEN(b)                                                                                  \
	(BYTES(b) == 0			  ? 1                                                      \
	 : BYTES(b) == 1		  ? 3                                                      \
	 : BYTES(b) == 2		  ? 5                                                      \
	 : BYTES(b) == 6		  ? 9                                                      \
	 : BYTES(b) == 5 || BYTES(b) == 7 ? 0                                                      \
					  : 7)
#define IS_IP(b) (IP_TYPE(b) != 0 && IP_LEN(b) != 0)
#define ROW(b)                                                                                     \
	{                                                                                          \
		.type = IS_TNT(b)     ? VMT_PT_TNT                                                 \
			: IS_CYC(b)   ? VMT_PT_CYC                                                 \
			: IS_IP(b)    ? IP_TYPE(b)                                                 \
			: (b) == 0x59 ? VMT_PT_MTC                                                 \
			: (b) == 0x19 ? VMT_PT_TSC                                                 \
				      : VMT_PT_PAD,                                                \
		.len = IS_TNT(b) || IS_CYC(b) || !(b) ? 1                                          \
		       : IS_IP(b)		      ? IP_LEN(b)                                  \
		       : (b) == 0x59		      ? 2                                          \
		       : (b) == 0x19		      ? 8                                          \
						      : 0,                                                          \
		.ip_bytes = IS_IP(b) ? BYTES(b) : 0, .count = IS_TNT(b) ? TOP(b) - 1 : 0,          \
		.has_ip = IS_IP(b) && BYTES(b) != 0,                                               \
		.payload = IS_TNT(b)   ? ((b) & ((1 << TOP(b)) - 1)) >> 1                          \
			   : IS_CYC(b) ? (b) >> 3                                                  \
				       : 0,                                                        \
	}
#define ROWS_4(b)  ROW(b), ROW((b) + 1), ROW((b) + 2), ROW((b) + 3)
#define ROWS_16(b) ROWS_4(b), ROWS_4((b) + 4), ROWS_4((b) + 8), ROWS_4((b) + 12)
#define ROWS_64(b) ROWS_16(b), ROWS_16((b) + 16), ROWS_16((b) + 32), ROWS_16((b) + 48)

/* Length 0: the first byte does not tell. */
static const struct vmt_pt_packet rows[256]
	__attribute__((aligned(32))) = { ROWS_64(0), ROWS_64(64), ROWS_64(128), ROWS_64(192) };

TARGET INLINE void copy_row(struct vmt_pt_packet *out, const struct vmt_pt_packet *row)
{
	_mm256_storeu_si256((void *)out, _mm256_load_si256((const void *)row));
}

/* Rows of STRIDE bytes. */
TARGET INLINE void copy_rows(struct vmt_pt_packet *out, const uint8_t *p)
{
	copy_row(out, &rows[p[0]]);
	copy_row(out + 1, &rows[p[1]]);
	copy_row(out + 2, &rows[p[2]]);
	copy_row(out + 3, &rows[p[3]]);
	copy_row(out + 4, &rows[p[4]]);
	copy_row(out + 5, &rows[p[5]]);
	copy_row(out + 6, &rows[p[6]]);
	copy_row(out + 7, &rows[p[7]]);
}

struct masks {
	uint64_t single; /* short TNT, PAD, short CYC */
	uint64_t cyc;	 /* short CYC */
	uint64_t pad;
};

TARGET INLINE uint32_t bits_of(__m256i v)
{
	return (uint32_t)_mm256_movemask_epi8(v);
}

TARGET INLINE struct masks classify(const uint8_t *p)
{
	const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi8(1),
		      two = _mm256_set1_epi8(2), three = _mm256_set1_epi8(3),
		      seven = _mm256_set1_epi8(7);
	struct masks m = { 0 };

	for (unsigned int at = 0; at < WINDOW; at += 32) {
		const __m256i v = _mm256_loadu_si256((const void *)(p + at));
		const __m256i even = _mm256_cmpeq_epi8(_mm256_and_si256(v, one), zero);
		const __m256i cyc = _mm256_cmpeq_epi8(_mm256_and_si256(v, seven), three);
		const __m256i tnt = _mm256_andnot_si256(_mm256_cmpeq_epi8(v, two), even);

		m.single |= (uint64_t)bits_of(_mm256_or_si256(tnt, cyc)) << at;
		m.cyc |= (uint64_t)bits_of(cyc) << at;
		m.pad |= (uint64_t)bits_of(_mm256_cmpeq_epi8(v, zero)) << at;
	}
	return m;
}

/* ---- packets of several bytes ---- */

INLINE uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#define LOW(bytes) ((UINT64_C(1) << (8 * (bytes))) - 1)

/*
 * What the payload keeps of the eight bytes behind the first, what the address keeps of the last
 * one, and what is put above bit 47 when that is 1; by IPBytes, then MTC and TSC, whose "address"
 * is the last one and is not given.
 */
struct shape {
	uint64_t mask, keep, sign, has;
};

#define SHAPE_MTC 8
#define SHAPE_TSC 9

static const struct shape shapes[10] = {
	[0] = { 0, UINT64_MAX, 0, 0 },
	[1] = { LOW(2), ~LOW(2), 0, UINT64_MAX },
	[2] = { LOW(4), ~LOW(4), 0, UINT64_MAX },
	[3] = { LOW(6), 0, ~LOW(6), UINT64_MAX },
	[4] = { LOW(6), ~LOW(6), 0, UINT64_MAX },
	[6] = { UINT64_MAX, 0, 0, UINT64_MAX },
	[SHAPE_MTC] = { LOW(1), UINT64_MAX, 0, 0 },
	[SHAPE_TSC] = { LOW(7), UINT64_MAX, 0, 0 },
};

#define SHAPE(b)     ((b) == 0x59 ? SHAPE_MTC : (b) == 0x19 ? SHAPE_TSC : IS_IP(b) ? BYTES(b) : 0)
#define SHAPES_4(b)  SHAPE(b), SHAPE((b) + 1), SHAPE((b) + 2), SHAPE((b) + 3)
#define SHAPES_16(b) SHAPES_4(b), SHAPES_4((b) + 4), SHAPES_4((b) + 8), SHAPES_4((b) + 12)
#define SHAPES_64(b) SHAPES_16(b), SHAPES_16((b) + 16), SHAPES_16((b) + 32), SHAPES_16((b) + 48)

static const uint8_t shape_of[256] = { SHAPES_64(0), SHAPES_64(64), SHAPES_64(128),
				       SHAPES_64(192) };

INLINE uint64_t next_ip(const struct shape *shape, uint64_t last_ip, uint64_t bits)
{
	const uint64_t value = bits | (shape->sign & (0 - (bits >> 47 & 1)));

	return (last_ip & shape->keep) | (value & shape->has);
}

/* What has a length in its row (IP packets, MTC, TSC, one byte), without a branch. */
TARGET INLINE void take_shaped(const uint8_t *p, struct vmt_pt_packet *out, uint64_t *last_ip)
{
	const struct shape *shape = &shapes[shape_of[p[0]]];
	const uint64_t bits = load_u64(p + 1) & shape->mask;

	*last_ip = next_ip(shape, *last_ip, bits);
	copy_row(out, &rows[p[0]]);
	out->payload = rows[p[0]].payload | bits;
	out->ip = *last_ip & shape->has;
}

/* Up to three bytes. */
INLINE unsigned int take_cyc(const uint8_t *p, struct vmt_pt_packet *out, bool careful)
{
	const unsigned int more = p[1] & 1;

	if ((more && p[2] & 1) || (careful && p[1] == 0x02))
		return 0;
	*out = (struct vmt_pt_packet){ .type = VMT_PT_CYC,
				       .len = (uint8_t)(2 + more),
				       .payload = (uint64_t)(p[0] >> 3) |
						  (uint64_t)(p[1] >> 1) << 5 |
						  (uint64_t)((p[2] >> 1) * more) << 12 };
	return 2 + more;
}

INLINE unsigned int take_plain(struct vmt_pt_packet *out, enum vmt_pt_type type, unsigned int len,
			       uint64_t payload)
{
	*out = (struct vmt_pt_packet){ .type = (uint8_t)type,
				       .len = (uint8_t)len,
				       .payload = payload };
	return len;
}

INLINE unsigned int take_extended(const uint8_t *p, struct vmt_pt_packet *out)
{
	const uint64_t v = load_u64(p + 2);

	switch (p[1]) {
	case 0x03:
		return take_plain(out, VMT_PT_CBR, 4, v & 0xff);
	case 0x23:
		return take_plain(out, VMT_PT_PSBEND, 2, 0);
	case 0x43:
		take_plain(out, VMT_PT_PIP, 8, v & LOW(6));
		out->nr = v & 1;
		out->address = out->payload >> 1 << 5;
		return 8;
	case 0xa3: {
		const uint64_t bits = v & LOW(6);
		const unsigned int top = 63u - (unsigned int)__builtin_clzll(bits | 1);

		if (!top)
			return 0;
		take_plain(out, VMT_PT_TNT_LONG, 8, bits & ((UINT64_C(1) << top) - 1));
		out->count = (uint8_t)top;
		return 8;
	}
	case 0xc8:
		take_plain(out, VMT_PT_VMCS, 7, v & LOW(5));
		out->address = out->payload << 12;
		return 7;
	default:
		return 0;
	}
}

INLINE unsigned int take_mode(const uint8_t *p, struct vmt_pt_packet *out)
{
	if (p[1] >> 5 > 1)
		return 0;
	take_plain(out, p[1] >> 5 ? VMT_PT_MODE_TSX : VMT_PT_MODE_EXEC, 2, p[1] & 0x1f);
	out->reserved = (p[1] & 3) == 3;
	return 2;
}

/* 0: not here. */
TARGET INLINE unsigned int take(const uint8_t *p, struct vmt_pt_packet *out, uint64_t *last_ip,
				bool careful)
{
	const uint8_t b = p[0], len = rows[b].len;

	if (len) {
		take_shaped(p, out, last_ip);
		return len;
	}
	if ((b & 3) == 3)
		return take_cyc(p, out, careful);
	if (b == 0x02)
		return take_extended(p, out);
	return b == 0x99 ? take_mode(p, out) : 0;
}

/* ---- rounds ---- */

INLINE bool fits(const struct vmt_pt_reader *r, const struct vmt_pt_batch *batch)
{
	return (size_t)(r->end - r->pos) >= REACH && batch->max - batch->len >= ROOM &&
	       r->last_ip_known && !r->block;
}

/*
 * Rounds while they fit. True: they do not fit any more; false: a packet is for vmt_pt_next, which
 * the reader stands at.
 */
TARGET static bool rounds_full(struct vmt_pt_reader *r, struct vmt_pt_batch *batch)
{
	const struct vmt_pt_reader start = *r;
	struct vmt_pt_packet *out = batch->packets + batch->len;
	const struct vmt_pt_packet *last = batch->packets + batch->max - ROOM;
	const uint8_t *p = start.pos, *end = start.end - REACH;
	uint64_t last_ip = start.last_ip;
	unsigned int len = 1;

	while (p <= end && out <= last) {
		const uint64_t single = classify(p).single;
		unsigned int at = 0;

		do {
			const uint64_t other = ~single >> at;
			unsigned int run = (unsigned int)_tzcnt_u64(other);

			run = run < WINDOW - at ? run : WINDOW - at;
			/* Also for a run of none: the branch would cost more. */
			for (unsigned int i = 0; i == 0 || i < run; i += STRIDE)
				copy_rows(out + i, p + at + i);
			out += run;
			at += run;
			if (at >= WINDOW)
				break;
			len = take(p + at, out, &last_ip, batch->careful);
			at += len;
			out += len != 0;
		} while (len && at < WINDOW);
		p += at;
		if (!len)
			break;
	}
	batch->passed += (uint64_t)(out - (batch->packets + batch->len));
	batch->len = (size_t)(out - batch->packets);
	r->pos = p;
	r->last_ip = last_ip;
	return len;
}

/* The cycles of short CYCs, whose bits are set, behind p. */
TARGET INLINE uint64_t cycles_of(const uint8_t *p, uint64_t cycs)
{
	uint64_t sum = 0;

	for (; cycs; cycs &= cycs - 1)
		sum += p[__builtin_ctzll(cycs)] >> 3;
	return sum;
}

/* Takes a run of one-byte packets where TNT and CYC are left out. */
TARGET INLINE void skim_run(struct vmt_pt_skim *s, const struct masks *m, const uint8_t *p,
			    unsigned int at, unsigned int run)
{
	const uint64_t in = _bzhi_u64(UINT64_MAX, run) << at;
	const uint64_t cycs = m->cyc & in, tnts = in & ~(m->cyc | m->pad);

	if (__builtin_expect(cycs != 0, 0)) {
		s->held = pt_add_sat(s->held, cycles_of(p, cycs));
		s->holds = true;
		s->ran = tnts > cycs; /* by the highest bit: they have none in common */
	} else {
		s->ran = s->ran || tnts;
	}
}

/* The same for skimming. */
TARGET static bool rounds_skim(struct vmt_pt_reader *r, struct vmt_pt_batch *batch)
{
	const struct vmt_pt_reader start = *r;
	struct vmt_pt_packet *out = batch->packets + batch->len;
	const struct vmt_pt_packet *last = batch->packets + batch->max - ROOM;
	const uint8_t *p = start.pos, *end = start.end - REACH;
	struct vmt_pt_skim s = batch->state;
	uint64_t last_ip = start.last_ip, passed = 0;
	unsigned int len = 1;

	while (p <= end && out <= last) {
		const struct masks m = classify(p);
		unsigned int at = 0;

		do {
			const uint64_t left_out =
				s.quiet ? s.steady ? m.single : m.single & ~m.cyc : m.pad;
			const uint64_t wanted = ~left_out >> at;
			unsigned int run = (unsigned int)_tzcnt_u64(wanted);

			run = run < WINDOW - at ? run : WINDOW - at;
			skim_run(&s, &m, p, at, run);
			passed += run;
			at += run;
			if (at >= WINDOW)
				break;
			/* Most are TIPs that say no more than their address. */
			if (s.quiet && LOW5(p[at]) == 0x0d && rows[p[at]].len) {
				const struct shape *shape = &shapes[BYTES(p[at])];

				last_ip =
					next_ip(shape, last_ip, load_u64(p + at + 1) & shape->mask);
				at += rows[p[at]].len;
				passed++;
				s.ran = true;
				continue;
			}
			len = take(p + at, out + 2, &last_ip, batch->careful);
			if (!len)
				break;
			at += len;
			passed++;
			out = pt_skim_put(&s, out);
		} while (at < WINDOW);
		p += at;
		if (!len)
			break;
	}
	batch->passed += passed;
	batch->len = (size_t)(out - batch->packets);
	batch->state = s;
	r->pos = p;
	r->last_ip = last_ip;
	return len;
}

static int read_avx2(struct vmt_pt_reader *r, struct vmt_pt_batch *batch)
{
	int status = 1;

	if (batch->max < VMT_PT_BATCH_MIN)
		return vmt_pt_engine_scalar.read(r, batch);
	batch->len = 0;
	batch->passed = 0;
	batch->why = NULL;
	while (status == 1 && batch->len + VMT_PT_BATCH_SPARE < batch->max) {
		if (fits(r, batch) && (batch->skim ? rounds_skim(r, batch) : rounds_full(r, batch)))
			continue;
		if (batch->max - batch->len < ROOM && (size_t)(r->end - r->pos) >= REACH)
			break;
		status = pt_batch_one(r, batch);
	}
	return pt_batch_end(batch, status);
}

const struct vmt_pt_engine pt_engine_avx2 = { "AVX2", read_avx2 };

/* The operating system saves YMM registers, and the CPU has AVX2, BMI1, BMI2 and LZCNT. */
bool pt_engine_avx2_runs(void)
{
	unsigned int a, b, c, d, low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if ((low & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) ||
	    !(b & bit_BMI) || !(b & bit_BMI2))
		return false;
	return __get_cpuid(0x80000001, &a, &b, &c, &d) && c & bit_LZCNT;
}

#endif
