/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/pt_event_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/base/key.h"
#include "decode/pt/clock.h"

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

static void put_what(struct text *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_REASON)
		put(t, " reason=%u", e->reason);
	if (e->has & VMT_HAS_REASON && e->reason_flags)
		put(t, " flags=0x%x", e->reason_flags);
	if (e->has & VMT_HAS_QUALIFICATION)
		put(t, " qual=0x%" PRIx64, e->qualification);
	if (e->has & VMT_HAS_VECTOR)
		put(t, " vector=%u", e->vector);
	if (e->has & VMT_HAS_VALUE)
		put(t, " value=%" PRId64, e->value);
}

static void put_where(struct text *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_RIP)
		put(t, " rip=0x%" PRIx64, e->guest_rip);
	if (e->has & VMT_HAS_CR3)
		put(t, " cr3=0x%" PRIx64, e->guest_cr3);
	if (e->has & VMT_HAS_VMCS)
		put(t, " vmcs=0x%" PRIx64, e->vmcs);
	if (e->has & VMT_HAS_DOMAIN)
		put(t, " domain=%u", e->domain);
	if (e->has & VMT_HAS_VCPU)
		put(t, " vcpu=%u", e->vcpu);
}

static void put_when(struct text *t, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_HOST_TSC) {
		put(t, " tsc=%" PRIu64, e->host_tsc.host_tsc);
		if (e->host_tsc_error == VMT_PT_NO_BOUND)
			put(t, "~?");
		else if (e->host_tsc_error)
			put(t, "~%" PRIu64, e->host_tsc_error);
	}
	if (e->has & VMT_HAS_DURATION_TSC)
		put(t, " duration=%" PRIu64, e->duration_tsc);
}

char *vmt_pt_event_text(char *buf, size_t size, const struct vmt_event *e)
{
	static const char *const types[VMT_EVENT_TYPE_COUNT] = {
		"entry",     "exit", "userspace", "switch", "wakeup", "inject",
		"tsc-write", "note", "mark",	  "loss",   "gap",
	};
	char key[VMT_KEY_TEXT_MAX] = "";
	struct text t = { .buf = buf, .size = size };

	put(&t, "%s", types[e->type]);
	if (e->name)
		put(&t, " %s", e->name);
	put_what(&t, e);
	if (e->key.kind != VMT_KEY_NONE)
		put(&t, " key=%s", vmt_key_format(key, sizeof(key), &e->key));
	put_where(&t, e);
	put_when(&t, e);
	if (e->failed_entry)
		put(&t, " failed-entry");
	return buf;
}
