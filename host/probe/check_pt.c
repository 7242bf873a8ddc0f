// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checks of Intel PT: the CPU, the kernel's driver, KVM, and who else uses it. All but the first
 * run only where the PMU intel_pt is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/probe/check.h"

#define IA32_VMX_MISC 0x485
#define MISC_PT_BIT   14

void vmt_check_pt(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	const uint32_t *caps = facts->pmu.caps;

	if (!facts->has_pt) {
		if (facts->pt_error == VMT_E_CAPABILITY)
			vmt_check_set(check, VMT_CHECK_ABSENT, NULL,
				      "this CPU or kernel has none (no intel_pt PMU)");
		return;
	}
	if (!caps[VMT_PT_CAP_TOPA_OUTPUT])
		vmt_check_set(check, VMT_CHECK_BLOCKED, "nothing helps: tracepoints do without",
			      "the CPU cannot write through tables (topa_output is 0)");
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%s buffers;%s%s%s%s%s%s%s",
			      caps[VMT_PT_CAP_TOPA_MULTIPLE_ENTRIES] ? "ToPA"
								     : "ToPA of one entry,",
			      caps[VMT_PT_CAP_EVENT_TRACE] ? " event_trace" : " no event_trace",
			      caps[VMT_PT_CAP_MTC] ? " mtc" : "",
			      caps[VMT_PT_CAP_PSB_CYC] ? " psb_cyc" : "",
			      caps[VMT_PT_CAP_TNT_DISABLE] ? " tnt_disable" : "",
			      caps[VMT_PT_CAP_PTWRITE] ? " ptwrite" : "",
			      caps[VMT_PT_CAP_POWER_EVENT_TRACE] ? " power_event_trace" : "",
			      caps[VMT_PT_CAP_CR3_FILTERING] ? " cr3_filtering" : "");
}

/* -errno where MSRs cannot be read. */
static int read_vmx_misc(const struct vmt_probe_facts *facts, uint64_t *value)
{
	char path[VMT_PATH_MAX];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/cpu/0/msr", vmt_hostfs_dev(facts->fs));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (pread(fd, value, sizeof(*value), IA32_VMX_MISC) != sizeof(*value))
		err = -EIO;
	close(fd);
	return err;
}

void vmt_check_pt_vmx(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	uint64_t misc = 0;
	int err = read_vmx_misc(facts, &misc);

	if (err)
		vmt_check_set(check, VMT_CHECK_UNKNOWN,
			      err == -ENOENT ? "modprobe msr, then doctor as root"
					     : "root may read it, unless the kernel is locked down",
			      "IA32_VMX_MISC[14] is not known (MSRs: %s)", strerror(-err));
	else if (misc >> MISC_PT_BIT & 1)
		vmt_check_set(check, VMT_CHECK_OK, NULL,
			      "goes on while VMX is on (IA32_VMX_MISC[14] is 1)");
	else
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "this CPU cannot trace while a virtual machine runs: use --backend "
			      "kvm,sched",
			      "off while VMX is on (IA32_VMX_MISC[14] is 0)");
}

void vmt_check_pt_mode(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	const char *sys = vmt_hostfs_sys(facts->fs);
	uint64_t mode;
	char path[VMT_PATH_MAX];
	int err = vmt_hostfs_u64(&mode, "%s/module/kvm_intel/parameters/pt_mode", sys);

	snprintf(path, sizeof(path), "%s/module/kvm_intel", sys);
	if (err == -ENOENT && access(path, F_OK))
		vmt_check_set(check, VMT_CHECK_ABSENT, NULL, "kvm_intel is not loaded");
	else if (err == -ENOENT)
		vmt_check_set(check, VMT_CHECK_OK, NULL,
			      "system: kvm_intel has no parameter pt_mode, which current kernels "
			      "leave out; the host traces itself and guests, guests have no PT");
	else if (!err && mode)
		vmt_check_set(
			check, VMT_CHECK_BLOCKED,
			"with no VM running: modprobe -r kvm_intel, modprobe kvm_intel "
			"pt_mode=0",
			"host-guest: KVM switches the host's trace off in guests (pt_mode %llu)",
			(unsigned long long)mode);
	else if (!err)
		vmt_check_set(check, VMT_CHECK_OK, NULL,
			      "system: the host traces itself and guests, guests have no PT "
			      "(pt_mode 0)");
}

void vmt_check_pt_module(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	char state[16];

	if (vmt_hostfs_read(state, sizeof(state), "%s/module/vmtrace_vmx/initstate",
			    vmt_hostfs_sys(facts->fs)) > 0)
		vmt_check_set(check, VMT_CHECK_OK, NULL,
			      "vmtrace_vmx is loaded: --mode guest-only and --conceal set VMX "
			      "controls (experimental)");
	else
		vmt_check_set(check, VMT_CHECK_ABSENT, NULL,
			      "vmtrace_vmx is not loaded: no --conceal, and --mode guest-only "
			      "filters");
}

