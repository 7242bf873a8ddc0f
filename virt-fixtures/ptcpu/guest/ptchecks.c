// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs in the emulated system: what a processor with Intel PT must refuse. MSR writes that raise
 * #GP, output tables that set STATUS.Error, VM entries with PT controls that contradict each other.
 * Prints "LAB-CHECK NAME good" or "LAB-CHECK NAME bad", one a line.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "virt-fixtures/ptcpu/guest/bed.h"
#include "virt-fixtures/ptcpu/guest/output.h"
#include "virt-fixtures/ptcpu/guest/vm.h"

enum {
	MSR_BASE = 0x560,
	MSR_MASK_PTRS = 0x561,
	MSR_CTL = 0x570,
	MSR_STATUS = 0x571,
	MSR_CR3_MATCH = 0x572,
	MSR_ADDR0 = 0x580,
};
#define CTL_TRACE_EN   1ULL
#define CTL_TOPA       (1ULL << 8)
#define STATUS_ERROR   (1ULL << 4)
#define STATUS_STOPPED (1ULL << 5)

static int device;

static bool wrmsr(uint32_t index, uint64_t value)
{
	return pwrite(device, &value, sizeof(value), index) == sizeof(value);
}

static uint64_t rdmsr(uint32_t index)
{
	uint64_t value = 0;

	if (pread(device, &value, sizeof(value), index) != sizeof(value))
		exit(1);
	return value;
}

static void say(const char *name, bool good)
{
	printf("LAB-CHECK %s %s\n", name, good ? "good" : "bad");
}

static const struct {
	const char *name;
	uint32_t index;
	uint64_t value;
	bool legal;
} writes[] = {
	{ "ctl-all-zero", MSR_CTL, 0, true },
	{ "ctl-power-events", MSR_CTL, 1ULL << 4, false },
	{ "ctl-fabric", MSR_CTL, 1ULL << 6, false },
	{ "ctl-ptwrite", MSR_CTL, 1ULL << 12, false },
	{ "ctl-bit-18", MSR_CTL, 1ULL << 18, false },
	{ "ctl-bit-30", MSR_CTL, 1ULL << 30, false },
	{ "ctl-bit-63", MSR_CTL, 1ULL << 63, false },
	{ "ctl-mtc-period-3", MSR_CTL, 3ULL << 14, true },
	{ "ctl-mtc-period-4", MSR_CTL, 4ULL << 14, false },
	{ "ctl-cyc-threshold-13", MSR_CTL, 13ULL << 19, true },
	{ "ctl-cyc-threshold-14", MSR_CTL, 14ULL << 19, false },
	{ "ctl-psb-period-5", MSR_CTL, 5ULL << 24, true },
	{ "ctl-psb-period-6", MSR_CTL, 6ULL << 24, false },
	{ "ctl-range-0-stop", MSR_CTL, 2ULL << 32, true },
	{ "ctl-range-0-kind-3", MSR_CTL, 3ULL << 32, false },
	{ "ctl-range-2", MSR_CTL, 1ULL << 40, false },
	{ "ctl-events-no-tnt", MSR_CTL, 1ULL << 31 | 1ULL << 55, true },
	{ "base-unaligned", MSR_BASE, 0x40, false },
	{ "base-too-wide", MSR_BASE, 1ULL << 52, false },
	{ "base", MSR_BASE, 0x12345000, true },
	{ "mask", MSR_MASK_PTRS, 0xfff, true },
	{ "status-reserved", MSR_STATUS, 1ULL << 20, false },
	{ "status-bytes", MSR_STATUS, 0x1ffffULL << 32, true },
	{ "cr3-match-low-bits", MSR_CR3_MATCH, 0x1001, false },
	{ "cr3-match", MSR_CR3_MATCH, 0x1fe0, true },
	{ "range-not-canonical", MSR_ADDR0, 1ULL << 47, false },
	{ "range", MSR_ADDR0, ~0ULL, true },
};

static void check_writes(void)
{
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
		say(writes[i].name, wrmsr(writes[i].index, writes[i].value) == writes[i].legal);
	wrmsr(MSR_CTL, 0);
}

