/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_REPORT_H
#define VMT_ANALYZE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/input.h"
#include "decode/base/event.h"
#include "vmx/exit.h"

/*
 * Everything that `vmtrace report` says, computed from the events in one pass with bounded memory;
 * decode/export writes it as text, JSON or CSV. Times are ns of the perf clock.
 */
struct vmt_row { /* one (isa, reason, flags, key), sorted by total_ns descending */
	enum vmt_isa isa;
	bool has_reason;
	uint32_t reason, reason_flags;
	struct vmt_key key;
	bool failed_entry;
	bool nested;
	uint32_t domain; /* UINT32_MAX: all or unknown */
	uint32_t vcpu;	 /* with --by vcpu, else UINT32_MAX */
	bool has_rip;
	uint64_t guest_rip; /* the most frequent */
	uint64_t rip_count; /* how many of count at that RIP (lower bound when rip_is_bound) */
	bool rip_is_bound;
	const char *rip_symbol; /* NULL: not known */
	uint64_t rip_symbol_offset;
	uint64_t count;
	uint64_t timed; /* how many of count have a known duration */
	uint64_t total_ns, min_ns, p50_ns, p95_ns, p99_ns, max_ns; /* valid if timed > 0 */
};

struct vmt_bill { /* one vCPU; the parts sum to wall_ns exactly */
	uint32_t domain, vcpu, tid;
	uint64_t wall_ns, guest_ns, exits_ns, userspace_ns, halt_poll_ns, halted_ns, preempted_ns,
		stopped_ns, residual_ns;
	uint64_t class_ns[VMX_CLASS_COUNT]; /* exits_ns by class */
	uint64_t entries, exits;
	bool has_switches; /* false: halted and preempted cannot be told apart and are in
			      exits/userspace */
};

struct vmt_storm {
	uint32_t domain, vcpu; /* UINT32_MAX: all */
	enum vmt_isa isa;
	uint64_t from_ns, to_ns;
	uint32_t reason;
	struct vmt_key key;
	double rate, rate_before; /* per second */
	uint64_t count;
};

enum vmt_severity {
	VMT_SEVERITY_NOTE,
	VMT_SEVERITY_WARN,
	VMT_SEVERITY_CRITICAL,
};

struct vmt_verdict {
	const char *id; /* rip-loop, halt-poll, irq-storm, not-exits, truncated, … */
	enum vmt_severity severity;
	char text[320];
	char evidence[320];
	char remedy[320];
};

struct vmt_report_options {
	const char *by;		    /* NULL: "reason,key"; comma list of reason,key,rip,vcpu */
	unsigned int domain_filter; /* UINT_MAX: all */
	uint64_t vcpu_mask_lo; /* bit n: vCPU n wanted; all ones: all (n >= 64: only when all) */
	bool storms;
};

struct vmt_report {
	const struct vmt_input_facts *facts;
	struct vmt_ledger ledger;
	uint64_t exits, entries, failed_entries;
	uint64_t nested_exits;
	uint64_t span_ns; /* of the events, or of the capture */
	size_t nr_rows, nr_bills, nr_storms, nr_verdicts;
	struct vmt_row *rows;
	struct vmt_bill *bills;
	struct vmt_storm *storms;
	struct vmt_verdict *verdicts; /* worst first */
	uint64_t rows_dropped; /* exits whose row did not fit the bound; they stand in a row without
				  key */
	bool concealed_known, concealed;
};

struct vmt_report_builder;
struct vmt_report_builder *vmt_report_new(const struct vmt_report_options *options);
void vmt_report_event(struct vmt_report_builder *builder, const struct vmt_event *event);

/* Symbol resolver for guest RIPs: returns a name that outlives the report, or NULL. */
typedef const char *vmt_symbol_fn(void *context, uint64_t guest_rip, uint64_t *offset);

/*
 * Ends the pass. facts and ledger are those of the input after its run. The report belongs to the
 * builder. NULL when memory is short.
 */
const struct vmt_report *vmt_report_finish(struct vmt_report_builder *builder,
					   const struct vmt_input_facts *facts,
					   struct vmt_ledger ledger, vmt_symbol_fn *symbol,
					   void *symbol_context);
void vmt_report_free(struct vmt_report_builder *builder);

#endif
