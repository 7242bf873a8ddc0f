/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_WATCH_DEDUP_H
#define VMT_DOMAIN_WATCH_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/domain/domain.h"

/*
 * From libvirt's events to those of a session, each told once. No clock and no libvirt in here: the
 * caller passes the time.
 *
 * What libvirt does (measured with 9.0 and QEMU 7.2): a start is RESUMED, then STARTED; one reset
 * is two or three REBOOT; a destroy is SHUTDOWN, then STOPPED.
 *
 * Invariant: the queue is ordered by arrival; an event leaves it not before `due_ns`, and those
 * behind it wait for it.
 */
struct vmt_dedup;

struct vmt_dedup *vmt_dedup_new(void); /* NULL: no memory */
void vmt_dedup_free(struct vmt_dedup *dedup);

/* What libvirt says a domain is doing, when a connection opens (virDomainState, id or -1). */
void vmt_dedup_begin(struct vmt_dedup *dedup);
void vmt_dedup_known(struct vmt_dedup *dedup, const char *uuid, int state, int id, uint64_t now_ns);
/* Ends the list: after a lost connection, what changed meanwhile becomes events. */
void vmt_dedup_end(struct vmt_dedup *dedup, uint64_t now_ns);

/* A lifecycle event (virDomainEventType and its detail). */
void vmt_dedup_lifecycle(struct vmt_dedup *dedup, const char *uuid, int event, int detail,
			 uint64_t now_ns);
void vmt_dedup_reboot(struct vmt_dedup *dedup, const char *uuid, uint64_t now_ns);
/* Any other event, by the names of struct vmt_watch_event. uuid "" for the connection's own. */
void vmt_dedup_other(struct vmt_dedup *dedup, const char *uuid, const char *name,
		     const char *detail, uint64_t now_ns);

/* Next event that is due: true. Otherwise *wait_ns is the time to the next one (UINT64_MAX: none).
 */
bool vmt_dedup_next(struct vmt_dedup *dedup, uint64_t now_ns, struct vmt_watch_event *event,
		    uint64_t *wait_ns);

/* Events that were thrown away because the queue was full. */
uint64_t vmt_dedup_dropped(const struct vmt_dedup *dedup);

#endif