/* Neither OS nor User: nothing is traced, but the output is looked at. */
static uint64_t status_with_trace(uint64_t ctl)
{
	uint64_t status;

	wrmsr(MSR_STATUS, 0);
	if (!wrmsr(MSR_CTL, ctl | CTL_TRACE_EN))
		return ~0ULL;
	status = rdmsr(MSR_STATUS);
	say("write-while-tracing", !wrmsr(MSR_CR3_MATCH, 0) && !wrmsr(MSR_BASE, 0) &&
					   !wrmsr(MSR_CTL, ctl | CTL_TRACE_EN | 1ULL << 10));
	wrmsr(MSR_CTL, ctl);
	return status;
}

static void check_tables(void)
{
	static const struct {
		const char *name;
		uint64_t first; /* or-ed into the first entry */
		bool error;
	} tables[] = {
		{ "topa", 0, false },
		{ "topa-reserved-bit", 1ULL << 1, true },
		{ "topa-end-first", 1ULL << 0, true },
		{ "topa-size-unaligned", 15ULL << 6, true },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		uint64_t *table = output_table();

		*table |= tables[i].first;
		say(tables[i].name,
		    !!(status_with_trace(CTL_TOPA) & STATUS_ERROR) == tables[i].error);
	}
	output_table();
	wrmsr(MSR_MASK_PTRS, 4096ULL << 32 | 0x7f);
	say("topa-offset-too-large", status_with_trace(CTL_TOPA) & STATUS_ERROR);
	wrmsr(MSR_BASE, 0x1000);
	wrmsr(MSR_MASK_PTRS, 0x1fff);
	say("single-range-overlap", status_with_trace(0) & STATUS_ERROR);
	wrmsr(MSR_STATUS, 0);
}

/* KVM_RUN with these controls: VM-instruction error 7, or the guest runs. */
static void check_entry(const char *name, const struct ptcpu_plan *plan, bool legal)
{
	struct vm vm = { .fd = -1 };
	const struct kvm_run *run;
	bool refused;

	vm_create(&vm, VM_LONG, 1, 0);
	bed_call(PTCPU_CALL_PLAN, (uint64_t)(uintptr_t)plan, sizeof(*plan));
	run = vm.run;
	if (ioctl(vm.vcpu, KVM_RUN, 0UL) < 0)
		perror("KVM_RUN");
	refused = run->exit_reason == KVM_EXIT_FAIL_ENTRY &&
		  (run->fail_entry.hardware_entry_failure_reason & 0xffff) ==
			  (plan->guest_rtit_ctl ? 33 : 7);
	say(name, legal ? run->exit_reason == KVM_EXIT_IO : refused);
	close(vm.vcpu);
	close(vm.fd);
}

static void check_entries(void)
{
	const struct ptcpu_plan none = { .entry = 0 };

	check_entry("entry-conceal", &(struct ptcpu_plan){ 1U << 19, 1U << 24, 1U << 17, 0, 0 },
		    true);
	check_entry("entry-guest-pa-alone", &(struct ptcpu_plan){ 1U << 24, 0, 0, 0, 0 }, false);
	check_entry("entry-guest-pa-no-clear", &(struct ptcpu_plan){ 1U << 24, 0, 1U << 18, 0, 0 },
		    false);
	check_entry("entry-guest-pa", &(struct ptcpu_plan){ 1U << 24, 1U << 25, 1U << 18, 0, 0 },
		    true);
	check_entry("entry-reserved-ctl",
		    &(struct ptcpu_plan){ 0, 1U << 25, 1U << 18, 0, 1ULL << 18 }, false);
	wrmsr(MSR_STATUS, 0);
	output_table();
	wrmsr(MSR_CTL, CTL_TRACE_EN | CTL_TOPA);
	check_entry("entry-load-while-tracing", &(struct ptcpu_plan){ 0, 1U << 25, 1U << 18, 0, 0 },
		    false);
	wrmsr(MSR_CTL, CTL_TOPA);
	bed_call(PTCPU_CALL_PLAN, (uint64_t)(uintptr_t)&none, sizeof(none));
}

int main(void)
{
	device = open("/dev/cpu/0/msr", O_RDWR);
	if (device < 0 || iopl(3))
		return 1;
	check_writes();
	check_tables();
	check_entries();
	return 0;
}
