/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_FLOW_IMAGE_H
#define VMT_FLOW_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

/*
 * The code that a processor ran: sections of bytes at virtual addresses, each in an address space
 * and from a time on. Where sections of one space cover an address, the one with the latest time
 * that is not after the time asked for counts, and of several at one time the one added last. Where
 * several spaces that hold at a moment cover it, the narrowest one counts.
 *
 * Bytes are borrowed: they must stay until vmt_image_free. Memory is taken while sections are added
 * and sealed, never by a look-up.
 */
enum vmt_image_world {
	VMT_IMAGE_ANY,	 /* root and non-root operation */
	VMT_IMAGE_HOST,	 /* VMX root operation, or no VMX at all */
	VMT_IMAGE_GUEST, /* VMX non-root operation */
};

/* Narrowness, widest first: world alone, with a VMCS, with a CR3, with both. */
struct vmt_image_space {
	uint8_t world; /* enum vmt_image_world */
	bool has_cr3, has_vmcs;
	uint64_t cr3;  /* as PIP has it: bits 51:5 */
	uint64_t vmcs; /* pointer; guests alone */
};

/* Where a processor is. An unknown CR3 or VMCS matches no space that names one. */
struct vmt_image_context {
	bool nonroot, has_cr3, has_vmcs;
	uint64_t cr3, vmcs;
};

#define VMT_IMAGE_SECTIONS_MAX (1u << 22)
#define VMT_IMAGE_VERSIONS_MAX (1u << 24) /* pieces of sections between two cut points */
#define VMT_IMAGE_SPACES_MAX   4096
#define VMT_IMAGE_SCOPES_MAX   8 /* spaces that can hold at a moment */

struct vmt_image;

struct vmt_image *vmt_image_new(void); /* NULL when memory is short */
void vmt_image_free(struct vmt_image *image);

/*
 * Adds a section. from: host TSC, or a number of instructions where the caller's clock counts these
 * (struct vmt_flow_options); 0: always. VMT_E_USAGE when it is empty or wraps around the end of the
 * address space; VMT_E_LIMIT; VMT_E_NOMEM.
 */
int vmt_image_add(struct vmt_image *image, const struct vmt_image_space *space, uint64_t addr,
		  const uint8_t *bytes, size_t len, uint64_t from, struct vmt_diag *diag);

/*
 * Sorts what was added; look-ups see only what was sealed. VMT_E_LIMIT when sections overlap so
 * often that more than VMT_IMAGE_VERSIONS_MAX pieces result; VMT_E_NOMEM.
 */
int vmt_image_seal(struct vmt_image *image, struct vmt_diag *diag);

/* The spaces that hold in a context, narrowest first: numbers that mean something to this image
 * alone. Contexts with equal views see the same code. */
struct vmt_image_view {
	uint16_t scopes[VMT_IMAGE_SCOPES_MAX];
	uint16_t nr;
};

struct vmt_image_view vmt_image_view_of(const struct vmt_image *image,
					const struct vmt_image_context *context);

/* Bytes that stand together at an address, and while [from, until) they are these. */
struct vmt_image_span {
	const uint8_t *bytes;
	size_t len;
	uint64_t from, until; /* until UINT64_MAX: for ever */
};

/* The bytes at addr at a time; false when there are none. */
bool vmt_image_find(const struct vmt_image *image, const struct vmt_image_view *view, uint64_t addr,
		    uint64_t time, struct vmt_image_span *out);

/*
 * Up to `len` bytes from addr on, across sections. Returns how many there are. The bytes are in buf
 * or, where they stand together, in the image: *at points to them. [*from, *until): as in a span.
 */
size_t vmt_image_read(const struct vmt_image *image, const struct vmt_image_view *view,
		      uint64_t addr, uint64_t time, uint8_t *buf, size_t len, const uint8_t **at,
		      uint64_t *from, uint64_t *until);

#endif
