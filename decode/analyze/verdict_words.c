// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a finding's id stands for; thresholds stand in rules.h. */
#include "decode/analyze/verdicts.h"

#include <string.h>

static const struct vmt_verdict_words words[] = {
	{ "failed-entry", "a VM entry failed",
	  "The CPU refused to run the guest: its state or its controls are not valid.",
	  "See the host's kernel log; kvm_intel.dump_invalid_vmcs=1 prints the VMCS." },
	{ "rip-loop", "one instruction causes most exits of a kind",
	  "Most exits of one reason and key come from one guest address, at a high rate: a loop "
	  "that polls, or a clock that is read over and over.",
	  "Name the address with --guest-kallsyms; what to change depends on the key, and the "
	  "finding says it." },
	{ "clocksource", "the guest reads a slow clock",
	  "The guest's time comes from a device (ACPI PM timer, HPET, PIT) whose every read exits.",
	  "Linux guest: clocksource=tsc or kvm-clock. Windows: hypervclock in the domain." },
	{ "halt-poll", "KVM spins for wake-ups",
	  "A good part of the host CPU time goes to halt polling while the guest is idle.",
	  "Lower /sys/module/kvm/parameters/halt_poll_ns, or let the guest sleep longer." },
	{ "irq-storm", "interrupts of one vector at a high rate",
	  "An interrupt of the host drives the guest out, or one is injected into the guest, "
	  "thousands of times a second and vCPU.",
	  "Find the vector in /proc/interrupts; moderate the device or move its interrupt." },
	{ "userspace", "much time is spent in the VMM",
	  "Exits go on to QEMU, which emulates a device on the vCPU's thread: the costly way.",
	  "Paravirtual or in-kernel devices (virtio with ioeventfd, vhost, kernel-irqchip)." },
	{ "preempted", "a vCPU waits for a host CPU",
	  "A vCPU was ready to run but another thread had the CPU (steal time).",
	  "Pin vCPUs apart, raise shares or quota, or run fewer vCPUs than CPUs." },
	{ "memory-faults", "second-level page faults take time",
	  "The guest touches memory that the host has not mapped (EPT violation, NPF).",
	  "Huge pages or prealloc; later look at ballooning, swap, KSM, NUMA balancing." },
	{ "spin", "vCPUs spin on locks",
	  "PAUSE exits: a vCPU waits in a loop for a lock, often one that a preempted vCPU holds.",
	  "Give vCPUs CPUs of their own, keep paravirtual spinlocks, use fewer vCPUs." },
	{ "tsc-exits", "reading the TSC exits",
	  "RDTSC is intercepted because the TSC is emulated at another frequency.",
	  "Drop the domain's TSC frequency, or use a host with TSC scaling." },
	{ "tsc-writes", "KVM changed TSC offsets",
	  "Guest time was set or jumped: usual at boot, resume and migration.",
	  "In between look for a guest that writes IA32_TSC, or for TSC catch-up." },
	{ "no-exits", "no VM exit is in the capture",
	  "Nothing to report on: the domain did not run, or kvm_exit was not recorded.",
	  "Check with `vmtrace doctor -d DOMAIN`, and that the filters leave something over." },
	{ "not-exits", "exits are not the problem",
	  "Handling exits takes little of the time; the finding names what takes most of it.",
	  "Look there: inside the guest, at its sleeps, or at the host's scheduling." },
	{ "loss", "events are missing",
	  "Records were lost on the way, or bytes of the file could not be read. Nothing is timed "
	  "across a loss.",
	  "Record with a larger --buffer or to a faster disk; copy a damaged file again." },
	{ "truncated", "the capture is cut off", "The file ends in the middle of what was written.",
	  "All figures hold for the part that is there." },
	{ "residual", "time that no event explains",
	  "Time before the first event of a vCPU, across losses, after exits without an entry.",
	  "Record longer, with kvm_entry and kvm_exit both." },
	{ "nested", "the guest runs virtual machines itself",
	  "A part of the exits comes from machines inside the guest; each costs several outer "
	  "exits.",
	  "enable_shadow_vmcs and nested EPT must be on." },
	{ "pt-controls", "Intel PT is not traced as planned",
	  "What the stream shows, or the VMX controls that were in force at VM entries, do not fit "
	  "the way of tracing that the capture wants.",
	  "vmtrace vmx plan shows the controls and the packets to expect; look for who else sets "
	  "them." },
	{ "concealed-rip", "a protected guest",
	  "SEV-ES, SEV-SNP and TDX hide the guest's instruction pointer from the host.",
	  "Reasons, keys and times are complete; profile inside the guest for addresses." },
};

const struct vmt_verdict_words *vmt_verdict_words(size_t *nr)
{
	*nr = sizeof(words) / sizeof(words[0]);
	return words;
}

const struct vmt_verdict_words *vmt_verdict_words_find(const char *id)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i].id, id))
			return &words[i];
	}
	return NULL;
}
