/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/event_text.h"

#include <inttypes.h>

#include "decode/base/key.h"
#include "tests/support/line.h"
#include "vmx/exit.h"

static void put_who(struct vmt_line *t, const struct vmt_event *e)
{
	static const char *const sources[] = { "kvm", "pt", "sched", "session" };

	if (e->source != VMT_SOURCE_KVM)
		vmt_line_put(t, " source=%s", sources[e->source]);
	if (e->has & VMT_HAS_TIME)
		vmt_line_put(t, " t=%" PRIu64, e->time.host_ns);
	if (e->has & VMT_HAS_HOST_TSC)
		vmt_line_put(t, " tsc=%" PRIu64, e->host_tsc.host_tsc);
	if (e->has & VMT_HAS_HOST_TSC && e->host_tsc_error == UINT64_MAX)
		vmt_line_put(t, "+-?");
	else if (e->has & VMT_HAS_HOST_TSC && e->host_tsc_error)
		vmt_line_put(t, "+-%" PRIu64, e->host_tsc_error);
	if (e->has & VMT_HAS_CPU)
		vmt_line_put(t, " cpu=%u", e->cpu);
	if (e->has & VMT_HAS_TID)
		vmt_line_put(t, " tid=%u/%u", e->pid, e->tid);
	if (e->has & VMT_HAS_VMCS)
		vmt_line_put(t, " vmcs=0x%" PRIx64, e->vmcs);
	if (e->has & VMT_HAS_DOMAIN)
		vmt_line_put(t, " domain=%u", e->domain);
	if (e->has & VMT_HAS_VCPU)
		vmt_line_put(t, " vcpu=%u", e->vcpu);
	if (e->name)
		vmt_line_put(t, " name=%s", e->name);
}

static void put_reason(struct vmt_line *t, const struct vmt_event *e)
{
	char name[64];

	if (!(e->has & VMT_HAS_REASON))
		return;
	vmt_line_put(t, " reason=%u", e->reason);
	if (e->type != VMT_EVENT_EXIT)
		return;
	if (e->isa != VMT_ISA_UNKNOWN)
		vmt_line_put(t, "(%s)",
			     vmx_reason_text(name, sizeof(name), e->isa == VMT_ISA_SVM, e->reason));
	if (e->reason_flags)
		vmt_line_put(t, " flags=0x%x", e->reason_flags);
}

static void put_details(struct vmt_line *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_QUALIFICATION)
		vmt_line_put(t, " qual=0x%" PRIx64, e->qualification);
	if (e->has & VMT_HAS_INFO2)
		vmt_line_put(t, " info2=0x%" PRIx64, e->info2);
	if (e->has & VMT_HAS_INTR_INFO)
		vmt_line_put(t, " intr=0x%x error=0x%x", e->intr_info, e->error_code);
	if (e->has & VMT_HAS_VECTOR)
		vmt_line_put(t, " vector=%u", e->vector);
	if (e->has & VMT_HAS_RIP)
		vmt_line_put(t, " rip=0x%" PRIx64, e->guest_rip);
	if (e->has & VMT_HAS_CR3)
		vmt_line_put(t, " cr3=0x%" PRIx64, e->guest_cr3);
	if (e->has & VMT_HAS_VALUE)
		vmt_line_put(t, " value=%" PRId64, e->value);
}

static void put_times(struct vmt_line *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_DURATION)
		vmt_line_put(t, " duration=%" PRIu64, e->duration_ns);
	if (e->has & VMT_HAS_DURATION_TSC)
		vmt_line_put(t, " duration-tsc=%" PRIu64, e->duration_tsc);
	if (e->userspace_part_ns || e->halt_poll_part_ns || e->blocked_part_ns ||
	    e->preempted_part_ns || e->has & VMT_HAS_PARTS)
		vmt_line_put(t,
			     " %s=user:%" PRIu64 ",poll:%" PRIu64 ",blocked:%" PRIu64
			     ",preempted:%" PRIu64,
			     e->has & VMT_HAS_PARTS ? "parts" : "some-parts", e->userspace_part_ns,
			     e->halt_poll_part_ns, e->blocked_part_ns, e->preempted_part_ns);
}

static void put_flags(struct vmt_line *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_NESTED)
		vmt_line_put(t, " level=%s", e->nested ? "l2" : "l1");
	if (e->failed_entry)
		vmt_line_put(t, " failed-entry");
	if (e->concealed_rip)
		vmt_line_put(t, " concealed-rip");
	if (e->type == VMT_EVENT_SWITCH)
		vmt_line_put(t, "%s%s", e->switch_in ? " in" : " out",
			     e->preempted ? " preempted" : "");
}

char *vmt_event_text(char *buf, size_t size, const struct vmt_event *e)
{
	char key[VMT_KEY_TEXT_MAX] = "";
	struct vmt_line t = { .buf = buf, .size = size };

	vmt_line_put(&t, "%s", vmt_event_type_text(e->type));
	put_who(&t, e);
	put_reason(&t, e);
	if (e->key.kind != VMT_KEY_NONE)
		vmt_line_put(&t, " key=%s", vmt_key_format(key, sizeof(key), &e->key));
	put_details(&t, e);
	put_times(&t, e);
	put_flags(&t, e);
	return buf;
}
