// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What to change, by what the exits are on. The first row that fits counts; a row with access
 * VMT_ACCESS_NONE fits both directions.
 */
#include "decode/analyze/verdicts.h"

#include <stddef.h>

#include "vmx/names.h"

#define CLOCK                                                                                      \
	"Linux guest: clocksource=tsc or kvm-clock. Windows: bcdedit /deletevalue "                \
	"useplatformclock, and <timer name='hypervclock' present='yes'/> in the domain."
#define DISK                                                                                       \
	"Emulated IDE: every register access is an exit. Give the disk bus='virtio' (or a "        \
	"virtio-scsi controller)."
#define SERIAL                                                                                     \
	"Every byte on an emulated serial port is an exit to QEMU: use a virtio console "          \
	"(console=hvc0), or make the guest print less (quiet, loglevel=4)."
#define IPI                                                                                        \
	"IPIs between the guest's vCPUs: let the hardware deliver them (enable_apicv and "         \
	"enable_ipiv, AVIC on AMD), fewer vCPUs, or fewer cross-CPU wake-ups in the workload."
#define CPUID                                                                                      \
	"CPUID always exits: a program uses it as a fence (LFENCE, SERIALIZE or RDTSCP are "       \
	"cheaper) or asks for features again and again; keep the answer in a variable."
#define VIRTIO                                                                                     \
	"Doorbells of a device: check that ioeventfd is on, use vhost for network and an "         \
	"iothread "                                                                                \
	"for disks, more queue depth or batching in the guest."

static const struct remedy {
	enum vmt_key_kind kind;
	enum vmt_access access;
	uint64_t first, last;
	const char *clock; /* a clock that is read: its name */
	const char *text;
} remedies[] = {
	{ VMT_KEY_PORT, VMT_ACCESS_READ, 0x608, 0x60b, "the ACPI PM timer", CLOCK },
	{ VMT_KEY_PORT, VMT_ACCESS_READ, 0xb008, 0xb00b, "the ACPI PM timer", CLOCK },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x40, 0x43, "the PIT", CLOCK },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x70, 0x71, NULL,
	  "The guest polls the RTC; Windows does so for its periodic clock: give the domain "
	  "<timer name='rtc' tickpolicy='catchup'/> and hypervclock, with <stimer/> and "
	  "<synic/>." },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x3f8, 0x3ff, NULL, SERIAL },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x2f8, 0x2ff, NULL, SERIAL },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x3e8, 0x3ef, NULL, SERIAL },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x2e8, 0x2ef, NULL, SERIAL },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x402, 0x402, NULL,
	  "Debug output of the firmware: use a release build of OVMF, or remove the isa-debugcon "
	  "device." },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x1f0, 0x1f7, NULL, DISK },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x170, 0x177, NULL, DISK },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x80, 0x80, NULL,
	  "Writes to port 0x80 only wait: boot the guest with io_delay=none." },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0xed, 0xed, NULL,
	  "Writes to port 0xed only wait: boot the guest with io_delay=none." },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0xcf8, 0xcff, NULL,
	  "PCI configuration by ports: a driver or tool polls a device (lspci, hotplug, a "
	  "monitoring agent); machine type q35 reads configuration by memory instead." },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0x5658, 0x5659, NULL,
	  "A program talks to VMware's backdoor: remove the VMware tools, or <vmport state='off'/> "
	  "in <features>." },
	{ VMT_KEY_PORT, VMT_ACCESS_NONE, 0xc000, 0xffff, NULL, VIRTIO },
	{ VMT_KEY_GPA, VMT_ACCESS_READ, 0xfed000f0, 0xfed000f7, "the HPET", CLOCK },
	{ VMT_KEY_GPA, VMT_ACCESS_NONE, 0xfed00000, 0xfed003ff, NULL,
	  "The guest programs the HPET: remove it (<timer name='hpet' present='no'/>), so that the "
	  "TSC deadline timer or Hyper-V's timers are used." },
	{ VMT_KEY_GPA, VMT_ACCESS_NONE, 0xfee00300, 0xfee0031f, NULL, IPI },
	{ VMT_KEY_GPA, VMT_ACCESS_NONE, 0xfee00000, 0xfee00fff, NULL,
	  "The guest uses its APIC by memory: x2APIC (feature x2apic, no nox2apic in the guest) or "
	  "enable_apicv on the host avoid these exits." },
	{ VMT_KEY_GPA, VMT_ACCESS_NONE, 0xfec00000, 0xfec00fff, NULL,
	  "EOIs and masks of the IOAPIC: devices with MSI or MSI-X (virtio on PCIe) do without." },
	{ VMT_KEY_GPA, VMT_ACCESS_NONE, 0xa0000, 0xbffff, NULL,
	  "The guest draws in VGA's old window: use a virtio or QXL display, or a serial "
	  "console." },
	{ VMT_KEY_GPA, VMT_ACCESS_NONE, 0xe0000000, 0xfebfffff, NULL, VIRTIO },
	{ VMT_KEY_MSR, VMT_ACCESS_WRITE, 0x6e0, 0x6e0, NULL,
	  "The guest sets its timer very often: fewer wake-ups (longer sleeps and polling "
	  "intervals in the workload, CONFIG_HZ of 250 or 100, nohz) mean fewer of these." },
	{ VMT_KEY_MSR, VMT_ACCESS_WRITE, 0x830, 0x830, NULL, IPI },
	{ VMT_KEY_MSR, VMT_ACCESS_READ, 0x40000020, 0x40000020, "Hyper-V's reference counter",
	  "The guest reads the counter by MSR because the reference TSC page is missing: "
	  "<timer name='hypervclock' present='yes'/> with an invariant TSC (feature invtsc)." },
	{ VMT_KEY_MSR, VMT_ACCESS_NONE, 0x10, 0x10, "the TSC by MSR",
	  "The guest reads the TSC with RDMSR instead of RDTSC, or writes it: look at the code at "
	  "that address." },
	{ VMT_KEY_APIC, VMT_ACCESS_NONE, 0x300, 0x31f, NULL, IPI },
	{ VMT_KEY_CPUID, VMT_ACCESS_NONE, 0, UINT64_MAX, NULL, CPUID },
	{ VMT_KEY_CPUID_LEAF, VMT_ACCESS_NONE, 0, UINT64_MAX, NULL, CPUID },
};

