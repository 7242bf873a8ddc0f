// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * JSON Lines by hand: a table of members a type, each with a writer, over one reserved stretch of
 * the output buffer. Invariant: a member needs at most MEMBER_MAX bytes besides the texts, which go
 * through vmt_json_quote and reserve for themselves.
 */
#include "decode/export/script.h"

#include "decode/base/key.h"
#include "decode/export/join.h"
#include "decode/export/json.h"
#include "decode/export/names.h"

#define MEMBER_MAX 96u

/* ---- bytes ---- */

static char *put_literal(char *p, const char *text, size_t len)
{
	memcpy(p, text, len);
	return p + len;
}

#define PUT(p, literal) put_literal(p, literal, sizeof(literal) - 1)

static char *put_number(char *p, uint64_t n)
{
	char digits[20];
	unsigned int i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	return put_literal(p, digits + i, sizeof(digits) - i);
}

static char *put_hex(char *p, uint64_t n)
{
	static const char digits[] = "0123456789abcdef";
	int shift = n ? (63 - __builtin_clzll(n)) & ~3 : 0;

	p = PUT(p, "\"0x");
	for (; shift >= 0; shift -= 4)
		*p++ = digits[n >> shift & 15];
	*p++ = '"';
	return p;
}

/* ---- members: name with comma and colon, then the value or null ---- */

static char *begin(struct vmt_out *l, const char *name, size_t len)
{
	return put_literal(vmt_out_room(l, MEMBER_MAX), name, len);
}

static void number(struct vmt_out *l, const char *name, size_t len, bool known, uint64_t n)
{
	char *p = begin(l, name, len);

	vmt_out_took(l, known ? put_number(p, n) : PUT(p, "null"));
}

static void hex(struct vmt_out *l, const char *name, size_t len, bool known, uint64_t n)
{
	char *p = begin(l, name, len);

	vmt_out_took(l, known ? put_hex(p, n) : PUT(p, "null"));
}

static void boolean(struct vmt_out *l, const char *name, size_t len, bool known, bool value)
{
	char *p = begin(l, name, len);

	vmt_out_took(l, !known ? PUT(p, "null") : value ? PUT(p, "true") : PUT(p, "false"));
}

/* Text that is known to need no escapes. */
static void plain(struct vmt_out *l, const char *name, size_t len, const char *text)
{
	char *p = begin(l, name, len);
	size_t n = text ? strlen(text) : 0;

	if (!text) {
		vmt_out_took(l, PUT(p, "null"));
		return;
	}
	n = n < 64 ? n : 63;
	*p++ = '"';
	p = put_literal(p, text, n);
	*p++ = '"';
	vmt_out_took(l, p);
}

static void text(struct vmt_out *l, const char *name, size_t len, const char *value)
{
	char *p = begin(l, name, len);

	if (!value) {
		vmt_out_took(l, PUT(p, "null"));
		return;
	}
	vmt_out_took(l, p);
	vmt_json_quote(l, value);
}

#define NAME(n) ",\"" n "\":", sizeof(",\"" n "\":") - 1

static void put_who(struct vmt_script *s, struct vmt_out *l, const struct vmt_event *e)
{
	number(l, NAME("cpu"), e->has & VMT_HAS_CPU, e->cpu);
	text(l, NAME("domain"), vmt_script_domain(s, e));
	number(l, NAME("vcpu"), e->has & VMT_HAS_VCPU, e->vcpu);
}

static void put_when(struct vmt_out *l, const struct vmt_event *e)
{
	hex(l, NAME("host_tsc"), e->has & VMT_HAS_HOST_TSC, e->host_tsc.host_tsc);
	number(l, NAME("host_tsc_error"), e->has & VMT_HAS_HOST_TSC, e->host_tsc_error);
	number(l, NAME("time_ns"), e->has & VMT_HAS_TIME, e->time.host_ns);
}

static void put_key(struct vmt_out *l, const struct vmt_event *e)
{
	char key[VMT_KEY_TEXT_MAX];

	plain(l, NAME("key"),
	      e->key.kind == VMT_KEY_NONE ? NULL : vmt_key_format(key, sizeof(key), &e->key));
}

static void put_rip(struct vmt_script *s, struct vmt_out *l, const struct vmt_event *e)
{
	char symbol[VMT_SCRIPT_SYMBOL_MAX];

	hex(l, NAME("guest_rip"), e->has & VMT_HAS_RIP, e->guest_rip);
	text(l, NAME("guest_symbol"), vmt_script_symbol(s, e, symbol, sizeof(symbol)));
}

static void put_reason(struct vmt_out *l, const struct vmt_event *e)
{
	bool known = e->has & VMT_HAS_REASON;
	char name[32];

	plain(l, NAME("isa"), vmt_isa_name(e->isa));
	number(l, NAME("reason"), known, e->reason);
	hex(l, NAME("reason_flags"), known, e->reason_flags);
	plain(l, NAME("reason_name"), vmt_script_reason(e, name, sizeof(name)));
}

static void put_parts(struct vmt_out *l, const struct vmt_event *e)
{
	bool parts = e->has & VMT_HAS_PARTS;

	number(l, NAME("userspace_ns"), parts, e->userspace_part_ns);
	number(l, NAME("halt_poll_ns"), parts, e->halt_poll_part_ns);
	number(l, NAME("blocked_ns"), parts, e->blocked_part_ns);
	number(l, NAME("preempted_ns"), parts, e->preempted_part_ns);
}

