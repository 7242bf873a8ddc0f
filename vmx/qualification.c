// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vmx/qualification.h"

static bool bit(uint64_t value, unsigned int n)
{
	return value >> n & 1;
}

struct vmx_io_access vmx_io_decode(uint64_t qualification)
{
	return (struct vmx_io_access){
		.port = (uint16_t)(qualification >> 16),
		.size_bytes = (uint8_t)((qualification & 7) + 1),
		.in = bit(qualification, 3),
		.string = bit(qualification, 4),
		.rep = bit(qualification, 5),
		.immediate = bit(qualification, 6),
	};
}

struct vmx_io_access svm_io_decode(uint64_t exit_info_1)
{
	return (struct vmx_io_access){
		.port = (uint16_t)(exit_info_1 >> 16),
		.size_bytes = (uint8_t)(exit_info_1 >> 4 & 7),
		.in = bit(exit_info_1, 0),
		.string = bit(exit_info_1, 2),
		.rep = bit(exit_info_1, 3),
	};
}

struct vmx_cr_access vmx_cr_decode(uint64_t qualification)
{
	return (struct vmx_cr_access){
		.cr = (uint8_t)(qualification & 0xf),
		.type = (enum vmx_cr_type)(qualification >> 4 & 3),
		.gpr = (uint8_t)(qualification >> 8 & 0xf),
		.lmsw_source = (uint16_t)(qualification >> 16),
		.lmsw_memory = bit(qualification, 6),
	};
}

struct vmx_dr_access vmx_dr_decode(uint64_t qualification)
{
	return (struct vmx_dr_access){
		.dr = (uint8_t)(qualification & 7),
		.gpr = (uint8_t)(qualification >> 8 & 0xf),
		.read = bit(qualification, 4),
	};
}

struct vmx_ept_access vmx_ept_decode(uint64_t qualification)
{
	return (struct vmx_ept_access){
		.read = bit(qualification, 0),
		.write = bit(qualification, 1),
		.fetch = bit(qualification, 2),
		.readable = bit(qualification, 3),
		.writable = bit(qualification, 4),
		.executable = bit(qualification, 5),
		.executable_user = bit(qualification, 6),
		.linear_valid = bit(qualification, 7),
		.linear_translated = bit(qualification, 8),
		.linear_user = bit(qualification, 9),
		.linear_writable = bit(qualification, 10),
		.linear_no_execute = bit(qualification, 11),
		.nmi_unblocking = bit(qualification, 12),
		.shadow_stack = bit(qualification, 13),
		.pt_output = bit(qualification, 16),
	};
}

struct vmx_intr_info vmx_intr_info_decode(uint32_t info)
{
	return (struct vmx_intr_info){
		.vector = (uint8_t)info,
		.type = (uint8_t)(info >> 8 & 7),
		.has_error_code = bit(info, 11),
		.nmi_unblocking = bit(info, 12),
		.valid = bit(info, 31),
	};
}

const char *vmx_intr_type_name(uint8_t type)
{
	static const char *const names[] = {
		"external interrupt", "reserved",	    "NMI",
		"hardware exception", "software interrupt", "privileged software exception",
		"software exception", "other event",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "reserved";
}

const char *vmx_gpr_name(uint8_t gpr)
{
	static const char *const names[] = {
		"RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI",
		"R8",  "R9",  "R10", "R11", "R12", "R13", "R14", "R15",
	};

	return names[gpr & 15];
}

bool svm_cr_decode(uint32_t code, uint8_t *cr, bool *write)
{
	bool trap = code >= 0x90 && code <= 0x9f;

	if (code == 0x65) { /* CR0_SEL_WRITE */
		*cr = 0;
		*write = true;
		return true;
	}
	if (code > 0x1f && !trap)
		return false;
	*cr = (uint8_t)(code & 0xf);
	*write = code >= 0x10;
	return true;
}

bool svm_dr_decode(uint32_t code, uint8_t *dr, bool *write)
{
	if (code < 0x20 || code > 0x3f)
		return false;
	*dr = (uint8_t)(code & 0xf);
	*write = code >= 0x30;
	return true;
}
