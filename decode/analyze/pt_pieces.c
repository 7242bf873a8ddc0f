// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: pieces of an extent cover it from front to back: [0, from) has been given out as
 * bytes or as skipped, [from, end) will be, [end, len) is skipped because the next extent has it,
 * or it is padding. How an extent joins the next one is found out when it begins.
 */
#include "decode/analyze/pt_pieces.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 65536u
#define CHUNK_BYTES 4096u
#define PADDING_MAX 7u /* perf rounds the size of a buffer up to 8 */
#define PSB_LEN	    16u
/* A PSB and what follows it, mostly a TSC: what is looked for in the trace before. */
#define KEY_LEN 48u
/* How often the key may be found and yet not be the place, and how much is compared for that. */
#define TRIES_MAX 64u

struct link {
	enum vmt_pt_join join;
	uint64_t from; /* of the next extent: what stands before it came with this one */
	uint64_t end;  /* of this one */
};

struct vmt_pt_pieces {
	const struct vmt_aux_index *index;
	const struct vmt_aux_area *area;
	size_t extent;
	bool begun; /* `extent` has */
	uint64_t from, end;
	enum vmt_pt_join join; /* of the next piece */
	struct link next;
	uint8_t bytes[PIECE_BYTES];
};

static const uint8_t psb[PSB_LEN] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
				      0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };

struct vmt_pt_pieces *vmt_pt_pieces_new(const struct vmt_aux_index *index, size_t area)
{
	struct vmt_pt_pieces *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->index = index;
	p->area = &index->areas[area];
	p->extent = 0;
	p->begun = false;
	p->join = VMT_PT_JOIN_CONTINUES;
	return p;
}

void vmt_pt_pieces_free(struct vmt_pt_pieces *p)
{
	free(p);
}

/* ---- looking at extents ---- */

/* How many of the bytes could be read; VMT_E_IO and VMT_E_NOMEM alone are errors. */
static int64_t look(const struct vmt_pt_pieces *p, const struct vmt_aux_extent *e, uint64_t from,
		    uint8_t *out, size_t len, struct vmt_diag *diag)
{
	struct vmt_diag why = { 0 };
	size_t done = 0;
	int err;

	if (from >= e->len)
		return 0;
	if (len > e->len - from)
		len = (size_t)(e->len - from);
	err = p->index->read(p->index->source, e, from, out, len, &done, &why);
	if (err != VMT_E_IO && err != VMT_E_NOMEM)
		return (int64_t)done;
	if (diag && !diag->code)
		*diag = why;
	return err;
}

/* 1 when the bytes are equal, 0 when not, or an error. */
static int same(const struct vmt_pt_pieces *p, const struct vmt_aux_extent *a, uint64_t at_a,
		const struct vmt_aux_extent *b, uint64_t at_b, uint64_t len, struct vmt_diag *diag)
{
	uint8_t of_a[CHUNK_BYTES], of_b[CHUNK_BYTES];

	while (len) {
		size_t n = len < CHUNK_BYTES ? (size_t)len : CHUNK_BYTES;
		int64_t got_a = look(p, a, at_a, of_a, n, diag);
		int64_t got_b = got_a < 0 ? got_a : look(p, b, at_b, of_b, n, diag);

		if (got_b < 0)
			return (int)got_b;
		if (got_a != got_b || got_a < (int64_t)n || memcmp(of_a, of_b, n) != 0)
			return 0;
		at_a += n;
		at_b += n;
		len -= n;
	}
	return 1;
}

/* How many of the last 7 bytes are zero. */
static int zeros_at_end(const struct vmt_pt_pieces *p, const struct vmt_aux_extent *e,
			struct vmt_diag *diag)
{
	uint8_t tail[PADDING_MAX];
	uint64_t len = e->len < PADDING_MAX ? e->len : PADDING_MAX;
	int64_t got = look(p, e, e->len - len, tail, (size_t)len, diag);
	int n = 0;

	if (got < (int64_t)len)
		return got < 0 ? (int)got : 0;
	while (n < (int)len && !tail[(int)len - 1 - n])
		n++;
	return n;
}

/* Where the needle stands at or behind `from`; e->len when nowhere. Uses p->bytes. */
static int find(struct vmt_pt_pieces *p, const struct vmt_aux_extent *e, uint64_t from,
		const uint8_t *needle, size_t len, uint64_t *at, struct vmt_diag *diag)
{
	*at = e->len;
	while (from < e->len) {
		int64_t got = look(p, e, from, p->bytes, PIECE_BYTES, diag);
		const uint8_t *found;

		if (got < (int64_t)len)
			return got < 0 ? (int)got : 0;
		found = memmem(p->bytes, (size_t)got, needle, len);
		if (found) {
			*at = from + (uint64_t)(found - p->bytes);
			return 0;
		}
		from += (uint64_t)got - (len - 1);
	}
	return 0;
}

/* ---- snapshots: the trace before ends somewhere in the next one ---- */

