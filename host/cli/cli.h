/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_CLI_H
#define VMT_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/analyze/input.h"
#include "decode/analyze/report.h"
#include "decode/base/diag.h"
#include "decode/base/vcpu_set.h"
#include "decode/rewrite/privacy.h"
#include "host/cli/pt_options.h"
#include "vmx/pt_plan.h"

/*
 * The command line: one table of options (options.c) and one of verbs (verbs.c) feed the parser,
 * --help, the man pages and the completion. One verb = one file verb_NAME.c.
 */
enum vmt_exit_status {
	VMT_STATUS_OK = 0,
	VMT_STATUS_FAILURE = 1,
	VMT_STATUS_USAGE = 2,
	VMT_STATUS_NO_DOMAIN = 3,
	VMT_STATUS_NOT_PERMITTED = 4,
	VMT_STATUS_NO_CAPABILITY = 5,
	VMT_STATUS_LOSS = 6,
	VMT_STATUS_FINDING = 10,
};

enum vmt_out_format {
	VMT_FORMAT_TEXT,
	VMT_FORMAT_JSON,
	VMT_FORMAT_CSV,
};

#define VMT_CLI_LIST_MAX 64

/* Every option's value, after parsing. Text points into argv. */
struct vmt_cli {
	const char *verb;
	const char *uri;
	const char *domains[VMT_CLI_LIST_MAX];
	size_t nr_domains;
	bool all;
	pid_t pids[VMT_CLI_LIST_MAX];
	size_t nr_pids;
	const char *vcpu_list;	   /* --vcpu as written, NULL: all */
	struct vmt_vcpu_set vcpus; /* what it names; see vmt_cli_wants_vcpu */
	const char *input;
	const char *output;
	bool force;
	enum vmt_out_format format;
	bool has_format;
	const char *time_text;
	struct vmt_input_options window;
	bool tsc;
	int color; /* 0 auto, 1 always, 2 never; resolved by vmt_cli_color */
	int verbose;
	bool quiet;
	bool has_max_loss;
	double max_loss;
	bool has_fail_on;
	enum vmt_severity fail_on;
	/* verbs' own */
	const char *backend, *pt_terms, *by, *types, *guest_kallsyms, *to, *caps;
	const char *setup_pt_mode, *pt_filter;
	const char *triggers[VMT_CLI_LIST_MAX];
	size_t nr_triggers;
	uint64_t before_ns, after_ns;
	enum vmx_pt_mode pt_mode;
	bool conceal, event_trace, vm_events_only, system_wide;
	enum vmt_privacy privacy;
	bool bill, storms, use_monitor, compress;
	uint64_t buffer_bytes, pt_buffer_bytes, keep_ns, limit_bytes, duration_ns;
	bool has_offset, has_mult, has_frac;
	int64_t offset;
	uint64_t mult;
	unsigned int frac;
	struct vmt_pt_cli pt;
	const char *args[VMT_CLI_LIST_MAX]; /* positional */
	size_t nr_args;
	char **command; /* after --, NULL terminated, or NULL */
};

/* Whether --vcpu names a vCPU; without --vcpu all are wanted. */
static inline bool vmt_cli_wants_vcpu(const struct vmt_cli *cli, uint64_t vcpu)
{
	return !cli->vcpu_list || vmt_vcpu_set_has(&cli->vcpus, vcpu);
}

typedef int vmt_verb_fn(struct vmt_cli *cli);

/* Prints `vmtrace: error: what` and the cure on a second line; returns the exit status for the
 * code. */
int vmt_cli_fail(const struct vmt_diag *diag);
/* The same for a text known at once. */
int vmt_cli_usage(const struct vmt_cli *cli, const char *what, const char *cure);
/* `vmtrace: warning: …` unless --quiet. */
void vmt_cli_warn(const struct vmt_cli *cli, const char *what);

vmt_verb_fn vmt_verb_list, vmt_verb_doctor, vmt_verb_start, vmt_verb_stop, vmt_verb_status,
	vmt_verb_snapshot, vmt_verb_record, vmt_verb_report, vmt_verb_script, vmt_verb_tsc,
	vmt_verb_explain, vmt_verb_decode, vmt_verb_vmx, vmt_verb_export, vmt_verb_setup;

#endif
