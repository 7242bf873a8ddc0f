/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_PT_PMU_H
#define VMT_CAPTURE_PT_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "decode/pt/errata.h"
#include "host/domain/hostfs.h"

/*
 * The kernel's PMU intel_pt as SYS/bus/event_source/devices/intel_pt shows it: what the CPU can do
 * (caps/) and where the terms of a configuration lie in attr.config (format/).
 */
enum vmt_pt_cap {
	VMT_PT_CAP_CR3_FILTERING,
	VMT_PT_CAP_PSB_CYC,
	VMT_PT_CAP_IP_FILTERING,
	VMT_PT_CAP_MTC,
	VMT_PT_CAP_PTWRITE,
	VMT_PT_CAP_POWER_EVENT_TRACE,
	VMT_PT_CAP_EVENT_TRACE,
	VMT_PT_CAP_TNT_DISABLE,
	VMT_PT_CAP_TOPA_OUTPUT,
	VMT_PT_CAP_TOPA_MULTIPLE_ENTRIES,
	VMT_PT_CAP_NUM_ADDRESS_RANGES,
	VMT_PT_CAP_MTC_PERIODS,	     /* bitmap of values */
	VMT_PT_CAP_CYCLE_THRESHOLDS, /* the same */
	VMT_PT_CAP_PSB_PERIODS,	     /* the same */
	VMT_PT_CAPS,
};

struct vmt_pt_format {
	char name[24];
	uint8_t first, last; /* bits of attr.config */
};

#define VMT_PT_FORMATS_MAX 32u

struct vmt_pt_pmu {
	uint32_t type; /* attr.type */
	uint32_t caps[VMT_PT_CAPS];
	struct vmt_pt_format formats[VMT_PT_FORMATS_MAX]; /* by name */
	size_t nr_formats;
	uint32_t nr_addr_filters;
	uint32_t tsc_num, art_den; /* CPUID.15H EBX and EAX, 0: not known */
	uint32_t nom_ratio;	   /* maximum non-turbo ratio, 0: not known */
	struct vmt_pt_cpu cpu;
};

/*
 * VMT_E_CAPABILITY when there is no such PMU (the cure says why that may be), VMT_E_IO when its
 * files cannot be read. A caps file that is absent is 0: kernels older than the feature.
 */
int vmt_pt_pmu_read(struct vmt_pt_pmu *pmu, const struct vmt_hostfs *fs, struct vmt_diag *diag);

/* A term of format/, NULL: this kernel has none of that name. */
const struct vmt_pt_format *vmt_pt_pmu_format(const struct vmt_pt_pmu *pmu, const char *name,
					      size_t len);

/* Name of the file in caps/. */
const char *vmt_pt_cap_name(enum vmt_pt_cap cap);

#endif
