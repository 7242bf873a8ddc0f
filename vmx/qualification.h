/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_QUALIFICATION_H
#define VMX_QUALIFICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit qualifications (SDM vol. 3 27.2.1) and SVM's EXITINFO, taken apart. */

struct vmx_io_access { /* reason 30; SVM IOIO */
	uint16_t port;
	uint8_t size_bytes;
	bool in, string, rep, immediate;
};
struct vmx_io_access vmx_io_decode(uint64_t qualification);
struct vmx_io_access svm_io_decode(uint64_t exit_info_1);

enum vmx_cr_type {
	VMX_CR_MOV_TO,
	VMX_CR_MOV_FROM,
	VMX_CR_CLTS,
	VMX_CR_LMSW,
};
struct vmx_cr_access { /* reason 28 */
	uint8_t cr, gpr;
	enum vmx_cr_type type;
	uint16_t lmsw_source;
	bool lmsw_memory;
};
struct vmx_cr_access vmx_cr_decode(uint64_t qualification);

struct vmx_dr_access { /* reason 29 */
	uint8_t dr, gpr;
	bool read; /* MOV from DR */
};
struct vmx_dr_access vmx_dr_decode(uint64_t qualification);

/* Access bits of an EPT violation (reason 48): exactly what the qualification says. */
struct vmx_ept_access {
	bool read, write, fetch, readable, writable, executable, linear_valid, linear_translated;
	bool executable_user;				      /* mode-based execute control */
	bool linear_user, linear_writable, linear_no_execute; /* advanced information, if any */
	bool nmi_unblocking, shadow_stack, pt_output;
};
struct vmx_ept_access vmx_ept_decode(uint64_t qualification);

/* Interruption information (4404H, 4408H) and SVM's EXITINTINFO. */
struct vmx_intr_info {
	bool valid, has_error_code, nmi_unblocking;
	uint8_t vector,
		type; /* type 0 external, 2 NMI, 3 hardware exception, 4 software interrupt, … */
};
struct vmx_intr_info vmx_intr_info_decode(uint32_t info);
const char *vmx_intr_type_name(uint8_t type);

/*
 * Words for the error code of an exception that has one (SDM vol. 3 6.13, 6.15; APM vol. 2 8.4):
 * "write, user, page not present" for #PF, "selector 0x28 in the GDT" for #GP. The empty string for
 * exceptions without one. Returns buf.
 */
char *vmx_error_code_text(char *buf, size_t size, uint8_t vector, uint32_t error_code);

/* General-purpose register by its number in a qualification, 0..15: "RAX". */
const char *vmx_gpr_name(uint8_t gpr);

/* CR and DR number and direction that an SVM exit code names; false for other codes. */
bool svm_cr_decode(uint32_t code, uint8_t *cr, bool *write);
bool svm_dr_decode(uint32_t code, uint8_t *dr, bool *write);

#define VMX_QUALIFICATION_TEXT_MAX 192

/*
 * One line of words for any reason's qualification ("OUT 0x3f8, 1 byte, DX"), the empty string
 * where the reason has none. info2 and intr_info help where they are given (0 otherwise). Cut to
 * size; VMX_QUALIFICATION_TEXT_MAX always suffices. Returns buf.
 */
char *vmx_qualification_text(char *buf, size_t size, uint32_t basic_reason, uint64_t qualification,
			     uint32_t intr_info);
char *svm_exit_info_text(char *buf, size_t size, uint32_t code, uint64_t info1, uint64_t info2);

#endif
