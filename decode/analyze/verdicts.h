/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_VERDICTS_H
#define VMT_ANALYZE_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/report.h"

/*
 * Findings: rules over a finished report. A rule is a row of the table in verdicts_table.c: an id
 * and a function that looks for the nth case of it.
 */
struct vmt_verdict_facts {
	const struct vmt_report *report;
	const struct vmt_row *rows; /* by reason and key, whatever the report's rows are by */
	size_t nr_rows;
	struct vmt_bill all;	  /* sum of all bills */
	double seconds;		  /* span of the capture */
	size_t nr_vcpus;	  /* with a bill, at least 1 */
	const uint64_t *injected; /* interrupts into the guest, by vector (256) */
	uint64_t injections;	  /* sum of them */
	uint64_t tsc_writes;	  /* KVM changed a TSC offset */
	uint64_t concealed_rips;  /* exits of protected guests */
	uint64_t losses;	  /* LOSS events */
	const char *vmm_name;	  /* "QEMU" */
};

struct vmt_rule {
	const char *id;
	unsigned int max; /* how many cases are told */
	/*
	 * Fills *out for the nth case and returns true; false when there is no such case. *score
	 * orders verdicts of one severity: the share of the time (0..1) that it is about.
	 */
	bool (*find)(const struct vmt_verdict_facts *facts, unsigned int nth,
		     struct vmt_verdict *out, double *score);
};

const struct vmt_rule *vmt_rules(size_t *nr);

/* All verdicts, worst first. NULL when memory is short; the caller frees. */
struct vmt_verdict *vmt_verdicts_find(const struct vmt_verdict_facts *facts, size_t *nr);

/* ---- shared by the rules ---- */

/* The row's reason and key in words: "IO_INSTRUCTION exits on port 0x608 (ACPI PM timer)". */
#define VMT_VERDICT_WHAT_MAX 120
char *vmt_verdict_what(char *buf, size_t size, const struct vmt_row *row);

/* "native_read_tsc+0x12 (0xffffffff81012345)", or the address alone. */
char *vmt_verdict_rip(char *buf, size_t size, const struct vmt_row *row);

/* What to change about a row: by key where the table knows it, else by MSR or reason. Never NULL.
 */
const char *vmt_verdict_remedy(const struct vmt_row *row);

/* What to change about exits on a key, whatever their reason; NULL when the table has nothing. A
 * key without access stands for both directions.
 */
const char *vmt_verdict_key_remedy(const struct vmt_key *key);

/* What a finding's id means, in general. */
struct vmt_verdict_words {
	const char *id;
	const char *brief;   /* a few words */
	const char *meaning; /* sentences */
	const char *remedy;
};

const struct vmt_verdict_words *vmt_verdict_words(size_t *nr);
/* NULL for an id that no rule has. */
const struct vmt_verdict_words *vmt_verdict_words_find(const char *id);

/* How a clock of the PC that is slow to read is called, when the row is a read of one, else NULL.
 */
const char *vmt_verdict_clock(const struct vmt_row *row);

/* Time of the row's exits as a share of all vCPUs' wall time, 0..1. */
double vmt_verdict_share(const struct vmt_verdict_facts *facts, uint64_t ns);
double vmt_verdict_rate(const struct vmt_verdict_facts *facts, uint64_t count);

/* Writes an unsigned number with thousands separated by commas. buf: at least 27 bytes. */
char *vmt_verdict_number(char *buf, size_t size, uint64_t n);

#endif
