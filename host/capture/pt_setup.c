// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: what a decoder must know of Intel PT is in the file before its first byte. */
#include "host/capture/pt_setup.h"

int vmt_pt_check_options(const struct vmt_capture_options *options, bool wanted,
			 struct vmt_diag *diag)
{
	if (wanted || (!options->pt_terms && !options->pt_filter && !options->vm_events_only &&
		       !options->system_wide && !options->pt_buffer_bytes && !options->privacy))
		return 0;
	return vmt_diag_set(diag, VMT_E_USAGE,
			    "--pt-terms, --filter, --pt-buffer, --vm-events-only, --system-wide, "
			    "--mode and --privacy are of Intel PT, which is not asked for",
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
	return err ? err : write_info(setup, anchor, diag);
}
