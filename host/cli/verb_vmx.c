// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace vmx plan: VMX controls and IA32_RTIT_CTL for a way of tracing, and the packets to expect.
 */
#include <stdio.h>
#include <string.h>

#include "host/cli/result.h"
#include "host/probe/pt_caps.h"
#include "vmx/pt_plan.h"
#include "vmx/rtit.h"

#define SCHEMA "vmtrace-vmx-plan/1"

struct view {
	struct vmt_result *result;
	const struct vmt_pt_caps *caps;
	const struct vmx_pt_plan *plan;
	bool has_time; /* a TSC multiplier is given */
	struct vmx_pt_guest_time time;
};

static const char *const verdict_names[] = {
	[VMX_PT_FITS] = "allowed",
	[VMX_PT_UNKNOWN] = "not known",
	[VMX_PT_REFUSED] = "REFUSED",
};

static const char *verdict(const struct vmx_pt_plan *plan)
{
	return plan->entry_fails ? "does not work" : plan->unsure ? "not sure" : "works";
}

/* ---- text ---- */

static void heading(const struct view *v, const char *text)
{
	vmt_out_char(v->result->out, '\n');
	vmt_page_line(&v->result->page, VMT_STYLE_HEADING, text);
}

static void put_list(const struct view *v, enum vmt_text_style style, const char *label,
		     const char *const *texts, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		vmt_page_wrap(&v->result->page, style, label, (unsigned int)strlen(label), texts[i],
			      0);
}

static void put_controls(const struct view *v)
{
	struct vmt_out *out = v->result->out;

	heading(v, "VMX CONTROLS");
	for (unsigned int i = 0; i < VMX_PT_CONTROLS; i++) {
		const struct vmx_pt_control *c = &v->plan->controls[i];

		vmt_out_printf(out, "  %-26s bit %2u  = %d  %-9s  %s\n", vmx_ctl_word_name(c->word),
			       c->bit, c->value, verdict_names[c->verdict], c->name);
	}
}

static void put_ctl(const struct view *v, const char *where, uint64_t ctl)
{
	char fields[160], label[64];

	vmx_rtit_ctl_text(ctl, fields, sizeof(fields));
	snprintf(label, sizeof(label), "  %-26s 0x%016llx  ", where, (unsigned long long)ctl);
	vmt_page_wrap(&v->result->page, VMT_STYLE_PLAIN, label, 30, fields, 0);
}

static void put_rtit(const struct view *v)
{
	const struct vmx_pt_plan *p = v->plan;

	heading(v, "IA32_RTIT_CTL (MSR 0x570)");
	put_ctl(v, "VMX root operation", p->root_ctl);
	if (!p->has_guest_ctl)
		vmt_out_str(v->result->out,
			    "  VMX non-root operation     the same: no VM transition changes it\n");
	else
		put_ctl(v, p->msr_lists ? "VM-entry MSR-load list" : "VMCS field 0x2814",
			p->guest_ctl);
}

static void put_packets(const struct view *v)
{
	struct vmx_pt_expect expect[VMX_PT_EXPECT_MAX];

	heading(v, "PACKETS TO EXPECT");
	for (unsigned int t = 0; t < VMX_PT_TRANSITIONS; t++) {
		char text[400] = "";
		unsigned int nr = vmx_pt_plan_expect(v->plan, (enum vmx_pt_transition)t, expect);
		size_t at = 0;

		for (unsigned int i = 0; i < nr && at < sizeof(text) - 120; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%s%s%s%s",
					       i ? ", " : "", expect[i].maybe ? "[" : "",
					       expect[i].packet, expect[i].when ? " " : "",
					       expect[i].when ? expect[i].when : "",
					       expect[i].maybe ? "]" : "");
		vmt_out_printf(v->result->out, "  %s\n",
			       vmx_pt_transition_name((enum vmx_pt_transition)t));
		vmt_page_wrap(&v->result->page, VMT_STYLE_PLAIN, "    ", 4,
			      nr ? text : "none of its own", 0);
	}
}

