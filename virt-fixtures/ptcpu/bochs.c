// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions and variables of bochs-bin by their names in its dynamic symbol table. */
#include "virt-fixtures/ptcpu/bochs.h"

#include <dlfcn.h>

struct bochs_calls bochs;

static const struct {
	const char *symbol;
	size_t at; /* of the pointer in struct bochs_calls */
} calls[] = {
	{ "_ZN8BX_CPU_C7get_TSCEv", offsetof(struct bochs_calls, get_tsc) },
	{ "_ZN8BX_CPU_C17get_TSC_VMXAdjustEm", offsetof(struct bochs_calls, adjust_tsc) },
	{ "_ZN8BX_CPU_C8VMread32Ej", offsetof(struct bochs_calls, vmread32) },
	{ "_ZN8BX_CPU_C8VMread64Ej", offsetof(struct bochs_calls, vmread64) },
	{ "_ZN8BX_CPU_C9VMwrite32Ejj", offsetof(struct bochs_calls, vmwrite32) },
	{ "_ZN8BX_CPU_C9VMwrite64Ejm", offsetof(struct bochs_calls, vmwrite64) },
	{ "_ZN8BX_CPU_C6VMexitEjm", offsetof(struct bochs_calls, vmexit) },
	{ "_ZN8BX_CPU_C9exceptionEjt", offsetof(struct bochs_calls, exception) },
	{ "_ZN8BX_CPU_C11deliver_NMIEv", offsetof(struct bochs_calls, deliver_nmi) },
	{ "_ZN8BX_CPU_C28dbg_translate_guest_physicalEmPmb",
	  offsetof(struct bochs_calls, translate_guest) },
	{ "_ZN8BX_CPU_C20dbg_xlate_linear2phyEmPmS0_b", offsetof(struct bochs_calls, translate) },
	{ "_ZN8BX_MEM_C19dmaReadPhysicalPageEmjPh", offsetof(struct bochs_calls, read_memory) },
	{ "_ZN8BX_MEM_C20dmaWritePhysicalPageEmjPh", offsetof(struct bochs_calls, write_memory) },
	{ "_ZN15bx_local_apic_c12read_alignedEm", offsetof(struct bochs_calls, lapic_read) },
	{ "_ZN15bx_local_apic_c13set_lvt_entryEjj", offsetof(struct bochs_calls, lapic_set_lvt) },
	{ "_ZN15bx_local_apic_c11trigger_irqEhjb", offsetof(struct bochs_calls, lapic_trigger) },
};

bool bochs_bind(const char **name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *function = dlsym(RTLD_DEFAULT, calls[i].symbol);

		if (!function) {
			*name = calls[i].symbol;
			return false;
		}
		memcpy((char *)&bochs + calls[i].at, &function, sizeof(function));
	}
	return true;
}

struct bochs_cpu *bochs_cpu(unsigned int id)
{
	static struct bochs_cpu ***array;

	if (!array)
		array = dlsym(RTLD_DEFAULT, "bx_cpu_array");
	return (*array)[id];
}

unsigned int bochs_cpu_count(void)
{
	static const uint8_t *count;

	if (!count)
		count = dlsym(RTLD_DEFAULT, "bx_cpu_count");
	return *count;
}
