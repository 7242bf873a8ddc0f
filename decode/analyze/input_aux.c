// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Intel PT of a capture beside its tracepoints: PT is pulled up to the time of each rec before the
 * join gets it, and both go through the fuse. Invariant: nothing of this exists in an input without
 * an AUX area. What is learnt of VMs before the first rec (threads, TSC maps) is kept from the
 * start.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/fuse.h"
#include "decode/analyze/input_aux.h"

/* A kvm_exit is behind the VM exit, but for rounding. */
#define PULL_NS 1000u

/* What is missing from the area. */
static const struct {
	uint64_t flag;
	const char *kind;
} aux_flags[] = {
	{ VMT_RING_AUX_TRUNCATED, "aux-truncated" },
	{ VMT_RING_AUX_PARTIAL, "aux-partial" },
	{ VMT_RING_AUX_COLLISION, "aux-collision" },
};

/* ---- who is who ---- */

int input_aux_open(struct vmt_input *in)
{
	in->aux = calloc(1, sizeof(*in->aux));
	in->who = vmt_pt_who_new();
	return in->aux && in->who ? 0 : VMT_E_NOMEM;
}

void input_aux_close(struct vmt_input *in)
{
	if (in->aux) {
		vmt_fuse_free(in->aux->fuse);
		vmt_pt_streams_free(in->aux->streams);
		input_tsc_free(&in->aux->tsc);
	}
	free(in->aux);
	vmt_pt_who_free(in->who);
}

void input_vcpu(struct vmt_input *in, uint32_t tid, uint32_t pid, uint32_t domain, int vcpu)
{
	vmt_join_thread(in->join, tid, domain, vcpu);
	if (vcpu >= 0 && in->who)
		vmt_pt_who_vcpu(in->who, tid, pid, domain, (uint32_t)vcpu);
}

/* The index of a domain by name; a new one when there is none. UINT32_MAX: no room. */
uint32_t input_domain_by_name(struct vmt_input *in, const char *name, uint32_t pid)
{
	size_t i = 0;

	while (i < in->facts.nr_domains &&
	       !(pid ? in->domains[i].pid == pid
		     : in->domains[i].name && !strcmp(in->domains[i].name, name)))
		i++;
	if (i < in->facts.nr_domains)
		return (uint32_t)i;
	if (i == INPUT_DOMAINS_MAX)
		return UINT32_MAX;
	in->domain_texts[i][0] = strdup(name);
	in->domains[i].name = in->domain_texts[i][0];
	in->domains[i].pid = pid;
	in->facts.nr_domains = i + 1;
	return (uint32_t)i;
}

void input_aux_links(struct vmt_input *in, const struct vmt_item *item)
{
	struct vmt_vcpu_link link;

	for (size_t at = 0; at + sizeof(link) <= item->len; at += sizeof(link)) {
		uint32_t domain;
		char name[32];

		memcpy(&link, item->data + at, sizeof(link));
		snprintf(name, sizeof(name), "pid %u", link.machine_pid);
		domain = input_domain_by_name(in, name, link.machine_pid);
		if (domain == UINT32_MAX)
			continue;
		input_vcpu(in, link.tid, link.machine_pid, domain, (int)link.vcpu);
		if (link.vcpu >= in->domains[domain].nr_vcpus)
			in->domains[domain].nr_vcpus = link.vcpu + 1;
	}
}

/* ---- events on their way out ---- */

