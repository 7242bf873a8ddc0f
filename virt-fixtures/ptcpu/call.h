// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_CALL_H
#define VMT_PTCPU_CALL_H
/*
 * How a program in the emulated system talks to the bed: a four-byte OUT of a command to this port,
 * with RBX = linear address and RCX = length of an argument in memory that is present, or RCX = a
 * number. Files appear in the folder that the environment variable PTCPU_OUT of bochs-bin names;
 * names are letters, digits, '.', '-' and '_'.
 */
#include <stdint.h>

enum {
	PTCPU_CALL_PORT = 0x5654,
	PTCPU_CALL_BEGIN = 1, /* starts the truth log; argument: its name */
	PTCPU_CALL_END = 2,   /* ends it */
	PTCPU_CALL_FILE = 3, /* the writes that follow are appended to a file; argument: its name */
	PTCPU_CALL_WRITE = 4,	 /* argument: bytes */
	PTCPU_CALL_OVERFLOW = 5, /* this CPU's packets of the next RCX instructions are lost */
	PTCPU_CALL_PLAN = 6,	 /* argument: struct ptcpu_plan */
};

/*
 * What a hypervisor that knows Intel PT would put into every VMCS: bits that are set in the
 * controls, and the guest's IA32_RTIT_CTL, before the checks of each VM entry.
 */
struct ptcpu_plan {
	uint32_t secondary, exit, entry, pad;
	uint64_t guest_rtit_ctl;
};

#endif
