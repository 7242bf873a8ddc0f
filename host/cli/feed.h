/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_FEED_H
#define VMT_CLI_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "decode/analyze/filter.h"
#include "decode/analyze/input.h"
#include "decode/analyze/report.h"
#include "decode/export/out.h"
#include "decode/io/output.h"
#include "decode/io/reader.h"
#include "decode/symbols/kallsyms.h"
#include "host/cli/cli.h"

/*
 * What report, script and decode have in common: the input (-i, -, or the newest session of the
 * domain), the output (-o or standard output), the guest's symbols and code are opened, then root
 * is given up, then they are read.
 */
struct vmt_feed {
	const struct vmt_cli *cli;
	char path[512];		   /* of the input, "-" for standard input */
	struct vmt_reader *reader; /* owned by input once that is open */
	struct vmt_input *input;
	struct vmt_input_pt pt;	      /* --pt-raw */
	struct vmt_kallsyms *symbols; /* NULL: none */
	int codes[VMT_CLI_CODES_MAX]; /* of --elf and --raw, opened; -1: taken over */
	size_t nr_codes;
	struct vmt_output file; /* -o */
	bool has_file;
	struct vmt_out *out;
	struct vmt_filter filter;
	size_t nr_looked_up; /* domains of the input that were compared with --domain */
	vmt_event_fn *emit;
	void *context;
	uint64_t pids_seen;		/* bit n: --pid n had an event */
	struct vmt_vcpu_set vcpus_seen; /* that had one, in what --domain and --pid choose */
	uint32_t others[8];		/* processes that --pid does not name */
	size_t nr_others;
	uint64_t seen;	/* events, wanted or not */
	bool by_thread; /* as in struct vmt_input_options; set before vmt_feed_input */
	uint32_t types; /* set before vmt_feed_input: the types that emit needs; 0: all */
	bool recording; /* a session still writes the input */
};

/*
 * Opens input, output and symbols and gives root away. Returns VMT_STATUS_OK or, having said why,
 * another exit status; vmt_feed_close is to be called in either case.
 */
int vmt_feed_open(struct vmt_feed *feed, const struct vmt_cli *cli);

/* What the command line says about a bare PT stream; texts and rows are the command line's. */
struct vmt_input_pt vmt_feed_bare_stream(const struct vmt_cli *cli);

/* Recognises the input's format: feed->input. As above. */
int vmt_feed_input(struct vmt_feed *feed);

/*
 * Reads everything; the events that --domain, --pid and --vcpu want go to emit. Domains are looked
 * up in the session document as it comes. VMT_STATUS_NO_DOMAIN when a domain or process is not
 * in the input, or none of the vCPUs.
 */
int vmt_feed_run(struct vmt_feed *feed, vmt_event_fn *emit, void *context);

/*
 * Ends the output and gives the exit status: a failed write, then loss beyond --max-loss
 * (`records`: how many were seen).
 */
int vmt_feed_finish(struct vmt_feed *feed, struct vmt_ledger ledger, uint64_t records);
void vmt_feed_close(struct vmt_feed *feed);

/* For vmt_symbol_fn: context is the feed; NULL when there are no symbols. */
vmt_symbol_fn *vmt_feed_symbols(const struct vmt_feed *feed);

/*
 * Whether loss is beyond the limit, in percent of bytes and of records. Says what is lost: "18.3 %
 * of the bytes are lost".
 */
bool vmt_feed_lost_more(const struct vmt_ledger *ledger, uint64_t records, double percent,
			char *what, size_t size);

#endif
