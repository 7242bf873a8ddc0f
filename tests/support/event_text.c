/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/event_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/base/key.h"
#include "vmx/exit.h"

struct text {
	char *buf;
	size_t size, len;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->buf + t->len, t->size - t->len, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->size - t->len)
		abort();
	t->len += (size_t)n;
}

static void put_who(struct text *t, const struct vmt_event *e)
{
	static const char *const sources[] = { "kvm", "pt", "sched", "session" };

	if (e->source != VMT_SOURCE_KVM)
		put(t, " source=%s", sources[e->source]);
	if (e->has & VMT_HAS_TIME)
		put(t, " t=%" PRIu64, e->time.host_ns);
	if (e->has & VMT_HAS_HOST_TSC)
		put(t, " tsc=%" PRIu64, e->host_tsc.host_tsc);
	if (e->has & VMT_HAS_HOST_TSC && e->host_tsc_error == UINT64_MAX)
		put(t, "+-?");
	else if (e->has & VMT_HAS_HOST_TSC && e->host_tsc_error)
		put(t, "+-%" PRIu64, e->host_tsc_error);
	if (e->has & VMT_HAS_CPU)
		put(t, " cpu=%u", e->cpu);
	if (e->has & VMT_HAS_TID)
		put(t, " tid=%u/%u", e->pid, e->tid);
	if (e->has & VMT_HAS_VMCS)
		put(t, " vmcs=0x%" PRIx64, e->vmcs);
	if (e->has & VMT_HAS_DOMAIN)
		put(t, " domain=%u", e->domain);
	if (e->has & VMT_HAS_VCPU)
		put(t, " vcpu=%u", e->vcpu);
	if (e->name)
		put(t, " name=%s", e->name);
}

static void put_reason(struct text *t, const struct vmt_event *e)
{
	char name[64];

	if (!(e->has & VMT_HAS_REASON))
		return;
	put(t, " reason=%u", e->reason);
	if (e->type != VMT_EVENT_EXIT)
		return;
	if (e->isa != VMT_ISA_UNKNOWN)
		put(t, "(%s)",
		    vmx_reason_text(name, sizeof(name), e->isa == VMT_ISA_SVM, e->reason));
	if (e->reason_flags)
		put(t, " flags=0x%x", e->reason_flags);
}

static void put_details(struct text *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_QUALIFICATION)
		put(t, " qual=0x%" PRIx64, e->qualification);
	if (e->has & VMT_HAS_INFO2)
		put(t, " info2=0x%" PRIx64, e->info2);
	if (e->has & VMT_HAS_INTR_INFO)
		put(t, " intr=0x%x error=0x%x", e->intr_info, e->error_code);
	if (e->has & VMT_HAS_VECTOR)
		put(t, " vector=%u", e->vector);
	if (e->has & VMT_HAS_RIP)
		put(t, " rip=0x%" PRIx64, e->guest_rip);
	if (e->has & VMT_HAS_CR3)
		put(t, " cr3=0x%" PRIx64, e->guest_cr3);
	if (e->has & VMT_HAS_VALUE)
		put(t, " value=%" PRId64, e->value);
}

static void put_times(struct text *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_DURATION)
		put(t, " duration=%" PRIu64, e->duration_ns);
	if (e->has & VMT_HAS_DURATION_TSC)
		put(t, " duration-tsc=%" PRIu64, e->duration_tsc);
	if (e->userspace_part_ns || e->halt_poll_part_ns || e->blocked_part_ns ||
	    e->preempted_part_ns || e->has & VMT_HAS_PARTS)
		put(t,
		    " %s=user:%" PRIu64 ",poll:%" PRIu64 ",blocked:%" PRIu64 ",preempted:%" PRIu64,
		    e->has & VMT_HAS_PARTS ? "parts" : "some-parts", e->userspace_part_ns,
		    e->halt_poll_part_ns, e->blocked_part_ns, e->preempted_part_ns);
}

static void put_flags(struct text *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_NESTED)
		put(t, " level=%s", e->nested ? "l2" : "l1");
	if (e->failed_entry)
		put(t, " failed-entry");
	if (e->concealed_rip)
		put(t, " concealed-rip");
	if (e->type == VMT_EVENT_SWITCH)
		put(t, "%s%s", e->switch_in ? " in" : " out", e->preempted ? " preempted" : "");
}

char *vmt_event_text(char *buf, size_t size, const struct vmt_event *e)
{
	static const char *const types[VMT_EVENT_TYPE_COUNT] = {
		"entry",     "exit", "userspace", "switch", "wakeup", "inject",
		"tsc-write", "note", "mark",	  "loss",   "gap",
	};
	char key[VMT_KEY_TEXT_MAX] = "";
	struct text t = { .buf = buf, .size = size };

	put(&t, "%s", types[e->type]);
	put_who(&t, e);
	put_reason(&t, e);
	if (e->key.kind != VMT_KEY_NONE)
		put(&t, " key=%s", vmt_key_format(key, sizeof(key), &e->key));
	put_details(&t, e);
	put_times(&t, e);
	put_flags(&t, e);
	return buf;
}