void input_pt_count_loss(struct vmt_input *in, const struct vmt_event *e)
{
	static const struct {
		const char *event, *kind;
	} rows[] = {
		{ "overflow", "pt-overflow" },
		{ "aux-gap", "pt-gap" },
		{ "undecodable", "pt-undecodable" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(e->name, rows[i].event))
			input_loss_count(in, rows[i].kind, 0,
					 e->has & VMT_HAS_VALUE ? (uint64_t)e->value : 0);
}

static void on_fused(void *context, const struct vmt_event *e)
{
	struct vmt_input *in = context;

	if (e->source == VMT_SOURCE_PT && e->has & VMT_HAS_TIME)
		input_note_time(in, e->time.host_ns);
	if (e->source == VMT_SOURCE_PT && e->type == VMT_EVENT_LOSS)
		input_pt_count_loss(in, e);
	input_event(in, e);
}

static size_t area_of(const struct input_aux *aux, bool has_cpu, uint32_t cpu, uint32_t tid)
{
	return vmt_pt_streams_area(aux->streams, has_cpu ? cpu : UINT32_MAX, tid);
}

void input_on_joined(void *context, const struct vmt_event *e)
{
	struct vmt_input *in = context;

	if (in->aux && in->aux->fuse)
		vmt_fuse_event(in->aux->fuse,
			       area_of(in->aux, e->has & VMT_HAS_CPU, e->cpu, e->tid), e);
	else
		input_event(in, e);
}

/* ---- setting up ---- */

const struct vmt_aux_index *input_aux_index(struct vmt_input *in)
{
	if (in->store)
		return vmt_store_aux_index(in->store);
	return in->perf ? vmt_perfdata_aux(in->perf) : NULL;
}

static void set_clock(struct vmt_input *in, const struct vmt_pt_info *info)
{
	if (in->has_clock || !info->has_time_conv || info->time_shift > 32)
		return;
	in->clock = (struct vmt_perf_clock){ .zero = info->time_zero,
					     .mult = info->time_mult,
					     .shift = info->time_shift };
	in->has_clock = true;
	in->facts.tsc_convertible = true;
}

/* What the command line says goes before what the file says. */
static void choose(const struct vmt_input *in, struct vmt_pt_streams_options *o)
{
	if (in->options.pt) {
		o->cpu = in->options.pt->cpu;
		o->clock = in->options.pt->clock;
	}
	o->has_perf_clock = in->has_clock;
	o->perf_clock = in->clock;
	/* Without the perf clock the TSC's own is no axis for what else is in the file. */
	if (!in->has_clock && in->has_first)
		o->clock.tsc_hz = 0;
}

/* What a window begins with: the first record of any source. */
static void note_first(struct vmt_input *in)
{
	uint64_t first;

	if (vmt_pt_streams_next(in->aux->streams, &first))
		input_note_time(in, first);
}

/* The first pull: before anything goes out. */
static int start(struct vmt_input *in, struct vmt_diag *diag)
{
	struct input_aux *aux = in->aux;
	const struct vmt_aux_index *index = input_aux_index(in);
	struct vmt_pt_streams_options o = { .index = index };

	if (aux->streams || !index || !index->nr_areas)
		return 0;
	set_clock(in, &index->info);
	choose(in, &o);
	if (input_tsc_start(in, index))
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the processor trace",
				    "memory is short");
	o.vms = aux->tsc.vms;
	o.nr_vms = VMT_PT_VMS_MAX;
	o.own_vms = aux->tsc.own_vms;
	aux->streams = vmt_pt_streams_new(&o);
	aux->fuse = vmt_fuse_new(index->nr_areas, in->who, on_fused, in);
	if (!aux->streams || !aux->fuse)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the processor trace",
				    "memory is short");
	vmt_fuse_on_vmcs(aux->fuse, input_tsc_vmcs, in);
	if (in->has_clock)
		vmt_fuse_clock(aux->fuse, &in->clock);
	if (in->has_kvm_exit)
		vmt_fuse_expect_kvm(aux->fuse);
	vmt_merge_relax(in->merge, 0);
	in->facts.has_pt = true;
	if (in->facts.isa == VMT_ISA_UNKNOWN)
		in->facts.isa = VMT_ISA_VMX;
	aux->status = vmt_pt_streams_pull(aux->streams, 0, vmt_fuse_pt, aux->fuse, diag);
	note_first(in);
	return aux->status;
}

bool input_aux_is_on(const struct vmt_input *in)
{
	return in->aux && in->aux->streams;
}

/* ---- beside the recs ---- */

/* 1: the rec is no business of the join. */
static int take_aux_loss(struct vmt_input *in, const struct vmt_rec *rec)
{
	struct vmt_event e = { .type = VMT_EVENT_LOSS,
			       .source = VMT_SOURCE_PT,
			       .time = { rec->time_ns },
			       .cpu = rec->cpu,
			       .has = VMT_HAS_TIME };

	if (rec->cpu != UINT32_MAX)
		e.has |= VMT_HAS_CPU;
	for (size_t i = 0; i < sizeof(aux_flags) / sizeof(aux_flags[0]); i++) {
		if (!(rec->u.any.first & aux_flags[i].flag))
			continue;
		e.name = aux_flags[i].kind;
		input_loss_count(in, e.name, 0, 0);
		input_on_joined(in, &e);
	}
	return 1;
}

static void on_kvm_exit(struct vmt_input *in, size_t area, const struct vmt_rec *rec)
{
	const struct vmt_fuse_exit x = {
		.time_ns = rec->time_ns,
		.tid = rec->tid,
		.has_rip = rec->flags & VMT_REC_HAS_RIP,
		.has_reason = rec->u.exit.isa == VMT_ISA_VMX,
		.guest_rip = rec->u.exit.rip,
		.reason = rec->u.exit.reason,
	};

	in->aux->kvm_exits = in->aux->kvm_exits || area != SIZE_MAX;
	vmt_fuse_exit(in->aux->fuse, area, &x);
}

