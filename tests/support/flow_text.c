/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/flow_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_names[] = {
	[VMT_INSN_OTHER] = "other",	  [VMT_INSN_JCC] = "jcc",
	[VMT_INSN_JMP] = "jmp",		  [VMT_INSN_CALL] = "call",
	[VMT_INSN_JMP_INDIRECT] = "jmp*", [VMT_INSN_CALL_INDIRECT] = "call*",
	[VMT_INSN_RET] = "ret",		  [VMT_INSN_FAR_CALL] = "far-call",
	[VMT_INSN_FAR_RET] = "far-ret",	  [VMT_INSN_FAR_JMP] = "far-jmp",
	[VMT_INSN_VMENTRY] = "vmentry",	  [VMT_INSN_VMCALL] = "vmcall",
	[VMT_INSN_PTWRITE] = "ptwrite",	  [VMT_INSN_MOV_CR3] = "mov-cr3",
};

struct line {
	char *buf;
	size_t size, len;
};

static void __attribute__((format(printf, 2, 3))) add(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->buf + l->len, l->size - l->len, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= l->size - l->len)
		abort();
	l->len += (size_t)n;
}

static void add_state(struct line *l, const struct vmt_flow_state *s)
{
	if (s->mode != VMT_INSN_64)
		add(l, " %u", s->mode);
	if (s->where.nonroot)
		add(l, " guest");
	if (s->where.has_cr3)
		add(l, " cr3=0x%" PRIx64, s->where.cr3);
	if (s->where.has_vmcs)
		add(l, " vmcs=0x%" PRIx64, s->where.vmcs);
	if (s->has_tsc)
		add(l, " tsc=%" PRIu64, s->tsc);
}

char *vmt_flow_block_text(char *buf, size_t size, const struct vmt_flow_state *state,
			  const struct vmt_flow_block *b)
{
	struct line l = { buf, size, 0 };

	add(&l, "run 0x%" PRIx64 "..0x%" PRIx64 " n=%u %s -> ", b->ip, b->last_ip, b->count,
	    class_names[b->class]);
	if (b->has_next)
		add(&l, "0x%" PRIx64, b->next_ip);
	else
		add(&l, "-");
	add_state(&l, state);
	return buf;
}

char *vmt_flow_event_text(char *buf, size_t size, const struct vmt_flow_state *state,
			  const struct vmt_flow_event *e)
{
	struct line l = { buf, size, 0 };

	add(&l, "%s", vmt_flow_event_name(e->type));
	if (e->has_ip)
		add(&l, " 0x%" PRIx64, e->ip);
	if (e->has_to)
		add(&l, " -> 0x%" PRIx64, e->to);
	if (e->early)
		add(&l, " early");
	if (e->name)
		add(&l, e->type == VMT_FLOW_ERROR ? ": %s" : " %s", e->name);
	if (e->has_reason)
		add(&l, " reason=%u", e->reason);
	if (e->has_qualification)
		add(&l, " qual=0x%" PRIx64, e->qualification);
	if (e->has_vector)
		add(&l, " vector=%u", e->vector);
	if (e->has_value)
		add(&l, " value=0x%" PRIx64, e->value);
	add_state(&l, state);
	return buf;
}

struct listing {
	char *text;
	size_t len, cap;
};

static void add_line(struct listing *l, const char *line)
{
	const size_t n = strlen(line);

	if (l->len + n + 2 > l->cap) {
		l->cap = l->cap * 2 + n + 4096;
		l->text = realloc(l->text, l->cap);
		if (!l->text)
			abort();
	}
	memcpy(l->text + l->len, line, n);
	l->len += n;
	l->text[l->len++] = '\n';
	l->text[l->len] = '\0';
}

static void on_block(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_block *block)
{
	char line[256];

	add_line(context, vmt_flow_block_text(line, sizeof(line), state, block));
}

static void on_event(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_event *event)
{
	char line[256];

	add_line(context, vmt_flow_event_text(line, sizeof(line), state, event));
}

static struct vmt_image *image_of(const struct vmt_vtt *vtt)
{
	struct vmt_image *image = vmt_image_new();

	if (!image)
		abort();
	for (size_t i = 0; i < vtt->nr_codes; i++) {
		const struct vmt_vtt_code *c = &vtt->codes[i];

		if (vmt_image_add(image, &c->space, c->addr, c->bytes, c->len, c->from, NULL))
			abort();
	}
	if (vmt_image_seal(image, NULL))
		abort();
	return image;
}

char *vmt_flow_list(const struct vmt_vtt *vtt, size_t *len, struct vmt_flow_counts *counts)
{
	struct vmt_image *image = image_of(vtt);
	struct listing l = { 0 };
	struct vmt_flow_options options = {
		.pt = { .cpu = vtt->cpu,
			.clock = vtt->clock,
			.vms = vtt->vms,
			.nr_vms = vtt->nr_vms,
			.host_cpu = vtt->host_cpu },
		.image = image,
		.count_is_time = vtt->count_is_time,
		.no_ret_compression = vtt->no_ret_compression,
		.nr_filters = vtt->nr_filters,
		.block = on_block,
		.event = on_event,
		.context = &l,
	};
	struct vmt_flow *flow;
	size_t at = 0;

	memcpy(options.filters, vtt->filters, sizeof(options.filters));
	flow = vmt_flow_new(&options);
	if (!flow)
		abort();
	add_line(&l, "");
	l.len = 0;
	for (size_t i = 0; i < vtt->nr_pieces; i++) {
		vmt_flow_feed(flow, vtt->stream.bytes + at, vtt->pieces[i] - at);
		at = vtt->pieces[i];
		if (vtt->gaps[i])
			vmt_flow_gap(flow);
	}
	vmt_flow_feed(flow, vtt->stream.bytes + at, vtt->stream.len - at);
	vmt_flow_end(flow);
	*counts = vmt_flow_counts(flow);
	vmt_flow_free(flow);
	vmt_image_free(image);
	*len = l.len;
	return l.text;
}