/* Opens intel_pt for this thread and closes it: 0 or -errno. */
static int open_pt(uint32_t type, bool start_paused)
{
	struct {
		struct perf_event_attr attr;
		uint8_t newer[16];
	} wide;
	uint32_t aux_action = 1; /* aux_start_paused, Linux 6.13 */
	int fd;

	memset(&wide, 0, sizeof(wide));
	wide.attr.size = start_paused ? PERF_ATTR_SIZE_VER7 : PERF_ATTR_SIZE_VER5;
	wide.attr.type = type;
	wide.attr.disabled = 1;
	wide.attr.exclude_kernel = 1;
	if (start_paused) /* behind aux_sample_size at 112 */
		memcpy((uint8_t *)&wide + 116, &aux_action, sizeof(aux_action));
	fd = (int)syscall(SYS_perf_event_open, &wide, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try_open(const struct vmt_probe_facts *facts, bool start_paused)
{
	return facts->env && facts->env->pt_open
		       ? facts->env->pt_open(facts->pmu.type, start_paused)
		       : open_pt(facts->pmu.type, start_paused);
}

void vmt_check_pt_free(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	int err = try_open(facts, false);

	if (err == -EBUSY)
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "end the other user of Intel PT (perf record -e intel_pt), or of BTS "
			      "or LBR where a CPU cannot do both",
			      "in use: the driver answers EBUSY");
	else if (err)
		vmt_check_set(check, VMT_CHECK_UNKNOWN, "see the right to trace",
			      "an event cannot be opened: %s", strerror(-err));
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "nobody else uses it");
}

void vmt_check_pt_pause(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	int err = try_open(facts, true);

	if (err == -EINVAL || err == -E2BIG || err == -EOPNOTSUPP)
		vmt_check_set(check, VMT_CHECK_ABSENT, NULL,
			      "this kernel cannot pause a trace at VM entry and exit (Linux 6.13 "
			      "can)");
	else if (err)
		vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL, "an event cannot be opened: %s",
			      strerror(-err));
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "the kernel can pause and resume a trace");
}

void vmt_check_pt_filter(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	if (facts->pmu.nr_addr_filters)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%u ranges", facts->pmu.nr_addr_filters);
	else
		vmt_check_set(check, VMT_CHECK_ABSENT, NULL, "the CPU has none");
}

void vmt_check_pt_lbr(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	/* SDM vol. 3 33.3: on these models BTS and LBR exclude Intel PT. */
	static const uint8_t models[] = { 0x3d, 0x47, 0x4e, 0x4f, 0x56, 0x5e };
	const struct vmt_pt_cpu *cpu = &facts->pmu.cpu;

	if (!cpu->known)
		return;
	for (size_t i = 0; i < sizeof(models); i++) {
		if (cpu->family != 6 || cpu->model != models[i])
			continue;
		vmt_check_set(check, VMT_CHECK_WARN,
			      "do not run perf record -b, --call-graph lbr or intel_bts beside it",
			      "on this CPU BTS and LBR exclude Intel PT (model 0x%x)", cpu->model);
		return;
	}
	vmt_check_set(check, VMT_CHECK_OK, NULL, "may be used beside it");
}

void vmt_check_pt_hybrid(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	static const char *const pmus[] = { "cpu_core", "cpu_atom" };
	char text[2][80] = { "", "" };

	for (size_t i = 0; i < 2; i++) {
		vmt_hostfs_read(text[i], sizeof(text[i]), "%s/bus/event_source/devices/%s/cpus",
				vmt_hostfs_sys(facts->fs), pmus[i]);
		text[i][strcspn(text[i], "\n")] = '\0';
	}
	if (text[0][0] && text[1][0])
		vmt_check_set(check, VMT_CHECK_OK, NULL,
			      "hybrid: cores %s, atoms %s; a trace goes on on both, with what both "
			      "can",
			      text[0], text[1]);
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "all alike");
}

void vmt_check_pt_memory(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	uint64_t kb;
	int err = vmt_hostfs_u64(&kb, "%s/sys/kernel/perf_event_mlock_kb",
				 vmt_hostfs_proc(facts->fs));

	if (vmt_has_cap(facts, VMT_CAP_IPC_LOCK))
		vmt_check_set(check, VMT_CHECK_OK, NULL, "no limit (CAP_IPC_LOCK)");
	else if (!err)
		vmt_check_set(check, VMT_CHECK_WARN,
			      "raise sysctl kernel.perf_event_mlock_kb or `ulimit -l`, or give a "
			      "smaller --pt-buffer",
			      "perf_event_mlock_kb allows %llu KiB a CPU, beside the locked memory "
			      "above",
			      (unsigned long long)kb);
}
