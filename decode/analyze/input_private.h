/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_INPUT_PRIVATE_H
#define VMT_ANALYZE_INPUT_PRIVATE_H

#include "decode/analyze/input.h"
#include "decode/analyze/pt_who.h"
#include "decode/analyze/tsc_writes.h"
#include "decode/correlate/perf_clock.h"
#include "decode/kvm/merge.h"
#include "decode/perfdata/perfdata.h"
#include "decode/store/store.h"

#define INPUT_DOMAINS_MAX 1024
#define INPUT_MARKS_MAX	  256
#define INPUT_RINGS_MAX	  4096

/* A mark that waits until the recs before its time have been joined. */
struct input_mark {
	uint64_t time_ns;
	uint32_t domain;
	const char *name; /* static */
};

/*
 * Exactly one of store, perf and raw is set. Recs go through merge into join; marks and file losses
 * are handed to the join between recs.
 */
struct vmt_input {
	struct vmt_store_reader *store;
	struct vmt_perfdata *perf;
	struct vmt_reader *raw; /* a bare PT stream */
	struct vmt_pt_decoder *pt;
	struct input_aux *aux; /* Intel PT beside tracepoints; NULL in a bare stream */
	struct vmt_pt_who *who;
	struct vmt_diag aux_diag;
	struct vmt_ring_set *ring;
	struct vmt_catalog *catalog;
	struct vmt_merge *merge;
	struct vmt_join *join;
	struct vmt_input_options options;
	struct vmt_input_facts facts;
	struct vmt_domain_info domains[INPUT_DOMAINS_MAX];
	char *domain_texts[INPUT_DOMAINS_MAX][3]; /* name, uuid, xml: owned */
	char *session_json, *host, *kernel, *tool;

	vmt_event_fn *emit;
	void *context;

	struct input_mark marks[INPUT_MARKS_MAX]; /* by time */
	size_t nr_marks;
	bool has_kvm_exit;   /* its format is there */
	bool has_tsc_writes; /* that of kvm_write_tsc_offset is */
	bool writes_found;   /* they are in writes */
	struct vmt_tsc_writes writes;
	bool has_clock;
	struct vmt_perf_clock clock;
	bool has_first;
	uint64_t first_ns, last_ns;		/* of the recs */
	uint64_t ring_last_ns[INPUT_RINGS_MAX]; /* time of each ring's last record, 0: none yet */
	bool front_dropped; /* a flight recorder dropped what was before the first record */
	bool window_settled, has_window_start, has_window_end;
	uint64_t window_start, window_end;
	uint64_t records_lost, overflows; /* that records in the rings tell */
	uint64_t record_bytes;		  /* of RECORDS, unpacked */
	uint64_t undecoded_bytes;	  /* of these, what could not be decoded */
};

/* The source's next item, as vmt_store_next. */
int input_next_item(struct vmt_input *in, struct vmt_item *item, struct vmt_diag *diag);

/* Takes domains, threads and host facts from a session document; a broken one is ignored. */
void input_session(struct vmt_input *in, const uint8_t *json, size_t len);

/* Host facts from a perf.data's features; in pipe mode they come with the first records. */
void input_perf_facts(struct vmt_input *in);

/* Queues a MARK item; a broken one is ignored. */
void input_mark(struct vmt_input *in, const uint8_t *json, size_t len);

/* The static text of a loss kind of FORMAT.md; "other" for one that is not known. */
const char *input_loss_kind(const char *kind);

/* Adds to the sums of a kind (static text). */
void input_loss_count(struct vmt_input *in, const char *kind, uint64_t records, uint64_t bytes);

/* Hands the marks up to a time to the join. */
void input_marks_until(struct vmt_input *in, uint64_t time_ns);

/* Takes a RECORDS item apart into the merge. */
void input_records(struct vmt_input *in, uint32_t stream, const uint8_t *bytes, size_t len);

/* An event on its way out: window and host TSC. */
void input_event(void *context, const struct vmt_event *event);

/* A record's time is one of the input's. */
void input_note_time(struct vmt_input *in, uint64_t time_ns);

/*
 * Looks for the writes in a capture that has Intel PT, whose TSC packets of guests cannot be read
 * otherwise; one without is left at its first record. 0, VMT_E_NOMEM, and what input_next_item
 * says.
 */
int input_find_tsc_writes(struct vmt_input *in, struct vmt_diag *diag);

/* ---- input_aux.c ---- */
int input_aux_open(struct vmt_input *in);
void input_aux_close(struct vmt_input *in);
bool input_aux_is_on(const struct vmt_input *in);
/* The source's Intel PT; NULL in a bare stream. */
const struct vmt_aux_index *input_aux_index(struct vmt_input *in);
/* A thread that is a vCPU (or, vcpu -1, a helper) of a domain. */
void input_vcpu(struct vmt_input *in, uint32_t tid, uint32_t pid, uint32_t domain, int vcpu);
void input_aux_links(struct vmt_input *in, const struct vmt_item *item);
void input_aux_tsc(struct vmt_input *in, const struct vmt_item *item);
/* Before the join gets a rec; 1: it is not to get it. */
int input_aux_before(struct vmt_input *in, const struct vmt_rec *rec);
void input_aux_after(struct vmt_input *in, const struct vmt_rec *rec);
/* What the join hands out: context is the input. */
void input_on_joined(void *context, const struct vmt_event *event);
int input_aux_finish(struct vmt_input *in, struct vmt_diag *diag);
/* Adds what of the trace could not be decoded. */
void input_aux_ledger(const struct vmt_input *in, struct vmt_ledger *ledger);
struct vmt_pt_counts input_aux_counts(const struct vmt_input *in);
/* Adds a loss that a PT decoder told to the sums. */
void input_pt_count_loss(struct vmt_input *in, const struct vmt_event *event);

/* ---- input_pt.c ---- */
/* Sets up for a bare PT stream, which takes the reader. */
int input_pt_open(struct vmt_input *in, struct vmt_reader *reader, struct vmt_diag *diag);
int input_pt_run(struct vmt_input *in, struct vmt_diag *diag);
struct vmt_join_counts input_pt_counts(const struct vmt_input *in);

/* The callback of the merge: context is the input. */
void input_on_rec(void *context, const struct vmt_rec *rec);

#endif
