/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_INPUT_H
#define VMT_ANALYZE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/fuse.h"
#include "decode/analyze/pt_controls.h"
#include "decode/base/diag.h"
#include "decode/base/event.h"
#include "decode/base/item.h"
#include "decode/io/reader.h"
#include "decode/kvm/join.h"
#include "decode/pt/decoder.h"

/*
 * A capture of any format as one stream of events in time: reader -> items -> recs -> merge ->
 * join. Memory is bounded whatever the input's size.
 */
struct vmt_domain_info {  /* one domain of the session document; text lives as long as the input */
	const char *name; /* "pid N" when it has neither name nor UUID; NULL: not known */
	const char *uuid;
	const char *xml;
	uint32_t pid; /* VMM process, 0 unknown */
	unsigned int nr_vcpus;
};

/* What is missing for one reason, of the whole input whatever --time says. */
#define VMT_INPUT_LOSSES 24u

struct vmt_input_loss {
	const char *kind; /* static: ring, ring-full, size-limit, damaged, truncated, … */
	uint64_t times, records, bytes;
};

struct vmt_input_facts {
	const char *format; /* vmt, perf.data, pt */
	const char *host;   /* NULL: not known */
	const char *kernel;
	const char *tool;
	const char *session_json; /* NULL for perf.data */
	enum vmt_isa isa;
	size_t nr_domains;
	const struct vmt_domain_info *domains;
	bool has_start,
		has_stop; /* of the capture, from session and END or from the first/last rec */
	uint64_t start_ns, stop_ns;
	/* Time 0 of --time, script and report: where the capture starts, whatever the window. Known
	 * with the first event. */
	bool has_base;
	uint64_t base_ns;
	bool tsc_convertible; /* perf time can be turned into host TSC */
	bool has_switches; /* context switches are in the stream: blocked and preempted are known */
	bool closed;	   /* the writer closed the file in order */
	bool has_recorder_cpu;
	uint64_t recorder_cpu_ns; /* CPU time of the recorder up to its last word */
	uint64_t recorder_exits;  /* that it had seen by then, 0: not known */
	uint64_t late;		  /* recs that came too late for the merge */
	uint64_t unsent;	  /* events that options.types left out */
	size_t nr_losses;
	struct vmt_input_loss losses[VMT_INPUT_LOSSES];
	bool has_concealed; /* concealed is known */
	bool concealed;	    /* a VM was named, and nothing in the PT stream shows VMX non-root */
	bool has_pt;	    /* a capture with Intel PT beside its records */
	bool has_join;	    /* kvm_exit and Intel PT are there of one CPU at least */
	struct vmt_fuse_counts join;
	uint64_t vmcs_moved; /* times that a VMCS was seen with another thread than before */
	struct vmt_pt_controls pt_controls;
	unsigned int
		nr_pt_differs; /* of a capture with Intel PT: texts of vmt_pt_controls_compare */
	const char *pt_differs[VMX_PT_PROBLEMS_MAX];
};

/* What Intel PT does not say itself; in a capture it goes before what the file says. */
struct vmt_input_pt {
	bool is_bare; /* the input is the bare Intel PT stream of one CPU, no capture */
	struct vmt_pt_cpu cpu;
	struct vmt_pt_clock_params clock; /* tsc_hz 0: events have TSC, and no time in ns */
	const struct vmt_pt_vm *vms;	  /* domain: index into names */
	size_t nr_vms;
	const char (*names)[64];
	size_t nr_names;
};

struct vmt_input_options {
	bool has_from, has_to; /* --time: seconds from the start, or percent of the file's span */
	double from, to;
	bool percent;
	size_t merge_recs;	       /* 0: default */
	const struct vmt_input_pt *pt; /* NULL: nothing is said */
	bool by_thread; /* emit keeps threads apart: events of others may come up to 1 ms early */
	uint32_t types; /* 1u << enum vmt_event_type: others are counted only; 0: all */
};

struct vmt_input;

/*
 * Recognises the format by its magic, unless options say that it is a bare PT stream (the texts and
 * rows of options->pt must outlive the input). VMT_E_DAMAGED: neither .vmt nor perf.data.
 */
int vmt_input_open(struct vmt_input **out, struct vmt_reader *reader,
		   const struct vmt_input_options *options, struct vmt_diag *diag);
void vmt_input_close(struct vmt_input *input);

/*
 * Reads everything and hands each event to emit. 0 at the end of the input; VMT_E_IO, VMT_E_NOMEM.
 * Damage in the input is not an error here: it is a LOSS event and stands in the ledger. Only where
 * nothing at all can be decoded, because a perf.data has the format of none of its tracepoints, it
 * is VMT_E_DAMAGED (in file mode vmt_input_open says so).
 */
int vmt_input_run(struct vmt_input *input, vmt_event_fn *emit, void *context,
		  struct vmt_diag *diag);

/* Complete after vmt_input_run; before it, what the head of the file says. */
const struct vmt_input_facts *vmt_input_facts(const struct vmt_input *input);
struct vmt_ledger vmt_input_ledger(const struct vmt_input *input);
struct vmt_join_counts vmt_input_counts(const struct vmt_input *input);

#endif
