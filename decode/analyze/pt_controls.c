// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: a difference is told only where the opposite would have shown: what is not in a stream
 * counts from TRANSITIONS_MIN transitions on.
 */
#include "decode/analyze/pt_controls.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TRANSITIONS_MIN 8u

/* ---- the session document ---- */

static uint64_t number(const json_t *value)
{
	const json_int_t v = json_integer_value(value);

	return v > 0 ? (uint64_t)v : 0;
}

static bool read_word(const json_t *value, uint32_t *word)
{
	const char *text = json_string_value(value);
	uint64_t sum = 0;

	if (!text || strncmp(text, "0x", 2) != 0 || !text[2] || strlen(text) > 10)
		return false;
	for (text += 2; *text; text++) {
		const char *const digits = "0123456789abcdef";
		const char *digit = strchr(digits, *text);

		if (!digit)
			return false;
		sum = sum << 4 | (uint64_t)(digit - digits);
	}
	*word = (uint32_t)sum;
	return true;
}

static void take_vcpu(struct vmt_pt_controls *c, const json_t *vcpu)
{
	static const char *const names[VMT_PT_WORDS] = { "secondary", "exit", "entry" };
	const json_t *in_force = json_object_get(vcpu, "in_force");
	const uint64_t entries = number(json_object_get(vcpu, "entries"));
	uint32_t words[VMT_PT_WORDS];

	c->untraced += number(json_object_get(vcpu, "untraced"));
	c->left += number(json_object_get(vcpu, "left"));
	c->rewritten += number(json_object_get(vcpu, "rewritten"));
	c->entries += entries;
	for (size_t i = 0; i < VMT_PT_WORDS; i++) {
		if (!read_word(json_object_get(in_force, names[i]), &words[i]))
			return;
	}
	if (!entries) /* the words are of no entry */
		return;
	for (size_t i = 0; i < VMT_PT_WORDS; i++) {
		c->all[i] = c->nr_vcpus ? c->all[i] & words[i] : words[i];
		c->any[i] |= words[i];
	}
	c->nr_vcpus++;
}

static const char *known_means(const char *text)
{
	static const char *const known[] = { "driver", "vmx-controls", "filter" };

	for (size_t i = 0; text && i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(text, known[i]))
			return known[i];
	}
	return text ? "other" : NULL;
}

void vmt_pt_controls_take(struct vmt_pt_controls *controls, const struct json_t *pt)
{
	const char *mode = json_string_value(json_object_get(pt, "mode"));
	struct vmt_pt_controls taken = { .known = false };
	const json_t *vcpu;
	size_t i;

	for (unsigned int m = 0; mode && m < VMX_PT_MODES; m++) {
		if (strcmp(mode, vmx_pt_mode_name((enum vmx_pt_mode)m)) != 0)
			continue;
		taken.known = true;
		taken.mode = (enum vmx_pt_mode)m;
	}
	if (!taken.known)
		return;
	taken.conceal = json_is_true(json_object_get(pt, "conceal"));
	taken.means = known_means(json_string_value(json_object_get(pt, "means")));
	json_array_foreach(json_object_get(pt, "controls"), i, vcpu)
	{
		take_vcpu(&taken, vcpu);
	}
	*controls = taken;
}

/* ---- against the plan ---- */

static void make_plan(const struct vmt_pt_controls *c, bool event_trace, struct vmx_pt_plan *plan)
{
	const struct vmx_pt_request request = { .mode = c->mode,
						.conceal = c->conceal,
						.event_trace = event_trace };
	const struct vmx_pt_caps unknown = { 0 };

	vmx_pt_plan_make(&request, &unknown, plan);
}

unsigned int vmt_pt_controls_compare(const struct vmt_pt_controls *controls,
				     const struct vmt_pt_counts *counts, bool guest_ran,
				     const char *texts[VMX_PT_PROBLEMS_MAX])
{
	const bool many = counts->exits >= TRANSITIONS_MIN;
	const struct vmx_pt_seen seen = {
		.nonroot = counts->nonroot_pips > 0,
		.exit_pip = counts->exit_pips || !many,
		.exit_event = counts->exit_cfes || (counts->entry_cfes && !many),
		.entry_event = counts->entry_cfes || (counts->exit_cfes && !many),
		.event_trace = counts->events > 0,
		.guest_ran = guest_ran && counts->pips, /* without OS there are none */
	};
	struct vmx_pt_plan plan;

	make_plan(controls, seen.event_trace, &plan);
	return vmx_pt_plan_compare(&plan, &seen, texts);
}

bool vmt_pt_controls_differ(const struct vmt_pt_controls *controls, unsigned int nth,
			    struct vmx_pt_control *planned)
{
	struct vmx_pt_plan plan;

	make_plan(controls, false, &plan);
	for (unsigned int i = 0; controls->nr_vcpus && i < VMX_PT_CONTROLS; i++) {
		const struct vmx_pt_control *c = &plan.controls[i];
		const unsigned int w = c->word == VMX_CTL_PROC2	 ? VMT_PT_SECONDARY
				       : c->word == VMX_CTL_EXIT ? VMT_PT_EXIT
								 : VMT_PT_ENTRY;
		const uint32_t found = c->value ? controls->all[w] : controls->any[w];

		if ((found >> c->bit & 1) == c->value || nth--)
			continue;
		*planned = *c;
		return true;
	}
	return false;
}
