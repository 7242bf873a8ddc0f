/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_TRIGGER_WATCH_H
#define VMT_CAPTURE_TRIGGER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "host/capture/trigger.h"

/*
 * Looks for triggers in the records of a capture as they go by. It has no clock of its own: time is
 * what the records say. A trigger's `for` is divided into four quarters, at multiples of a quarter
 * of the perf clock, and the trigger holds when its limit was exceeded in four quarters on end; a
 * quarter that is not over counts as soon as what it holds exceeds the limit of a whole one. At ten
 * times the limit that takes three quarters of `for` and a tenth of one. A trigger that has fired
 * does so again only after a quarter in which it did not hold.
 *
 * Memory is fixed: VMT_TRIGGER_THREADS threads (those beyond count in rates alone) and the last 64
 * quarters. Records may come in any order within these, as rings are emptied one by one.
 */
#define VMT_TRIGGER_THREADS 1024u

struct vmt_trigger_watch;

/* The triggers are copied. VMT_E_NOMEM, VMT_E_USAGE for more than VMT_TRIGGERS_MAX. */
int vmt_trigger_watch_new(struct vmt_trigger_watch **out, const struct vmt_trigger *triggers,
			  size_t nr, struct vmt_diag *diag);
void vmt_trigger_watch_free(struct vmt_trigger_watch *watch);

/* Learns where kvm_exit and kvm_entry have their fields; other formats are passed over. */
void vmt_trigger_watch_format(struct vmt_trigger_watch *watch, const char *text, size_t len);

/* Whether records of this tracepoint are looked at, and how many bytes of one at most. */
#define VMT_TRIGGER_RAW_BYTES 64u
bool vmt_trigger_watch_wants(const struct vmt_trigger_watch *watch, uint16_t tracepoint);

/* A sample of a thread; raw begins with common_type and may be cut off. */
void vmt_trigger_watch_sample(struct vmt_trigger_watch *watch, uint32_t tid, uint64_t time_ns,
			      const uint8_t *raw, size_t len);

/* A SWITCH record: the thread goes on a CPU, or leaves it, ready to run or not. */
void vmt_trigger_watch_switch(struct vmt_trigger_watch *watch, uint32_t tid, uint64_t time_ns,
			      bool out, bool ready);

struct vmt_trigger_hit {
	uint64_t time_ns; /* when the last quarter exceeded the limit */
	char detail[160]; /* the trigger, and what was measured */
};

/* All records up to now_ns are in: decides which triggers hold. */
void vmt_trigger_watch_check(struct vmt_trigger_watch *watch, uint64_t now_ns);

/* Takes the first hit since the last call; false when there is none. */
bool vmt_trigger_watch_take(struct vmt_trigger_watch *watch, struct vmt_trigger_hit *hit);

#endif
