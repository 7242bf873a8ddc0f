/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_MACHINE_H
#define VMT_SUPPORT_PT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/capture/perf_event.h"
#include "host/domain/hostfs.h"

/*
 * A stand-in for a kernel with Intel PT: its intel_pt folder in a scratch sysfs, and perf's table
 * over memory. What goes into an event's AUX area is given by the test, which plays the CPU: the
 * area fills up, the kernel says so and stops, and goes on where the event is enabled again. One
 * machine at a time.
 */
#define VMT_PTM_TYPE	   8u
#define VMT_PTM_EVENTS_MAX 64u

/* Makes the folders below top: top/sys and top/proc. skz84: the CPU is a Skylake server. */
struct vmt_hostfs vmt_ptm_files(const char *top, bool skz84);
/* A file of intel_pt, as "caps/mtc"; NULL text removes it. */
void vmt_ptm_file(const char *top, const char *name, const char *text);

extern const struct vmt_perf_ops vmt_ptm_ops;

/* Forgets everything; fails the test when descriptors or mappings are left. */
void vmt_ptm_reset(void);

/* Opening intel_pt fails with this errno; mapping its AUX area does. 0: it works. */
void vmt_ptm_fail(int open_errno, int map_errno);

/* The event of a thread, or of a CPU with tid -1; its number. Fails when there is none. */
size_t vmt_ptm_event(int tid, int cpu);
size_t vmt_ptm_count(void); /* of intel_pt events */
const struct perf_event_attr *vmt_ptm_attr(size_t event);
const char *vmt_ptm_filter(size_t event); /* as it was set, "": none */

/*
 * The CPU writes: up to len bytes go into the area, which the kernel passes on with an AUX record
 * of `flags`. Returns how many: fewer than len when the area is full, and then the record says
 * TRUNCATED and the event is disabled; 0 while it is.
 */
size_t vmt_ptm_write(size_t event, const uint8_t *bytes, size_t len, uint64_t flags);
/* The same into an area that is mapped to be overwritten: aux_head is then a place in it. */
void vmt_ptm_overwrite(size_t event, const uint8_t *bytes, size_t len);
bool vmt_ptm_is_enabled(size_t event);
/* How many bytes find room now. May be asked by another thread than the reader's. */
size_t vmt_ptm_room(size_t event);

#endif
