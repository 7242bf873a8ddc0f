// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_GUEST_BED_H
#define VMT_PTCPU_GUEST_BED_H
/* Requests to the bed (call.h) from a program that has called iopl(3). */
#include "virt-fixtures/ptcpu/call.h"

#include <string.h>

static inline void bed_call(uint32_t command, uint64_t rbx, uint64_t rcx)
{
	__asm__ volatile("outl %%eax, %%dx"
			 :
			 : "a"(command), "b"(rbx), "c"(rcx), "d"(PTCPU_CALL_PORT)
			 : "memory");
}

static inline void bed_name(uint32_t command, const char *name)
{
	bed_call(command, (uint64_t)(uintptr_t)name, strlen(name));
}

#endif
