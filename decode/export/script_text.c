// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>

#include "decode/base/key.h"
#include "decode/export/names.h"
#include "decode/export/script.h"

#define U(x) ((unsigned long long)(x))

/* Seconds from the start of the capture, or the host TSC when it is asked for and known. */
static void put_time(struct vmt_script *s, const struct vmt_event *e)
{
	uint64_t ns = e->time.host_ns;
	bool before;

	if (s->tsc && (e->has & VMT_HAS_HOST_TSC)) {
		vmt_out_printf(s->out, "%#18llx", U(e->host_tsc.host_tsc));
		return;
	}
	if (!(e->has & VMT_HAS_TIME)) {
		vmt_out_printf(s->out, "%18s", "-");
		return;
	}
	if (!s->has_start) {
		s->has_start = true;
		s->start_ns = ns;
	}
	before = ns < s->start_ns;
	ns = before ? s->start_ns - ns : ns - s->start_ns;
	vmt_out_printf(s->out, "%s%*llu.%09llu", before ? "-" : "", before ? 7 : 8,
		       U(ns / 1000000000), U(ns % 1000000000));
}

static void put_who(struct vmt_script *s, const struct vmt_event *e)
{
	const char *domain = vmt_script_domain(s, e);

	vmt_out_char(s->out, ' ');
	if (domain)
		vmt_out_safe(s->out, domain);
	else if (e->has & VMT_HAS_DOMAIN)
		vmt_out_printf(s->out, "vm%u", e->domain);
	else if (e->has & VMT_HAS_TID)
		vmt_out_printf(s->out, "tid%u", e->tid);
	else
		vmt_out_char(s->out, '-');
	if (e->has & VMT_HAS_VCPU)
		vmt_out_printf(s->out, "/%u", e->vcpu);
	if (e->has & VMT_HAS_CPU)
		vmt_out_printf(s->out, " [%03u]", e->cpu);
	else
		vmt_out_str(s->out, " [-]");
	vmt_out_printf(s->out, " %-9s", vmt_event_type_name(e->type));
}

static void put_key(struct vmt_script *s, const struct vmt_event *e)
{
	char key[VMT_KEY_TEXT_MAX];
	const char *name = vmt_key_name(&e->key);

	if (e->key.kind == VMT_KEY_NONE)
		return;
	vmt_out_printf(s->out, " %s", vmt_key_format(key, sizeof(key), &e->key));
	if (name)
		vmt_out_printf(s->out, " (%s)", name);
}

static void put_rip(struct vmt_script *s, const struct vmt_event *e)
{
	char buf[VMT_SCRIPT_SYMBOL_MAX];
	const char *symbol = vmt_script_symbol(s, e, buf, sizeof(buf));

	if (e->concealed_rip)
		vmt_out_str(s->out, " rip concealed");
	if (!(e->has & VMT_HAS_RIP))
		return;
	vmt_out_printf(s->out, " rip 0x%llx", U(e->guest_rip));
	if (symbol) {
		vmt_out_char(s->out, ' ');
		vmt_out_safe(s->out, symbol);
	}
}

static void put_part(struct vmt_script *s, const char *name, uint64_t ns)
{
	char time[32];

	if (ns)
		vmt_out_printf(s->out, ", %s %s", name, vmt_time_text(time, sizeof(time), ns));
}

static void put_duration(struct vmt_script *s, const struct vmt_event *e)
{
	char time[32];

	if (!(e->has & VMT_HAS_DURATION))
		return;
	vmt_out_printf(s->out, " took %s", vmt_time_text(time, sizeof(time), e->duration_ns));
	if (!(e->has & VMT_HAS_PARTS))
		return;
	put_part(s, "QEMU", e->userspace_part_ns);
	put_part(s, "halt-poll", e->halt_poll_part_ns);
	put_part(s, "blocked", e->blocked_part_ns);
	put_part(s, "preempted", e->preempted_part_ns);
}

static void put_exit(struct vmt_script *s, const struct vmt_event *e)
{
	char name[32], flags[96];
	const char *reason = vmt_script_reason(e, name, sizeof(name));

	vmt_out_printf(s->out, " %s%s", e->nested ? "L2 " : "", reason ? reason : "?");
	if (e->reason_flags && e->isa != VMT_ISA_SVM)
		vmt_out_printf(s->out, "|%s",
			       vmx_reason_flags_text(flags, sizeof(flags), e->reason_flags));
	if (e->failed_entry)
		vmt_out_str(s->out, " ENTRY FAILED");
	put_key(s, e);
	if ((e->has & VMT_HAS_VECTOR) && e->key.kind != VMT_KEY_VECTOR)
		vmt_out_printf(s->out, " vec:%u", e->vector);
	if ((e->has & VMT_HAS_QUALIFICATION) && e->qualification)
		vmt_out_printf(s->out, " qual 0x%llx", U(e->qualification));
	put_rip(s, e);
	put_duration(s, e);
}

static void put_name(struct vmt_script *s, const struct vmt_event *e)
{
	if (!e->name)
		return;
	vmt_out_char(s->out, ' ');
	vmt_out_safe(s->out, e->name);
}

static void put_rest(struct vmt_script *s, const struct vmt_event *e)
{
	char name[32];
	const char *reason;

	switch (e->type) {
	case VMT_EVENT_EXIT:
		put_exit(s, e);
		break;
	case VMT_EVENT_ENTRY:
		put_rip(s, e);
		break;
	case VMT_EVENT_USERSPACE:
		reason = vmt_script_reason(e, name, sizeof(name));
		vmt_out_printf(s->out, " %s", reason ? reason : "?");
		break;
	case VMT_EVENT_SWITCH:
		vmt_out_str(s->out, e->switch_in   ? " in"
				    : e->preempted ? " out, preempted"
						   : " out");
		break;
	case VMT_EVENT_WAKEUP:
		put_duration(s, e);
		break;
	case VMT_EVENT_INJECT:
		put_name(s, e);
		if (e->has & VMT_HAS_VECTOR)
			vmt_out_printf(s->out, " vec:%u", e->vector);
		break;
	case VMT_EVENT_TSC_WRITE:
		if (e->has & VMT_HAS_VALUE)
			vmt_out_printf(s->out, " offset %lld", (long long)e->value);
		break;
	case VMT_EVENT_LOSS:
		put_name(s, e);
		if (e->has & VMT_HAS_VALUE)
			vmt_out_printf(s->out, " %llu%s", U(e->value),
				       e->has & VMT_HAS_LOST_BYTES ? " records" : "");
		if (e->has & VMT_HAS_LOST_BYTES)
			vmt_out_printf(s->out, " %llu bytes", U(e->lost_bytes));
		break;
	default:
		put_name(s, e);
		put_key(s, e);
		break;
	}
}

void vmt_script_text_event(struct vmt_script *script, const struct vmt_event *event)
{
	put_time(script, event);
	put_who(script, event);
	put_rest(script, event);
	vmt_out_char(script->out, '\n');
}