static void runs(struct vmt_input *in, size_t area, uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	uint32_t a, b, c;

	if (area == SIZE_MAX || !in->has_clock)
		return;
	in->aux->ran = in->aux->ran || vmt_pt_who_vcpu_of(in->who, tid, &a, &b, &c);
	vmt_pt_who_runs(in->who, area, time_ns, pid, tid);
}

int input_aux_before(struct vmt_input *in, const struct vmt_rec *rec)
{
	struct input_aux *aux = in->aux;
	size_t area;

	if (!aux->streams && start(in, &in->aux_diag)) {
		aux->status = VMT_E_NOMEM;
		return 1;
	}
	if (!aux->streams || aux->status)
		return rec->kind == VMT_REC_ITRACE_START || rec->kind == VMT_REC_AUX_LOST;
	if (in->has_clock)
		aux->status = vmt_pt_streams_pull(aux->streams, rec->time_ns + PULL_NS, vmt_fuse_pt,
						  aux->fuse, &in->aux_diag);
	area = area_of(aux, rec->cpu != UINT32_MAX, rec->cpu, rec->tid);
	switch (rec->kind) {
	case VMT_REC_KVM_EXIT:
		on_kvm_exit(in, area, rec);
		if (rec->flags & VMT_REC_HAS_VCPU)
			vmt_pt_who_vcpu(in->who, rec->tid, rec->pid, UINT32_MAX,
					rec->u.exit.vcpu_id);
		return 0;
	case VMT_REC_SWITCH_OUT:
		runs(in, area, rec->time_ns, 0, UINT32_MAX);
		return 0;
	case VMT_REC_SCHED_SWITCH:
		runs(in, area, rec->time_ns, 0, rec->u.sched_switch.next_tid);
		return 0;
	case VMT_REC_ITRACE_START:
	case VMT_REC_SWITCH_IN:
		runs(in, area, rec->time_ns, rec->pid, rec->tid);
		return rec->kind == VMT_REC_ITRACE_START;
	case VMT_REC_AUX_LOST:
		return take_aux_loss(in, rec);
	default:
		return 0;
	}
}

void input_aux_after(struct vmt_input *in, const struct vmt_rec *rec)
{
	if (!in->aux->fuse)
		return;
	vmt_fuse_settle(in->aux->fuse);
	vmt_fuse_advance(in->aux->fuse, rec->time_ns);
}

/* ---- the end ---- */

static void conclude(struct vmt_input *in)
{
	const struct input_aux *aux = in->aux;
	struct vmt_input_facts *f = &in->facts;
	const bool asserted = aux->kvm_exits || aux->ran || aux->tsc.nr_given;
	const struct vmt_pt_counts counts = vmt_pt_streams_counts(aux->streams);
	const bool seen = counts.nonroot_seen;

	f->has_concealed = seen || asserted;
	f->concealed = !seen && asserted;
	f->join = vmt_fuse_counts(aux->fuse);
	f->has_join = vmt_fuse_covered(aux->fuse) || f->join.untimed;
	f->vmcs_moved = vmt_pt_who_contradictions(in->who);
	f->nr_pt_differs =
		vmt_pt_controls_compare(&f->pt_controls, &counts,
					f->join.joined + f->join.only_kvm > 0, f->pt_differs);
}

int input_aux_finish(struct vmt_input *in, struct vmt_diag *diag)
{
	struct input_aux *aux = in->aux;
	int status = aux->status ? aux->status : start(in, &in->aux_diag);

	if (!status && aux->streams) {
		vmt_fuse_settle(aux->fuse);
		vmt_fuse_advance(aux->fuse, UINT64_MAX);
		status = vmt_pt_streams_pull(aux->streams, UINT64_MAX, vmt_fuse_pt, aux->fuse,
					     &in->aux_diag);
		vmt_fuse_flush(aux->fuse);
		conclude(in);
	}
	if (status && diag)
		*diag = in->aux_diag;
	return status;
}

/* The file's ledger takes all trace for decoded. */
void input_aux_ledger(const struct vmt_input *in, struct vmt_ledger *ledger)
{
	struct vmt_ledger pt;

	if (!input_aux_is_on(in))
		return;
	pt = vmt_pt_streams_ledger(in->aux->streams);
	if (pt.bytes_skipped > ledger->bytes_decoded)
		pt.bytes_skipped = ledger->bytes_decoded;
	ledger->bytes_decoded -= pt.bytes_skipped;
	ledger->bytes_skipped += pt.bytes_skipped;
	ledger->overflows += pt.overflows;
	ledger->truncated = ledger->truncated || pt.truncated;
}

struct vmt_pt_counts input_aux_counts(const struct vmt_input *in)
{
	return vmt_pt_streams_counts(in->aux->streams);
}
