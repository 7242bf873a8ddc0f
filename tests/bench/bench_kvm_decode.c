/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Speed of the kvm pipeline on one thread: ring parse, record decode, merge, join, each stage on
 * top of the one before, over the same records (4 vCPUs on 4 rings, drained ring by ring in
 * rounds). Prints ns and records/s a stage, the totals that prove the work, and memcpy of the same
 * bytes. Usage: bench_kvm_decode [RECORDS], 2000000 by default.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/kvm/join.h"
#include "decode/kvm/merge.h"
#include "tests/support/stream.h"

#define RINGS	    4
#define ROUND_EXITS 500 /* exits a ring writes between two drains */

struct ring {
	struct vmt_stream out;
	struct vmt_machine *machine;
	size_t *ends; /* of each round */
	size_t pos;
};

static struct ring rings[RINGS];
static size_t nr_rounds, nr_records;

struct totals {
	uint64_t records, recs, merged, events, exits, with_key, with_duration, duration_ns, check;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the input ---- */

#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

static size_t write_exit(struct ring *r, struct vmt_machine_exit *x, unsigned int n)
{
	const struct vmt_stream_value msr[] = { { "write", 1 }, { "ecx", 0x6e0 }, { "data", n } };
	const struct vmt_stream_value pio[] = { { "rw", 1 }, { "port", 0x3f8 }, { "size", 1 } };
	const struct vmt_stream_value user[] = { { "reason", 2 }, { "errno", 0 } };
	const struct vmt_stream_value wake[] = { { "ns", 8000 }, { "waited", 1 }, { "valid", 1 } };

	x->gap_ns = 700 + n % 300;
	x->guest_ns = 2000 + n % 900;
	x->info1 = n % 4 == 2 ? 0x3f80000 : 0;
	x->intr_info = n % 4 == 0 ? 0x800000ec : 0;
	x->rip = 0xffffffff81000000 + n % 64 * UINT64_C(16);
	x->reason = (const uint32_t[]){ 1, 32, 30, 12 }[n % 4];
	vmt_machine_run(r->machine, x);
	switch (n % 4) {
	case 1:
		vmt_machine_event(r->machine, "kvm_msr", x, 120, msr, SIZE(msr));
		return 3;
	case 2:
		vmt_machine_event(r->machine, "kvm_pio", x, 100, pio, SIZE(pio));
		vmt_machine_event(r->machine, "kvm_userspace_exit", x, 300, user, SIZE(user));
		return 4;
	case 3:
		vmt_machine_switch(r->machine, x, 2000, 1, 0);
		vmt_machine_switch(r->machine, x, 6000, 0, 0);
		vmt_machine_event(r->machine, "kvm_vcpu_wakeup", x, 150, wake, SIZE(wake));
		return 5;
	default:
		return 2;
	}
}

static void write_rings(size_t wanted)
{
	struct vmt_machine_exit x = { .pid = 4000, .isa = 1 };
	size_t cap = wanted / ((size_t)ROUND_EXITS * 3 * RINGS) + 2;

	for (unsigned int i = 0; i < RINGS; i++) {
		rings[i].machine = vmt_machine_new("6.18", &rings[i].out);
		rings[i].ends = calloc(cap, sizeof(size_t));
		if (!rings[i].ends)
			abort();
	}
	while (nr_records < wanted && nr_rounds < cap) {
		for (unsigned int i = 0; i < RINGS; i++) {
			x.tid = 4001 + i;
			x.cpu = x.vcpu = i;
			for (unsigned int n = 0; n < ROUND_EXITS; n++)
				nr_records += write_exit(&rings[i], &x, n + i);
			rings[i].ends[nr_rounds] = rings[i].out.len;
		}
		nr_rounds++;
	}
}

/* ---- the pipeline ---- */

enum stage {
	PARSE,
	DECODE,
	MERGE,
	JOIN,
	STAGES,
};

struct pipe {
	enum stage stage;
	struct totals totals;
	struct vmt_ring_set *set;
	struct vmt_catalog *catalog;
	struct vmt_merge *merge;
	struct vmt_join *join;
};

static void on_event(void *context, const struct vmt_event *event)
{
	struct totals *t = context;

	t->events++;
	t->exits += event->type == VMT_EVENT_EXIT;
	if (event->type != VMT_EVENT_EXIT)
		return;
	t->with_key += event->key.kind != VMT_KEY_NONE;
	t->with_duration += (event->has & VMT_HAS_DURATION) != 0;
	t->duration_ns += event->duration_ns;
}

static void on_rec(void *context, const struct vmt_rec *rec)
{
	struct pipe *p = context;

	p->totals.merged++;
	p->totals.check += rec->kind;
	if (p->stage == JOIN)
		vmt_join_push(p->join, rec);
}

static void drain(struct pipe *p, struct ring *r, size_t end)
{
	struct vmt_ring_record record;
	struct vmt_rec rec;

	while (r->pos < end) {
		int size =
			vmt_ring_parse(p->set, r->out.bytes + r->pos, end - r->pos, &record, NULL);

		if (size < 0)
			abort();
		r->pos += (size_t)size;
		p->totals.records++;
		p->totals.check += record.time_ns;
		if (p->stage == PARSE)
			continue;
		if (vmt_rec_decode(p->catalog, &record, &rec) != 1)
			continue;
		p->totals.recs++;
		p->totals.check += rec.u.words[0];
		if (p->stage >= MERGE)
			vmt_merge_push(p->merge, &rec, on_rec, p);
	}
}

static double run(struct pipe *p)
{
	double start = now_s();

	for (unsigned int i = 0; i < RINGS; i++)
		rings[i].pos = 0;
	for (size_t round = 0; round < nr_rounds; round++) {
		for (unsigned int i = 0; i < RINGS; i++)
			drain(p, &rings[i], rings[i].ends[round]);
		if (p->stage >= MERGE)
			vmt_merge_round(p->merge, on_rec, p);
	}
	if (p->stage >= MERGE)
		vmt_merge_flush(p->merge, on_rec, p);
	if (p->stage == JOIN)
		vmt_join_flush(p->join);
	return now_s() - start;
}

static double measure(enum stage stage, struct totals *totals)
{
	struct pipe p = { .stage = stage };
	const struct vmt_format *formats;
	size_t n = vmt_machine_formats(rings[0].machine, &formats);
	double best = 1e9;

	for (int repeat = 0; repeat < 3; repeat++) {
		double seconds;

		memset(&p.totals, 0, sizeof(p.totals));
		p.set = vmt_ring_set_new();
		p.catalog = vmt_catalog_new();
		p.merge = vmt_merge_new(1u << 18);
		p.join = vmt_join_new(p.catalog, on_event, &p.totals);
		if (!p.set || !p.catalog || !p.merge || !p.join)
			abort();
		for (size_t i = 0; i < n; i++) {
			struct vmt_ring_attr attr = vmt_stream_attr(formats[i].id);
			uint64_t id = i + 1;

			if (vmt_ring_set_add(p.set, &attr, &id, 1) < 0 ||
			    vmt_catalog_add(p.catalog, &formats[i]) < 0)
				abort();
		}
		seconds = run(&p);
		if (seconds < best)
			best = seconds;
		if (stage >= MERGE && vmt_merge_late(p.merge))
			abort();
		*totals = p.totals;
		vmt_ring_set_free(p.set);
		vmt_join_free(p.join);
		vmt_catalog_free(p.catalog);
		vmt_merge_free(p.merge);
	}
	return best;
}

static double measure_memcpy(size_t bytes)
{
	uint8_t *copy = malloc(bytes);
	double best = 1e9;

	if (!copy)
		abort();
	for (int repeat = 0; repeat < 3; repeat++) {
		double start = now_s();
		size_t at = 0;

		for (unsigned int i = 0; i < RINGS; i++) {
			memcpy(copy + at, rings[i].out.bytes, rings[i].out.len);
			at += rings[i].out.len;
		}
		if (now_s() - start < best)
			best = now_s() - start;
	}
	free(copy);
	return best;
}

int main(int argc, char **argv)
{
	static const char *const names[STAGES] = { "parse", "parse+decode", "parse+decode+merge",
						   "parse+decode+merge+join" };
	size_t bytes = 0, wanted = argc > 1 ? strtoul(argv[1], NULL, 0) : 2000000;
	struct totals totals = { 0 };
	double seconds;

	write_rings(wanted);
	for (unsigned int i = 0; i < RINGS; i++)
		bytes += rings[i].out.len;
	printf("kvm_decode: %zu records, %zu bytes, %zu rounds\n", nr_records, bytes, nr_rounds);
	for (int stage = PARSE; stage < STAGES; stage++) {
		seconds = measure((enum stage)stage, &totals);
		if (totals.records != nr_records)
			abort();
		printf("kvm_decode: %-24s %7.2f ns/record %10.0f records/s %8.0f MB/s\n",
		       names[stage], seconds * 1e9 / (double)nr_records,
		       (double)nr_records / seconds, (double)bytes / seconds / 1e6);
	}
	printf("kvm_decode: %llu events, %llu exits, %llu with a sub-key, %llu with a duration, "
	       "%llu ns\n",
	       (unsigned long long)totals.events, (unsigned long long)totals.exits,
	       (unsigned long long)totals.with_key, (unsigned long long)totals.with_duration,
	       (unsigned long long)totals.duration_ns);
	seconds = measure_memcpy(bytes);
	printf("kvm_decode: %-24s %7.2f ns/record %10.0f records/s %8.0f MB/s\n", "memcpy",
	       seconds * 1e9 / (double)nr_records, (double)nr_records / seconds,
	       (double)bytes / seconds / 1e6);
	for (unsigned int i = 0; i < RINGS; i++) {
		vmt_machine_free(rings[i].machine);
		vmt_stream_free(&rings[i].out);
		free(rings[i].ends);
	}
	return 0;
}
