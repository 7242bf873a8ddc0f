/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A decoder that nobody asks for packets skims: its events, counts and ledger must be those of one
 * that delivers every packet. On long streams of several kinds, the real ones, damaged ones, with
 * pieces of several sizes and processors with errata.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/pt/decoder.h"
#include "tests/support/pt_files.h"
#include "tests/support/pt_load.h"

struct result {
	uint64_t hash, events;
	struct vmt_pt_counts counts;
	struct vmt_ledger ledger;
};

static void on_event(void *context, const struct vmt_event *e)
{
	struct result *r = context;
	const uint64_t values[] = {
		(uint64_t)e->type << 32 | e->has,
		e->host_tsc.host_tsc,
		e->host_tsc_error,
		e->guest_rip,
		e->guest_cr3,
		e->vmcs,
		e->duration_tsc,
		e->qualification,
		(uint64_t)e->reason << 32 | e->vector,
		(uint64_t)e->value,
		e->name ? (uint64_t)e->name[3] : 0,
	};

	r->events++;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		r->hash = (r->hash ^ values[i]) * UINT64_C(0x100000001b3);
		r->hash ^= r->hash >> 29;
	}
}

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *packet)
{
	(void)context;
	(void)offset;
	(void)bytes;
	(void)packet;
}

static struct result run(const uint8_t *bytes, size_t len, size_t piece, uint8_t model, bool full)
{
	struct result r = { 0 };
	const struct vmt_pt_decoder_options options = {
		.cpu = { .known = model, .family = 6, .model = model },
		.host_cpu = UINT32_MAX,
		.clock = { .mtc_freq = 3, .tsc_num = 88, .art_den = 1, .nom_ratio = 21 },
		.emit = on_event,
		.packet = full ? on_packet : NULL,
		.context = &r,
	};
	struct vmt_pt_decoder *d = vmt_pt_decoder_new(&options);

	assert_non_null(d);
	for (size_t at = 0; at < len; at += piece)
		vmt_pt_decoder_feed(d, bytes + at, piece < len - at ? piece : len - at);
	vmt_pt_decoder_end(d);
	r.counts = vmt_pt_decoder_counts(d);
	r.ledger = vmt_pt_decoder_ledger(d);
	vmt_pt_decoder_free(d);
	return r;
}

static void check(const char *name, const uint8_t *bytes, size_t len)
{
	static const uint8_t models[] = { 0, 0x5e, 0x55 };
	static const size_t pieces[] = { 64u << 10, 1000, 133 };

	for (size_t m = 0; m < sizeof(models); m++)
		for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
			const struct result full = run(bytes, len, 64u << 10, models[m], true);
			const struct result skim = run(bytes, len, pieces[i], models[m], false);

			if (memcmp(&full, &skim, sizeof(full)) != 0)
				fail_msg("%s, model %#x, pieces of %zu: %llu events, skimming %llu",
					 name, models[m], pieces[i],
					 (unsigned long long)full.events,
					 (unsigned long long)skim.events);
		}
}

static void long_streams(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2 * VMT_PTLOAD_KINDS; i++) {
		const struct vmt_ptload_options options = {
			.kind = (enum vmt_ptload_kind)(i / 2),
			.seed = 200 + i,
			.bytes = 512u << 10,
			.event_trace = i % 2,
		};
		struct vmt_ptenc stream;
		struct result r;

		vmt_ptload_run(&stream, &options);
		check(vmt_ptload_name(options.kind), stream.bytes, stream.len);
		r = run(stream.bytes, stream.len, stream.len, 0, false);
		if (options.kind != VMT_PTLOAD_GUEST)
			assert_true(r.events > 100 && r.counts.exits > 40);
		/* Every 997th byte is another one. */
		for (size_t k = 0; k < stream.len; k += 997)
			stream.bytes[k] ^= (uint8_t)(1 + k % 255);
		check("damaged", stream.bytes, stream.len);
		vmt_ptenc_free(&stream);
	}
}

static void real_streams(void **state)
{
	struct vmt_pt_files files;

	(void)state;
	if (!vmt_pt_files_load(&files)) {
		print_message("the real streams (../shared/data/pt) are not there\n");
		skip();
	}
	for (size_t i = 0; i < files.n; i++)
		check(files.names[i], files.bytes[i], files.lens[i]);
	vmt_pt_files_free(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_streams),
		cmocka_unit_test(real_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