/* SDM vol. 3 33.5.2.4 */
static void put_time(const struct view *v)
{
	const struct vmx_pt_guest_time *t = &v->time;
	struct vmt_out *out = v->result->out;

	if (!v->has_time)
		return;
	heading(v, "WHAT A GUEST WITH THIS TSC MULTIPLIER MUST BE TOLD");
	if (!t->known) {
		vmt_out_str(out, "  not known: CPUID.15H of the host gives no ratio\n");
		return;
	}
	vmt_out_printf(out, "  CPUID.15H                  EAX = %u, EBX = %u%s\n", t->art_den,
		       t->tsc_num, t->exact ? "" : " (rounded)");
	if (t->guest_tsc_hz)
		vmt_out_printf(out, "  guest TSC                  %llu Hz\n",
			       (unsigned long long)t->guest_tsc_hz);
	if (t->max_nonturbo_ratio)
		vmt_out_printf(out, "  MSR_PLATFORM_INFO[15:8]    %u\n", t->max_nonturbo_ratio);
}

static void put_text(const struct view *v)
{
	const struct vmx_pt_plan *p = v->plan;
	char line[200];

	snprintf(line, sizeof(line), "%s tracing%s%s: %s", vmx_pt_mode_name(p->request.mode),
		 p->request.conceal ? ", concealed" : "",
		 p->request.event_trace ? ", Event Trace" : "", verdict(p));
	vmt_page_line(&v->result->page,
		      p->entry_fails ? VMT_STYLE_CRITICAL
		      : p->unsure    ? VMT_STYLE_WARN
				     : VMT_STYLE_HEADING,
		      line);
	vmt_page_wrap(&v->result->page, VMT_STYLE_PLAIN, "CPU:      ", 10,
		      v->caps->name[0] ? v->caps->name : "not named", 0);
	if (v->caps->msr_note[0])
		vmt_page_wrap(&v->result->page, VMT_STYLE_WARN, "MSRs:     ", 10, v->caps->msr_note,
			      0);
	put_list(v, VMT_STYLE_CRITICAL, p->entry_fails ? "because:  " : "unsure:   ", p->problems,
		 p->nr_problems);
	put_controls(v);
	put_rtit(v);
	put_time(v);
	put_packets(v);
	if (p->nr_notes)
		heading(v, "MIND");
	put_list(v, VMT_STYLE_PLAIN, "  * ", p->notes, p->nr_notes);
}

/* ---- JSON ---- */

static void json_list(struct vmt_json *j, const char *name, const char *const *texts,
		      unsigned int nr)
{
	vmt_json_open(j, name, '[');
	for (unsigned int i = 0; i < nr; i++)
		vmt_json_text(j, NULL, texts[i]);
	vmt_json_close(j, ']');
}

static void json_controls(struct vmt_json *j, const struct vmx_pt_plan *plan)
{
	vmt_json_open(j, "controls", '[');
	for (unsigned int i = 0; i < VMX_PT_CONTROLS; i++) {
		const struct vmx_pt_control *c = &plan->controls[i];

		vmt_json_open(j, NULL, '{');
		vmt_json_text(j, "word", vmx_ctl_word_name(c->word));
		vmt_json_number(j, "bit", true, c->bit);
		vmt_json_text(j, "name", c->name);
		vmt_json_number(j, "value", true, c->value);
		vmt_json_bool(j, "allowed", c->verdict != VMX_PT_UNKNOWN,
			      c->verdict == VMX_PT_FITS);
		vmt_json_close(j, '}');
	}
	vmt_json_close(j, ']');
}

static void json_packets(struct vmt_json *j, const struct vmx_pt_plan *plan)
{
	struct vmx_pt_expect expect[VMX_PT_EXPECT_MAX];

	vmt_json_open(j, "transitions", '[');
	for (unsigned int t = 0; t < VMX_PT_TRANSITIONS; t++) {
		unsigned int nr = vmx_pt_plan_expect(plan, (enum vmx_pt_transition)t, expect);

		vmt_json_open(j, NULL, '{');
		vmt_json_text(j, "transition", vmx_pt_transition_name((enum vmx_pt_transition)t));
		vmt_json_open(j, "packets", '[');
		for (unsigned int i = 0; i < nr; i++) {
			vmt_json_open(j, NULL, '{');
			vmt_json_text(j, "packet", expect[i].packet);
			vmt_json_bool(j, "maybe", true, expect[i].maybe);
			vmt_json_text(j, "when", expect[i].when);
			vmt_json_close(j, '}');
		}
		vmt_json_close(j, ']');
		vmt_json_close(j, '}');
	}
	vmt_json_close(j, ']');
}

