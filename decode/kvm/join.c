/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state machine of a vCPU thread: guest -- kvm_exit --> host -- kvm_entry --> guest, with at
 * most one exit open. Invariant: an exit is emitted exactly once, for each kvm_exit that was seen,
 * and it has a duration only when no loss lies between it and its entry. A loss is O(1): it raises
 * an epoch, and each thread catches up with it before its next record.
 */
#include "decode/kvm/join_private.h"

#include <stdlib.h>

#include "decode/base/zero.h"

struct vmt_join *vmt_join_new(const struct vmt_catalog *catalog, vmt_event_fn *emit, void *context)
{
	struct vmt_join *join = calloc(1, sizeof(*join));

	if (!join)
		return NULL;
	if (!join_threads_init(join)) {
		vmt_join_free(join);
		return NULL;
	}
	join->catalog = catalog;
	join->emit = emit;
	join->context = context;
	join->wanted = UINT32_MAX;
	return join;
}

void vmt_join_free(struct vmt_join *join)
{
	if (!join)
		return;
	free(join->threads);
	free(join->slots);
	free(join);
}

void vmt_join_has_switches(struct vmt_join *join)
{
	join->has_switches = true;
}

void vmt_join_want(struct vmt_join *join, uint32_t types)
{
	join->wanted = types;
}

struct vmt_join_counts vmt_join_counts(const struct vmt_join *join)
{
	return join->counts;
}

static void add_owner(struct vmt_event *event, const struct join_thread *t)
{
	if (t->vcpu >= 0) {
		event->vcpu = (uint32_t)t->vcpu;
		event->has |= VMT_HAS_VCPU;
	}
	if (t->has_domain) {
		event->domain = t->domain;
		event->has |= VMT_HAS_DOMAIN;
	}
}

void join_event_begin(struct vmt_event *event, enum vmt_event_type type, const struct vmt_rec *rec,
		      const struct join_thread *t)
{
	vmt_zero(event, sizeof(*event));
	event->type = type;
	event->source = VMT_SOURCE_KVM;
	event->pid = rec->pid;
	event->tid = rec->tid;
	event->cpu = rec->cpu;
	event->time.host_ns = rec->time_ns;
	event->has = (rec->flags & VMT_REC_HAS_TIME ? VMT_HAS_TIME : 0u) |
		     (rec->cpu != JOIN_NO_CPU ? VMT_HAS_CPU : 0u) | (rec->tid ? VMT_HAS_TID : 0u);
	if (t)
		add_owner(event, t);
}

void join_send(const struct vmt_join *join, const struct vmt_event *event)
{
	join->emit(join->context, event);
}

static bool switches_known(const struct vmt_join *join, const struct join_thread *t)
{
	return join->has_switches || t->saw_switch;
}

/* ---- the open exit ---- */

static void count_exit(struct vmt_join *join, const struct vmt_event *exit)
{
	if (exit->failed_entry)
		join->counts.failed_entries++;
	else
		join->counts.exits++;
}

/* Emits the open exit; what was learnt about its thread since it opened goes in. */
static void close_exit(struct vmt_join *join, struct join_thread *t)
{
	struct vmt_event *exit = &t->exit;

	add_owner(exit, t);
	if (join->nested_seen) {
		exit->nested = t->nested_exit || (t->exit_in_l2 && !join->nested_exit_seen);
		exit->has |= VMT_HAS_NESTED;
	}
	if (exit->key.kind == VMT_KEY_NONE)
		exit->key.access = VMT_ACCESS_NONE;
	if (t->is_protected)
		exit->concealed_rip = true;
	if (exit->concealed_rip)
		exit->has &= ~(uint32_t)VMT_HAS_RIP;
	t->open = false;
	t->nested_exit = false;
	count_exit(join, exit);
	join_send(join, exit);
}

