// SPDX-License-Identifier: LGPL-2.1-or-later
/* Each reading is a stream of packets and stops, folded as it goes; a difference is then looked
 * for. */
#include "tests/support/pt_engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/batch.h"

#define BATCH_MAX 600

/* One engine's way through the bytes, a packet at a time out of its batches. */
struct way {
	const struct vmt_pt_engine *engine; /* NULL: vmt_pt_next */
	struct vmt_pt_packet packets[BATCH_MAX];
	struct vmt_pt_batch batch;
	struct vmt_pt_reader reader;
	size_t at;
	int status;
	uint64_t passed;
};

struct stop { /* what comes: a packet, or an end of reading */
	int status;
	struct vmt_pt_packet packet;
	struct vmt_pt_reader reader; /* at an end */
	uint64_t passed;
};

static void begin(struct way *w, const struct vmt_pt_engine *engine, size_t max, bool careful,
		  bool skim, const uint8_t *bytes, size_t len)
{
	memset(w, 0, sizeof(*w));
	w->engine = engine;
	w->batch = (struct vmt_pt_batch){
		.packets = w->packets, .max = max, .careful = careful, .skim = skim
	};
	w->reader = vmt_pt_reader_of(bytes, len);
	w->status = 1;
}

static void read_some(struct way *w)
{
	if (w->engine) {
		w->status = w->engine->read(&w->reader, &w->batch);
	} else {
		w->status = vmt_pt_next(&w->reader, w->packets, &w->batch.why);
		w->batch.len = w->batch.passed = w->status == 1;
	}
	w->passed += w->batch.passed;
	w->at = 0;
}

static struct stop next(struct way *w)
{
	struct stop s = { .status = 1 };

	while (w->at == w->batch.len && w->status == 1)
		read_some(w);
	if (w->at < w->batch.len) {
		s.packet = w->packets[w->at++];
		return s;
	}
	s.status = w->status;
	s.reader = w->reader;
	s.passed = w->passed;
	/* On: the careful one takes the packet that it stopped at by hand. */
	if (w->status == 2 && vmt_pt_next(&w->reader, &s.packet, NULL) != 1)
		abort();
	if (w->status == VMT_E_DAMAGED)
		vmt_pt_sync(&w->reader);
	if (w->status == 2 || w->status == VMT_E_DAMAGED) {
		w->batch.len = w->at = 0;
		w->batch.state = (struct vmt_pt_skim){ 0 };
		w->status = 1;
	}
	return s;
}

static bool same(struct way *a, struct way *b, const char *mode, char *where, size_t size)
{
	for (uint64_t n = 0;; n++) {
		const struct stop x = next(a), y = next(b);

		if (memcmp(&x, &y, sizeof(x)) != 0) {
			snprintf(where, size,
				 "%s, packet %llu before offset %zu: status %d, type %u len %u; "
				 "status %d, type %u len %u",
				 mode, (unsigned long long)n,
				 (size_t)(a->reader.pos - a->reader.begin), x.status, x.packet.type,
				 x.packet.len, y.status, y.packet.type, y.packet.len);
			return false;
		}
		if (x.status == 0 || x.status == VMT_E_TRUNCATED)
			return true;
	}
}

bool vmt_pt_engines_agree(const uint8_t *bytes, size_t len, char *where, size_t size)
{
	static const struct mode {
		const char *name;
		size_t max;
		bool careful, skim;
	} modes[] = {
		{ "full", BATCH_MAX, false, false },
		{ "full, small", VMT_PT_BATCH_MIN, false, false },
		{ "careful", 200, true, false },
		{ "skim", 300, false, true },
		{ "skim, careful", 150, true, true },
	};
	const struct vmt_pt_engine *best = vmt_pt_engine_best();
	struct way *a = malloc(sizeof(*a)), *b = malloc(sizeof(*b));
	bool ok = true;

	if (!a || !b)
		abort();
	begin(a, NULL, 1, false, false, bytes, len);
	begin(b, &vmt_pt_engine_scalar, 7, false, false, bytes, len);
	ok = same(a, b, "scalar against vmt_pt_next", where, size);
	for (size_t i = 0; ok && i < sizeof(modes) / sizeof(modes[0]); i++) {
		const struct mode *m = &modes[i];

		begin(a, &vmt_pt_engine_scalar, m->max, m->careful, m->skim, bytes, len);
		begin(b, best, m->max, m->careful, m->skim, bytes, len);
		ok = same(a, b, m->name, where, size);
	}
	free(a);
	free(b);
	return ok;
}
