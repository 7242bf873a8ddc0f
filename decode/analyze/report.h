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
	enum vmx_exit_class class;
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
	uint64_t timed;			   /* how many of count have a known duration */
	uint64_t total_ns, min_ns, max_ns; /* valid if timed > 0 */
	uint64_t userspace_ns;		   /* of total_ns: on CPU in the VMM */
	bool has_percentiles; /* false: the histograms' memory did not reach for all of them */
	uint64_t p50_ns, p95_ns, p99_ns; /* valid if timed > 0 and has_percentiles */
};

struct vmt_bill { /* one vCPU; the parts sum to wall_ns exactly */
	uint32_t domain, vcpu, tid;
	uint64_t wall_ns, guest_ns, exits_ns, userspace_ns, halt_poll_ns, halted_ns, preempted_ns,
		stopped_ns, residual_ns;
	uint64_t class_ns[VMX_CLASS_COUNT]; /* exits_ns by class */
	uint64_t entries, exits;
	bool has_switches; /* false: preempted cannot be told and stands in exits or userspace, and
			      halted is the time of the exits for HLT and MWAIT */
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
	char remedy[480];
};

struct vmt_report_options {
	const char *by; /* NULL: "reason,key"; comma list of reason,key,rip,vcpu */
	bool storms;	/* look for them: costs 6 MiB */
	bool recording; /* the input is still being written: its end is not cut off */
	bool filtered;	/* only some domains or vCPUs are fed: others are not silent */
};

struct vmt_report {
	const struct vmt_input_facts *facts;
	struct vmt_ledger ledger;
	uint64_t exits, entries, failed_entries;
	uint64_t nested_exits;
	uint64_t base_ns; /* time 0: where the capture starts; before start_ns with --time */
	uint64_t start_ns, stop_ns; /* capture, widened to the events where they lie outside */
	uint64_t span_ns;	    /* stop_ns - start_ns */
	size_t nr_rows, nr_bills, nr_storms, nr_verdicts;
	struct vmt_row *rows;
	struct vmt_bill *bills;
	struct vmt_storm *storms;
	struct vmt_verdict *verdicts; /* worst first */
	unsigned int by;	      /* VMT_ROWS_BY_* of rows.h: what tells the rows apart */
	uint64_t records;	      /* events of any type that were counted */
	uint64_t rows_dropped; /* exits whose row did not fit the bound; they stand in a row without
				  key */
	uint64_t events_unbilled; /* of vCPUs beyond VMT_BILL_VCPUS_MAX, which have no bill */
	/* Without any exit: returns to the VMM by reason (key user:N) and KVM's records by key. */
	struct vmt_row *returns;
	size_t nr_returns;
	bool nested_known; /* an exit said whether it is nested */
	bool concealed_known, concealed;
	bool recording, filtered; /* as in the options */
};

struct vmt_report_builder;

/* NULL when memory is short or options->by is not a list of dimensions (vmt_report_by_ok). */
struct vmt_report_builder *vmt_report_new(const struct vmt_report_options *options);

/* Whether text is a comma list of reason,key,rip,vcpu. */
bool vmt_report_by_ok(const char *by);

/* The types of events that say something to a report: 1u << enum vmt_event_type. */
#define VMT_REPORT_TYPES                                                                           \
	(1u << VMT_EVENT_ENTRY | 1u << VMT_EVENT_EXIT | 1u << VMT_EVENT_SWITCH |                   \
	 1u << VMT_EVENT_INJECT | 1u << VMT_EVENT_TSC_WRITE | 1u << VMT_EVENT_MARK |               \
	 1u << VMT_EVENT_LOSS | 1u << VMT_EVENT_GAP)

/* Events in the order in which the join hands them out. */
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

/* Sum of all bills of a report; domain and vcpu are UINT32_MAX. */
void vmt_bill_sum(const struct vmt_report *report, struct vmt_bill *out);

#endif
