// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lines of instruction flow. All texts in them are the program's own: nothing needs quoting. */
#include "decode/export/pt_flow.h"

#include <stdio.h>

#include "decode/base/aux.h"
#include "decode/export/json.h"

#define U(x) ((unsigned long long)(x))

#define DEPTH_SHOWN 40u /* calls that indent a line of text */

static const char *const class_names[] = {
	[VMT_INSN_OTHER] = "other",
	[VMT_INSN_JCC] = "jcc",
	[VMT_INSN_JMP] = "jmp",
	[VMT_INSN_CALL] = "call",
	[VMT_INSN_JMP_INDIRECT] = "jmp_indirect",
	[VMT_INSN_CALL_INDIRECT] = "call_indirect",
	[VMT_INSN_RET] = "ret",
	[VMT_INSN_FAR_CALL] = "far_call",
	[VMT_INSN_FAR_RET] = "far_ret",
	[VMT_INSN_FAR_JMP] = "far_jmp",
	[VMT_INSN_VMENTRY] = "vm_entry",
	[VMT_INSN_VMCALL] = "vmcall",
	[VMT_INSN_PTWRITE] = "ptwrite",
	[VMT_INSN_MOV_CR3] = "mov_cr3",
};

void vmt_flow_lines_begin(const struct vmt_flow_lines *lines)
{
	if (lines->json)
		vmt_out_str(lines->out, "{\"type\":\"header\",\"schema\":\"vmtrace-flow/1\"}\n");
}

void vmt_flow_lines_area(struct vmt_flow_lines *lines, uint32_t cpu, uint32_t tid)
{
	const bool is_cpu = cpu != VMT_AUX_NO_CPU;
	const uint32_t n = is_cpu ? cpu : tid;

	snprintf(lines->area_json, sizeof(lines->area_json), "\"%s\":%u,", is_cpu ? "cpu" : "tid",
		 n);
	snprintf(lines->area_text, sizeof(lines->area_text), is_cpu ? "[%03u] " : "(%u) ", n);
	lines->depth[0] = lines->depth[1] = 0;
}

/* ---- what all lines begin with ---- */

static void begin_json(const struct vmt_flow_lines *l, const char *type)
{
	const struct vmt_flow_state *s = l->state;

	vmt_out_printf(l->out, "{%s\"type\":\"%s\",\"offset\":%llu,\"tsc\":", l->area_json, type,
		       U(s->offset));
	if (s->has_tsc)
		vmt_out_printf(l->out, "\"0x%llx\"", U(s->tsc));
	else
		vmt_out_str(l->out, "null");
	vmt_out_printf(l->out, ",\"nonroot\":%s", s->where.nonroot ? "true" : "false");
}

static void begin_text(const struct vmt_flow_lines *l)
{
	vmt_out_printf(l->out, "%s%s ", l->area_text, l->state->where.nonroot ? "guest" : "host ");
}

static void begin_timed(const struct vmt_flow_lines *l)
{
	begin_text(l);
	if (l->state->has_tsc)
		vmt_out_printf(l->out, "%20llu ", U(l->state->tsc));
	else
		vmt_out_printf(l->out, "%20s ", "-");
}

/* ,"name":"0x..." or null */
static void json_hex(const struct vmt_flow_lines *l, const char *name, bool known, uint64_t value)
{
	if (known)
		vmt_out_printf(l->out, ",\"%s\":\"0x%llx\"", name, U(value));
	else
		vmt_out_printf(l->out, ",\"%s\":null", name);
}

/* ---- instructions ---- */

static void hex_bytes(struct vmt_out *out, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	char *p = vmt_out_room(out, 3 * len);

	for (size_t i = 0; i < len; i++) {
		if (i)
			*p++ = ' ';
		*p++ = digits[bytes[i] >> 4];
		*p++ = digits[bytes[i] & 15];
	}
	vmt_out_took(out, p);
}

static void insn_line(void *context, uint64_t ip, const uint8_t *bytes, const struct vmt_insn *insn)
{
	const struct vmt_flow_lines *l = context;

	if (l->json) {
		begin_json(l, "insn");
		vmt_out_printf(l->out, ",\"mode\":%u", l->state->mode);
		json_hex(l, "ip", true, ip);
		vmt_out_str(l->out, ",\"bytes\":\"");
		hex_bytes(l->out, bytes, insn->len);
		vmt_out_printf(l->out, "\",\"class\":\"%s\"}\n", class_names[insn->class]);
		return;
	}
	begin_text(l);
	vmt_out_printf(l->out, "0x%llx  ", U(ip));
	hex_bytes(l->out, bytes, insn->len);
	if (insn->class != VMT_INSN_OTHER)
		vmt_out_printf(l->out, "  %s", class_names[insn->class]);
	vmt_out_char(l->out, '\n');
}

