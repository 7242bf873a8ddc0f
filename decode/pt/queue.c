// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events between the packets that make them and the caller. Times are told in the order of the
 * stream, as soon as a timing packet bounds them; an exit goes out when the entry of its VMCS has
 * its time. A full queue lets its first event go with what is known.
 */
#include "decode/pt/decoder_private.h"

static struct pt_slot *slot_at(struct pt_queue *q, uint64_t number)
{
	return &q->slots[number & (PT_QUEUE_MAX - 1)];
}

struct vmt_event pt_event_of(const struct vmt_pt_decoder *d, enum vmt_event_type type)
{
	struct vmt_event e = { .type = type, .source = VMT_SOURCE_PT, .isa = VMT_ISA_VMX };

	if (d->options.host_cpu != UINT32_MAX) {
		e.cpu = d->options.host_cpu;
		e.has |= VMT_HAS_CPU;
	}
	if (d->options.tid) {
		e.pid = d->options.pid;
		e.tid = d->options.tid;
		e.has |= VMT_HAS_TID;
	}
	return e;
}

void pt_event_guest(const struct vmt_pt_decoder *d, struct vmt_event *e)
{
	const struct vmt_pt_vm *vm = pt_vm_row(d);

	if (d->guest_vmcs.known) {
		e->vmcs = d->guest_vmcs.value;
		e->has |= VMT_HAS_VMCS;
	}
	if (d->guest_cr3.known) {
		e->guest_cr3 = d->guest_cr3.value;
		e->has |= VMT_HAS_CR3;
	}
	if (vm && vm->has_domain) {
		e->domain = vm->domain;
		e->has |= VMT_HAS_DOMAIN;
	}
	if (vm && vm->has_vcpu) {
		e->vcpu = vm->vcpu;
		e->has |= VMT_HAS_VCPU;
	}
}

static void pair(struct pt_queue *q, const struct pt_slot *entry)
{
	struct pt_slot *exit;

	if (!entry->exit || entry->exit < q->head)
		return;
	exit = slot_at(q, entry->exit);
	exit->open = false;
	if (!(exit->event.has & entry->event.has & VMT_HAS_HOST_TSC) ||
	    entry->event.host_tsc.host_tsc < exit->event.host_tsc.host_tsc)
		return;
	exit->event.duration_tsc = entry->event.host_tsc.host_tsc - exit->event.host_tsc.host_tsc;
	exit->event.has |= VMT_HAS_DURATION_TSC;
}

static void tell(struct vmt_pt_decoder *d, struct pt_slot *s)
{
	struct vmt_pt_time t = vmt_pt_clock_tell(&d->clock, &s->stamp);

	if (t.known) {
		s->event.host_tsc = t.tsc;
		s->event.host_tsc_error = t.error;
		s->event.host_tsc_low = t.low;
		s->event.has |= VMT_HAS_HOST_TSC;
	}
	s->told = true;
	pair(&d->queue, s);
}

static void emit_head(struct vmt_pt_decoder *d)
{
	struct pt_slot *s = slot_at(&d->queue, d->queue.head);

	d->queue.head++;
	if (d->options.emit)
		d->options.emit(d->options.context, &s->event);
}

static void advance(struct vmt_pt_decoder *d)
{
	struct pt_queue *q = &d->queue;

	for (; q->untold < q->tail; q->untold++) {
		struct pt_slot *s = slot_at(q, q->untold);

		if (s->stamp.known && !s->stamp.closed)
			break;
		tell(d, s);
	}
	while (q->head < q->untold && !slot_at(q, q->head)->open)
		emit_head(d);
}

static void force_head(struct vmt_pt_decoder *d)
{
	struct pt_queue *q = &d->queue;
	struct pt_slot *s = slot_at(q, q->head);

	s->open = false;
	if (!s->told) {
		vmt_pt_stamp_finish(&s->stamp, &d->clock);
		tell(d, s);
		q->untold = q->head + 1;
	}
	emit_head(d);
}

static uint64_t put(struct vmt_pt_decoder *d, const struct vmt_event *event,
		    const struct vmt_pt_stamp *stamp, bool open, uint64_t exit)
{
	struct pt_queue *q = &d->queue;

	if (!q->tail)
		q->head = q->untold = q->tail = 1;
	if (q->tail - q->head == PT_QUEUE_MAX)
		force_head(d);
	*slot_at(q, q->tail) =
		(struct pt_slot){ .event = *event, .stamp = *stamp, .open = open, .exit = exit };
	q->tail++;
	advance(d);
	return q->tail - 1;
}

uint64_t pt_queue_put(struct vmt_pt_decoder *d, const struct vmt_event *event,
		      const struct vmt_pt_stamp *stamp)
{
	return put(d, event, stamp, false, 0);
}

static void close_exit(struct vmt_pt_decoder *d, struct pt_open_exit *o)
{
	if (o->number >= d->queue.head)
		slot_at(&d->queue, o->number)->open = false;
	o->number = 0;
}

static bool same_vmcs(const struct pt_address *a, const struct pt_address *b)
{
	return a->known == b->known && (!a->known || a->value == b->value);
}

static struct pt_open_exit *find_open(struct vmt_pt_decoder *d, const struct pt_address *vmcs)
{
	for (unsigned int i = 0; i < PT_OPEN_MAX; i++)
		if (d->open[i].number && same_vmcs(&d->open[i].vmcs, vmcs))
			return &d->open[i];
	return NULL;
}

void pt_queue_put_exit(struct vmt_pt_decoder *d, const struct vmt_event *event,
		       const struct vmt_pt_stamp *stamp)
{
	struct pt_open_exit *o = find_open(d, &d->guest_vmcs);

	if (!o)
		o = &d->open[d->next_open++ % PT_OPEN_MAX];
	if (o->number)
		close_exit(d, o);
	o->vmcs = d->guest_vmcs;
	o->number = put(d, event, stamp, true, 0);
}

void pt_queue_put_entry(struct vmt_pt_decoder *d, const struct vmt_event *event,
			const struct vmt_pt_stamp *stamp)
{
	struct pt_open_exit *o = find_open(d, &d->guest_vmcs);
	uint64_t exit = o ? o->number : 0;

	if (o)
		o->number = 0;
	put(d, event, stamp, false, exit);
}

void pt_queue_close_exits(struct vmt_pt_decoder *d, bool unknown_only)
{
	for (unsigned int i = 0; i < PT_OPEN_MAX; i++)
		if (d->open[i].number && !(unknown_only && d->open[i].vmcs.known))
			close_exit(d, &d->open[i]);
	advance(d);
}

void pt_queue_name_exits(struct vmt_pt_decoder *d, uint64_t vmcs)
{
	for (unsigned int i = 0; i < PT_OPEN_MAX; i++)
		if (d->open[i].number && !d->open[i].vmcs.known)
			d->open[i].vmcs = (struct pt_address){ true, vmcs };
}

void pt_queue_bound(struct vmt_pt_decoder *d)
{
	struct pt_queue *q = &d->queue;

	for (uint64_t n = q->untold; n < q->tail; n++)
		vmt_pt_stamp_close(&slot_at(q, n)->stamp, &d->clock);
	advance(d);
}

void pt_queue_end(struct vmt_pt_decoder *d)
{
	pt_queue_close_exits(d, false);
	while (d->queue.head < d->queue.tail)
		force_head(d);
}
