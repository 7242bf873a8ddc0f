// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bytes in pieces to packets. Invariant of the ledger: every byte fed is decoded, skipped, or still
 * carried (the beginning of a packet whose end has not come).
 */
#include "decode/pt/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "decode/pt/batch_private.h"
#include "decode/pt/decoder_private.h"

struct vmt_pt_decoder *vmt_pt_decoder_new(const struct vmt_pt_decoder_options *options)
{
	struct vmt_pt_decoder *d = calloc(1, sizeof(*d));
	struct vmt_pt_clock_params clock = options->clock;

	if (!d)
		return NULL;
	d->options = *options;
	if (!d->options.packet_context)
		d->options.packet_context = options->context;
	if (d->options.nr_vms > VMT_PT_VMS_MAX)
		d->options.nr_vms = VMT_PT_VMS_MAX;
	d->event_trace = options->event_trace;
	d->errata = vmt_pt_errata_of(&options->cpu);
	clock.cyc_drops_at_psb = clock.cyc_drops_at_psb || d->errata & VMT_PT_SKL168;
	vmt_pt_clock_init(&d->clock, &clock);
	d->reader = vmt_pt_reader_of(NULL, 0);
	d->reader.block = options->block;
	d->engine = vmt_pt_engine_best();
	d->batch = (struct vmt_pt_batch){
		.packets = d->packets,
		.max = PT_BATCH_MAX,
		.careful = d->errata & (VMT_PT_SKD007 | VMT_PT_SKZ84),
		/* Who asks for every packet gets every packet. */
		.skim = !options->packet && !options->pebs,
	};
	return d;
}

void vmt_pt_decoder_free(struct vmt_pt_decoder *d)
{
	free(d);
}

/* ---- bytes that are no packet ---- */

static void skip(struct vmt_pt_decoder *d, size_t len)
{
	d->skip_len += len;
	d->ledger.bytes_skipped += len;
}

static void skip_begin(struct vmt_pt_decoder *d, uint64_t offset, const char *why)
{
	d->skip_offset = offset;
	d->skip_len = 0;
	d->skip_why = why;
}

static void skip_end(struct vmt_pt_decoder *d)
{
	if (d->skip_len && d->options.skipped)
		d->options.skipped(d->options.packet_context, d->skip_offset, d->skip_len,
				   d->skip_why);
}

/* A few bytes that an erratum spoils: nothing else is lost. */
static void skip_some(struct vmt_pt_decoder *d, uint64_t offset, size_t len, const char *why)
{
	skip_begin(d, offset, why);
	skip(d, len);
	skip_end(d);
}

static void sync_begin(struct vmt_pt_decoder *d, uint64_t offset, const char *why)
{
	d->syncing = true;
	skip_begin(d, offset, why);
}

static void sync_end(struct vmt_pt_decoder *d, bool found)
{
	d->syncing = false;
	skip_end(d);
	if (found)
		d->counts.resyncs++;
	if (d->skip_len)
		pt_lost(d, "undecodable", d->skip_len);
}

/* ---- one packet ---- */

enum step {
	STEP_ON,
	STEP_MORE, /* the bytes end inside a packet */
};

/* Skylake's SKD007: an OVF that cuts a CYC short reads as a CYC of two bytes and F3. */
static enum step check_cyc(struct vmt_pt_decoder *d, const uint8_t *at,
			   const struct vmt_pt_packet *p, bool final, bool *spoilt)
{
	struct vmt_pt_reader *r = &d->reader;

	*spoilt = false;
	if (!(d->errata & VMT_PT_SKD007) || p->len != 2 || at[1] != 0x02)
		return STEP_ON;
	if (r->pos == r->end)
		return final ? STEP_ON : STEP_MORE;
	if (*r->pos != 0xf3)
		return STEP_ON;
	*spoilt = true;
	r->pos = at + 1;
	skip_some(d, d->offset + (uint64_t)(at - r->begin), 1, "CYC cut short by OVF (SKD007)");
	return STEP_ON;
}

/* Whether a packet stands at the reader's position + ahead: 1, 0, or VMT_E_TRUNCATED. */
static int packet_at(const struct vmt_pt_reader *r, size_t ahead)
{
	struct vmt_pt_reader look = *r;
	struct vmt_pt_packet p;
	int status;

	if ((size_t)(r->end - r->pos) < ahead)
		return VMT_E_TRUNCATED;
	look.pos += ahead;
	status = vmt_pt_next(&look, &p, NULL);
	return status == VMT_E_DAMAGED ? 0 : status ? status : VMT_E_TRUNCATED;
}

