/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_STORMS_H
#define VMT_ANALYZE_STORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/report.h"
#include "decode/analyze/rows.h"

/*
 * Intervals in which the rate of a (reason, key) jumps, in one pass: exits are counted in buckets
 * of time, one series per row of the table by reason and key that has VMT_STORM_CANDIDATE exits,
 * and one per reason. Buckets begin at 10 ms and double when VMT_STORM_BUCKETS do not reach, so the
 * memory is bounded (6 MiB) and from/to are exact to one bucket. When all series are taken,
 * the one with the fewest exits makes room and is not taken up again, so that no series has a hole.
 *
 * A bucket is hot when its rate is VMT_STORM_FACTOR times the first quartile of its series and
 * clearly above its noise; neighbouring hot buckets form an interval, which is a storm when its
 * rate is VMT_STORM_FACTOR times the median of the buckets outside of it, at least
 * VMT_STORM_MIN_RATE a second and VMT_STORM_MIN_COUNT exits. A storm of a reason is shown when the
 * storms of its keys do not explain half of it.
 */
#define VMT_STORM_BUCKETS     4096u
#define VMT_STORM_WIDTH_NS    UINT64_C(10000000)
#define VMT_STORM_SERIES      256u
#define VMT_STORM_REASONS     128u
#define VMT_STORM_CANDIDATE   32u
#define VMT_STORM_FACTOR      4.0
#define VMT_STORM_MIN_RATE    1000.0
#define VMT_STORM_MIN_COUNT   100u
#define VMT_STORM_MIN_BUCKETS 8u  /* a shorter capture has no "before" */
#define VMT_STORM_MAX	      64u /* reported: those with the most exits */

struct vmt_storm_set;

/* NULL when memory is short. */
struct vmt_storm_set *vmt_storms_new(void);
void vmt_storms_free(struct vmt_storm_set *set);

/* Counts an exit at time_ns; sum is its row in a table by reason and key. False: memory is short.
 */
bool vmt_storms_add(struct vmt_storm_set *set, struct vmt_row_sum *sum, uint64_t time_ns);

/* The storms by count descending. stop_ns: end of the capture. NULL when memory is short; the
 * caller frees. */
struct vmt_storm *vmt_storms_finish(struct vmt_storm_set *set, uint64_t stop_ns, size_t *nr);

#endif
