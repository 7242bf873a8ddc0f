// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How the TSC packets of guests are read: by which vCPU's map, and by which of its maps where the
 * VMM wrote the TSC. Invariant: a vCPU whose TSC changes in a way that is not known has no map.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/input_aux.h"

#define MAPS_MAX 4096u
#define NO_VMCS	 1u /* no VMCS pointer: they are aligned to 4 KiB */

static const struct vmx_tsc_map unscaled = { .frac_bits = VMX_TSC_FRAC_BITS_VMX,
					     .multiplier = UINT64_C(1) << VMX_TSC_FRAC_BITS_VMX };

static uint64_t owner_of(uint32_t domain, uint32_t pid)
{
	return domain != UINT32_MAX ? domain : UINT64_C(1) << 32 | pid;
}

static struct tsc_map *find_map(struct input_tsc *t, uint64_t owner, uint32_t vcpu)
{
	for (size_t i = 0; i < t->nr_maps; i++)
		if (t->maps[i].owner == owner && t->maps[i].vcpu == vcpu)
			return &t->maps[i];
	return NULL;
}

/* The same, or a new one of which nothing is known. NULL: no room. */
static struct tsc_map *make_map(struct input_tsc *t, uint64_t owner, uint32_t vcpu)
{
	struct tsc_map *m = find_map(t, owner, vcpu);

	if (m)
		return m;
	if (!t->maps)
		t->maps = calloc(MAPS_MAX, sizeof(*t->maps));
	if (!t->maps || t->nr_maps == MAPS_MAX)
		return NULL;
	m = &t->maps[t->nr_maps++];
	*m = (struct tsc_map){ .owner = owner, .vcpu = vcpu, .map = unscaled };
	return m;
}

static void give(struct vmt_pt_vm *vm, const struct tsc_map *m)
{
	vm->has_map = m && m->known && !m->not_followed;
	if (!vm->has_map)
		return;
	vm->map = m->map;
	vm->changes = m->changes;
	vm->nr_changes = m->nr_changes;
}

static void give_all(struct input_tsc *t, const struct tsc_map *m)
{
	for (size_t i = t->nr_given; i < t->nr_vms; i++)
		if (t->owners[i] == m->owner && t->vms[i].vcpu == m->vcpu)
			give(&t->vms[i], m);
	for (size_t i = 0; i < t->nr_own; i++)
		if (t->own[i].known && t->own[i].owner == m->owner && t->own[i].vcpu == m->vcpu)
			give(&t->own_vms[i], m);
}

/* What the recorder read of a vCPU; where the writes tell the offset over time, only the first. */
static void take_row(struct input_tsc *t, const struct vmt_vcpu_tsc *row)
{
	struct tsc_map *m = make_map(t, owner_of(row->domain, 0), row->vcpu);

	if (!m || (m->known && m->nr_changes))
		return;
	m->known = true;
	m->map = unscaled;
	m->map.offset = (uint64_t)row->offset;
	if (row->frac && row->frac < 64 && row->ratio) {
		m->map.frac_bits = row->frac;
		m->map.multiplier = row->ratio;
	}
	give_all(t, m);
}

void input_aux_tsc(struct vmt_input *in, const struct vmt_item *item)
{
	struct vmt_vcpu_tsc row;

	for (size_t at = 0; at + sizeof(row) <= item->len; at += sizeof(row)) {
		memcpy(&row, item->data + at, sizeof(row));
		take_row(&in->aux->tsc, &row);
	}
}

void input_tsc_vmcs(void *context, uint64_t vmcs)
{
	struct vmt_input *in = context;
	struct input_tsc *t = &in->aux->tsc;
	const uint32_t tid = vmt_pt_who_tid_of(in->who, vmcs);
	uint32_t pid, domain, vcpu;
	const struct tsc_map *m;
	size_t i = 0;

	if (!vmt_pt_who_vcpu_of(in->who, tid, &pid, &domain, &vcpu))
		return;
	m = find_map(t, owner_of(domain, pid), vcpu);
	while (i < t->nr_vms && t->vms[i].vmcs != vmcs)
		i++;
	if (i < t->nr_given || i == VMT_PT_VMS_MAX || (!m && i == t->nr_vms))
		return;
	t->vms[i] = (struct vmt_pt_vm){ .vmcs = vmcs, .vcpu = vcpu };
	give(&t->vms[i], m);
	t->owners[i] = owner_of(domain, pid);
	if (i == t->nr_vms)
		t->nr_vms++;
}

/* ---- writes ---- */

/* Where a write belongs, in the order in which changes are laid out. */
struct placed {
	uint64_t owner;
	const struct vmt_tsc_write *write;
	size_t number;
};

static uint64_t owner_of_write(const struct vmt_input *in, const struct vmt_tsc_write *w)
{
	uint32_t pid = w->pid, domain = UINT32_MAX, vcpu;

	if (vmt_pt_who_vcpu_of(in->who, w->tid, &pid, &domain, &vcpu))
		return owner_of(domain, pid ? pid : w->pid);
	for (size_t i = 0; i < in->facts.nr_domains; i++) /* another thread of QEMU */
		if (w->pid && in->domains[i].pid == w->pid)
			return owner_of((uint32_t)i, 0);
	return owner_of(UINT32_MAX, w->pid);
}

