// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events that are no VM entry or exit: what CFE packets name, and losses. */
#include "decode/pt/decoder_private.h"

#define VECTOR_PF 14

static const struct note_row {
	const char *name;
	bool vector;
} rows[32] = {
	[VMT_PT_CFE_INTR] = { "pt_intr", true },
	[VMT_PT_CFE_IRET] = { "pt_iret", false },
	[VMT_PT_CFE_SMI] = { "pt_smi", false },
	[VMT_PT_CFE_RSM] = { "pt_rsm", false },
	[VMT_PT_CFE_SIPI] = { "pt_sipi", true },
	[VMT_PT_CFE_INIT] = { "pt_init", false },
	[VMT_PT_CFE_SHUTDOWN] = { "pt_shutdown", false },
	[VMT_PT_CFE_UINTR] = { "pt_uintr", true },
	[VMT_PT_CFE_UIRET] = { "pt_uiret", false },
	[VMT_PT_CFE_SWINTR] = { "pt_swintr", true },
	[VMT_PT_CFE_SYSCALL] = { "pt_syscall", false },
};

static void emit(struct vmt_pt_decoder *d, const struct pt_note *n, const struct pt_address *ip)
{
	const struct note_row *row = &rows[n->kind];
	struct vmt_event e = pt_event_of(d, VMT_EVENT_NOTE);

	if (!row->name)
		return;
	e.name = row->name;
	if (row->vector) {
		e.vector = n->vector;
		e.key = (struct vmt_key){ .kind = VMT_KEY_VECTOR, .number = n->vector };
		e.has |= VMT_HAS_VECTOR;
	}
	if (n->kind == VMT_PT_CFE_INTR && n->evd.has_fault) {
		e.name = "pt_page_fault";
		e.value = (int64_t)n->evd.fault;
		e.has |= VMT_HAS_VALUE;
	}
	if (d->mode == VMT_PT_MODE_NONROOT) {
		pt_event_guest(d, &e);
		if (ip && ip->known) {
			e.guest_rip = ip->value;
			e.has |= VMT_HAS_RIP;
		}
	}
	pt_queue_put(d, &e, &n->stamp);
}

void pt_note_cfe(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p, bool waits)
{
	struct pt_note n = {
		.kind = p->kind,
		.vector = p->vector,
		.stamp = vmt_pt_clock_stamp(&d->clock),
	};

	/* PFA belongs to an interruption with the vector of #PF alone. */
	if (d->pending & PT_PEND_EVD) {
		if (p->kind == VMT_PT_CFE_INTR && p->vector == VECTOR_PF)
			n.evd = d->evd;
		if (!n.stamp.closed)
			n.stamp = d->evd.stamp;
		d->pending &= ~(uint32_t)PT_PEND_EVD;
	}
	if (!waits || d->nr_notes == PT_NOTES_MAX) {
		emit(d, &n, NULL);
		return;
	}
	d->notes[d->nr_notes++] = n;
	d->pending |= PT_PEND_NOTES;
}

void pt_note_flush(struct vmt_pt_decoder *d, const struct pt_address *ip)
{
	for (unsigned int i = 0; i < d->nr_notes; i++)
		emit(d, &d->notes[i], ip);
	d->nr_notes = 0;
	d->pending &= ~(uint32_t)PT_PEND_NOTES;
}

void pt_note_loss(struct vmt_pt_decoder *d, const char *name, uint64_t bytes)
{
	const struct vmt_pt_stamp stamp = vmt_pt_clock_stamp(&d->clock);
	struct vmt_event e = pt_event_of(d, VMT_EVENT_LOSS);

	e.name = name;
	if (bytes) {
		e.value = (int64_t)bytes;
		e.has |= VMT_HAS_VALUE;
	}
	pt_queue_put(d, &e, &stamp);
}

void pt_note_named(struct vmt_pt_decoder *d, const char *name, const struct vmt_pt_stamp *stamp)
{
	struct vmt_event e = pt_event_of(d, VMT_EVENT_NOTE);

	e.name = name;
	pt_queue_put(d, &e, stamp);
}
