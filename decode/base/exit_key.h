/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_EXIT_KEY_H
#define VMT_BASE_EXIT_KEY_H

#include <stdint.h>

#include "decode/base/event.h"

/* What behind an exit may still give it its sub-key. */
enum vmt_key_wait {
	VMT_KEY_WAIT_NONE,
	VMT_KEY_WAIT_MSR,
	VMT_KEY_WAIT_GPA,
	VMT_KEY_WAIT_CPUID,
	VMT_KEY_WAIT_HYPERCALL,
	VMT_KEY_WAIT_ANY, /* the reason is not one that has a sub-key of its own */
};

/*
 * Fills the sub-key (and the vector, with its has-bit) of an exit from its reason and
 * qualification. Where the number is not in them, only the access of the key is set and the result
 * says what would tell it. intr_info: exit interruption information, 0 when it is not known.
 */
enum vmt_key_wait vmt_exit_key_vmx(struct vmt_event *exit, uint32_t basic, uint64_t qualification,
				   uint32_t intr_info);
enum vmt_key_wait vmt_exit_key_svm(struct vmt_event *exit, uint32_t code, uint64_t info1,
				   uint64_t info2);

#endif