struct overlap {
	const struct vmt_aux_extent *a, *b;
	uint64_t key_at; /* in b */
	size_t key_len;
	uint8_t key[KEY_LEN];
	int zeros; /* at the end of a: some of them may be padding */
};

/*
 * Whether b goes on from inside of a, such that b's key is a's at `found`: 1 and the link, 0, or an
 * error.
 */
static int fits(const struct vmt_pt_pieces *p, const struct overlap *o, uint64_t found,
		struct link *link, struct vmt_diag *diag)
{
	uint64_t rest = o->a->len - found, sure, common;
	int equal;

	if (found < o->key_at || rest - (uint64_t)o->zeros > o->b->len - o->key_at)
		return 0;
	sure = o->key_at + rest - (uint64_t)o->zeros;
	equal = same(p, o->a, found - o->key_at, o->b, 0, sure, diag);
	if (equal <= 0)
		return equal;
	/* Zeros are packets where b has them too, else padding. */
	common = sure;
	while (common < o->key_at + rest && common < o->b->len) {
		uint8_t byte;
		int64_t got = look(p, o->b, common, &byte, 1, diag);

		if (got < 0)
			return (int)got;
		if (!got || byte)
			break;
		common++;
	}
	*link = (struct link){ VMT_PT_JOIN_CONTINUES, common, found - o->key_at + common };
	return 1;
}

static int find_overlap(struct vmt_pt_pieces *p, struct overlap *o, struct link *link,
			struct vmt_diag *diag)
{
	uint64_t at = 0;
	int64_t got;
	int status = find(p, o->b, 0, psb, PSB_LEN, &o->key_at, diag);

	if (status || o->key_at == o->b->len)
		return status;
	got = look(p, o->b, o->key_at, o->key, KEY_LEN, diag);
	if (got < (int64_t)PSB_LEN)
		return got < 0 ? (int)got : 0;
	o->key_len = (size_t)got;
	o->zeros = zeros_at_end(p, o->a, diag);
	if (o->zeros < 0)
		return o->zeros;
	for (unsigned int i = 0; i < TRIES_MAX; i++) {
		status = find(p, o->a, at, o->key, o->key_len, &at, diag);
		if (status || at == o->a->len)
			return status;
		status = fits(p, o, at, link, diag);
		if (status)
			return status < 0 ? status : 0;
		at++;
	}
	return 0;
}

/* ---- joints ---- */

/* In one long stream: by the offsets in it. */
static int link_by_offset(const struct vmt_pt_pieces *p, const struct vmt_aux_extent *a,
			  const struct vmt_aux_extent *b, struct link *link, struct vmt_diag *diag)
{
	uint64_t end = a->aux_offset + a->len, common;
	int equal;

	if (b->handle & VMT_AUX_RESTART)
		link->join = VMT_PT_JOIN_GAP;
	else if (b->aux_offset == end)
		link->join = VMT_PT_JOIN_CONTINUES;
	if (b->aux_offset >= end || b->aux_offset < a->aux_offset)
		return 0;
	common = end - b->aux_offset;
	if (common <= PADDING_MAX) {
		link->end = a->len - common;
		if (link->join == VMT_PT_JOIN_SEEK)
			link->join = VMT_PT_JOIN_CONTINUES;
		return 0;
	}
	if (common > b->len)
		return 0;
	equal = same(p, a, a->len - common, b, 0, common, diag);
	if (equal > 0) {
		link->join = VMT_PT_JOIN_CONTINUES;
		link->from = common;
	}
	return equal < 0 ? equal : 0;
}

static int find_link(struct vmt_pt_pieces *p, struct vmt_diag *diag)
{
	const struct vmt_aux_extent *a = &p->area->extents[p->extent];
	struct overlap o = { .a = a, .b = a + 1 };

	p->next = (struct link){ VMT_PT_JOIN_SEEK, 0, a->len };
	if (p->extent + 1 == p->area->nr_extents)
		return 0;
	if (p->index->info.snapshot)
		return find_overlap(p, &o, &p->next, diag);
	return link_by_offset(p, a, a + 1, &p->next, diag);
}

/* The very first byte: a packet begins there unless the front of the stream is missing. */
static int first_join(struct vmt_pt_pieces *p, struct vmt_diag *diag)
{
	const struct vmt_aux_extent *e = &p->area->extents[0];
	uint8_t bytes[PSB_LEN];
	int64_t got = look(p, e, 0, bytes, PSB_LEN, diag);

	if (got < 0)
		return (int)got;
	p->next = (struct link){ VMT_PT_JOIN_SEEK, 0, e->len };
	if ((!p->index->info.snapshot && !e->aux_offset) || e->handle & VMT_AUX_RESTART ||
	    (got == PSB_LEN && !memcmp(bytes, psb, PSB_LEN)))
		p->next.join = VMT_PT_JOIN_CONTINUES;
	return 0;
}

/* ---- pieces ---- */

static int skip(struct vmt_pt_pieces *p, uint64_t from, uint64_t len, const char *why,
		struct vmt_pt_piece *piece)
{
	const struct vmt_aux_extent *e = &p->area->extents[p->extent];