static const struct remedy *find(const struct vmt_key *key)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		const struct remedy *r = &remedies[i];

		if (r->kind == key->kind && key->number >= r->first && key->number <= r->last &&
		    (r->access == VMT_ACCESS_NONE || r->access == key->access))
			return r;
	}
	return NULL;
}

const char *vmt_verdict_key_remedy(const struct vmt_key *key)
{
	struct vmt_key one_way = *key;
	const struct remedy *r;

	if (key->access == VMT_ACCESS_NONE)
		one_way.access = VMT_ACCESS_READ;
	r = find(&one_way);
	if (!r && key->access == VMT_ACCESS_NONE) {
		one_way.access = VMT_ACCESS_WRITE;
		r = find(&one_way);
	}
	return r ? r->text : NULL;
}

const char *vmt_verdict_clock(const struct vmt_row *row)
{
	const struct remedy *r = find(&row->key);

	return r && row->key.access != VMT_ACCESS_WRITE ? r->clock : NULL;
}

const char *vmt_verdict_remedy(const struct vmt_row *row)
{
	const struct remedy *r = find(&row->key);
	const struct vmx_msr_row *msr = NULL;
	const struct vmx_reason_row *reason = NULL;

	if (r)
		return r->text;
	if (row->key.kind == VMT_KEY_MSR && row->key.number <= UINT32_MAX)
		msr = vmx_msr_find((uint32_t)row->key.number);
	if (msr && msr->advice)
		return msr->advice;
	if (row->has_reason)
		reason = row->isa == VMT_ISA_SVM ? svm_exit_find(row->reason)
						 : vmx_reason_find(row->reason);
	if (reason && reason->advice)
		return reason->advice;
	return "Look at the guest's code at that address (--guest-kallsyms names it), and at "
	       "`vmtrace explain` for the reason and its key.";
}