/* ---- blocks and calls ---- */

static void block_line(const struct vmt_flow_lines *l, const struct vmt_flow_block *b)
{
	if (l->json) {
		begin_json(l, "block");
		vmt_out_printf(l->out, ",\"mode\":%u", l->state->mode);
		json_hex(l, "ip", true, b->ip);
		json_hex(l, "last_ip", true, b->last_ip);
		vmt_out_printf(l->out, ",\"count\":%u,\"class\":\"%s\"", b->count,
			       class_names[b->class]);
		json_hex(l, "next_ip", b->has_next, b->next_ip);
		vmt_out_str(l->out, "}\n");
		return;
	}
	begin_timed(l);
	vmt_out_printf(l->out, "0x%llx..0x%llx %u", U(b->ip), U(b->last_ip), b->count);
	if (b->class != VMT_INSN_OTHER)
		vmt_out_printf(l->out, " %s", class_names[b->class]);
	if (b->has_next)
		vmt_out_printf(l->out, " -> 0x%llx", U(b->next_ip));
	vmt_out_char(l->out, '\n');
}

static void call_line(struct vmt_flow_lines *l, const struct vmt_flow_block *b)
{
	static const uint32_t calls =
		1u << VMT_INSN_CALL | 1u << VMT_INSN_CALL_INDIRECT | 1u << VMT_INSN_FAR_CALL;
	static const uint32_t returns = 1u << VMT_INSN_RET | 1u << VMT_INSN_FAR_RET;
	uint64_t *depth = &l->depth[l->state->where.nonroot];

	if (!((calls | returns) >> b->class & 1))
		return;
	if (returns >> b->class & 1 && *depth)
		--*depth;
	if (l->json) {
		begin_json(l, "call");
		vmt_out_printf(l->out, ",\"depth\":%llu,\"class\":\"%s\"", U(*depth),
			       class_names[b->class]);
		json_hex(l, "ip", true, b->last_ip);
		json_hex(l, "next_ip", b->has_next, b->next_ip);
		vmt_out_str(l->out, "}\n");
	} else {
		begin_timed(l);
		vmt_out_printf(l->out, "%3llu ", U(*depth));
		vmt_out_repeat(l->out, ' ', *depth < DEPTH_SHOWN ? *depth : DEPTH_SHOWN);
		vmt_out_printf(l->out, "%s 0x%llx", class_names[b->class], U(b->last_ip));
		if (b->has_next)
			vmt_out_printf(l->out, " -> 0x%llx", U(b->next_ip));
		vmt_out_char(l->out, '\n');
	}
	if (calls >> b->class & 1)
		++*depth;
}

void vmt_flow_lines_block(void *context, const struct vmt_flow_state *state,
			  const struct vmt_flow_block *block)
{
	struct vmt_flow_lines *l = context;

	l->state = state;
	switch (l->detail) {
	case VMT_FLOW_INSN:
		vmt_flow_instructions(l->flow, block, insn_line, l);
		break;
	case VMT_FLOW_BLOCK:
		block_line(l, block);
		break;
	case VMT_FLOW_CALL:
		call_line(l, block);
		break;
	}
	l->state = NULL;
}

/* ---- events ---- */

static void json_event(const struct vmt_flow_lines *l, const struct vmt_flow_event *e)
{
	const struct vmt_image_context *where = &l->state->where;

	begin_json(l, "event");
	vmt_out_printf(l->out, ",\"event\":\"%s\"", vmt_flow_event_name(e->type));
	json_hex(l, "ip", e->has_ip, e->ip);
	json_hex(l, "to", e->has_to, e->to);
	if (e->name)
		vmt_out_printf(l->out, ",\"name\":\"%s\"", e->name);
	json_hex(l, "cr3", where->has_cr3, where->cr3);
	json_hex(l, "vmcs", where->has_vmcs, where->vmcs);
	if (e->type == VMT_FLOW_ENTRY_FAILED)
		vmt_out_printf(l->out, ",\"early\":%s", e->early ? "true" : "false");
	if (e->has_reason)
		vmt_out_printf(l->out, ",\"reason\":%u,\"reason_flags\":\"0x%x\"",
			       e->reason & 0xffff, e->reason & 0xffff0000u);
	if (e->has_qualification)
		json_hex(l, "qualification", true, e->qualification);
	if (e->has_vector)
		vmt_out_printf(l->out, ",\"vector\":%u", e->vector);
	if (e->has_value)
		json_hex(l, "value", true, e->value);
	vmt_out_str(l->out, "}\n");
}