/* Closes the open exit at the entry that ends it. */
static void complete_exit(struct vmt_join *join, struct join_thread *t, const struct vmt_rec *rec)
{
	struct vmt_event *exit = &t->exit;

	if (!t->uncertain && (exit->has & VMT_HAS_TIME) && (rec->flags & VMT_REC_HAS_TIME) &&
	    rec->time_ns >= exit->time.host_ns) {
		bool in_order = rec->time_ns >= t->parts.since_ns;

		join_parts_advance(t, rec->time_ns);
		exit->duration_ns = rec->time_ns - exit->time.host_ns;
		exit->has |= VMT_HAS_DURATION;
		if (in_order) /* otherwise the parts reach beyond the entry */
			join_parts_end(t, switches_known(join, t));
	}
	close_exit(join, t);
}

static void lose_exit(struct vmt_join *join, struct join_thread *t)
{
	if (t->open)
		close_exit(join, t);
}

/* ---- losses ---- */

static void apply_loss(struct vmt_join *join, struct join_thread *t)
{
	t->loss_epoch = join->loss_epoch;
	lose_exit(join, t);
	t->after_loss = true;
	t->in_userspace = false;
	t->cpu_state = JOIN_ON_CPU;
	t->early.kind = VMT_KEY_NONE;
}

static void on_lost(struct vmt_join *join, const struct vmt_rec *rec)
{
	static const char *const names[VMT_LOST_CAUSE_COUNT] = {
		[VMT_LOST_RECORDS] = "records",
		[VMT_LOST_SAMPLES] = "samples",
		[VMT_LOST_THROTTLED] = "throttled",
	};
	bool of_thread = rec->flags & VMT_REC_OF_THREAD;
	struct join_thread *t = of_thread ? join_thread_find(join, rec->tid) : NULL;
	struct vmt_event event;

	if (rec->u.lost.cause == VMT_LOST_BEGIN) {
		join->open_losses++;
		return;
	}
	if (rec->u.lost.begun && join->open_losses)
		join->open_losses--;
	join_event_begin(&event, VMT_EVENT_LOSS, rec, t);
	event.name = rec->u.lost.cause < VMT_LOST_CAUSE_COUNT ? names[rec->u.lost.cause]
							      : names[VMT_LOST_RECORDS];
	if (rec->u.lost.kind)
		event.name = rec->u.lost.kind;
	if (rec->u.lost.file_bytes) {
		event.lost_bytes = rec->u.lost.file_bytes;
		event.has |= VMT_HAS_LOST_BYTES;
	}
	if (!of_thread)
		event.has &= ~(uint32_t)VMT_HAS_TID;
	if (rec->u.lost.count) {
		event.value = (int64_t)rec->u.lost.count;
		event.has |= VMT_HAS_VALUE;
	}
	if (!of_thread)
		join->loss_epoch++;
	else if (t)
		apply_loss(join, t);
	join_send(join, &event);
}

void join_catch_up(struct vmt_join *join, struct join_thread *t)
{
	if (t->loss_epoch != join->loss_epoch)
		apply_loss(join, t);
	if (join->open_losses) {
		t->uncertain = true;
		t->after_loss = true;
	}
}

/* The first record after a loss that tells guest from host: was there a change inside it? */
static void settle_loss(struct vmt_join *join, struct join_thread *t, const struct vmt_rec *rec,
			enum join_side before)
{
	struct vmt_event event;

	if (t->after_loss && t->side != JOIN_SIDE_UNKNOWN && t->side != before) {
		join_event_begin(&event, VMT_EVENT_GAP, rec, t);
		join_send(join, &event);
	}
	t->after_loss = false;
}

/* ---- entry and exit ---- */

static void learn_vcpu(struct join_thread *t, const struct vmt_rec *rec, uint32_t vcpu_id)
{
	if (rec->flags & VMT_REC_HAS_VCPU && vcpu_id <= INT32_MAX)
		t->vcpu = (int32_t)vcpu_id;
}

