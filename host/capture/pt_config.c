// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: a configuration that is given out is one that the kernel's driver takes, so that a
 * refusal is told with the term and the capability, and not as EINVAL.
 */
#include "host/capture/pt_config.h"

#include <stdio.h>
#include <string.h>

#include "decode/io/diagf.h"
#include "vmx/text.h"

#define PERIOD_WANTED 3u /* as perf: MTC each 8 ART ticks, a PSB all 16 KiB */

/* What a term that is not 0 needs of the CPU. */
static const struct {
	const char *term;
	enum vmt_pt_cap cap;
} needs[] = {
	{ "cyc", VMT_PT_CAP_PSB_CYC },	      { "pwr_evt", VMT_PT_CAP_POWER_EVENT_TRACE },
	{ "fup_on_ptw", VMT_PT_CAP_PTWRITE }, { "mtc", VMT_PT_CAP_MTC },
	{ "ptw", VMT_PT_CAP_PTWRITE },	      { "event", VMT_PT_CAP_EVENT_TRACE },
	{ "notnt", VMT_PT_CAP_TNT_DISABLE },  { "cyc_thresh", VMT_PT_CAP_PSB_CYC },
	{ "psb_period", VMT_PT_CAP_PSB_CYC },
};

/* Terms whose values are bits of a bitmap; `with`: checked only when that term is on. */
static const struct {
	const char *term, *with;
	enum vmt_pt_cap values;
} periods[] = {
	{ "mtc_period", "mtc", VMT_PT_CAP_MTC_PERIODS },
	{ "cyc_thresh", NULL, VMT_PT_CAP_CYCLE_THRESHOLDS },
	{ "psb_period", NULL, VMT_PT_CAP_PSB_PERIODS },
};

static const struct vmt_pt_format *find(const struct vmt_pt_pmu *pmu, const char *name)
{
	return vmt_pt_pmu_format(pmu, name, strlen(name));
}

static uint64_t mask_of(const struct vmt_pt_format *f)
{
	return f->last - f->first == 63 ? UINT64_MAX
					: (UINT64_C(1) << (f->last - f->first + 1)) - 1;
}

static uint64_t get(const struct vmt_pt_pmu *pmu, uint64_t config, const char *name)
{
	const struct vmt_pt_format *f = find(pmu, name);

	return f ? config >> f->first & mask_of(f) : 0;
}

static void put(const struct vmt_pt_format *f, uint64_t *config, uint64_t value)
{
	*config = (*config & ~(mask_of(f) << f->first)) | value << f->first;
}

static void put_default(const struct vmt_pt_pmu *pmu, uint64_t *config, const char *name,
			uint64_t value)
{
	const struct vmt_pt_format *f = find(pmu, name);

	if (f)
		put(f, config, value);
}

/* The value nearest to the wanted one, rather below it; false: there is none. */
static bool nearest(uint32_t values, unsigned int *value)
{
	for (unsigned int i = PERIOD_WANTED + 1; i-- > 0;) {
		if (values >> i & 1) {
			*value = i;
			return true;
		}
	}
	for (unsigned int i = PERIOD_WANTED + 1; i < 16; i++) {
		if (values >> i & 1) {
			*value = i;
			return true;
		}
	}
	return false;
}

static void set_defaults(struct vmt_pt_config *out, const struct vmt_pt_pmu *pmu,
			 bool vm_events_only)
{
	bool skz84 = pmu->cpu.known && (vmt_pt_errata_of(&pmu->cpu) & VMT_PT_SKZ84);
	unsigned int period;

	put_default(pmu, &out->config, "pt", 1);
	put_default(pmu, &out->config, "branch", !vm_events_only);
	put_default(pmu, &out->config, "tsc", 1);
	if (pmu->caps[VMT_PT_CAP_EVENT_TRACE])
		put_default(pmu, &out->config, "event", 1);
	if (skz84)
		out->note = "MTC is off: on this CPU (erratum SKZ84) it is wrong in guests with "
			    "TSC offset or scaling; --pt-terms mtc turns it on";
	else if (pmu->caps[VMT_PT_CAP_MTC] && nearest(pmu->caps[VMT_PT_CAP_MTC_PERIODS], &period)) {
		put_default(pmu, &out->config, "mtc", 1);
		put_default(pmu, &out->config, "mtc_period", period);
	}
	if (pmu->caps[VMT_PT_CAP_PSB_CYC] && nearest(pmu->caps[VMT_PT_CAP_PSB_PERIODS], &period))
		put_default(pmu, &out->config, "psb_period", period);
}

static int unknown_term(const struct vmt_pt_pmu *pmu, const char *name, size_t len,
			struct vmt_diag *diag)
{
	char known[300] = "";
	size_t at = 0;