/*
 * SKZ84: a TMA in a guest with TSC offset or scaling is corrupt and one byte too long. Where it is
 * not known whether a guest runs, the packet behind it decides; where both readings go on, the CPU
 * that is known to have the erratum does.
 */
static enum step check_tma(struct vmt_pt_decoder *d, const uint8_t *at,
			   const struct vmt_pt_packet *p, bool final, bool *spoilt)
{
	struct vmt_pt_reader *r = &d->reader;
	const enum vmt_pt_mode mode = pt_vm_mode(d);
	bool guest = mode == VMT_PT_MODE_NONROOT;
	int next = guest ? 0 : packet_at(r, 0), behind = guest ? 1 : packet_at(r, 1);

	*spoilt = false;
	if (!(d->errata & VMT_PT_SKZ84) || !p->reserved ||
	    (mode == VMT_PT_MODE_ROOT && !d->outside))
		return STEP_ON;
	if ((r->pos == r->end || next < 0 || behind < 0) && !final)
		return STEP_MORE;
	if (r->pos == r->end || (next && !d->options.cpu.known) || !behind)
		return STEP_ON;
	*spoilt = true;
	r->pos++;
	d->clock.ignored++;
	skip_some(d, d->offset + (uint64_t)(at - r->begin), (size_t)p->len + 1,
		  "corrupt TMA (SKZ84)");
	return STEP_ON;
}

/* Skimming begins anew: what it holds is given. */
static void skim_anew(struct vmt_pt_decoder *d)
{
	d->batch.len = 0;
	pt_batch_end(&d->batch, 0);
	for (size_t i = 0; i < d->batch.len; i++)
		pt_take(d, &d->packets[i]);
	d->batch.state = (struct vmt_pt_skim){ 0 };
}

static void give(struct vmt_pt_decoder *d, uint64_t offset, const uint8_t *at,
		 const struct vmt_pt_packet *p)
{
	if (d->options.packet)
		d->options.packet(d->options.packet_context, offset, at, p);
	pt_take(d, p);
}

static enum step take_one(struct vmt_pt_decoder *d, bool final)
{
	struct vmt_pt_reader *r = &d->reader;
	const struct vmt_pt_reader before = *r;
	const uint8_t *at = r->pos;
	uint64_t offset = d->offset + (uint64_t)(at - r->begin);
	struct vmt_pt_packet p;
	const char *why = NULL;
	bool spoilt = false;
	int status = vmt_pt_next(r, &p, &why);
	enum step step = STEP_ON;

	skim_anew(d);
	if (status == VMT_E_TRUNCATED)
		return STEP_MORE;
	if (status != 1) {
		sync_begin(d, offset, why);
		return STEP_ON;
	}
	if (p.type == VMT_PT_CYC)
		step = check_cyc(d, at, &p, final, &spoilt);
	else if (p.type == VMT_PT_TMA)
		step = check_tma(d, at, &p, final, &spoilt);
	if (step == STEP_MORE)
		*r = before;
	if (step == STEP_MORE || spoilt)
		return step;
	d->ledger.bytes_decoded += p.len;
	d->counts.packets++;
	give(d, offset, at, &p);
	return STEP_ON;
}

/* Packets by the batch, and one by itself where that stops. */
static enum step take_many(struct vmt_pt_decoder *d, bool final)
{
	struct vmt_pt_reader *r = &d->reader;
	const uint8_t *at = r->pos;
	const int status = d->engine->read(r, &d->batch);

	d->ledger.bytes_decoded += (uint64_t)(r->pos - at);
	d->counts.packets += d->batch.passed;
	for (size_t i = 0; i < d->batch.len; i++) {
		const struct vmt_pt_packet *p = &d->packets[i];

		give(d, d->offset + (uint64_t)(at - r->begin), at, p);
		at += p->len;
	}
	return status == 1 || r->pos == r->end ? STEP_ON : take_one(d, final);
}

static void take_branches(struct vmt_pt_decoder *d, const uint8_t *limit)
{
	struct vmt_pt_reader *r = &d->reader;
	const uint8_t *at = r->pos;
	size_t packets = d->options.branches(d->options.packet_context,
					     d->offset + (uint64_t)(at - r->begin), r, limit);

	d->ledger.bytes_decoded += (uint64_t)(r->pos - at);
	if (packets)
		pt_take_branches(d, packets);
}