static void on_entry(struct vmt_join *join, struct join_thread *t, const struct vmt_rec *rec)
{
	struct vmt_event event;

	learn_vcpu(t, rec, rec->u.entry.vcpu_id);
	if (t->open)
		complete_exit(join, t, rec);
	else if (t->side == JOIN_SIDE_GUEST && !t->after_loss)
		join->counts.unmatched_entries++;
	settle_loss(join, t, rec, JOIN_SIDE_HOST);
	t->side = JOIN_SIDE_GUEST;
	t->in_userspace = false;
	t->stopped = false;
	t->early.kind = VMT_KEY_NONE;
	join->counts.entries++;

	join_event_begin(&event, VMT_EVENT_ENTRY, rec, t);
	event.concealed_rip = t->is_protected;
	if (rec->flags & VMT_REC_HAS_RIP && !t->is_protected) {
		event.guest_rip = rec->u.entry.rip;
		event.has |= VMT_HAS_RIP;
	}
	if (rec->flags & VMT_REC_HAS_INTR) {
		event.intr_info = rec->u.entry.intr_info;
		event.error_code = rec->u.entry.error_code;
		event.has |= VMT_HAS_INTR_INFO;
	}
	if (join->nested_seen) {
		event.nested = t->in_l2;
		event.has |= VMT_HAS_NESTED;
	}
	join_send(join, &event);
}

static void build_exit(struct vmt_event *exit, enum vmt_key_wait *wait, const struct vmt_rec *rec,
		       const struct join_thread *t)
{
	join_event_begin(exit, VMT_EVENT_EXIT, rec, t);
	if (rec->flags & VMT_REC_HAS_RIP) {
		exit->guest_rip = rec->u.exit.rip;
		exit->has |= VMT_HAS_RIP;
	}
	join_exit_fill(exit, wait, rec);
}

/* The MSR of a write that SVM's fast path handled before it told of the exit. */
static void use_early_key(struct join_thread *t)
{
	if (t->wait == VMT_KEY_WAIT_MSR && t->early.kind == VMT_KEY_MSR &&
	    t->early.access == t->exit.key.access) {
		t->exit.key = t->early;
		t->wait = VMT_KEY_WAIT_NONE;
	}
	t->early.kind = VMT_KEY_NONE;
}

static void on_exit_rec(struct vmt_join *join, struct join_thread *t, const struct vmt_rec *rec)
{
	enum vmt_key_wait wait;

	learn_vcpu(t, rec, rec->u.exit.vcpu_id);
	if (t->side == JOIN_SIDE_HOST && !t->after_loss)
		join->counts.unmatched_exits++;
	lose_exit(join, t);
	settle_loss(join, t, rec, JOIN_SIDE_GUEST);
	build_exit(&t->exit, &wait, rec, t);
	t->wait = (uint8_t)wait;
	use_early_key(t);
	t->open = true;
	t->uncertain = join->open_losses > 0;
	t->exit_in_l2 = t->in_l2;
	t->side = JOIN_SIDE_HOST;
	t->in_userspace = false;
	if (t->exit.concealed_rip)
		t->is_protected = true;
	join_parts_begin(t, rec->time_ns);
}

/* No room for the thread's state: the exit is told, nothing is known of its duration. */
static void on_untracked(struct vmt_join *join, const struct vmt_rec *rec)
{
	struct vmt_event event;
	enum vmt_key_wait wait;

	join->counts.untracked++;
	if (rec->kind == VMT_REC_KVM_EXIT) {
		build_exit(&event, &wait, rec, NULL);
		if (event.key.kind == VMT_KEY_NONE)
			event.key.access = VMT_ACCESS_NONE;
		if (event.concealed_rip)
			event.has &= ~(uint32_t)VMT_HAS_RIP;
		count_exit(join, &event);
	} else {
		join_event_begin(&event, VMT_EVENT_ENTRY, rec, NULL);
		join->counts.entries++;
	}
	if (rec->flags & VMT_REC_HAS_VCPU) {
		event.vcpu =
			rec->kind == VMT_REC_KVM_EXIT ? rec->u.exit.vcpu_id : rec->u.entry.vcpu_id;
		event.has |= VMT_HAS_VCPU;
	}
	join_send(join, &event);
}

/* ---- records of the host side ---- */