static void put_exit(struct vmt_script *s, struct vmt_out *l, const struct vmt_event *e)
{
	put_reason(l, e);
	hex(l, NAME("qualification"), e->has & VMT_HAS_QUALIFICATION, e->qualification);
	hex(l, NAME("info2"), e->has & VMT_HAS_INFO2, e->info2);
	hex(l, NAME("intr_info"), e->has & VMT_HAS_INTR_INFO, e->intr_info);
	hex(l, NAME("error_code"), e->has & VMT_HAS_INTR_INFO, e->error_code);
	number(l, NAME("vector"), e->has & VMT_HAS_VECTOR, e->vector);
	put_key(l, e);
	put_rip(s, l, e);
	hex(l, NAME("guest_cr3"), e->has & VMT_HAS_CR3, e->guest_cr3);
	number(l, NAME("cpl"), e->has & VMT_HAS_CPL, e->cpl);
	number(l, NAME("duration_ns"), e->has & VMT_HAS_DURATION, e->duration_ns);
	hex(l, NAME("duration_tsc"), e->has & VMT_HAS_DURATION_TSC, e->duration_tsc);
	put_parts(l, e);
	boolean(l, NAME("nested"), e->has & VMT_HAS_NESTED, e->nested);
	boolean(l, NAME("failed_entry"), true, e->failed_entry);
	boolean(l, NAME("concealed_rip"), true, e->concealed_rip);
}

static void put_rest(struct vmt_script *s, struct vmt_out *l, const struct vmt_event *e)
{
	char name[32];

	switch (e->type) {
	case VMT_EVENT_EXIT:
		put_exit(s, l, e);
		break;
	case VMT_EVENT_ENTRY:
		put_rip(s, l, e);
		break;
	case VMT_EVENT_USERSPACE:
		number(l, NAME("reason"), e->has & VMT_HAS_REASON, e->reason);
		plain(l, NAME("reason_name"), vmt_script_reason(e, name, sizeof(name)));
		break;
	case VMT_EVENT_SWITCH:
		boolean(l, NAME("in"), true, e->switch_in);
		boolean(l, NAME("preempted"), true, e->preempted);
		break;
	case VMT_EVENT_WAKEUP:
		number(l, NAME("duration_ns"), e->has & VMT_HAS_DURATION, e->duration_ns);
		break;
	case VMT_EVENT_INJECT:
		number(l, NAME("vector"), e->has & VMT_HAS_VECTOR, e->vector);
		text(l, NAME("name"), e->name);
		break;
	case VMT_EVENT_TSC_WRITE:
		hex(l, NAME("tsc_offset"), e->has & VMT_HAS_VALUE, (uint64_t)e->value);
		break;
	case VMT_EVENT_NOTE:
		text(l, NAME("name"), e->name);
		put_key(l, e);
		break;
	case VMT_EVENT_LOSS:
		text(l, NAME("name"), e->name);
		number(l, NAME("lost"), e->has & VMT_HAS_VALUE, (uint64_t)e->value);
		number(l, NAME("lost_bytes"), e->has & VMT_HAS_LOST_BYTES, e->lost_bytes);
		break;
	default:
		text(l, NAME("name"), e->name);
		break;
	}
}

void vmt_script_json_event(struct vmt_script *script, const struct vmt_event *event)
{
	struct vmt_out *l = script->out;
	char *p = vmt_out_room(l, MEMBER_MAX);
	const char *type = vmt_event_type_name(event->type);

	p = PUT(p, "{\"type\":\"");
	p = put_literal(p, type, strlen(type));
	*p++ = '"';
	vmt_out_took(l, p);
	plain(l, NAME("source"), vmt_source_name(event->source));
	put_who(script, l, event);
	number(l, NAME("tid"), (event->has & VMT_HAS_TID) && event->tid, event->tid);
	hex(l, NAME("vmcs"), event->has & VMT_HAS_VMCS, event->vmcs);
	put_when(l, event);
	put_rest(script, l, event);
	vmt_out_took(l, PUT(vmt_out_room(l, MEMBER_MAX), "}\n"));
}

void vmt_script_json_begin(struct vmt_script *script)
{
	const struct vmt_input_facts *f = script->facts;
	struct vmt_json j = { .out = script->out };

	vmt_json_open(&j, NULL, '{');
	vmt_json_text(&j, "type", "header");
	vmt_json_text(&j, "schema", "vmtrace-events/1");
	vmt_json_text(&j, "tool", f->tool);
	vmt_json_text(&j, "format", f->format);
	vmt_json_text(&j, "host", f->host);
	vmt_json_text(&j, "kernel", f->kernel);
	vmt_json_text(&j, "isa", vmt_isa_name(f->isa));
	vmt_json_bool(&j, "tsc_convertible", true, f->tsc_convertible);
	vmt_json_number(&j, "start_ns", script->has_start, script->start_ns);
	vmt_json_open(&j, "vms", '[');
	for (size_t i = 0; i < f->nr_domains; i++) {
		vmt_json_open(&j, NULL, '{');
		vmt_json_text(&j, "name", f->domains[i].name);
		vmt_json_text(&j, "uuid", f->domains[i].uuid);
		vmt_json_number(&j, "pid", f->domains[i].pid != 0, f->domains[i].pid);
		vmt_json_close(&j, '}');
	}
	vmt_json_close(&j, ']');
	vmt_json_close(&j, '}');
	vmt_out_char(script->out, '\n');
}

void vmt_script_json_end(struct vmt_script *script)
{
	struct vmt_json j = { .out = script->out };

	vmt_json_open(&j, NULL, '{');
	vmt_json_text(&j, "type", "join");
	vmt_json_join(&j, script->facts);
	vmt_json_close(&j, '}');
	vmt_out_char(script->out, '\n');
}