	*piece = (struct vmt_pt_piece){ .join = p->join,
					.at = e->at + from,
					.aux_offset = e->aux_offset + from,
					.reference = e->reference,
					.skipped = len,
					.why = why };
	return 1;
}

/* The rest of the extent cannot be read. */
static int skip_unreadable(struct vmt_pt_pieces *p, struct vmt_pt_piece *piece)
{
	uint64_t from = p->from;

	p->from = p->end;
	p->join = VMT_PT_JOIN_SEEK;
	skip(p, from, p->end - from, "unreadable", piece);
	piece->lost = true;
	return 1;
}

static int read_piece(struct vmt_pt_pieces *p, struct vmt_pt_piece *piece, struct vmt_diag *diag)
{
	const struct vmt_aux_extent *e = &p->area->extents[p->extent];
	uint64_t left = p->end - p->from;
	int64_t got = look(p, e, p->from, p->bytes, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES,
			   diag);

	if (got < 0)
		return (int)got;
	if (!got)
		return skip_unreadable(p, piece);
	*piece = (struct vmt_pt_piece){ .bytes = p->bytes,
					.len = (size_t)got,
					.join = p->join,
					.at = e->at + p->from,
					.aux_offset = e->aux_offset + p->from,
					.reference = e->reference };
	p->join = VMT_PT_JOIN_CONTINUES;
	p->from += (uint64_t)got;
	return 1;
}

/* Begins the extent: 1 when bytes in front of it are skipped, 0, or an error. */
static int begin(struct vmt_pt_pieces *p, struct vmt_pt_piece *piece, struct vmt_diag *diag)
{
	int status = p->extent ? 0 : first_join(p, diag);

	if (status)
		return status;
	/* What an extent that gave no bytes left undone is done here. */
	if (p->next.join != VMT_PT_JOIN_CONTINUES)
		p->join = p->next.join;
	p->from = p->next.from;
	status = find_link(p, diag);
	if (status)
		return status;
	p->begun = true;
	p->end = p->next.end > p->from ? p->next.end : p->from;
	return p->from ? skip(p, 0, p->from, "came before", piece) : 0;
}

/* Ends the extent: 1 when bytes behind it are skipped, else 0. */
static int finish(struct vmt_pt_pieces *p, struct vmt_pt_piece *piece)
{
	uint64_t rest = p->area->extents[p->extent].len - p->end;

	if (rest)
		skip(p, p->end, rest, "padding", piece);
	p->extent++;
	p->begun = false;
	return rest != 0;
}

int vmt_pt_pieces_next(struct vmt_pt_pieces *p, struct vmt_pt_piece *piece, struct vmt_diag *diag)
{
	int status = 0;

	while (!status && p->extent < p->area->nr_extents) {
		if (!p->begun)
			status = begin(p, piece, diag);
		else if (p->from < p->end)
			status = read_piece(p, piece, diag);
		else
			status = finish(p, piece);
	}
	return status;
}

/* ns = (tsc * mult) >> shift. */
static uint64_t tsc_hz(const struct vmt_pt_info *info)
{
	if (!info->has_time_conv || info->time_shift > 32)
		return 0;
	return (UINT64_C(1000000000) << info->time_shift) / info->time_mult;
}

static void setup_clock(struct vmt_pt_clock_params *clock, const struct vmt_aux_index *index,
			size_t area)
{
	const struct vmt_pt_info *info = &index->info;

	if (!clock->mtc_freq && info->has_mtc_freq)
		clock->mtc_freq = info->mtc_freq;
	if (!clock->tsc_num || !clock->art_den) {
		clock->tsc_num = info->tsc_num;
		clock->art_den = info->art_den;
	}
	if (!clock->nom_ratio)
		clock->nom_ratio = info->nom_ratio;
	if (!clock->tsc_hz)
		clock->tsc_hz = tsc_hz(info);
	if (!clock->reference)
		clock->reference = index->areas[area].extents[0].reference;
}

void vmt_pt_decoder_setup(struct vmt_pt_decoder_options *options, const struct vmt_aux_index *index,
			  size_t area)
{
	const struct vmt_pt_info *info = &index->info;

	if (!options->cpu.known && info->has_cpu_id)
		options->cpu = (struct vmt_pt_cpu){ .known = true,
						    .family = info->family,
						    .model = (uint8_t)info->model,
						    .stepping = (uint8_t)info->stepping };
	setup_clock(&options->clock, index, area);
	options->host_cpu = index->areas[area].cpu;
	options->pid = index->areas[area].pid;
	options->tid = index->areas[area].tid;
}

void vmt_pt_piece_feed(const struct vmt_pt_piece *piece, struct vmt_pt_decoder *decoder)
{
	if (!piece->bytes)
		return;
	if (piece->join == VMT_PT_JOIN_GAP)
		vmt_pt_decoder_gap(decoder);
	else if (piece->join == VMT_PT_JOIN_SEEK)
		vmt_pt_decoder_seek(decoder);
	vmt_pt_decoder_feed(decoder, piece->bytes, piece->len);
}
