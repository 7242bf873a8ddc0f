/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_EVENTS_H
#define VMT_CAPTURE_EVENTS_H

#include <stddef.h>

#include "decode/base/event.h"

/* In whose context a tracepoint fires, which decides its kernel filter. */
enum vmt_event_role {
	VMT_ROLE_VCPU,	   /* in a thread of the domain */
	VMT_ROLE_ANYWHERE, /* also in interrupts and workers that serve the domain */
	VMT_ROLE_MEMORY,   /* in whoever changes the VMM's memory: filtered by address */
	VMT_ROLE_WAKING,   /* in whoever wakes a thread: filtered by the woken thread */
	VMT_ROLE_FLOOD,	   /* a record for each instruction or page: not recorded */
};

struct vmt_event_row {
	const char *system, *name;
	enum vmt_event_role role;
	enum vmt_isa isa; /* only on this kind of CPU; UNKNOWN: on both */
};

/* Every event that vmtrace knows of, kvm first. A kernel has a part of them. */
const struct vmt_event_row *vmt_event_rows(size_t *count);

#endif
