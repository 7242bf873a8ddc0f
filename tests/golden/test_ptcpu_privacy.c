// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams of the emulated CPU with Intel PT, rewritten for one side: the CR3s are of that side, the
 * IPs are those that the truth knows of it, and the decoder tells the same exits as of the whole
 * stream. The packs of tests/golden/ptcpu, or those that are named as arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/decoder.h"
#include "decode/rewrite/privacy.h"
#include "tests/support/ptcpu_pack.h"
#include "tests/support/stream.h"

enum { MAX_EXITS = 20000 };

struct exit_event {
	uint32_t reason;
	uint64_t rip, cr3;
	uint32_t vector;
	bool has_reason, has_rip, has_cr3;
};

struct stream {
	const uint8_t *bytes;
	size_t len;
	struct exit_event exits[MAX_EXITS];
	size_t nr_exits;
};

static void append(void *context, const uint8_t *bytes, size_t len)
{
	vmt_stream_append(context, bytes, len);
}

static void on_event(void *context, const struct vmt_event *e)
{
	struct stream *s = context;

	if (e->type != VMT_EVENT_EXIT || e->failed_entry)
		return;
	assert_true(s->nr_exits < MAX_EXITS);
	s->exits[s->nr_exits++] = (struct exit_event){
		.reason = e->has & VMT_HAS_REASON ? e->reason | e->reason_flags : 0,
		.rip = e->has & VMT_HAS_RIP ? e->guest_rip : 0,
		.cr3 = e->has & VMT_HAS_CR3 ? e->guest_cr3 : 0,
		.vector = e->has & VMT_HAS_VECTOR ? e->vector : 0,
		.has_reason = e->has & VMT_HAS_REASON,
		.has_rip = e->has & VMT_HAS_RIP,
		.has_cr3 = e->has & VMT_HAS_CR3,
	};
}

static void decode(struct stream *s)
{
	const struct vmt_pt_decoder_options options = { .host_cpu = UINT32_MAX,
							.emit = on_event,
							.context = s };
	struct vmt_pt_decoder *d = vmt_pt_decoder_new(&options);

	assert_non_null(d);
	s->nr_exits = 0;
	vmt_pt_decoder_feed(d, s->bytes, s->len);
	vmt_pt_decoder_end(d);
	assert_int_equal(vmt_pt_decoder_ledger(d).bytes_skipped, 0);
	vmt_pt_decoder_free(d);
}

static struct vmt_stream rewrite(const struct stream *s, enum vmt_privacy keep)
{
	struct vmt_stream out = { 0 };
	const struct vmt_rewrite_options options = {
		.keep = keep, .key = 1, .write = append, .context = &out
	};
	struct vmt_rewrite *r = vmt_rewrite_new(&options);

	assert_non_null(r);
	vmt_rewrite_feed(r, s->bytes, s->len);
	vmt_rewrite_end(r);
	vmt_rewrite_free(r);
	return out;
}

static size_t pips_of(const struct stream *s, bool nr)
{
	struct vmt_pt_reader reader = vmt_pt_reader_of(s->bytes, s->len);
	struct vmt_pt_packet p;
	size_t pips = 0;

	while (vmt_pt_next(&reader, &p, NULL) == 1)
		pips += p.type == VMT_PT_PIP && p.nr == nr;
	return pips;
}

static struct stream whole, kept;
static size_t nr_kept;

static void check(enum vmt_privacy keep)
{
	const bool guest = keep == VMT_PRIVACY_GUEST;
	struct vmt_stream out = rewrite(&whole, keep);

	kept.bytes = out.bytes;
	kept.len = out.len;
	assert_int_equal(pips_of(&kept, !guest), 0);
	decode(&kept);
	/* Where guests alone are traced, and no PIP tells of their entries, nothing is sure. */
	if (pips_of(&whole, true) < whole.nr_exits || !pips_of(&whole, false)) {
		assert_true(kept.nr_exits <= whole.nr_exits);
		free(out.bytes);
		return;
	}
	assert_int_equal(kept.nr_exits, whole.nr_exits);
	for (size_t i = 0; i < kept.nr_exits; i++) {
		const struct exit_event *a = &whole.exits[i], *b = &kept.exits[i];

		assert_true(a->has_reason == b->has_reason && a->reason == b->reason);
		assert_int_equal(a->vector, b->vector);
		if (!guest) {
			assert_false(b->has_rip || b->has_cr3);
			continue;
		}
		assert_true(a->has_rip == b->has_rip && a->rip == b->rip);
		assert_true(a->has_cr3 == b->has_cr3 && a->cr3 == b->cr3);
	}
	nr_kept += kept.nr_exits;
	free(out.bytes);
}

static void check_pack(const char *path)
{
	struct ptcpu_member member = { .next = 0 };
	struct ptcpu_pack pack;

	assert_true(ptcpu_pack_open(&pack, path));
	while (ptcpu_pack_next(&pack, &member, ".pt")) {
		whole.bytes = member.bytes;
		whole.len = member.size;
		decode(&whole);
		printf("# %s: %zu exits, PIPs of guests %zu, of the host %zu\n", member.name,
		       whole.nr_exits, pips_of(&whole, true), pips_of(&whole, false));
		check(VMT_PRIVACY_GUEST);
		check(VMT_PRIVACY_HOST);
	}
	ptcpu_pack_close(&pack);
}

static void every_pack(void **state)
{
	const glob_t *packs = *state;

	for (size_t i = 0; i < packs->gl_pathc; i++)
		check_pack(packs->gl_pathv[i]);
	assert_true(nr_kept > 900);
}

int main(void)
{
	const char *top = getenv("VMT_TOP");
	static glob_t packs;
	const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(every_pack, &packs) };
	char pattern[1024];
	int status;

	snprintf(pattern, sizeof(pattern), "%s/tests/golden/ptcpu/*.tar.zst", top ? top : ".");
	if (glob(pattern, 0, NULL, &packs))
		return 1;
	status = cmocka_run_group_tests(tests, NULL, NULL);
	globfree(&packs);
	return status;
}