static void text_event(const struct vmt_flow_lines *l, const struct vmt_flow_event *e)
{
	const struct vmt_image_context *where = &l->state->where;

	begin_timed(l);
	vmt_out_printf(l->out, "# %s", vmt_flow_event_name(e->type));
	if (e->early)
		vmt_out_str(l->out, " early");
	if (e->has_ip)
		vmt_out_printf(l->out, " 0x%llx", U(e->ip));
	if (e->has_to)
		vmt_out_printf(l->out, " -> 0x%llx", U(e->to));
	if (e->name)
		vmt_out_printf(l->out, e->type == VMT_FLOW_ERROR ? ": %s" : " %s", e->name);
	if (e->type == VMT_FLOW_ERROR)
		vmt_out_printf(l->out, " (offset %llu)", U(l->state->offset));
	if (e->has_reason)
		vmt_out_printf(l->out, " reason=%u", e->reason & 0xffff);
	if (e->has_qualification)
		vmt_out_printf(l->out, " qualification=0x%llx", U(e->qualification));
	if (e->has_vector)
		vmt_out_printf(l->out, " vector=%u", e->vector);
	if (e->has_value)
		vmt_out_printf(l->out, " value=0x%llx", U(e->value));
	if (where->has_cr3)
		vmt_out_printf(l->out, " cr3=0x%llx", U(where->cr3));
	if (where->has_vmcs)
		vmt_out_printf(l->out, " vmcs=0x%llx", U(where->vmcs));
	vmt_out_char(l->out, '\n');
}

void vmt_flow_lines_event(void *context, const struct vmt_flow_state *state,
			  const struct vmt_flow_event *event)
{
	struct vmt_flow_lines *l = context;

	/* Where calls are not followed any more their depth is not known. */
	if (event->type == VMT_FLOW_ERROR || event->type == VMT_FLOW_OVERFLOW)
		l->depth[0] = l->depth[1] = 0;
	l->state = state;
	if (l->json)
		json_event(l, event);
	else
		text_event(l, event);
	l->state = NULL;
}

/* ---- the end ---- */

void vmt_flow_lines_add(struct vmt_flow_lines *l, const struct vmt_flow_counts *c)
{
	l->sum.instructions += c->instructions;
	l->sum.blocks += c->blocks;
	l->sum.branches += c->branches;
	l->sum.errors += c->errors;
	l->sum.lost_packets += c->lost_packets;
	l->sum.entries += c->entries;
	l->sum.exits += c->exits;
	l->sum.failed_entries += c->failed_entries;
}

void vmt_flow_lines_ledger(const struct vmt_flow_lines *l, const struct vmt_ledger *ledger)
{
	struct vmt_json j = { .out = l->out };

	if (!l->json) {
		vmt_out_printf(l->out,
			       "flow: %llu instructions in %llu blocks; %llu errors, %llu packets "
			       "without a place\nledger: %llu bytes = %llu decoded + %llu skipped; "
			       "%llu overflows; %s\n",
			       U(l->sum.instructions), U(l->sum.blocks), U(l->sum.errors),
			       U(l->sum.lost_packets), U(ledger->bytes_total),
			       U(ledger->bytes_decoded), U(ledger->bytes_skipped),
			       U(ledger->overflows), ledger->truncated ? "cut off" : "complete");
		return;
	}
	vmt_json_open(&j, NULL, '{');
	vmt_json_open(&j, "ledger", '{');
	vmt_json_number(&j, "bytes_total", true, ledger->bytes_total);
	vmt_json_number(&j, "bytes_decoded", true, ledger->bytes_decoded);
	vmt_json_number(&j, "bytes_skipped", true, ledger->bytes_skipped);
	vmt_json_number(&j, "overflows", true, ledger->overflows);
	vmt_json_bool(&j, "truncated", true, ledger->truncated);
	vmt_json_close(&j, '}');
	vmt_json_open(&j, "flow", '{');
	vmt_json_number(&j, "instructions", true, l->sum.instructions);
	vmt_json_number(&j, "blocks", true, l->sum.blocks);
	vmt_json_number(&j, "branches", true, l->sum.branches);
	vmt_json_number(&j, "errors", true, l->sum.errors);
	vmt_json_number(&j, "lost_packets", true, l->sum.lost_packets);
	vmt_json_number(&j, "entries", true, l->sum.entries);
	vmt_json_number(&j, "exits", true, l->sum.exits);
	vmt_json_number(&j, "failed_entries", true, l->sum.failed_entries);
	vmt_json_close(&j, '}');
	vmt_json_close(&j, '}');
	vmt_out_char(l->out, '\n');
}