static void on_userspace(struct vmt_join *join, struct join_thread *t, const struct vmt_rec *rec)
{
	struct vmt_event event;

	if (t) {
		if (t->side == JOIN_SIDE_GUEST && !t->after_loss)
			join->counts.unmatched_entries++;
		settle_loss(join, t, rec, JOIN_SIDE_HOST);
		join_parts_advance(t, rec->time_ns);
		t->side = JOIN_SIDE_HOST;
		t->in_userspace = true;
	}
	if (!join_wants(join, VMT_EVENT_USERSPACE))
		return;
	join_event_begin(&event, VMT_EVENT_USERSPACE, rec, t);
	event.reason = rec->u.userspace.reason;
	event.value = rec->u.userspace.error;
	event.has |= VMT_HAS_REASON | VMT_HAS_VALUE;
	event.key.kind = VMT_KEY_USERSPACE;
	event.key.number = event.reason;
	join_send(join, &event);
}

static void on_wakeup(struct vmt_join *join, struct join_thread *t, const struct vmt_rec *rec)
{
	struct vmt_event event;

	if (t)
		join_parts_halt(t, rec->time_ns, rec->u.wakeup.ns, rec->u.wakeup.waited != 0,
				switches_known(join, t));
	if (!join_wants(join, VMT_EVENT_WAKEUP))
		return;
	join_event_begin(&event, VMT_EVENT_WAKEUP, rec, t);
	event.duration_ns = rec->u.wakeup.ns;
	event.value = rec->u.wakeup.waited != 0;
	event.has |= VMT_HAS_DURATION | VMT_HAS_VALUE;
	join_send(join, &event);
}

static void see_nested(struct vmt_join *join, struct join_thread *t, const struct vmt_rec *rec)
{
	join->nested_seen = true;
	if (rec->kind == VMT_REC_KVM_NESTED_VMEXIT)
		join->nested_exit_seen = true;
	if (!t)
		return;
	if (rec->kind == VMT_REC_KVM_NESTED_VMENTER)
		t->in_l2 = true;
	else if (rec->kind == VMT_REC_KVM_NESTED_VMEXIT_INJECT)
		t->in_l2 = false;
	else if (rec->kind == VMT_REC_KVM_NESTED_VMEXIT && t->open)
		t->nested_exit = true;
}

/* The guest's own words on why it left, in front of what KVM knows: a VMGEXIT. */
static void see_vmgexit(struct join_thread *t, const struct vmt_rec *rec)
{
	enum vmt_key_wait wait = VMT_KEY_WAIT_NONE;

	if (!t)
		return;
	t->is_protected = true;
	if (!t->open || !(rec->flags & VMT_REC_HAS_REASON) || t->exit.key.kind != VMT_KEY_NONE)
		return;
	wait = vmt_exit_key_svm(&t->exit, rec->u.exit.reason, rec->u.exit.info1, rec->u.exit.info2);
	t->wait = (uint8_t)wait;
}

static enum vmt_event_type note_type(uint8_t kind)
{
	switch (kind) {
	case VMT_REC_KVM_INJ_VIRQ:
	case VMT_REC_KVM_INJ_EXCEPTION:
		return VMT_EVENT_INJECT;
	case VMT_REC_KVM_WRITE_TSC_OFFSET:
		return VMT_EVENT_TSC_WRITE;
	default:
		return VMT_EVENT_NOTE;
	}
}

/* What the record adds to the open exit, or to the next one. */
static void use_note(struct join_thread *t, const struct vmt_rec *rec, const struct vmt_key *key)
{
	if (t->open)
		join_exit_refine(t, rec, key);
	else if (rec->kind == VMT_REC_KVM_MSR && t->side == JOIN_SIDE_GUEST)
		t->early = *key;
}

static void on_note(struct vmt_join *join, struct join_thread *t, const struct vmt_rec *rec)
{
	enum vmt_event_type type = note_type(rec->kind);
	struct vmt_event event;

	if (!join_wants(join, type)) {
		event.has = 0;
		event.key = (struct vmt_key){ .kind = VMT_KEY_NONE };
		join_note_fill(&event, rec);
		if (t)
			use_note(t, rec, &event.key);
		return;
	}
	join_event_begin(&event, type, rec, t);
	join_note_fill(&event, rec);
	event.name = vmt_catalog_name(join->catalog, rec->catalog);
	if (rec->kind == VMT_REC_KVM_WRITE_TSC_OFFSET && rec->flags & VMT_REC_HAS_VCPU) {
		event.vcpu = rec->u.tsc.vcpu_id;
		event.has |= VMT_HAS_VCPU;
	}
	if (t)
		use_note(t, rec, &event.key);
	join_send(join, &event);
}