static void json_time(struct vmt_json *j, const struct view *v)
{
	const struct vmx_pt_guest_time *t = &v->time;

	if (!v->has_time)
		return;
	vmt_json_open(j, "guest_time", '{');
	vmt_json_number(j, "cpuid_15h_eax", t->known, t->art_den);
	vmt_json_number(j, "cpuid_15h_ebx", t->known, t->tsc_num);
	vmt_json_bool(j, "exact", t->known, t->exact);
	vmt_json_number(j, "tsc_hz", t->guest_tsc_hz != 0, t->guest_tsc_hz);
	vmt_json_number(j, "platform_info_ratio", t->max_nonturbo_ratio != 0,
			t->max_nonturbo_ratio);
	vmt_json_close(j, '}');
}

static void put_json(const struct view *v)
{
	const struct vmx_pt_plan *p = v->plan;
	struct vmt_json *j = &v->result->json;

	vmt_json_open(j, NULL, '{');
	vmt_json_text(j, "schema", SCHEMA);
	vmt_json_text(j, "cpu", v->caps->name[0] ? v->caps->name : NULL);
	vmt_json_text(j, "mode", vmx_pt_mode_name(p->request.mode));
	vmt_json_bool(j, "conceal", true, p->request.conceal);
	vmt_json_bool(j, "event_trace", true, p->request.event_trace);
	vmt_json_bool(j, "works", p->entry_fails || !p->unsure, !p->entry_fails);
	json_list(j, "problems", p->problems, p->nr_problems);
	json_controls(j, p);
	vmt_json_bool(j, "msr_load_lists", true, p->msr_lists);
	vmt_json_hex(j, "root_rtit_ctl", p->has_root_ctl, p->root_ctl);
	vmt_json_hex(j, "guest_rtit_ctl", p->has_guest_ctl, p->guest_ctl);
	json_time(j, v);
	json_packets(j, p);
	json_list(j, "notes", p->notes, p->nr_notes);
	vmt_json_close(j, '}');
	vmt_out_char(v->result->out, '\n');
}

/* ---- the verb ---- */

static int plan(const struct vmt_cli *cli, const struct vmt_pt_caps *caps)
{
	struct vmx_pt_request request = { .mode = cli->pt_mode,
					  .conceal = cli->conceal,
					  .event_trace = cli->event_trace,
					  .no_branches = cli->vm_events_only };
	struct vmt_result result;
	struct vmx_pt_plan made;
	struct view view = { &result, caps, &made, .has_time = cli->has_mult };
	int status;

	vmx_pt_plan_make(&request, &caps->cpu, &made);
	view.time = vmx_pt_guest_time_of(&caps->cpu, cli->mult,
					 (uint8_t)(cli->has_frac ? cli->frac : 48));
	status = vmt_result_open(&result, cli);
	if (!status) {
		(cli->format == VMT_FORMAT_JSON ? put_json : put_text)(&view);
		status = vmt_result_finish(&result, made.entry_fails ? VMT_STATUS_NO_CAPABILITY
								     : VMT_STATUS_OK);
	}
	vmt_result_close(&result);
	return status;
}

int vmt_verb_vmx(struct vmt_cli *cli)
{
	struct vmt_pt_caps caps;
	struct vmt_diag diag = { 0 };

	if (strcmp(cli->args[0], "plan") != 0)
		return vmt_cli_usage(cli, "vmx takes plan", NULL);
	if (cli->format == VMT_FORMAT_CSV)
		return vmt_cli_usage(cli, "vmx plan writes text or json", NULL);
	if (!cli->caps)
		vmt_pt_caps_here(&caps);
	else if (vmt_pt_caps_read(&caps, cli->caps, &diag))
		return vmt_cli_fail(&diag);
	return plan(cli, &caps);
}
