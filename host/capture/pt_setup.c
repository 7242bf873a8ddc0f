// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: what a decoder must know of Intel PT is in the file before its first byte. */
#include "host/capture/pt_setup.h"

#include "decode/io/diagf.h"
#include "host/capture/vmx_module.h"

int vmt_pt_check_options(const struct vmt_capture_options *options, bool wanted,
			 struct vmt_diag *diag)
{
	if (wanted || (!options->pt_terms && !options->pt_filter && !options->vm_events_only &&
		       !options->system_wide && !options->pt_buffer_bytes && !options->privacy &&
		       !options->pt_mode && !options->pt_conceal))
		return 0;
	return vmt_diag_set(diag, VMT_E_USAGE,
			    "--pt-terms, --filter, --pt-buffer, --vm-events-only, --system-wide, "
			    "--mode, --conceal and --privacy are of Intel PT, which is not asked "
			    "for",
			    "add --backend kvm,pt");
}

static int write_info(const struct vmt_live_setup *setup, const struct vmt_anchor *anchor,
		      struct vmt_diag *diag)
{
	const struct vmt_pt_pmu *pmu = &setup->pmu;
	struct vmt_pt_info info = {
		.pmu_type = pmu->type,
		.config = setup->config.config,
		.has_mtc_freq = setup->config.mtc,
		.mtc_freq = setup->config.mtc_freq,
		.tsc_num = pmu->tsc_num,
		.art_den = pmu->art_den,
		.nom_ratio = pmu->nom_ratio,
		.per_cpu = setup->system_wide,
		.snapshot = setup->overwrite,
		.event_trace = pmu->caps[VMT_PT_CAP_EVENT_TRACE],
		.has_cpu_id = pmu->cpu.known,
		.family = pmu->cpu.family,
		.model = pmu->cpu.model,
		.stepping = pmu->cpu.stepping,
	};

	if (!(anchor->flags & VMT_ANCHOR_NO_TIME_ZERO)) {
		info.has_time_conv = true;
		info.time_shift = anchor->time_shift;
		info.time_mult = anchor->time_mult;
		info.time_zero = anchor->time_zero;
	}
	return vmt_store_aux_info(setup->store, &info, diag);
}

/* Whether the CPU allows the words is the module's to say: it reads the MSRs. */
static int set_controls(struct vmt_live_setup *setup, const struct vmt_capture_options *options,
			struct vmt_diag *diag)
{
	const struct vmx_pt_request request = { .mode = options->pt_mode,
						.conceal = options->pt_conceal,
						.event_trace = setup->config.event };
	const struct vmx_pt_caps unknown = { 0 };
	struct vmx_pt_plan plan;

	vmx_pt_plan_make(&request, &unknown, &plan);
	return vmt_vmx_module_setup(setup->ops, setup->controls, &plan, diag);
}

/* Opens the module where the means need it. */
static int choose_means(struct vmt_live_setup *setup, const struct vmt_capture_options *options,
			struct vmt_diag *diag)
{
	const bool wished = options->pt_mode != VMX_PT_SYSTEM || options->pt_conceal;
	struct vmt_diag own = { 0 };
	int err;

	setup->mode = options->pt_mode;
	setup->controls = wished ? vmt_vmx_module_open(setup->ops, &own) : -1;
	if (wished && setup->controls < 0 && setup->controls != VMT_E_NOT_FOUND) {
		err = setup->controls;
		if (diag && !diag->code)
			*diag = own;
		return err;
	}
	err = vmt_pt_means_choose(&setup->means, options->pt_mode, options->pt_conceal,
				  setup->controls >= 0, diag);
	if (!err && setup->means == VMT_PT_MEANS_FILTER)
		setup->privacy = options->pt_mode == VMX_PT_GUEST_ONLY ? VMT_PRIVACY_GUEST
								       : VMT_PRIVACY_HOST;
	if (!err && setup->means == VMT_PT_MEANS_CONTROLS)
		err = set_controls(setup, options, diag);
	if (setup->controls >= 0 && (err || setup->means != VMT_PT_MEANS_CONTROLS)) {
		setup->ops->close(setup->controls);
		setup->controls = -1;
	}
	return err;
}

int vmt_pt_setup(struct vmt_live_setup *setup, const struct vmt_capture_options *options,
		 const struct vmt_anchor *anchor, const struct vmt_hostfs *fs,
		 struct vmt_diag *diag)
{
	int err = vmt_pt_pmu_read(&setup->pmu, fs, diag);

	setup->pt = true;
	setup->system_wide = options->system_wide;
	setup->overwrite = options->pt_overwrite;
	setup->pt_bytes = options->pt_buffer_bytes;
	setup->privacy = options->privacy;
	if (!err)
		err = vmt_pt_config_make(&setup->config, &setup->pmu, options->pt_terms,
					 options->vm_events_only, diag);
	if (!err && options->pt_filter)
		err = vmt_pt_filter_make(setup->pt_filter, options->pt_filter,
					 setup->pmu.nr_addr_filters, options->system_wide, diag);
	if (!err)
		err = write_info(setup, anchor, diag);
	return err ? err : choose_means(setup, options, diag);
}
