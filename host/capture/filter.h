/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_FILTER_H
#define VMT_CAPTURE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Kernel filters (Documentation/trace/events.rst, section 5). A filter text is at most a page;
 * thread ids are written as ranges and, where these do not fit, joined over the smallest gaps: a
 * filter may then let a foreign thread pass but never hides one of its own.
 */
#define VMT_FILTER_MAX 4000

struct vmt_range {
	uint64_t first, last;
};

/* Sorts ids (in place) and writes them as at most max ranges. Returns how many. */
size_t vmt_filter_ranges(pid_t *ids, size_t nr_ids, struct vmt_range *ranges, size_t max);

/*
 * Writes the filter "FIELD is one of ids" ("common_pid", "pid"). ids are sorted in place. No ids:
 * a filter that lets nothing pass.
 */
void vmt_filter_ids(char *text, size_t size, const char *field, pid_t *ids, size_t nr_ids);

/*
 * For events that fire anywhere: our threads, and all that are not a thread of another virtual
 * machine by their names. With `only_ids`: of our threads those that the filter above kept out.
 */
void vmt_filter_anywhere(char *text, size_t size, pid_t *ids, size_t nr_ids, bool only_ids);

/* "start..end touches one of the ranges". No ranges: the empty text, which means no filter. */
void vmt_filter_memory(char *text, size_t size, const struct vmt_range *ranges, size_t nr);

/*
 * Address ranges of a VMM that may be a guest's memory, from the text of /proc/PID/maps: writable
 * mappings of at least 64 KiB, joined where they touch or, beyond max, over the smallest gaps.
 */
size_t vmt_filter_guest_memory(const char *maps_path, struct vmt_range *ranges, size_t max);

#endif
