// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Basic VMX exit reasons. A name that Linux's VMX_EXIT_REASONS has is spelled as there, the others
 * in the same manner. 38, 82 and 83 are not assigned.
 */
#include "vmx/rows.h"

#define SDM_C	  "SDM vol. 3 appendix C"
#define TDX	  "Intel TDX module 1.5, vmcs_defs.h"
#define LINUX	  "Intel TDX module 1.5; Linux uapi/asm/vmx.h"
#define LINUX_NEW "Linux uapi/asm/vmx.h, 6.18 and later"
#define NEWER	  "Intel instruction-set extensions; third-party lists"

const struct vmx_reason_row vmx_reason_table[] = {
	{ 0, VMX_CLASS_EXCEPTION, "EXCEPTION_NMI", "exception or NMI", SDM_C,
	  "Page faults reach the host only without EPT or with allow_smaller_maxphyaddr; many #PF "
	  "mean shadow paging. Other causes: a debugger in the guest (#DB, #BP), #UD of an "
	  "instruction that KVM emulates, #AC of a split lock, NMIs of the host's perf." },
	{ 1, VMX_CLASS_INTERRUPT, "EXTERNAL_INTERRUPT", "external interrupt", SDM_C,
	  "An interrupt of the host arrived while the guest ran: timer ticks, devices, IPIs to "
	  "this CPU. Look at the vector and at /proc/interrupts; nohz_full, isolated CPUs and "
	  "pinned device interrupts reduce it." },
	{ 2, VMX_CLASS_FAILURE, "TRIPLE_FAULT", "triple fault", SDM_C,
	  "The guest could not deliver an exception and shuts down or resets: look at the RIP and "
	  "the guest's console." },
	{ 3, VMX_CLASS_INTERRUPT, "INIT_SIGNAL", "INIT signal", SDM_C, NULL },
	{ 4, VMX_CLASS_INTERRUPT, "SIPI_SIGNAL", "start-up IPI (SIPI)", SDM_C, NULL },
	{ 5, VMX_CLASS_INTERRUPT, "IO_SMI", "I/O system-management interrupt", SDM_C,
	  "Only under an SMM-transfer monitor." },
	{ 6, VMX_CLASS_INTERRUPT, "OTHER_SMI", "other system-management interrupt", SDM_C,
	  "Only under an SMM-transfer monitor." },
	{ 7, VMX_CLASS_INTERRUPT, "INTERRUPT_WINDOW", "interrupt window", SDM_C,
	  "KVM waited until the guest could take an interrupt (IF set, no blocking). Many of them "
	  "mean that APIC virtualization is off: check enable_apicv and its inhibits (AutoEOI of "
	  "Hyper-V, PIT reinjection)." },
	{ 8, VMX_CLASS_INTERRUPT, "NMI_WINDOW", "NMI window", SDM_C,
	  "KVM waited until the guest could take an NMI: the guest's perf or watchdog uses NMIs." },
	{ 9, VMX_CLASS_OTHER, "TASK_SWITCH", "task switch", SDM_C, NULL },
	{ 10, VMX_CLASS_CPUID, "CPUID", "CPUID instruction", SDM_C,
	  "CPUID always exits on Intel. In a loop it is a program that uses it as a fence (rdtsc "
	  "benchmarks) or asks for features too often: the RIP shows which." },
	{ 11, VMX_CLASS_OTHER, "GETSEC", "GETSEC instruction", SDM_C, NULL },
	{ 12, VMX_CLASS_HALT, "HLT", "HLT instruction", SDM_C,
	  "The guest is idle. Costs only matter for wake-up latency: halt polling (halt_poll_ns), "
	  "the guest's cpuidle haltpoll governor, or -overcommit cpu-pm=on trade host CPU time for "
	  "it." },
	{ 13, VMX_CLASS_OTHER, "INVD", "INVD instruction", SDM_C, NULL },
	{ 14, VMX_CLASS_OTHER, "INVLPG", "INVLPG instruction", SDM_C,
	  "Exits only without EPT (shadow paging)." },
	{ 15, VMX_CLASS_TSC, "RDPMC", "RDPMC instruction", SDM_C,
	  "The guest reads performance counters; every read exits unless the vPMU is passed "
	  "through." },
	{ 16, VMX_CLASS_TSC, "RDTSC", "RDTSC instruction", SDM_C,
	  "KVM intercepts it only when the TSC must be emulated; a guest that lives on it is slow: "
	  "check the domain's TSC frequency against the host's." },
	{ 17, VMX_CLASS_OTHER, "RSM", "RSM instruction in SMM", SDM_C, NULL },
	{ 18, VMX_CLASS_HYPERCALL, "VMCALL", "VMCALL instruction", SDM_C,
	  "A hypercall of the guest (KVM: IPIs, yields, TLB flushes; Hyper-V: see hv:CODE), or a "
	  "nested hypervisor's guest." },
	{ 19, VMX_CLASS_NESTED, "VMCLEAR", "VMCLEAR instruction", SDM_C, NULL },
	{ 20, VMX_CLASS_NESTED, "VMLAUNCH", "VMLAUNCH instruction", SDM_C, NULL },
	{ 21, VMX_CLASS_NESTED, "VMPTRLD", "VMPTRLD instruction", SDM_C, NULL },
	{ 22, VMX_CLASS_NESTED, "VMPTRST", "VMPTRST instruction", SDM_C, NULL },
	{ 23, VMX_CLASS_NESTED, "VMREAD", "VMREAD instruction", SDM_C,
	  "A nested hypervisor reads its VMCS without VMCS shadowing." },
	{ 24, VMX_CLASS_NESTED, "VMRESUME", "VMRESUME instruction", SDM_C,
	  "A nested hypervisor enters its guest: each costs a full switch of the VMCS." },
	{ 25, VMX_CLASS_NESTED, "VMWRITE", "VMWRITE instruction", SDM_C,
	  "A nested hypervisor writes its VMCS without VMCS shadowing." },
	{ 26, VMX_CLASS_NESTED, "VMOFF", "VMXOFF instruction", SDM_C, NULL },
	{ 27, VMX_CLASS_NESTED, "VMON", "VMXON instruction", SDM_C, NULL },
	{ 28, VMX_CLASS_CR_DR, "CR_ACCESS", "control-register access", SDM_C,
	  "Writes of CR0 or CR4 bits that KVM owns, CR8 without TPR shadow, CR3 without EPT. Many "
	  "CR0 writes: old guests that toggle TS on each context switch." },
	{ 29, VMX_CLASS_CR_DR, "DR_ACCESS", "MOV DR", SDM_C,
	  "The guest uses hardware breakpoints; KVM stops intercepting after the first access of a "
	  "run." },
	{ 30, VMX_CLASS_IO, "IO_INSTRUCTION", "I/O instruction", SDM_C,
	  "Emulated hardware: serial console, IDE, VGA, PIT, ACPI timer. The port says which; "
	  "virtio devices and hypervclock or kvmclock avoid most." },
	{ 31, VMX_CLASS_MSR, "MSR_READ", "RDMSR instruction", SDM_C,
	  "The MSR says what the guest reads; each costs an exit unless KVM lets it through." },
	{ 32, VMX_CLASS_MSR, "MSR_WRITE", "WRMSR instruction", SDM_C,
	  "Mostly timer programming (IA32_TSC_DEADLINE) and x2APIC IPIs; APIC virtualization or a "
	  "paravirtual timer helps." },
	{ 33, VMX_CLASS_FAILURE, "INVALID_STATE", "VM-entry failure due to invalid guest state",
	  SDM_C,
	  "The hypervisor loaded guest state that the CPU refuses: a bug of the hypervisor or of "
	  "its caller." },
	{ 34, VMX_CLASS_FAILURE, "MSR_LOAD_FAIL", "VM-entry failure due to MSR loading", SDM_C,
	  "The qualification is the number of the entry of the MSR-load list." },
	{ 35, VMX_CLASS_FAILURE, "VMEXIT_FAILURE", "VM-exit failure", TDX, NULL },
	{ 36, VMX_CLASS_HALT, "MWAIT_INSTRUCTION", "MWAIT instruction", SDM_C,
	  "The guest idles with MWAIT, which KVM treats as a no-op unless -overcommit cpu-pm=on "
	  "lets it through." },
	{ 37, VMX_CLASS_OTHER, "MONITOR_TRAP_FLAG", "monitor trap flag", SDM_C,
	  "Single steps by the hypervisor." },
	{ 39, VMX_CLASS_HALT, "MONITOR_INSTRUCTION", "MONITOR instruction", SDM_C, NULL },
	{ 40, VMX_CLASS_PAUSE, "PAUSE_INSTRUCTION", "PAUSE instruction", SDM_C,
	  "A vCPU spins on a lock whose holder does not run: the host is overcommitted, or vCPUs "
	  "share CPUs. Paravirtual spinlocks, fewer vCPUs or pinning help." },
	{ 41, VMX_CLASS_FAILURE, "MCE_DURING_VMENTRY",
	  "VM-entry failure due to machine-check event", SDM_C,
	  "Faulty hardware: read the host's kernel log." },
	{ 42, VMX_CLASS_OTHER, "C_STATE_SMI", "C-state system-management interrupt", TDX, NULL },
	{ 43, VMX_CLASS_APIC, "TPR_BELOW_THRESHOLD", "TPR below threshold", SDM_C,
	  "The guest lowered its task priority and an interrupt waits: usual for 32-bit Windows." },
	{ 44, VMX_CLASS_MMIO, "APIC_ACCESS", "APIC access", SDM_C,
	  "The guest uses the memory-mapped local APIC; x2APIC or APIC virtualization "
	  "(enable_apicv) avoids these." },
	{ 45, VMX_CLASS_APIC, "EOI_INDUCED", "virtualized EOI", SDM_C,
	  "End of a level-triggered interrupt that the I/O APIC must hear of: devices with INTx "
	  "instead of MSI." },
	{ 46, VMX_CLASS_OTHER, "GDTR_IDTR", "access to GDTR or IDTR", SDM_C, NULL },
	{ 47, VMX_CLASS_OTHER, "LDTR_TR", "access to LDTR or TR", SDM_C, NULL },
	{ 48, VMX_CLASS_MMIO, "EPT_VIOLATION", "EPT violation", SDM_C,
	  "First touch of guest memory, or memory the host took back: swap, KSM, ballooning, NUMA "
	  "balancing, dirty logging of a migration. Huge pages and locked memory reduce it. On a "
	  "device's window: emulated MMIO." },
	{ 49, VMX_CLASS_MMIO, "EPT_MISCONFIG", "EPT misconfiguration", SDM_C,
	  "How KVM marks emulated MMIO: a guest driver touches a device register. The GPA says "
	  "which (virtio doorbells take the fast path; local APIC, HPET, VGA do not)." },
	{ 50, VMX_CLASS_NESTED, "INVEPT", "INVEPT instruction", SDM_C, NULL },
	{ 51, VMX_CLASS_TSC, "RDTSCP", "RDTSCP instruction", SDM_C,
	  "As RDTSC: intercepted only when the TSC must be emulated." },
	{ 52, VMX_CLASS_INTERRUPT, "PREEMPTION_TIMER", "VMX-preemption timer expired", SDM_C,
	  "KVM's own use of the timer for the guest's TSC deadline: one for each expiry of a guest "
	  "timer. Guests with many short timers have many." },
	{ 53, VMX_CLASS_NESTED, "INVVPID", "INVVPID instruction", SDM_C, NULL },
	{ 54, VMX_CLASS_OTHER, "WBINVD", "WBINVD or WBNOINVD instruction", SDM_C,
	  "Exits only with an assigned device without cache snooping." },
	{ 55, VMX_CLASS_OTHER, "XSETBV", "XSETBV instruction", SDM_C, NULL },
	{ 56, VMX_CLASS_APIC, "APIC_WRITE", "APIC write", SDM_C,
	  "A write of an APIC register that the virtual APIC page cannot complete, mostly the ICR: "
	  "an IPI. IPI virtualization (enable_ipiv) avoids it on new CPUs." },
	{ 57, VMX_CLASS_OTHER, "RDRAND", "RDRAND instruction", SDM_C, NULL },
	{ 58, VMX_CLASS_OTHER, "INVPCID", "INVPCID instruction", SDM_C,
	  "Exits only without EPT, or when KVM hides PCID." },
	{ 59, VMX_CLASS_NESTED, "VMFUNC", "VMFUNC instruction", SDM_C, NULL },
	{ 60, VMX_CLASS_OTHER, "ENCLS", "ENCLS instruction", SDM_C, NULL },
	{ 61, VMX_CLASS_OTHER, "RDSEED", "RDSEED instruction", SDM_C, NULL },
	{ 62, VMX_CLASS_MMIO, "PML_FULL", "page-modification log full", SDM_C,
	  "Dirty logging is on: a migration or a backup runs. One exit for 512 pages that the "
	  "guest dirtied." },
	{ 63, VMX_CLASS_OTHER, "XSAVES", "XSAVES instruction", SDM_C, NULL },
	{ 64, VMX_CLASS_OTHER, "XRSTORS", "XRSTORS instruction", SDM_C, NULL },
	{ 65, VMX_CLASS_OTHER, "PCONFIG", "PCONFIG instruction", TDX, NULL },
	{ 66, VMX_CLASS_MMIO, "SPP_INDUCED", "SPP-induced event", TDX, NULL },
	{ 67, VMX_CLASS_HALT, "UMWAIT", "UMWAIT instruction", LINUX, NULL },
	{ 68, VMX_CLASS_HALT, "TPAUSE", "TPAUSE instruction", LINUX, NULL },
	{ 69, VMX_CLASS_OTHER, "LOADIWKEY", "LOADIWKEY instruction", TDX, NULL },
	{ 70, VMX_CLASS_OTHER, "ENCLV", "ENCLV instruction", TDX, NULL },
	{ 71, VMX_CLASS_OTHER, "SGX_CONFLICT", "SGX conflict", TDX, NULL },
	{ 72, VMX_CLASS_OTHER, "ENQCMD_PASID", "ENQCMD PASID translation failure", TDX, NULL },
	{ 73, VMX_CLASS_OTHER, "ENQCMDS_PASID", "ENQCMDS PASID translation failure", TDX, NULL },
	{ 74, VMX_CLASS_OTHER, "BUS_LOCK", "bus lock", LINUX,
	  "A locked access across a cache line (split lock) or to uncached memory slows the whole "
	  "host: the RIP shows the program." },
	{ 75, VMX_CLASS_OTHER, "NOTIFY", "notify: no event window", LINUX,
	  "The guest kept the CPU without an interrupt window for longer than the host allows." },
	{ 76, VMX_CLASS_NESTED, "SEAMCALL", "SEAMCALL instruction", TDX, NULL },
	{ 77, VMX_CLASS_HYPERCALL, "TDCALL", "TDCALL instruction", TDX,
	  "A TDX guest asks the host for something (its hypercall)." },
	{ 78, VMX_CLASS_MSR, "RDMSRLIST", "RDMSRLIST instruction", NEWER, NULL },
	{ 79, VMX_CLASS_MSR, "WRMSRLIST", "WRMSRLIST instruction", NEWER, NULL },
	{ 80, VMX_CLASS_MSR, "URDMSR", "URDMSR instruction", NEWER, NULL },
	{ 81, VMX_CLASS_MSR, "UWRMSR", "UWRMSR instruction", NEWER, NULL },
	{ 84, VMX_CLASS_MSR, "MSR_READ_IMM", "RDMSR with an immediate", LINUX_NEW,
	  "The qualification is the MSR." },
	{ 85, VMX_CLASS_MSR, "MSR_WRITE_IMM", "WRMSRNS with an immediate", LINUX_NEW,
	  "The qualification is the MSR." },
};
const size_t vmx_reason_table_count = sizeof(vmx_reason_table) / sizeof(vmx_reason_table[0]);
