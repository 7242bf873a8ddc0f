/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_REORDER_H
#define VMT_ANALYZE_REORDER_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/event.h"
#include "decode/kvm/join.h"

/*
 * Puts events into order of time with bounded memory: the join hands out an exit only when its
 * duration is known, behind events that came later. Equal times keep their order of arrival; events
 * without a time take the newest time seen. When max_events wait, the oldest is let go; an event
 * that then comes too late is passed on at once and counted.
 */
struct vmt_reorder;

/* Default bound: about 32 MiB. */
#define VMT_REORDER_EVENTS     131072u
#define VMT_REORDER_EVENTS_MAX 262144u

/* max_events 0: the default; at most VMT_REORDER_EVENTS_MAX. NULL when memory is short. */
struct vmt_reorder *vmt_reorder_new(size_t max_events, vmt_event_fn *emit, void *context);
void vmt_reorder_free(struct vmt_reorder *reorder);

void vmt_reorder_push(struct vmt_reorder *reorder, const struct vmt_event *event);
void vmt_reorder_flush(struct vmt_reorder *reorder);

/* How many events were passed on after a younger one. */
uint64_t vmt_reorder_late(const struct vmt_reorder *reorder);

#endif