/* ---- pushing ---- */

static struct join_thread *thread_of(struct vmt_join *join, const struct vmt_rec *rec)
{
	bool vcpu = rec->kind == VMT_REC_KVM_ENTRY || rec->kind == VMT_REC_KVM_EXIT;
	struct join_thread *t =
		vcpu ? join_thread_get(join, rec->tid, rec->pid) : join_thread_find(join, rec->tid);

	if (!t)
		return NULL;
	if (t->pid != rec->pid) {
		if (t->pid) { /* the number was given to a new thread */
			lose_exit(join, t);
			join_thread_reset(t);
		}
		t->pid = rec->pid;
	}
	join_catch_up(join, t);
	if (t->cpu_state != JOIN_ON_CPU) { /* it runs: its switch was not recorded */
		join_parts_advance(t, rec->time_ns);
		t->cpu_state = JOIN_ON_CPU;
	}
	return t;
}

static void push_kvm(struct vmt_join *join, const struct vmt_rec *rec)
{
	struct join_thread *t = thread_of(join, rec);

	switch (rec->kind) {
	case VMT_REC_KVM_ENTRY:
		if (t)
			on_entry(join, t, rec);
		else
			on_untracked(join, rec);
		return;
	case VMT_REC_KVM_EXIT:
		if (t)
			on_exit_rec(join, t, rec);
		else
			on_untracked(join, rec);
		return;
	case VMT_REC_KVM_USERSPACE_EXIT:
		on_userspace(join, t, rec);
		return;
	case VMT_REC_KVM_VCPU_WAKEUP:
		on_wakeup(join, t, rec);
		return;
	case VMT_REC_KVM_NESTED_VMEXIT:
	case VMT_REC_KVM_NESTED_VMEXIT_INJECT:
	case VMT_REC_KVM_NESTED_VMENTER:
		see_nested(join, t, rec);
		break;
	case VMT_REC_KVM_VMGEXIT:
		see_vmgexit(t, rec);
		break;
	default:
		break;
	}
	on_note(join, t, rec);
}

void vmt_join_push(struct vmt_join *join, const struct vmt_rec *rec)
{
	switch (rec->kind) {
	case VMT_REC_NONE:
		return;
	case VMT_REC_SWITCH_IN:
		join_switch_in(join, rec->tid, rec);
		return;
	case VMT_REC_SWITCH_OUT:
		join_switch_out(join, rec->tid, rec, rec->flags & VMT_REC_PREEMPTED);
		return;
	case VMT_REC_SCHED_SWITCH:
		join_switch_out(join, rec->u.sched_switch.prev_tid, rec,
				(rec->u.sched_switch.prev_state & 0xff) == 0);
		join_switch_in(join, rec->u.sched_switch.next_tid, rec);
		return;
	case VMT_REC_SCHED_WAKING:
		join_waking(join, rec);
		return;
	case VMT_REC_LOST:
		on_lost(join, rec);
		return;
	default:
		if (rec->kind < VMT_REC_KIND_COUNT)
			push_kvm(join, rec);
	}
}

int vmt_join_thread(struct vmt_join *join, uint32_t tid, uint32_t domain, int vcpu)
{
	struct join_thread *t = join_thread_get(join, tid, 0);

	if (!t)
		return tid ? VMT_E_LIMIT : VMT_E_USAGE;
	t->domain = domain;
	t->has_domain = true;
	if (vcpu >= 0)
		t->vcpu = vcpu;
	else if (!t->open && t->side == JOIN_SIDE_UNKNOWN)
		t->vcpu = -1;
	return VMT_OK;
}

void vmt_join_flush(struct vmt_join *join)
{
	for (uint32_t i = 0; i < join->nr_threads; i++)
		lose_exit(join, &join->threads[i]);
}
