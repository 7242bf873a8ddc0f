/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * 1 MiB of what a decoder likes least is decoded with bounded work: packets, stretches that are
 * skipped, returns to a PSB and events are counted, not seconds. Each kind of input is a few bytes
 * said again and again; tests/fuzz/corpus/pt_decoder has their beginnings (storm-*).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/pt/decoder.h"
#include "tests/support/pt_text.h"

#define MIB   ((size_t)1 << 20)
#define SHORT ((size_t)1 << 15) /* fed byte by byte */

struct work {
	uint64_t packets, skips, events, skipped_bytes;
};

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *packet)
{
	struct work *w = context;

	(void)offset;
	(void)bytes;
	(void)packet;
	w->packets++;
}

static void on_skipped(void *context, uint64_t offset, uint64_t len, const char *why)
{
	struct work *w = context;

	(void)offset;
	(void)why;
	w->skips++;
	w->skipped_bytes += len;
}

static void on_event(void *context, const struct vmt_event *event)
{
	struct work *w = context;

	(void)event;
	w->events++;
}

/* Words as tests/support/pt_text.h has them: what begins, and what is said over and over. */
static const struct storm {
	const char *name, *head, *body;
} storms[] = {
	{ "PSB", "pad", "psb" },
	{ "PSB+", "pad", "psb tsc:100000 tma:1:1 pip:0:5000 vmcs:1000 cbr:20 fup:401000 psbend" },
	{ "PSB+ of both worlds in turn", "pad", "psb pip:0:5000 psbend psb pip:1:6000 psbend" },
	{ "PSB+ without an end", "psb tsc:100000", "cyc:1 mtc:1 tsc:100000 cbr:20" },
	{ "a PSB that lacks its last byte", "pad", "raw:028202820282028202820282028202" },
	{ "a PSB that lacks its last byte, behind damage", "raw:020f",
	  "raw:028202820282028202820282028202 raw:00" },
	{ "31 bytes of PSB", "pad",
	  "raw:02820282028202820282028202820282 raw:028202820282028202820282028202" },
	{ "OVF", "psb psbend", "ovf" },
	{ "OVF and its FUP", "psb psbend", "ovf fup:401000" },
	{ "OVF in PSB+", "pad", "psb pip:1:5000 ovf" },
	{ "damage and PSB in turn", "pad", "raw:020f psb psbend" },
	{ "damage and good bytes in turn", "psb psbend", "raw:0f tnt:T" },
	{ "one opcode that is none", "psb psbend", "raw:0204" },
	{ "CYC of its full length", "psb tsc:100000 psbend", "raw:ffffffffffffffffff1e" },
	{ "CYC without an end", "psb psbend", "raw:ff" },
	{ "CYC that an OVF may cut short", "psb psbend", "raw:1702" },
	{ "short CYC", "psb tsc:100000 cbr:20 psbend", "raw:0b" },
	{ "BIP without an end", "psb psbend raw:026384", "raw:fc01020304" },
	{ "blocks without an end", "psb psbend", "raw:026304 raw:fc0102030405060708" },
	{ "PEBS records", "psb psbend", "raw:026381 raw:fc01020304 raw:02b3 fup:401000" },
	{ "corrupt TMA", "psb psbend", "raw:0273ff02ff030102" },
	{ "corrupt TMA of a guest, with PAD behind", "psb pip:1:5000 psbend",
	  "raw:0273ff02ff030100" },
	{ "TSC forth and back", "psb tsc:100000 psbend", "tsc:ffffffffff tsc:1" },
	{ "MTC", "psb tsc:100000 tma:1:1 pip:0:5000 psbend", "mtc:1" },
	{ "MTC forth and back", "psb tsc:100000 tma:1:1 pip:0:5000 psbend", "mtc:1 mtc:ff" },
	{ "entries and exits without a time", "psb pip:0:5000 psbend", "pip:1:6000 pip:0:5000" },
	{ "entries and exits, each with an MTC", "psb tsc:100000 tma:1:1 pip:0:5000 psbend",
	  "pip:1:6000 mtc:1 pip:0:5000 mtc:2" },
	{ "exits of ever other VMCSs", "psb tsc:100000 pip:0:5000 psbend",
	  "vmcs:1000 pip:1:6000 pip:0:5000 vmcs:2000 pip:1:6000 pip:0:5000 vmcs:3000" },
	{ "EVD without a CFE", "psb psbend", "evd:q:1" },
	{ "CFE without a FUP", "psb pip:1:5000 psbend", "cfe:INTR:20 cfe:SMI cfe+:IRET" },
	{ "IPs that count from nothing", "pad", "raw:2d0102" },
	{ "PAD", "pad", "pad" },
};

