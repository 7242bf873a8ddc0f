/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a PT stream. The first bytes choose processor, clock and VM; a byte chooses the size
 * of the pieces. The ledger balances, has-bits and counts agree with the events, and the
 * events do not depend on the pieces, nor on whether somebody asks for the packets.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/pt/decoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sink {
	uint64_t hash, bytes;
	uint64_t event_hash; /* of the events alone */
	struct vmt_pt_counts counts;
};

static void mix_event(struct sink *s, uint64_t v)
{
	s->event_hash = (s->event_hash ^ v) * UINT64_C(0x100000001b3);
	s->event_hash ^= s->event_hash >> 29;
}

static void mix(struct sink *s, uint64_t v)
{
	s->hash = (s->hash ^ v) * UINT64_C(0x100000001b3);
	s->hash ^= s->hash >> 29;
}

static void take(void *context, const struct vmt_event *e)
{
	struct sink *s = context;

	if (e->type >= VMT_EVENT_TYPE_COUNT || e->source != VMT_SOURCE_PT)
		abort();
	if (e->type == VMT_EVENT_EXIT && !e->failed_entry)
		s->counts.exits++;
	if (e->type == VMT_EVENT_EXIT && e->failed_entry)
		s->counts.failed_entries++;
	s->counts.entries += e->type == VMT_EVENT_ENTRY;
	s->counts.gaps += e->type == VMT_EVENT_GAP;
	if (e->has & VMT_HAS_DURATION_TSC && !(e->has & VMT_HAS_HOST_TSC))
		abort();
	if ((e->type == VMT_EVENT_NOTE || e->type == VMT_EVENT_LOSS) && !e->name)
		abort();
	mix_event(s, (uint64_t)e->type << 32 | e->has);
	mix_event(s, e->host_tsc.host_tsc);
	mix_event(s, e->host_tsc_error);
	mix_event(s, e->guest_rip ^ e->guest_cr3 ^ e->vmcs ^ e->duration_tsc);
	mix_event(s, e->qualification ^ (uint64_t)e->reason << 32 ^ e->vector);
}

static void packet(void *context, uint64_t offset, const uint8_t *bytes,
		   const struct vmt_pt_packet *p)
{
	struct sink *s = context;

	if (offset != s->bytes)
		abort();
	mix(s, bytes[0]);
	s->bytes += p->len;
	s->counts.packets++;
}

static void skipped(void *context, uint64_t offset, uint64_t len, const char *why)
{
	struct sink *s = context;

	if (offset != s->bytes || !len || !why)
		abort();
	s->bytes += len;
}

static void run(const struct vmt_pt_decoder_options *options, const uint8_t *bytes, size_t len,
		size_t piece, bool full, struct sink *s)
{
	struct vmt_pt_decoder_options o = *options;
	struct vmt_pt_counts counts;
	struct vmt_ledger ledger;
	struct vmt_pt_decoder *d;

	memset(s, 0, sizeof(*s));
	o.context = s;
	o.emit = take;
	o.packet = full ? packet : NULL;
	o.skipped = full ? skipped : NULL;
	d = vmt_pt_decoder_new(&o);
	if (!d)
		abort();
	for (size_t at = 0; at < len; at += piece < len - at ? piece : len - at)
		vmt_pt_decoder_feed(d, bytes + at, piece < len - at ? piece : len - at);
	vmt_pt_decoder_end(d);
	counts = vmt_pt_decoder_counts(d);
	ledger = vmt_pt_decoder_ledger(d);
	if (ledger.bytes_total != len || ledger.bytes_decoded + ledger.bytes_skipped != len ||
	    (full && s->bytes != len))
		abort();
	if (counts.exits != s->counts.exits || counts.entries != s->counts.entries ||
	    counts.gaps != s->counts.gaps || (full && counts.packets != s->counts.packets) ||
	    counts.failed_entries != s->counts.failed_entries)
		abort();
	vmt_pt_decoder_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t models[] = { 0, 0x3d, 0x5e, 0x55, 0x97, 0x5c };
	struct vmt_cursor c = vmt_cursor_of(data, size);
	struct vmt_pt_vm vm = { .vmcs = VMT_PT_ANY_VMCS };
	struct vmt_pt_decoder_options o = { .vms = &vm, .host_cpu = 3 };
	struct sink whole, pieces, skim;
	uint8_t flags = vmt_cursor_u8(&c);
	size_t piece, len;

	o.cpu.model = models[flags % 6];
	o.cpu.known = o.cpu.model;
	o.cpu.family = 6;
	o.nr_vms = flags >> 3 & 1;
	vm.has_map = flags >> 4 & 1;
	o.clock.mtc_freq = vmt_cursor_u8(&c) % 18;
	o.clock.tsc_num = flags >> 5 & 1 ? vmt_cursor_u8(&c) : 88;
	o.clock.art_den = flags >> 6 & 1 ? vmt_cursor_u8(&c) : 1;
	o.clock.nom_ratio = flags >> 7 ? 0 : 21;
	if (flags & 4) {
		vm.map.multiplier = vmt_cursor_u64(&c);
		vm.map.offset = vmt_cursor_u64(&c);
		o.clock.reference = vmt_cursor_u64(&c);
	} else {
		vm.map.multiplier = UINT64_C(1) << 48;
	}
	vm.map.frac_bits = 48;
	piece = 1 + vmt_cursor_u8(&c) % 40;
	len = vmt_cursor_left(&c);
	run(&o, c.pos, len, len ? len : 1, true, &whole);
	run(&o, c.pos, len, piece, true, &pieces);
	run(&o, c.pos, len, piece * 17, false, &skim);
	if (whole.hash != pieces.hash || whole.event_hash != pieces.event_hash ||
	    whole.event_hash != skim.event_hash)
		abort();
	return 0;
}
