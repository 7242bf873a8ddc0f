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
#include "decode/analyze/input_private.h"

/* A kvm_exit is behind the VM exit, but for rounding. */
#define PULL_NS	 1000u
#define MAPS_MAX 4096u
#define NO_VMCS	 1u /* no VMCS pointer: they are aligned to 4 KiB */

/* What is missing from the area. */
static const struct {
	uint64_t flag;
	const char *kind;
} aux_flags[] = {
	{ VMT_RING_AUX_TRUNCATED, "aux-truncated" },
	{ VMT_RING_AUX_PARTIAL, "aux-partial" },
	{ VMT_RING_AUX_COLLISION, "aux-collision" },
};

/* TSC of a vCPU: of a domain, or of a process whose domain is not known. */
struct tsc_map {
	uint64_t owner;
	uint32_t vcpu;
	struct vmx_tsc_map map;
};

/* Whose an area is that a thread has for itself. */
struct own_vm {
	bool known;
	uint64_t owner;
	uint32_t vcpu;
};

struct input_aux {
	struct vmt_pt_streams *streams; /* NULL: no Intel PT, or not yet */
	struct vmt_fuse *fuse;
	struct vmt_pt_vm vms[VMT_PT_VMS_MAX]; /* given ones, then learnt ones, then free ones */
	size_t nr_given, nr_vms;
	uint64_t owners[VMT_PT_VMS_MAX]; /* of learnt ones */
	struct tsc_map *maps;
	size_t nr_maps;
	struct own_vm *own; /* of the areas */
	struct vmt_pt_vm *own_vms;
	size_t nr_own;
	bool ran;	/* a vCPU's thread was seen on a CPU with PT */
	bool kvm_exits; /* there was a kvm_exit on one */
	int status;
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
		free(in->aux->maps);
		free(in->aux->own);
		free(in->aux->own_vms);
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
static uint32_t domain_by_name(struct vmt_input *in, const char *name, uint32_t pid)
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
		domain = domain_by_name(in, name, link.machine_pid);
		if (domain == UINT32_MAX)
			continue;
		input_vcpu(in, link.tid, link.machine_pid, domain, (int)link.vcpu);
		if (link.vcpu >= in->domains[domain].nr_vcpus)
			in->domains[domain].nr_vcpus = link.vcpu + 1;
	}
}

/* ---- the TSC of vCPUs ---- */

static uint64_t owner_of(uint32_t domain, uint32_t pid)
{
	return domain != UINT32_MAX ? domain : UINT64_C(1) << 32 | pid;
}

static struct tsc_map *find_map(struct input_aux *aux, uint64_t owner, uint32_t vcpu)
{
	for (size_t i = 0; i < aux->nr_maps; i++)
		if (aux->maps[i].owner == owner && aux->maps[i].vcpu == vcpu)
			return &aux->maps[i];
	return NULL;
}

static void set_map(struct input_aux *aux, uint64_t owner, uint32_t vcpu,
		    const struct vmx_tsc_map *map)
{
	struct tsc_map *m = find_map(aux, owner, vcpu);

	if (!m) {
		if (!aux->maps)
			aux->maps = calloc(MAPS_MAX, sizeof(*aux->maps));
		if (!aux->maps || aux->nr_maps == MAPS_MAX)
			return;
		m = &aux->maps[aux->nr_maps++];
		*m = (struct tsc_map){ .owner = owner, .vcpu = vcpu };
	}
	m->map = *map;
	for (size_t i = aux->nr_given; i < aux->nr_vms; i++)
		if (aux->owners[i] == owner && aux->vms[i].vcpu == vcpu)
			aux->vms[i].map = *map;
	for (size_t i = 0; i < aux->nr_own; i++) {
		if (!aux->own[i].known || aux->own[i].owner != owner || aux->own[i].vcpu != vcpu)
			continue;
		aux->own_vms[i].map = *map;
		aux->own_vms[i].has_map = true;
	}
}

void input_aux_tsc(struct vmt_input *in, const struct vmt_item *item)
{
	struct vmt_vcpu_tsc t;

	for (size_t at = 0; at + sizeof(t) <= item->len; at += sizeof(t)) {
		struct vmx_tsc_map map = { .frac_bits = VMX_TSC_FRAC_BITS_VMX,
					   .multiplier = UINT64_C(1) << VMX_TSC_FRAC_BITS_VMX };

		memcpy(&t, item->data + at, sizeof(t));
		map.offset = (uint64_t)t.offset;
		if (t.frac && t.frac < 64 && t.ratio) {
			map.frac_bits = t.frac;
			map.multiplier = t.ratio;
		}
		set_map(in->aux, owner_of(t.domain, 0), t.vcpu, &map);
	}
}

/* kvm_write_tsc_offset: the ratio stays; it is 1 where nothing told another. */
static void on_tsc_offset(struct vmt_input *in, const struct vmt_rec *rec)
{
	struct vmx_tsc_map map = { .frac_bits = VMX_TSC_FRAC_BITS_VMX,
				   .multiplier = UINT64_C(1) << VMX_TSC_FRAC_BITS_VMX };
	uint32_t pid = rec->pid, domain = UINT32_MAX, vcpu;
	const struct tsc_map *before;
	uint64_t owner;

	if (!(rec->flags & VMT_REC_HAS_VCPU))
		return;
	vmt_pt_who_vcpu_of(in->who, rec->tid, &pid, &domain, &vcpu);
	owner = owner_of(domain, pid ? pid : rec->pid);
	before = find_map(in->aux, owner, rec->u.tsc.vcpu_id);
	if (before)
		map = before->map;
	map.offset = rec->u.tsc.next;
	set_map(in->aux, owner, rec->u.tsc.vcpu_id, &map);
}

