// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/script.h"

#include <stdio.h>

#include "decode/export/names.h"
#include "vmx/names.h"

const char *vmt_script_symbol(const struct vmt_script *script, const struct vmt_event *event,
			      char *buf, size_t size)
{
	uint64_t offset = 0;
	const char *name;

	if (!script->symbol || !(event->has & VMT_HAS_RIP))
		return NULL;
	name = script->symbol(script->symbol_context, event->guest_rip, &offset);
	if (!name)
		return NULL;
	snprintf(buf, size, "%.150s+0x%llx", name, (unsigned long long)offset);
	return buf;
}

const char *vmt_script_domain(const struct vmt_script *script, const struct vmt_event *event)
{
	if (!(event->has & VMT_HAS_DOMAIN))
		return NULL;
	return vmt_domain_label(script->facts, event->domain);
}

const char *vmt_script_reason(const struct vmt_event *event, char *buf, size_t size)
{
	const char *name;

	if (!(event->has & VMT_HAS_REASON))
		return NULL;
	if (event->type != VMT_EVENT_USERSPACE)
		return vmx_reason_text(buf, size, event->isa == VMT_ISA_SVM, event->reason);
	name = vmx_kvm_exit_name(event->reason);
	if (!name)
		snprintf(buf, size, "KVM_EXIT_%u", event->reason);
	return name ? name : buf;
}

void vmt_script_begin(struct vmt_script *script)
{
	script->has_start = script->facts->has_base || script->facts->has_start;
	script->start_ns =
		script->facts->has_base ? script->facts->base_ns : script->facts->start_ns;
	script->written = 0;
	if (script->format == VMT_SCRIPT_JSON)
		vmt_script_json_begin(script);
	else if (script->format == VMT_SCRIPT_CSV)
		vmt_script_csv_begin(script);
}

void vmt_script_event(struct vmt_script *script, const struct vmt_event *event)
{
	if (script->types && !(script->types >> event->type & 1))
		return;
	script->written++;
	switch (script->format) {
	case VMT_SCRIPT_TEXT:
		vmt_script_text_event(script, event);
		break;
	case VMT_SCRIPT_JSON:
		vmt_script_json_event(script, event);
		break;
	case VMT_SCRIPT_CSV:
		vmt_script_csv_event(script, event);
		break;
	}
}

void vmt_script_end(struct vmt_script *script)
{
	if (script->format == VMT_SCRIPT_JSON && script->facts->has_join)
		vmt_script_json_end(script);
}
