// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/base/key.h"
#include "decode/export/csv.h"
#include "decode/export/names.h"
#include "decode/export/script.h"

void vmt_script_csv_begin(struct vmt_script *script)
{
	vmt_out_str(script->out,
		    "time_ns,type,source,cpu,domain,vcpu,tid,isa,reason,reason_flags,reason_name,"
		    "qualification,key,vector,guest_rip,guest_symbol,guest_cr3,duration_ns,"
		    "userspace_ns,halt_poll_ns,blocked_ns,preempted_ns,nested,failed_entry,"
		    "host_tsc,host_tsc_error,name,value,lost_bytes\n");
}

static void put_who(struct vmt_script *s, struct vmt_csv *csv, const struct vmt_event *e)
{
	vmt_csv_number(csv, e->has & VMT_HAS_TIME, e->time.host_ns);
	vmt_csv_text(csv, vmt_event_type_name(e->type));
	vmt_csv_text(csv, vmt_source_name(e->source));
	vmt_csv_number(csv, e->has & VMT_HAS_CPU, e->cpu);
	vmt_csv_text(csv, vmt_script_domain(s, e));
	vmt_csv_number(csv, e->has & VMT_HAS_VCPU, e->vcpu);
	vmt_csv_number(csv, (e->has & VMT_HAS_TID) && e->tid, e->tid);
}

void vmt_script_csv_event(struct vmt_script *script, const struct vmt_event *event)
{
	struct vmt_csv csv = { .out = script->out };
	const struct vmt_event *e = event;
	bool exit = e->type == VMT_EVENT_EXIT, reason = e->has & VMT_HAS_REASON;
	bool parts = e->has & VMT_HAS_PARTS;
	char name[32], key[VMT_KEY_TEXT_MAX], symbol[VMT_SCRIPT_SYMBOL_MAX];

	put_who(script, &csv, e);
	vmt_csv_text(&csv, exit ? vmt_isa_name(e->isa) : NULL);
	vmt_csv_number(&csv, reason, e->reason);
	vmt_csv_hex(&csv, reason && exit, e->reason_flags);
	vmt_csv_text(&csv, vmt_script_reason(e, name, sizeof(name)));
	vmt_csv_hex(&csv, e->has & VMT_HAS_QUALIFICATION, e->qualification);
	vmt_csv_text(&csv, e->key.kind == VMT_KEY_NONE ? NULL
						       : vmt_key_format(key, sizeof(key), &e->key));
	vmt_csv_number(&csv, e->has & VMT_HAS_VECTOR, e->vector);
	vmt_csv_hex(&csv, e->has & VMT_HAS_RIP, e->guest_rip);
	vmt_csv_text(&csv, vmt_script_symbol(script, e, symbol, sizeof(symbol)));
	vmt_csv_hex(&csv, e->has & VMT_HAS_CR3, e->guest_cr3);
	vmt_csv_number(&csv, e->has & VMT_HAS_DURATION, e->duration_ns);
	vmt_csv_number(&csv, parts, e->userspace_part_ns);
	vmt_csv_number(&csv, parts, e->halt_poll_part_ns);
	vmt_csv_number(&csv, parts, e->blocked_part_ns);
	vmt_csv_number(&csv, parts, e->preempted_part_ns);
	vmt_csv_number(&csv, exit && (e->has & VMT_HAS_NESTED), e->nested);
	vmt_csv_number(&csv, exit, e->failed_entry);
	vmt_csv_hex(&csv, e->has & VMT_HAS_HOST_TSC, e->host_tsc.host_tsc);
	vmt_csv_number(&csv, e->has & VMT_HAS_HOST_TSC, e->host_tsc_error);
	vmt_csv_text(&csv, e->type == VMT_EVENT_SWITCH ? e->switch_in	? "in"
							 : e->preempted ? "out-preempted"
									: "out"
						       : e->name);
	if (e->type == VMT_EVENT_TSC_WRITE)
		vmt_csv_hex(&csv, e->has & VMT_HAS_VALUE, (uint64_t)e->value);
	else
		vmt_csv_number(&csv, e->has & VMT_HAS_VALUE, (uint64_t)e->value);
	vmt_csv_number(&csv, e->has & VMT_HAS_LOST_BYTES, e->lost_bytes);
	vmt_csv_end(&csv);
}
