// SPDX-License-Identifier: LGPL-2.1-or-later
/* PEBS records as text and JSON. A value is written only where the record's mask has its bit. */
#include "decode/export/pt_pebs.h"

#include <stdio.h>

#include "decode/export/json.h"

#define U(x)	 ((unsigned long long)(x))
#define INDENT	 "              " /* under the packet's name */
#define XMM_SIZE 24

static const char *const basic_names[VMT_PT_BASIC_COUNT] = {
	[VMT_PT_BASIC_IP] = "ip",
	[VMT_PT_BASIC_COUNTERS] = "counters",
	[VMT_PT_BASIC_TSC] = "tsc",
};

static const char *const memory_names[VMT_PT_MEMORY_COUNT] = {
	[VMT_PT_MEMORY_ADDRESS] = "address",
	[VMT_PT_MEMORY_SOURCE] = "source",
	[VMT_PT_MEMORY_LATENCY] = "latency",
	[VMT_PT_MEMORY_TSX] = "tsx",
};

/* A group of named values; names NULL: the registers'. */
struct group {
	const char *name;
	const char *const *names;
	unsigned int n;
	uint32_t has;
	const uint64_t *values;
};

#define NR_GROUPS 3

static void groups_of(const struct vmt_pt_pebs_record *r, struct group *groups)
{
	groups[0] =
		(struct group){ "basic", basic_names, VMT_PT_BASIC_COUNT, r->has_basic, r->basic };
	groups[1] = (struct group){ "gpr", NULL, VMT_PT_GPR_COUNT, r->has_gpr, r->gpr };
	groups[2] = (struct group){ "memory", memory_names, VMT_PT_MEMORY_COUNT, r->has_memory,
				    r->memory };
}

static const char *name_in(const struct group *g, unsigned int i)
{
	return g->names ? g->names[i] : vmt_pt_gpr_name(i);
}

static const char *world(enum vmt_pt_mode mode)
{
	if (mode == VMT_PT_MODE_UNKNOWN)
		return NULL;
	return mode == VMT_PT_MODE_NONROOT ? "guest" : "host";
}

static uint32_t lbr_entries(const struct vmt_pt_pebs_record *r)
{
	return r->has_lbr[0] | r->has_lbr[1] | r->has_lbr[2];
}

/* Both halves of a register are there. */
static bool has_xmm(const struct vmt_pt_pebs_record *r, unsigned int n)
{
	return (r->has_xmm >> 2 * n & 3) == 3;
}

/* ---- text ---- */

static void text_value(struct vmt_out *out, const char *name, bool known, uint64_t value)
{
	if (known)
		vmt_out_printf(out, " %s=0x%llx", name, U(value));
}

static void text_group(struct vmt_out *out, const struct group *g)
{
	if (!g->has)
		return;
	vmt_out_printf(out, INDENT "pebs %s", g->name);
	for (unsigned int i = 0; i < g->n; i++)
		text_value(out, name_in(g, i), g->has >> i & 1, g->values[i]);
	vmt_out_char(out, '\n');
}

static void text_lbr(struct vmt_out *out, const struct vmt_pt_pebs_record *r, unsigned int n)
{
	const struct vmt_pt_lbr *lbr = &r->lbr[n];

	if (!(lbr_entries(r) >> n & 1))
		return;
	vmt_out_printf(out, INDENT "pebs lbr entry=%u", n);
	text_value(out, "from", r->has_lbr[0] >> n & 1, lbr->from);
	text_value(out, "to", r->has_lbr[1] >> n & 1, lbr->to);
	text_value(out, "info", r->has_lbr[2] >> n & 1, lbr->info);
	vmt_out_char(out, '\n');
}

static void text_record(struct vmt_out *out, const struct vmt_pt_pebs_record *r,
			enum vmt_pt_mode mode)
{
	struct group groups[NR_GROUPS];