/* Goes to the next PSB; more: it may begin in the bytes that are left. */
static enum step sync_one(struct vmt_pt_decoder *d, bool final)
{
	struct vmt_pt_reader *r = &d->reader, look = *r;
	struct vmt_pt_packet p;
	size_t left = (size_t)(r->end - r->pos);
	int status = vmt_pt_next(&look, &p, NULL);
	size_t stepped;

	if (status == 1 && p.type == VMT_PT_PSB) {
		sync_end(d, true);
		return STEP_ON;
	}
	if (d->skip_len && status == VMT_E_TRUNCATED && left < 16 && !final)
		return STEP_MORE;
	stepped = vmt_pt_sync(r);
	skip(d, stepped);
	if (!stepped)
		return STEP_MORE;
	return STEP_ON;
}

/*
 * Decodes packets that begin in the first `limit` bytes. Returns the bytes done with. final: no
 * more will come.
 */
static size_t decode(struct vmt_pt_decoder *d, const uint8_t *bytes, size_t len, size_t limit,
		     bool final)
{
	struct vmt_pt_reader *r = &d->reader;
	enum step step = STEP_ON;
	size_t done;

	r->begin = r->pos = bytes;
	r->end = bytes + len;
	while (step == STEP_ON && (size_t)(r->pos - bytes) < limit) {
		if (d->options.branches && !d->syncing && pt_branches_are_plain(d)) {
			take_branches(d, bytes + limit);
			if ((size_t)(r->pos - bytes) >= limit)
				break;
		}
		step = d->syncing			      ? sync_one(d, final)
		       : limit == len && !d->options.branches ? take_many(d, final)
							      : take_one(d, final);
	}
	done = (size_t)(r->pos - bytes);
	d->offset += done;
	r->begin = r->pos = r->end = NULL;
	return done;
}

void vmt_pt_decoder_feed(struct vmt_pt_decoder *d, const uint8_t *bytes, size_t len)
{
	d->ledger.bytes_total += len;
	while (d->carry_len && len) {
		size_t room = PT_CARRY_MAX - d->carry_len, n = len < room ? len : room, done;

		memcpy(d->carry + d->carry_len, bytes, n);
		done = decode(d, d->carry, d->carry_len + n, d->carry_len, false);
		if (done >= d->carry_len) {
			bytes += done - d->carry_len;
			len -= done - d->carry_len;
			d->carry_len = 0;
			break;
		}
		memmove(d->carry, d->carry + done, d->carry_len + n - done);
		d->carry_len += n - done;
		bytes += n;
		len -= n;
	}
	if (!len)
		return;
	if (!d->carry_len) {
		size_t done = decode(d, bytes, len, len, false);

		d->carry_len = len - done;
		memcpy(d->carry, bytes + done, d->carry_len);
	}
}

/* What is carried will not be completed. */
static void drop_carry(struct vmt_pt_decoder *d)
{
	size_t done = decode(d, d->carry, d->carry_len, d->carry_len, true);
	size_t left = d->carry_len - done;

	skim_anew(d);
	if (!d->syncing && left)
		skip_some(d, d->offset, left, "cut off");
	else if (d->syncing)
		skip(d, left);
	d->ledger.truncated = d->ledger.truncated || left;
	d->offset += left;
	d->carry_len = 0;
	if (d->syncing)
		sync_end(d, false);
}

static void break_off(struct vmt_pt_decoder *d, const char *name)
{
	drop_carry(d);
	d->reader.last_ip_known = false;
	d->reader.block = VMT_PT_BLOCK_NONE;
	if (d->in_psb)
		pt_psb_end(d);
	pt_lost(d, name, 0);
}

void vmt_pt_decoder_gap(struct vmt_pt_decoder *d)
{
	break_off(d, "aux-gap");
}

void vmt_pt_decoder_seek(struct vmt_pt_decoder *d)
{
	break_off(d, "aux-gap");
	sync_begin(d, d->offset, "before the first PSB");
}

void vmt_pt_decoder_end(struct vmt_pt_decoder *d)
{
	drop_carry(d);
	if (d->in_psb)
		pt_psb_end(d);
	pt_settle(d, NULL);
	pt_queue_end(d);
}

const struct vmt_pt_clock *vmt_pt_decoder_clock(const struct vmt_pt_decoder *d)
{
	return &d->clock;
}

struct vmt_pt_counts vmt_pt_decoder_counts(const struct vmt_pt_decoder *d)
{
	return d->counts;
}

struct vmt_ledger vmt_pt_decoder_ledger(const struct vmt_pt_decoder *d)
{
	return d->ledger;
}
