// SPDX-License-Identifier: LGPL-2.1-or-later
/* The state of the processor as the flow knows it, and events that wait for their address. */
#include "decode/flow/flow_private.h"

void flow_tell(struct vmt_flow *f, const struct vmt_flow_event *event)
{
	f->state.instructions = f->counts.instructions;
	if (f->options.event)
		f->options.event(f->options.context, &f->state, event);
}

/* ---- the state ---- */

void flow_set_world(struct vmt_flow *f, bool nonroot)
{
	struct vmt_image_context *where = &f->state.where;
	const bool has_vmcs = nonroot && f->vmcs_known;

	if (where->nonroot == nonroot && where->has_vmcs == has_vmcs &&
	    (!has_vmcs || where->vmcs == f->vmcs))
		return;
	where->nonroot = nonroot;
	where->has_vmcs = has_vmcs;
	where->vmcs = f->vmcs;
	flow_view_changed(f);
}

void flow_set_pip(struct vmt_flow *f, const struct flow_pip *pip)
{
	struct vmt_image_context *where = &f->state.where;

	f->outside = f->outside && !pip->nr;
	if (where->nonroot != pip->nr)
		flow_set_world(f, pip->nr);
	if (where->has_cr3 && where->cr3 == pip->cr3)
		return;
	where->has_cr3 = true;
	where->cr3 = pip->cr3;
	flow_view_changed(f);
}

void flow_set_mode(struct vmt_flow *f, uint8_t mode)
{
	if (f->state.mode == mode)
		return;
	f->state.mode = mode;
	flow_view_changed(f);
}

/* ---- what waits ---- */

void flow_deliver(struct vmt_flow *f, const struct vmt_pt_packet *fup)
{
	for (unsigned int i = 0; i < f->nr_waiting; i++) {
		if (fup) {
			f->waiting[i].has_ip = fup->has_ip && !fup->ip_unsure;
			f->waiting[i].ip = fup->ip;
		}
		flow_tell(f, &f->waiting[i]);
	}
	f->nr_waiting = 0;
}

/* PacketEn is 1 for certain: a start that a PSB+ or FUP gave was one. */
void flow_confirm(struct vmt_flow *f)
{
	if (!f->unconfirmed)
		return;
	f->unconfirmed = false;
	f->root_ran = f->root_ran || !f->state.where.nonroot;
	f->counts.resumed++;
	flow_tell(f, &(struct vmt_flow_event){
			     .type = VMT_FLOW_RESUMED, .has_to = true, .to = f->ip });
}

void flow_start(struct vmt_flow *f, uint64_t ip)
{
	flow_jump(f, ip);
	f->phase = FLOW_ON;
	f->unconfirmed = true;
	f->nr_tnt = 0;
	f->stack_nr = 0;
}

bool flow_is_lost(struct vmt_flow *f)
{
	if (f->phase == FLOW_ON)
		return false;
	f->counts.lost_packets += f->phase != FLOW_OFF;
	return true;
}
