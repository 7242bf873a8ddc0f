/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_EXIT_H
#define VMX_EXIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * VM-exit reasons (SDM vol. 3 appendix C, newer parts: Intel TDX module and Linux) and SVM exit
 * codes (APM vol. 2 appendix C, Linux uapi/asm/svm.h) as data. No allocation, no system call.
 */

#define VMX_REASON_BASIC_MASK	 0xffffu
#define VMX_REASON_BUS_LOCK	 (1u << 26)
#define VMX_REASON_ENCLAVE	 (1u << 27)
#define VMX_REASON_PENDING_MTF	 (1u << 28)
#define VMX_REASON_FROM_ROOT	 (1u << 29)
#define VMX_REASON_ENTRY_FAILURE (1u << 31)

/* A class of work, for the bill. */
enum vmx_exit_class {
	VMX_CLASS_OTHER = 0,
	VMX_CLASS_INTERRUPT, /* external interrupt, NMI, windows, timer */
	VMX_CLASS_IO,	     /* port I/O */
	VMX_CLASS_MMIO,	     /* EPT/NPT faults and misconfigurations, APIC access */
	VMX_CLASS_MSR,
	VMX_CLASS_CPUID,
	VMX_CLASS_HALT, /* HLT, MWAIT */
	VMX_CLASS_PAUSE,
	VMX_CLASS_CR_DR,
	VMX_CLASS_APIC, /* APIC write, EOI, AVIC */
	VMX_CLASS_EXCEPTION,
	VMX_CLASS_HYPERCALL,
	VMX_CLASS_NESTED, /* VMX and SVM instructions of L1 */
	VMX_CLASS_TSC,	  /* RDTSC, RDTSCP, RDPMC, RDPRU */
	VMX_CLASS_FAILURE,
	VMX_CLASS_COUNT,
};

struct vmx_reason_row {
	uint32_t code;
	uint8_t class;	    /* enum vmx_exit_class */
	const char *name;   /* as the kernel's kvm_exit prints it: EPT_VIOLATION, npf */
	const char *title;  /* SDM/APM words: "EPT violation" */
	const char *source; /* SDM app. C, TDX, Linux, … */
	const char
		*advice; /* what usually causes it and what to look at; NULL when nothing useful */
};

/* Row of a basic VMX exit reason (bits 15:0) or NULL. */
const struct vmx_reason_row *vmx_reason_find(uint32_t basic);
/* Row of an SVM exit code or NULL. */
const struct vmx_reason_row *svm_exit_find(uint32_t code);

/* All rows, for listings. */
const struct vmx_reason_row *vmx_reason_rows(size_t *count);
const struct vmx_reason_row *svm_exit_rows(size_t *count);

/* Finds a row by name, without regard to case, in either table; *is_svm says which. */
const struct vmx_reason_row *vmx_reason_by_name(const char *name, bool *is_svm);

const char *vmx_class_name(enum vmx_exit_class class); /* "port I/O" */

/*
 * Writes the name of a reason into buf: the row's name, or UNKNOWN_0x<hex>. Returns buf. size
 * >= 24.
 */
char *vmx_reason_text(char *buf, size_t size, bool is_svm, uint32_t code);

/*
 * Writes the flag bits (31:16) of a VMX reason as words joined by '|', the unknown ones as 0x<hex>;
 * the empty string for none. Returns buf. size >= 96.
 */
char *vmx_reason_flags_text(char *buf, size_t size, uint32_t flags);

#endif
