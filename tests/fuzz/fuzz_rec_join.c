/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as the ring of a 6.18 host, through ring, rec, merge and join. What must hold: each
 * exit that came in goes out once; parts never exceed the duration; what is not known is not said.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/kvm/join.h"
#include "decode/kvm/merge.h"
#include "tests/support/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
	"kvm_entry",
	"kvm_exit",
	"kvm_userspace_exit",
	"kvm_vcpu_wakeup",
	"kvm_msr",
	"kvm_mmio",
	"kvm_page_fault",
	"kvm_cpuid",
	"kvm_eoi",
	"kvm_nested_vmexit",
	"kvm_nested_vmenter",
	"kvm_vmgexit_enter",
	"kvm_hv_hypercall",
	"kvm_write_tsc_offset",
	"sched_switch",
	"sched_waking",
};

struct account {
	struct vmt_join *join;
	uint64_t exits_in, exits_out, entries_in, entries_out;
};

static void on_event(void *context, const struct vmt_event *e)
{
	struct account *a = context;
	uint64_t parts = e->userspace_part_ns + e->halt_poll_part_ns + e->blocked_part_ns +
			 e->preempted_part_ns;

	if (e->type >= VMT_EVENT_TYPE_COUNT || e->key.access > VMT_ACCESS_EXEC)
		abort();
	if (e->key.kind == VMT_KEY_NONE && e->key.access != VMT_ACCESS_NONE)
		abort();
	if (e->key.kind == VMT_KEY_VECTOR && e->key.number > 255)
		abort();
	a->exits_out += e->type == VMT_EVENT_EXIT;
	a->entries_out += e->type == VMT_EVENT_ENTRY;
	if (e->type != VMT_EVENT_EXIT)
		return;
	if (parts > e->duration_ns || (parts && !(e->has & VMT_HAS_DURATION)))
		abort();
	if (e->concealed_rip && e->has & VMT_HAS_RIP)
		abort();
	if (e->has & VMT_HAS_PARTS && !(e->has & VMT_HAS_DURATION))
		abort();
}

static void on_rec(void *context, const struct vmt_rec *rec)
{
	struct account *a = context;

	a->exits_in += rec->kind == VMT_REC_KVM_EXIT;
	a->entries_in += rec->kind == VMT_REC_KVM_ENTRY;
	vmt_join_push(a->join, rec);
}

static void push(struct vmt_merge *merge, struct vmt_rec *rec, uint64_t last_ns, struct account *a)
{
	struct vmt_rec begin;

	if (rec->kind == VMT_REC_LOST && last_ns) {
		vmt_rec_loss_begin(rec, last_ns, &begin);
		vmt_merge_push(merge, &begin, on_rec, a);
	}
	vmt_merge_push(merge, rec, on_rec, a);
}

static void play(const uint8_t *bytes, size_t len, const struct vmt_ring_set *set,
		 const struct vmt_catalog *catalog, struct vmt_merge *merge, struct account *a)
{
	struct vmt_ring_record record;
	struct vmt_rec rec;
	uint64_t last_ns = 0;
	size_t at = 0;

	while (at < len) {
		int n = vmt_ring_parse(set, bytes + at, len - at, &record, NULL);

		at += n > 0 ? (size_t)n : 8;
		if (n <= 0)
			continue;
		if (record.type == VMT_RING_USER_FIRST)
			vmt_merge_round(merge, on_rec, a);
		else if (record.type == VMT_RING_USER_FIRST + 1)
			vmt_join_mark(a->join, record.size, record.misc % 2,
				      record.misc & 4 ? "paused" : "resumed");
		else if (record.type == VMT_RING_USER_FIRST + 2)
			vmt_join_thread(a->join, record.misc, 0, record.size % 4 - 1);
		else if (vmt_rec_decode(catalog, &record, &rec) == 1)
			push(merge, &rec, last_ns, a);
		if (record.has_time)
			last_ns = record.time_ns;
	}
	vmt_merge_flush(merge, on_rec, a);
	vmt_join_flush(a->join);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vmt_format formats[sizeof(names) / sizeof(names[0])];
	struct vmt_catalog *catalog = vmt_catalog_new();
	struct vmt_ring_set *set = vmt_ring_set_new();
	struct vmt_merge *merge = vmt_merge_new(64);
	struct vmt_ring_attr attr = vmt_stream_attr(0);
	struct account a = { 0 };
	struct vmt_join_counts counts;
	const uint64_t id = 1;

	a.join = vmt_join_new(catalog, on_event, &a);
	if (!catalog || !set || !merge || !a.join)
		abort();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!formats[i].name[0]) {
			formats[i] = vmt_stream_format("6.18", names[i]);
			formats[i].id = (uint32_t)i;
		}
		if (vmt_catalog_add(catalog, &formats[i]) != (int)i)
			abort();
	}
	vmt_ring_set_add(set, &attr, &id, 1);
	if (size && data[0] & 1)
		vmt_join_has_switches(a.join);
	play(data, size, set, catalog, merge, &a);
	counts = vmt_join_counts(a.join);
	if (a.exits_in != a.exits_out || a.exits_in != counts.exits + counts.failed_entries)
		abort();
	if (a.entries_in != a.entries_out || a.entries_in != counts.entries)
		abort();
	vmt_join_free(a.join);
	vmt_merge_free(merge);
	vmt_ring_set_free(set);
	vmt_catalog_free(catalog);
	return 0;
}
