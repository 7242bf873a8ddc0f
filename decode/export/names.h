/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_NAMES_H
#define VMT_EXPORT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/input.h"
#include "decode/analyze/report.h"

/* How the exports name things; every format uses the same words. */

const char *vmt_event_type_name(enum vmt_event_type type); /* "exit" */
const char *vmt_source_name(enum vmt_source source);	   /* "kvm" */
const char *vmt_isa_name(enum vmt_isa isa);		   /* "vmx", "svm", NULL */
const char *vmt_severity_name(enum vmt_severity severity); /* "warn" */

/* Name of a domain by its index: its name, else its UUID, else NULL. */
const char *vmt_domain_label(const struct vmt_input_facts *facts, uint32_t domain);

/* Comma list of event types (exit,entry,gap) as bits 1 << type; 0 and *bad when a word is none. */
uint32_t vmt_event_types_parse(const char *list, const char **bad);

/* "1,234,567"; buf at least 27 bytes. */
char *vmt_count_text(char *buf, size_t size, uint64_t n);

/* A duration in the unit that fits: "812 ns", "4.31 us", "12.3 ms", "1.250 s". */
char *vmt_time_text(char *buf, size_t size, uint64_t ns);

/*
 * Shares of a whole in `units` (1000: tenths of a percent) that sum to `units` exactly when the
 * parts sum to the whole: rounded down, and the largest remainders get what is left. n <= 16.
 */
void vmt_apportion(const uint64_t *parts, unsigned int n, uint64_t whole, uint64_t units,
		   uint64_t *out);

#endif
