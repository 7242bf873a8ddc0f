/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_BILL_H
#define VMT_ANALYZE_BILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/report.h"

/*
 * Where each vCPU's time went: a partition of the wall time. Events come as the join hands them
 * out: an exit when it ends, before the entry that ends it. One vCPU has a cursor up to which its
 * time is charged; every event charges the time from the cursor to itself to exactly one part (an
 * exit splits its duration by its *_part_ns), so the parts always sum to the wall time.
 *
 * Residual is what the stream does not tell: before the first event, across losses, after exits
 * without a duration. While the domain is paused or gone, time is `stopped` whatever else was
 * known. Without context switches in the stream, blocked and runnable cannot be told apart and the
 * time of exits for HLT and MWAIT counts as halted.
 */
#define VMT_BILL_VCPUS_MAX   4096u
#define VMT_BILL_DOMAINS_MAX 1024u
#define VMT_BILL_STOPS_MAX   4096u /* of a domain; further ones are joined to the last */

struct vmt_bill_set;

/* NULL when memory is short. */
struct vmt_bill_set *vmt_bill_new(void);
void vmt_bill_free(struct vmt_bill_set *set);

/* Any event; class is the exit's (ignored for other types). False when memory is short. */
bool vmt_bill_event(struct vmt_bill_set *set, const struct vmt_event *event,
		    enum vmx_exit_class class);

/*
 * Times of the first and last event, and the last end of an exit where that is later; false when no
 * event had a time.
 */
bool vmt_bill_span(const struct vmt_bill_set *set, uint64_t *first_ns, uint64_t *last_ns,
		   uint64_t *last_end_ns);

/*
 * The bills over [start_ns, stop_ns], which must contain the first and last event, by domain and
 * vCPU; an exit that ends later is cut off there. `complete`:
 * nothing is missing at the end, so a vCPU that had entered stayed in the guest. NULL when memory
 * is short; the caller frees.
 */
struct vmt_bill *vmt_bill_finish(struct vmt_bill_set *set, uint64_t start_ns, uint64_t stop_ns,
				 bool has_switches, bool complete, size_t *nr);

/* Events of vCPUs beyond VMT_BILL_VCPUS_MAX, which have no bill. */
uint64_t vmt_bill_unbilled(const struct vmt_bill_set *set);

#endif