/* A VMCS has become known to be a vCPU's: its TSC packets can be read with the map of that. */
static void on_vmcs(void *context, uint64_t vmcs)
{
	struct vmt_input *in = context;
	struct input_aux *aux = in->aux;
	const uint32_t tid = vmt_pt_who_tid_of(in->who, vmcs);
	uint32_t pid, domain, vcpu;
	const struct tsc_map *m;
	size_t i = 0;

	if (!vmt_pt_who_vcpu_of(in->who, tid, &pid, &domain, &vcpu))
		return;
	m = find_map(aux, owner_of(domain, pid), vcpu);
	while (i < aux->nr_vms && aux->vms[i].vmcs != vmcs)
		i++;
	if (i < aux->nr_given || i == VMT_PT_VMS_MAX || (!m && i == aux->nr_vms))
		return;
	aux->vms[i] = (struct vmt_pt_vm){ .vmcs = vmcs, .has_map = m != NULL, .vcpu = vcpu };
	if (m)
		aux->vms[i].map = m->map;
	aux->owners[i] = owner_of(domain, pid);
	if (i == aux->nr_vms)
		aux->nr_vms++;
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

static const struct vmt_aux_index *index_of(struct vmt_input *in)
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

static void give_vms(struct vmt_input *in)
{
	const struct vmt_input_pt *pt = in->options.pt;
	struct input_aux *aux = in->aux;

	for (size_t i = 0; i < VMT_PT_VMS_MAX; i++)
		aux->vms[i].vmcs = NO_VMCS;
	for (size_t i = 0; pt && i < pt->nr_vms && i < VMT_PT_VMS_MAX; i++) {
		struct vmt_pt_vm *vm = &aux->vms[i];

		*vm = pt->vms[i];
		if (vm->has_domain)
			vm->domain = domain_by_name(in, pt->names[vm->domain], 0);
		vm->has_domain = vm->has_domain && vm->domain != UINT32_MAX;
		aux->nr_given = i + 1;
	}
	aux->nr_vms = aux->nr_given;
}

/* The stream of a vCPU's thread begins with the TSC of that vCPU, before its VMCS is known. */
static bool give_own_vms(struct vmt_input *in, const struct vmt_aux_index *index)
{
	struct input_aux *aux = in->aux;

	aux->own = calloc(index->nr_areas, sizeof(*aux->own));
	aux->own_vms = calloc(index->nr_areas, sizeof(*aux->own_vms));
	if (!aux->own || !aux->own_vms)
		return false;
	aux->nr_own = index->nr_areas;
	for (size_t i = 0; i < index->nr_areas; i++) {
		const struct vmt_aux_area *area = &index->areas[i];
		struct own_vm *own = &aux->own[i];
		uint32_t pid, domain, vcpu;
		const struct tsc_map *m;

		if (area->cpu != VMT_AUX_NO_CPU ||
		    !vmt_pt_who_vcpu_of(in->who, area->tid, &pid, &domain, &vcpu))
			continue;
		*own = (struct own_vm){ true, owner_of(domain, pid), vcpu };
		m = find_map(aux, own->owner, vcpu);
		if (m)
			aux->own_vms[i] = (struct vmt_pt_vm){ .has_map = true, .map = m->map };
	}
	return true;
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
	const struct vmt_aux_index *index = index_of(in);
	struct vmt_pt_streams_options o = { .index = index };

	if (aux->streams || !index || !index->nr_areas)
		return 0;
	set_clock(in, &index->info);
	choose(in, &o);
	give_vms(in);
	o.vms = aux->vms;
	o.nr_vms = VMT_PT_VMS_MAX;
	if (!give_own_vms(in, index))
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the processor trace",
				    "memory is short");
	o.own_vms = aux->own_vms;
	o.maps_change = in->has_tsc_writes;
	aux->streams = vmt_pt_streams_new(&o);
	aux->fuse = vmt_fuse_new(index->nr_areas, in->who, on_fused, in);
	if (!aux->streams || !aux->fuse)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the processor trace",
				    "memory is short");
	vmt_fuse_on_vmcs(aux->fuse, on_vmcs, in);
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
	if (!aux->streams || aux->status) {
		if (rec->kind == VMT_REC_KVM_WRITE_TSC_OFFSET)
			on_tsc_offset(in, rec);
		return rec->kind == VMT_REC_ITRACE_START || rec->kind == VMT_REC_AUX_LOST;
	}
	if (in->has_clock)
		aux->status = vmt_pt_streams_pull(aux->streams, rec->time_ns + PULL_NS, vmt_fuse_pt,
						  aux->fuse, &in->aux_diag);
	area = area_of(aux, rec->cpu != UINT32_MAX, rec->cpu, rec->tid);
	switch (rec->kind) {
	case VMT_REC_KVM_WRITE_TSC_OFFSET: /* what was before it has been read with the old one */
		on_tsc_offset(in, rec);
		return 0;
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
	const bool asserted = aux->kvm_exits || aux->ran || aux->nr_given;
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