	for (size_t i = 0; i < pmu->nr_formats && at + 32 < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "",
				       pmu->formats[i].name);
	vmt_diag_printf(diag, VMT_E_USAGE, 0, "", "this kernel's intel_pt has no term '%.*s'",
			(int)(len < 40 ? len : 40), name);
	vmt_diag_cure(diag, "it has %s", known);
	return VMT_E_USAGE;
}

static int add_terms(uint64_t *config, const struct vmt_pt_pmu *pmu, const char *text,
		     struct vmt_diag *diag)
{
	while (*text) {
		size_t len = strcspn(text, "=,");
		const struct vmt_pt_format *f = vmt_pt_pmu_format(pmu, text, len);
		const char *end = text + len;
		uint64_t value = 1;

		if (!f)
			return unknown_term(pmu, text, len, diag);
		if (*end == '=')
			end = vmx_text_number(end + 1, &value);
		if (!end || (*end && *end != ',') || value > mask_of(f))
			return vmt_diag_printf(diag, VMT_E_USAGE, 0,
					       "terms are NAME or NAME=N, with commas between",
					       "the term %s takes 0 to %llu", f->name,
					       (unsigned long long)mask_of(f));
		put(f, config, value);
		text = end + (*end == ',');
	}
	return 0;
}

static int refuse(const char *term, const char *why, struct vmt_diag *diag)
{
	vmt_diag_printf(diag, VMT_E_CAPABILITY, 0, "", "Intel PT cannot be set up with %s", term);
	vmt_diag_cure(diag, "%s", why);
	return VMT_E_CAPABILITY;
}

static int check_caps(const struct vmt_pt_pmu *pmu, uint64_t config, struct vmt_diag *diag)
{
	char why[160];

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (!get(pmu, config, needs[i].term) || pmu->caps[needs[i].cap])
			continue;
		snprintf(why, sizeof(why),
			 "this CPU does not have it (intel_pt/caps/%s is 0): leave it off",
			 vmt_pt_cap_name(needs[i].cap));
		return refuse(needs[i].term, why, diag);
	}
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		uint64_t value = get(pmu, config, periods[i].term);
		uint32_t values = pmu->caps[periods[i].values];
		char what[48];

		if (periods[i].with ? !get(pmu, config, periods[i].with) : !value)
			continue;
		if (value < 32 && values >> value & 1)
			continue;
		snprintf(what, sizeof(what), "%s=%llu", periods[i].term, (unsigned long long)value);
		snprintf(why, sizeof(why),
			 "this CPU's values are the bits of intel_pt/caps/%s: %#x",
			 vmt_pt_cap_name(periods[i].values), values);
		return refuse(what, why, diag);
	}
	return 0;
}

static int check_branch(const struct vmt_pt_pmu *pmu, uint64_t config, bool vm_events_only,
			struct vmt_diag *diag)
{
	bool broadwell = pmu->cpu.known && (vmt_pt_errata_of(&pmu->cpu) & VMT_PT_BDM64);

	if (vm_events_only && get(pmu, config, "branch"))
		return vmt_diag_set(diag, VMT_E_USAGE, "--vm-events-only means branch=0",
				    "leave off one of --vm-events-only and the term branch");
	if (get(pmu, config, "branch") && !get(pmu, config, "pt"))
		return refuse("branch but without pt", "the term pt makes branch a choice", diag);
	if (!get(pmu, config, "pt") || get(pmu, config, "branch"))
		return 0;
	if (!find(pmu, "branch"))
		return refuse("branch=0", "this kernel's intel_pt always traces branches", diag);
	if (broadwell)
		return refuse("branch=0", "erratum BDM106: this CPU must trace branches", diag);
	if (!pmu->caps[VMT_PT_CAP_MTC])
		return refuse("branch=0", "this CPU must trace branches (intel_pt/caps/mtc is 0)",
			      diag);
	return 0;
}

int vmt_pt_config_make(struct vmt_pt_config *out, const struct vmt_pt_pmu *pmu, const char *terms,
		       bool vm_events_only, struct vmt_diag *diag)
{
	int err;

	memset(out, 0, sizeof(*out));
	set_defaults(out, pmu, vm_events_only);
	err = terms ? add_terms(&out->config, pmu, terms, diag) : 0;
	if (!err)
		err = check_caps(pmu, out->config, diag);
	if (!err)
		err = check_branch(pmu, out->config, vm_events_only, diag);
	if (!err && get(pmu, out->config, "fup_on_ptw") && !get(pmu, out->config, "ptw"))
		err = refuse("fup_on_ptw but without ptw", "add the term ptw", diag);
	out->mtc = get(pmu, out->config, "mtc");
	out->event = get(pmu, out->config, "event");
	out->mtc_freq = (uint8_t)get(pmu, out->config, "mtc_period");
	if (out->mtc)
		out->note = NULL;
	return err;
}
