/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PROBE_CHECK_H
#define VMT_PROBE_CHECK_H

#include "host/capture/pt_pmu.h"
#include "host/probe/probe.h"

/* What the checks of a host share, read once. */
struct vmt_probe_facts {
	const struct vmt_probe_env *env;
	const struct vmt_hostfs *fs;
	bool has_caps;
	uint64_t caps;	   /* CapEff */
	char tracefs[256]; /* "" when it is mounted nowhere */
	char debugfs[256]; /* the same */
	bool has_pt;	   /* pmu is filled */
	int pt_error;	   /* else: of vmt_pt_pmu_read */
	struct vmt_pt_pmu pmu;
	int counters_err; /* reading a 0644 statistic of debugfs/kvm: 0 or -errno */
};

/* Linux capabilities (linux/capability.h). */
#define VMT_CAP_DAC_READ_SEARCH 2
#define VMT_CAP_IPC_LOCK	14
#define VMT_CAP_SYS_PTRACE	19
#define VMT_CAP_SYS_ADMIN	21
#define VMT_CAP_PERFMON		38
#define VMT_CAP_BPF		39

static inline bool vmt_has_cap(const struct vmt_probe_facts *facts, int cap)
{
	return facts->has_caps && (facts->caps >> cap & 1);
}

typedef void vmt_check_fn(struct vmt_check *check, const struct vmt_probe_facts *facts);

struct vmt_check_row {
	const char *id, *title;
	uint32_t needs;
	vmt_check_fn *run;
};

/* Sets status and cause; cure NULL: nothing is to be done. */
__attribute__((format(printf, 4, 5))) void vmt_check_set(struct vmt_check *check,
							 enum vmt_check_status status,
							 const char *cure, const char *format, ...);

/* check_cpu.c: the machine */
vmt_check_fn vmt_check_kernel, vmt_check_cpu, vmt_check_tsc, vmt_check_perf_clock;
/* check_kvm.c: KVM and where it shows itself */
vmt_check_fn vmt_check_kvm, vmt_check_dev_kvm, vmt_check_tracefs, vmt_check_tracepoints,
	vmt_check_debugfs;
/* check_pt.c: Intel PT */
vmt_check_fn vmt_check_pt, vmt_check_pt_vmx, vmt_check_pt_mode, vmt_check_pt_free,
	vmt_check_pt_pause, vmt_check_pt_filter, vmt_check_pt_lbr, vmt_check_pt_hybrid,
	vmt_check_pt_memory, vmt_check_pt_module;
/* check_rights.c: what this process may do */
vmt_check_fn vmt_check_perf_rights, vmt_check_capabilities, vmt_check_lockdown, vmt_check_memlock,
	vmt_check_open_files;

#endif