static int by_place(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	if (a->write->vcpu != b->write->vcpu)
		return a->write->vcpu < b->write->vcpu ? -1 : 1;
	if (a->write->time_ns != b->write->time_ns)
		return a->write->time_ns < b->write->time_ns ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

static void set_change(const struct vmt_input *in, struct vmt_pt_map_change *change,
		       const struct vmx_tsc_map *before, const struct vmt_tsc_write *w)
{
	uint64_t error;

	*change = (struct vmt_pt_map_change){ .map = *before };
	change->map.offset = w->next;
	change->first =
		vmt_perf_clock_to_tsc(&in->clock, (struct vmt_host_ns){ w->time_ns }, &error)
			.host_tsc;
	change->last = change->first + error;
}

/* The writes [0, nr) of one vCPU become changes of its map. */
static void take_writes(struct vmt_input *in, const struct placed *places, size_t nr,
			struct vmt_pt_map_change *changes)
{
	struct tsc_map *m = make_map(&in->aux->tsc, places[0].owner, places[0].write->vcpu);

	if (!m)
		return;
	m->known = true;
	m->not_followed = !in->has_clock || in->writes.too_many;
	m->map.offset = places[0].write->previous;
	for (size_t i = 0; i < nr; i++)
		set_change(in, &changes[i], &m->map, places[i].write);
	vmt_pt_maps_prepare(changes, nr);
	m->changes = changes;
	m->nr_changes = nr;
}

static int place_writes(struct vmt_input *in)
{
	const struct vmt_tsc_writes *writes = &in->writes;
	struct input_tsc *t = &in->aux->tsc;
	struct placed *places = calloc(writes->nr + 1, sizeof(*places));
	size_t from = 0;

	t->changes = calloc(writes->nr + 1, sizeof(*t->changes));
	if (!places || !t->changes) {
		free(places);
		return VMT_E_NOMEM;
	}
	for (size_t i = 0; i < writes->nr; i++)
		places[i] = (struct placed){ owner_of_write(in, &writes->rows[i]), &writes->rows[i],
					     i };
	qsort(places, writes->nr, sizeof(*places), by_place);
	for (size_t i = 1; i <= writes->nr; i++) {
		if (i < writes->nr && places[i].owner == places[from].owner &&
		    places[i].write->vcpu == places[from].write->vcpu)
			continue;
		take_writes(in, &places[from], i - from, &t->changes[from]);
		from = i;
	}
	free(places);
	return 0;
}

/* ---- the start ---- */

static void give_vms(struct vmt_input *in)
{
	const struct vmt_input_pt *pt = in->options.pt;
	struct input_tsc *t = &in->aux->tsc;

	for (size_t i = 0; i < VMT_PT_VMS_MAX; i++)
		t->vms[i].vmcs = NO_VMCS;
	for (size_t i = 0; pt && i < pt->nr_vms && i < VMT_PT_VMS_MAX; i++) {
		struct vmt_pt_vm *vm = &t->vms[i];

		*vm = pt->vms[i];
		if (vm->has_domain)
			vm->domain = input_domain_by_name(in, pt->names[vm->domain], 0);
		vm->has_domain = vm->has_domain && vm->domain != UINT32_MAX;
		t->nr_given = i + 1;
	}
	t->nr_vms = t->nr_given;
}

/* The stream of a vCPU's thread begins with the TSC of that vCPU, before its VMCS is known. */
static int give_own_vms(struct vmt_input *in, const struct vmt_aux_index *index)
{
	struct input_tsc *t = &in->aux->tsc;

	t->own = calloc(index->nr_areas, sizeof(*t->own));
	t->own_vms = calloc(index->nr_areas, sizeof(*t->own_vms));
	if (!t->own || !t->own_vms)
		return VMT_E_NOMEM;
	t->nr_own = index->nr_areas;
	for (size_t i = 0; i < index->nr_areas; i++) {
		const struct vmt_aux_area *area = &index->areas[i];
		uint32_t pid, domain, vcpu;

		if (area->cpu != VMT_AUX_NO_CPU ||
		    !vmt_pt_who_vcpu_of(in->who, area->tid, &pid, &domain, &vcpu))
			continue;
		t->own[i] = (struct own_vm){ true, owner_of(domain, pid), vcpu };
		give(&t->own_vms[i], find_map(t, t->own[i].owner, vcpu));
	}
	return 0;
}

int input_tsc_start(struct vmt_input *in, const struct vmt_aux_index *index)
{
	struct input_tsc *t = &in->aux->tsc;
	int err;

	for (size_t i = 0; in->has_tsc_writes && i < in->writes.nr_first; i++)
		take_row(t, &in->writes.first[i]);
	err = place_writes(in);
	give_vms(in);
	/* Writes that were not looked for may change any. */
	for (size_t i = 0; in->has_tsc_writes && !in->writes_found && i < t->nr_maps; i++)
		t->maps[i].not_followed = true;
	return err ? err : give_own_vms(in, index);
}

void input_tsc_free(struct input_tsc *t)
{
	free(t->maps);
	free(t->changes);
	free(t->own);
	free(t->own_vms);
}