	vmt_out_printf(out, INDENT "pebs world=%s", world(mode) ? world(mode) : "-");
	text_value(out, "ip", r->has_ip, r->ip);
	if (r->unknown)
		vmt_out_printf(out, " unknown=%u", r->unknown);
	vmt_out_char(out, '\n');
	groups_of(r, groups);
	for (unsigned int i = 0; i < NR_GROUPS; i++)
		text_group(out, &groups[i]);
	for (unsigned int n = 0; n < VMT_PT_LBR_ENTRIES; n++)
		text_lbr(out, r, n);
	for (unsigned int n = 0; n < VMT_PT_XMM_WORDS / 2; n++)
		if (has_xmm(r, n))
			vmt_out_printf(out, INDENT "pebs xmm XMM%u=0x%016llx%016llx\n", n,
				       U(r->xmm[2 * n + 1]), U(r->xmm[2 * n]));
}

/* ---- JSON ---- */

static void json_value(struct vmt_json *j, const char *name, bool known, uint64_t value)
{
	if (known)
		vmt_json_hex(j, name, true, value);
}

static void json_group(struct vmt_json *j, const struct group *g)
{
	if (!g->has)
		return;
	vmt_json_open(j, g->name, '{');
	for (unsigned int i = 0; i < g->n; i++)
		json_value(j, name_in(g, i), g->has >> i & 1, g->values[i]);
	vmt_json_close(j, '}');
}

static void json_lbr(struct vmt_json *j, const struct vmt_pt_pebs_record *r)
{
	const uint32_t entries = lbr_entries(r);

	if (!entries)
		return;
	vmt_json_open(j, "lbr", '[');
	for (unsigned int n = 0; n < VMT_PT_LBR_ENTRIES; n++) {
		if (!(entries >> n & 1))
			continue;
		vmt_json_open(j, NULL, '{');
		vmt_json_number(j, "entry", true, n);
		json_value(j, "from", r->has_lbr[0] >> n & 1, r->lbr[n].from);
		json_value(j, "to", r->has_lbr[1] >> n & 1, r->lbr[n].to);
		json_value(j, "info", r->has_lbr[2] >> n & 1, r->lbr[n].info);
		vmt_json_close(j, '}');
	}
	vmt_json_close(j, ']');
}

static void json_xmm(struct vmt_json *j, const struct vmt_pt_pebs_record *r)
{
	char name[XMM_SIZE], value[2 * XMM_SIZE];

	if (!r->has_xmm)
		return;
	vmt_json_open(j, "xmm", '{');
	for (unsigned int n = 0; n < VMT_PT_XMM_WORDS / 2; n++) {
		if (!has_xmm(r, n))
			continue;
		snprintf(name, sizeof(name), "XMM%u", n);
		snprintf(value, sizeof(value), "0x%016llx%016llx", U(r->xmm[2 * n + 1]),
			 U(r->xmm[2 * n]));
		vmt_json_text(j, name, value);
	}
	vmt_json_close(j, '}');
}

static void json_record(struct vmt_out *out, const struct vmt_pt_pebs_record *r,
			enum vmt_pt_mode mode)
{
	struct vmt_json j = { .out = out };
	struct group groups[NR_GROUPS];

	vmt_json_open(&j, NULL, '{');
	vmt_json_text(&j, "type", "pebs");
	vmt_json_text(&j, "world", world(mode));
	json_value(&j, "ip", r->has_ip, r->ip);
	groups_of(r, groups);
	for (unsigned int i = 0; i < NR_GROUPS; i++)
		json_group(&j, &groups[i]);
	json_lbr(&j, r);
	json_xmm(&j, r);
	if (r->unknown)
		vmt_json_number(&j, "unknown", true, r->unknown);
	vmt_json_close(&j, '}');
	vmt_out_char(out, '\n');
}

void vmt_pt_lines_pebs(const struct vmt_pt_lines *lines, const struct vmt_pt_pebs_record *record,
		       enum vmt_pt_mode mode)
{
	if (lines->format == VMT_SCRIPT_JSON)
		json_record(lines->out, record, mode);
	else if (lines->format == VMT_SCRIPT_TEXT)
		text_record(lines->out, record, mode);
}
