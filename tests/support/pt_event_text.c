/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/pt_event_text.h"

#include <inttypes.h>

#include "decode/base/key.h"
#include "decode/pt/clock.h"
#include "tests/support/line.h"

static void put_what(struct vmt_line *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_REASON)
		vmt_line_put(t, " reason=%u", e->reason);
	if (e->has & VMT_HAS_REASON && e->reason_flags)
		vmt_line_put(t, " flags=0x%x", e->reason_flags);
	if (e->has & VMT_HAS_QUALIFICATION)
		vmt_line_put(t, " qual=0x%" PRIx64, e->qualification);
	if (e->has & VMT_HAS_VECTOR)
		vmt_line_put(t, " vector=%u", e->vector);
	if (e->has & VMT_HAS_VALUE)
		vmt_line_put(t, " value=%" PRId64, e->value);
}

static void put_where(struct vmt_line *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_RIP)
		vmt_line_put(t, " rip=0x%" PRIx64, e->guest_rip);
	if (e->has & VMT_HAS_CR3)
		vmt_line_put(t, " cr3=0x%" PRIx64, e->guest_cr3);
	if (e->has & VMT_HAS_VMCS)
		vmt_line_put(t, " vmcs=0x%" PRIx64, e->vmcs);
	if (e->has & VMT_HAS_DOMAIN)
		vmt_line_put(t, " domain=%u", e->domain);
	if (e->has & VMT_HAS_VCPU)
		vmt_line_put(t, " vcpu=%u", e->vcpu);
}

static void put_when(struct vmt_line *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_HOST_TSC) {
		vmt_line_put(t, " tsc=%" PRIu64, e->host_tsc.host_tsc);
		if (e->host_tsc_error == VMT_PT_NO_BOUND)
			vmt_line_put(t, "~?");
		else if (e->host_tsc_error)
			vmt_line_put(t, "~%" PRIu64, e->host_tsc_error);
	}
	if (e->has & VMT_HAS_DURATION_TSC)
		vmt_line_put(t, " duration=%" PRIu64, e->duration_tsc);
}

char *vmt_pt_event_text(char *buf, size_t size, const struct vmt_event *e)
{
	char key[VMT_KEY_TEXT_MAX] = "";
	struct vmt_line t = { .buf = buf, .size = size };

	vmt_line_put(&t, "%s", vmt_event_type_text(e->type));
	if (e->name)
		vmt_line_put(&t, " %s", e->name);
	put_what(&t, e);
	if (e->key.kind != VMT_KEY_NONE)
		vmt_line_put(&t, " key=%s", vmt_key_format(key, sizeof(key), &e->key));
	put_where(&t, e);
	put_when(&t, e);
	if (e->failed_entry)
		vmt_line_put(&t, " failed-entry");
	return buf;
}
