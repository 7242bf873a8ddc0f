/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PROBE_PT_CAPS_H
#define VMT_PROBE_PT_CAPS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "vmx/pt_caps.h"

/* Where the capabilities of a CPU for Intel PT under VMX come from. */
struct vmt_pt_caps {
	struct vmx_pt_caps cpu;
	char name[80];	    /* of the CPU, "" when it is not known */
	char msr_note[160]; /* why MSRs are not known, "" when they are */
};

/* This CPU: the CPUID instruction, and the MSRs of DEV/cpu/0/msr when they may be read. */
void vmt_pt_caps_here(struct vmt_pt_caps *caps);

/*
 * A text, one fact a line, numbers in C syntax, # begins a comment:
 *   name TEXT
 *   cpuid LEAF SUBLEAF EAX EBX ECX EDX
 *   msr INDEX VALUE
 * Leaves and MSRs that no plan depends on are stepped over. VMT_E_DAMAGED with the line.
 */
int vmt_pt_caps_text(struct vmt_pt_caps *caps, const uint8_t *bytes, size_t len,
		     struct vmt_diag *diag);
/* The same from a file: also the errors of vmt_reader_open, and VMT_E_LIMIT above 1 MiB. */
int vmt_pt_caps_read(struct vmt_pt_caps *caps, const char *path, struct vmt_diag *diag);

#endif
