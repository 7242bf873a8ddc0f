/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_PT_CONFIG_H
#define VMT_CAPTURE_PT_CONFIG_H

#include "host/capture/pt_pmu.h"

/* attr.config of an intel_pt event, and what of it a decoder must know. */
struct vmt_pt_config {
	uint64_t config;
	bool mtc, event;
	uint8_t mtc_freq;
	const char *note; /* what was left off and why, static; NULL: nothing */
};

/*
 * Without terms: pt, branch, tsc, and as far as the CPU has them event, mtc (not where SKZ84 makes
 * it wrong in guests) and a PSB all 16 KiB. vm_events_only: branch=0. terms: "NAME[=N],...", the
 * names of format/, put on top.
 *
 * VMT_E_USAGE: no such term, or a value that does not fit. VMT_E_CAPABILITY: the driver would
 * refuse it (its rules: arch/x86/events/intel/pt.c, pt_event_valid); the diag names the term and
 * the file of caps/ that says so.
 */
int vmt_pt_config_make(struct vmt_pt_config *out, const struct vmt_pt_pmu *pmu, const char *terms,
		       bool vm_events_only, struct vmt_diag *diag);

#endif