static size_t fill(const struct storm *s, uint8_t *bytes, size_t size)
{
	uint8_t body[256];
	size_t n = vmt_pt_text(s->body, body, sizeof(body));
	size_t len = vmt_pt_text(s->head, bytes, size);

	for (; len + n <= size; len += n)
		memcpy(bytes + len, body, n);
	return len;
}

/* Each byte makes at most one packet or belongs to one stretch; each of these few events. */
static void check(const struct storm *s, const struct vmt_pt_decoder_options *base,
		  const uint8_t *bytes, size_t len, size_t piece)
{
	struct vmt_pt_decoder_options options = *base;
	struct work w = { 0 };
	struct vmt_pt_decoder *d;
	struct vmt_pt_counts counts;
	struct vmt_ledger ledger;

	options.context = &w;
	d = vmt_pt_decoder_new(&options);
	assert_non_null(d);
	for (size_t at = 0; at < len; at += piece)
		vmt_pt_decoder_feed(d, bytes + at, piece < len - at ? piece : len - at);
	vmt_pt_decoder_end(d);
	counts = vmt_pt_decoder_counts(d);
	ledger = vmt_pt_decoder_ledger(d);
	vmt_pt_decoder_free(d);
	if (ledger.bytes_decoded + ledger.bytes_skipped != len || ledger.bytes_total != len ||
	    w.skipped_bytes != ledger.bytes_skipped || w.packets != counts.packets)
		fail_msg("%s: the ledger does not add up", s->name);
	if (w.packets > ledger.bytes_decoded || w.skips > ledger.bytes_skipped ||
	    counts.resyncs > w.skips || w.events > 2 * (w.packets + w.skips))
		fail_msg("%s: %llu packets, %llu skips, %llu resyncs, %llu events of %zu bytes",
			 s->name, (unsigned long long)w.packets, (unsigned long long)w.skips,
			 (unsigned long long)counts.resyncs, (unsigned long long)w.events, len);
}

static void work_is_bounded(void **state)
{
	static const struct vmt_pt_cpu cpus[] = { { 0 },
						  { true, 6, 0x5e, 3 },
						  { true, 6, 0x55, 4 } };
	const struct vmt_pt_vm vm = { .vmcs = VMT_PT_ANY_VMCS,
				      .map = { UINT64_C(1) << 47, 12345, 48 },
				      .has_map = true };
	uint8_t *bytes = malloc(MIB);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < sizeof(storms) / sizeof(storms[0]); i++) {
		const size_t len = fill(&storms[i], bytes, MIB);

		for (size_t k = 0; k < sizeof(cpus) / sizeof(cpus[0]); k++) {
			const struct vmt_pt_decoder_options options = {
				.cpu = cpus[k],
				.clock = { .mtc_freq = 3,
					   .tsc_num = 84,
					   .art_den = 2,
					   .nom_ratio = 21 },
				.vms = &vm,
				.nr_vms = 1,
				.host_cpu = UINT32_MAX,
				.emit = on_event,
				.packet = on_packet,
				.skipped = on_skipped,
			};

			check(&storms[i], &options, bytes, len, len);
			check(&storms[i], &options, bytes, len < SHORT ? len : SHORT, 1);
			check(&storms[i], &options, bytes, len < SHORT ? len : SHORT, 31);
		}
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
