// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: what a reader needs to understand a record stands before it in the file: the session
 * document, formats and attrs first, and after each change of threads the new ones before the next
 * drain.
 */
#include "host/capture/capture.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"
#include "host/capture/anchors.h"
#include "host/capture/backends.h"
#include "host/capture/capture_with.h"
#include "host/capture/document.h"
#include "host/capture/host_facts.h"
#include "host/capture/live.h"
#include "host/capture/pt_setup.h"
#include "host/capture/replay.h"
#include "host/capture/tracefs.h"

#define DOCUMENT_PERIOD_NS UINT64_C(60000000000)
#define ANCHOR_PERIOD_NS   UINT64_C(10000000000)
#define VCPUS_MAX	   4096

/* The process of one domain. */
struct process {
	int pidfd;	/* -1: none (no process, or a kernel before 5.3) */
	uint64_t print; /* of its threads */
	bool gone;
};

struct vmt_capture {
	struct vmt_domains *domains;
	struct vmt_store_writer *store;
	char *base_json;
	struct vmt_clock clock;
	struct vmt_live *live;
	struct vmt_replay *replay;
	struct vmt_trigger_watch *watch; /* NULL: no trigger */
	struct process *processes;	 /* one a domain */
	struct vmt_capture_counts counts;
	struct vmt_document_facts facts;
	struct vmt_document_pt pt;
	const char *note;
	uint64_t document_due_ns, anchor_due_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_start_ns;
	uint64_t unknown_losses; /* of a size that nobody knows */
	bool overwrites;	 /* Intel PT: the front of the file is dropped as well */
	bool stopped;
};

int vmt_capture_prepare(const char *backend, struct vmt_diag *diag)
{
	struct vmt_backends wanted;
	char tracefs[VMT_TRACEFS_PATH_MAX];
	int err = vmt_backends_parse(backend, &wanted, diag);

	if (err || wanted.replay)
		return err;
	vmt_perf_raise_limits();
	return wanted.kvm || wanted.sched ? vmt_tracefs_open(tracefs, sizeof(tracefs), diag) : 0;
}

/* ---- documents and clocks ---- */

static uint64_t cpu_now_ns(void)
{
	struct timespec t = { 0, 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What the module tells of each vCPU's VMX controls; nothing where memory is short. */
static void read_controls(struct vmt_capture *c)
{
	if (!c->pt.controls && c->live && c->pt.recorded)
		c->pt.controls = calloc(VCPUS_MAX, sizeof(*c->pt.controls));
	c->pt.nr_controls =
		c->pt.controls ? vmt_live_controls(c->live, c->pt.controls, VCPUS_MAX) : 0;
}

static int write_document(struct vmt_capture *c, struct vmt_diag *diag)
{
	char *json;
	int err;

	c->facts.cpu_ns = cpu_now_ns() - c->cpu_start_ns;
	c->facts.exits = c->counts.exits;
	read_controls(c);
	json = vmt_document_live(c->base_json, &c->facts, &c->pt, c->domains);
	err = json ? vmt_store_session(c->store, json, diag)
		   : vmt_diag_set(diag, VMT_E_NOMEM, "cannot write the session document",
				  "memory is short");

	free(json);
	c->document_due_ns = vmt_io_monotonic_ns() + DOCUMENT_PERIOD_NS;
	return err;
}

uint64_t vmt_capture_now_ns(const struct vmt_capture *c)
{
	return c->replay ? vmt_replay_now_ns(c->replay) : vmt_clock_now_ns(&c->clock);
}

uint64_t vmt_capture_seen_ns(const struct vmt_capture *c)
{
	return c->replay ? vmt_replay_seen_ns(c->replay) : vmt_capture_now_ns(c);
}

/* Anchor and TSC snapshots of a live capture; a replay brings its own. */
static int write_clocks(struct vmt_capture *c, struct vmt_diag *diag)
{
	int err, second;

	c->anchor_due_ns = vmt_io_monotonic_ns() + ANCHOR_PERIOD_NS;
	if (c->replay)
		return 0;
	err = vmt_anchor_write(&c->clock, c->store, diag);
	second = vmt_vcpu_tsc_write(&c->clock, c->domains, c->store, diag);
	return err ? err : second;
}

static int write_mark(struct vmt_capture *c, uint32_t domain, const char *name, const char *detail,
		      struct vmt_diag *diag)
{
	uint64_t now = vmt_capture_now_ns(c);
	char *json = vmt_document_mark(now, domain, name, detail);
	int err = json ? vmt_store_mark(c->store, json, now, diag) : VMT_E_NOMEM;

	free(json);
	return err;
}

/* ---- opening ---- */

static int open_processes(struct vmt_capture *c, struct vmt_diag *diag)
{
	c->processes = calloc(c->domains->count + 1, sizeof(*c->processes));
	if (!c->processes)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture",
				    "memory is short");
	for (size_t i = 0; i < c->domains->count; i++) {
		pid_t pid = c->domains->items[i].pid;

		c->processes[i].pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
		c->processes[i].print = pid > 0 ? vmt_threads_print(pid) : 0;
	}
	return 0;
}

const char *vmt_capture_note(const struct vmt_capture *c)
{
	return c->note;
}

static int open_live(struct vmt_capture *c, const struct vmt_capture_options *options,
		     const struct vmt_backends *wanted, const struct vmt_perf_ops *ops,
		     const char *tracefs, const struct vmt_hostfs *fs, struct vmt_diag *diag)
{
	char found[VMT_TRACEFS_PATH_MAX];
	struct vmt_host_facts host;
	struct vmt_anchor anchor;
	int *cpus = NULL;
	int err = 0;

	vmt_host_facts_read(&host);
	vmt_anchor_read(&c->clock, &anchor);
	c->facts.start_ns = anchor.host_ns;
	c->facts.tsc_convertible = !(anchor.flags & VMT_ANCHOR_NO_TIME_ZERO);
	c->facts.has_switches = wanted->sched || (wanted->pt && options->system_wide);
	if (!tracefs && (wanted->kvm || wanted->sched))
		err = vmt_tracefs_open(found, sizeof(found), diag);
	if (!err)
		err = write_document(c, diag);
	if (err)
		return err;
	struct vmt_live_setup setup = { .ops = ops,
					.tracefs = tracefs ? tracefs : found,
					.kvm = wanted->kvm,
					.sched = wanted->sched,
					.isa = host.isa,
					.controls = -1,
					.buffer_bytes = options->buffer_bytes,
					.domains = c->domains,
					.store = c->store,
					.watch = c->watch };
	setup.nr_cpus = vmt_cpus_online(&cpus);
	setup.cpus = cpus;
	if (wanted->pt)
		err = vmt_pt_setup(&setup, options, &anchor, fs, diag);
	c->note = setup.config.note;
	c->pt = (struct vmt_document_pt){ .recorded = wanted->pt,
					  .mode = vmx_pt_mode_name(setup.mode),
					  .means = vmt_pt_means_name(setup.means),
					  .privacy = setup.privacy == VMT_PRIVACY_GUEST	 ? "guest"
						     : setup.privacy == VMT_PRIVACY_HOST ? "host"
											 : NULL,
					  .conceal = options->pt_conceal };
	if (!err)
		err = vmt_live_open(&c->live, &setup, diag);
	free(cpus);
	if (!err)
		err = vmt_live_write_existing(c->live, c->domains, diag);
	if (!err)
		err = write_clocks(c, diag);
	return err ? err : vmt_live_enable(c->live, diag);
}

static int open_replay(struct vmt_capture *c, const struct vmt_backends *wanted,
		       struct vmt_diag *diag)
{
	struct vmt_replay_setup setup = { .path = wanted->replay,
					  .base_json = c->base_json,
					  .domains = c->domains,
					  .store = c->store,
					  .watch = c->watch };
	int err = vmt_replay_open(&c->replay, &setup, diag);

	/* The head of the recording: who is in it, and its clock. */
	if (!err)
		err = vmt_replay_drain(c->replay, &c->counts, diag);
	return err < 0 ? err : 0;
}

/* What a trigger looks at must be recorded; a recording that lacks it never fires. */
static int open_watch(struct vmt_capture *c, const struct vmt_capture_options *options,
		      const struct vmt_backends *wanted, struct vmt_diag *diag)
{
	for (size_t i = 0; i < options->nr_triggers && !wanted->replay; i++) {
		const struct vmt_trigger *t = &options->triggers[i];
		bool of_switches = t->kind == VMT_TRIGGER_STEAL;

		/* steal is told of threads whose exits were seen */
		if (!wanted->kvm || (of_switches && !wanted->sched))
			return vmt_diag_printf(diag, VMT_E_USAGE, 0,
					       of_switches ? "--backend kvm,sched records them"
							   : "--backend kvm records them",
					       "the trigger %s needs %s", t->text,
					       of_switches ? "exits and context switches"
							   : "exits");
	}
	return options->nr_triggers ? vmt_trigger_watch_new(&c->watch, options->triggers,
							    options->nr_triggers, diag)
				    : 0;
}

static void capture_free(struct vmt_capture *c)
{
	for (size_t i = 0; c->processes && i < c->domains->count; i++) {
		if (c->processes[i].pidfd >= 0)
			close(c->processes[i].pidfd);
	}
	vmt_live_close(c->live);
	vmt_replay_close(c->replay);
	vmt_clock_close(&c->clock);
	vmt_trigger_watch_free(c->watch);
	free(c->processes);
	free(c->pt.controls);
	free(c->base_json);
	free(c);
}

int vmt_capture_open_with(struct vmt_capture **out, const struct vmt_capture_options *options,
			  struct vmt_domains *domains, struct vmt_store_writer *store,
			  const struct vmt_perf_ops *ops, const char *tracefs,
			  const struct vmt_hostfs *fs, struct vmt_diag *diag)
{
	struct vmt_capture *c = calloc(1, sizeof(*c));
	struct vmt_backends wanted;
	int err = vmt_backends_parse(options->backend, &wanted, diag);

	if (!err)
		err = vmt_pt_check_options(options, wanted.pt, diag);
	if (err || !c) {
		free(c);
		return err ? err
			   : vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture",
					  "memory is short");
	}
	c->domains = domains;
	c->overwrites = options->pt_overwrite;
	c->store = store;
	c->cpu_start_ns = cpu_now_ns();
	c->base_json = strdup(options->session_json ? options->session_json : "{}");
	vmt_clock_open(&c->clock, ops);
	err = open_processes(c, diag);
	if (!err)
		err = open_watch(c, options, &wanted, diag);
	if (!err && !c->base_json)
		err = vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture", "memory is short");
	if (!err)
		err = wanted.replay ? open_replay(c, &wanted, diag)
				    : open_live(c, options, &wanted, ops, tracefs, fs, diag);
	if (!err)
		err = write_mark(c, 0, "capture-start", NULL, diag);
	if (err) {
		capture_free(c);
		return err;
	}
	*out = c;
	return 0;
}

int vmt_capture_open(struct vmt_capture **out, const struct vmt_capture_options *options,
		     struct vmt_domains *domains, struct vmt_store_writer *store,
		     struct vmt_diag *diag)
{
	return vmt_capture_open_with(out, options, domains, store, &vmt_perf_system, NULL, NULL,
				     diag);
}

int vmt_capture_fd(const struct vmt_capture *c)
{
	return c->replay ? vmt_replay_fd(c->replay) : vmt_live_fd(c->live);
}

/* ---- running ---- */

static bool process_ended(const struct process *process)
{
	struct pollfd p = { .fd = process->pidfd, .events = POLLIN };

	return process->pidfd >= 0 ? poll(&p, 1, 0) == 1 : process->print == 0;
}

/* True when the domain's threads may have changed. Notes the end of its process. */
static bool look_at_process(struct vmt_capture *c, uint32_t index, struct vmt_diag *diag)
{
	struct process *process = &c->processes[index];
	pid_t pid = c->domains->items[index].pid;
	uint64_t print;

	if (process->gone || pid <= 0)
		return false;
	print = vmt_threads_print(pid);
	if (print == process->print && print && !process_ended(process))
		return false;
	process->print = print;
	if (!process_ended(process))
		return true;
	process->gone = true;
	write_mark(c, index, "stopped", "the process has ended", diag);
	return false;
}

static bool all_gone(const struct vmt_capture *c)
{
	size_t with_process = 0, gone = 0;

	for (size_t i = 0; i < c->domains->count; i++) {
		with_process += c->domains->items[i].pid > 0;
		gone += c->processes[i].gone;
	}
	return with_process && gone == with_process;
}

/* What is missing from now on is in the file: a LOSS of unknown size, and a MARK with the thread.
 */
static void write_uncaptured(struct vmt_capture *c)
{
	uint64_t now = vmt_capture_now_ns(c);
	uint32_t domain;
	pid_t tid = vmt_live_uncaptured(c->live, &domain);
	char detail[48];

	if (!tid)
		return;
	c->unknown_losses++;
	snprintf(detail, sizeof(detail), "thread %d", tid);
	vmt_store_loss(c->store, 0, "thread-not-captured", 0, UINT64_MAX, now, NULL);
	write_mark(c, domain, "thread-not-captured", detail, NULL);
}

/* Reads threads of the changed domains (mask by `all`) and follows them. */
static int follow(struct vmt_capture *c, bool all, struct vmt_diag *diag)
{
	bool changed = all;
	int err, document_err = 0;

	for (size_t i = 0; i < c->domains->count; i++) {
		struct vmt_domain *d = &c->domains->items[i];

		if (!look_at_process(c, (uint32_t)i, diag) && !all)
			continue;
		if (c->processes[i].gone || d->pid <= 0)
			continue;
		changed = true;
		vmt_domain_refresh(d, NULL); /* a thread that ends meanwhile is seen next time */
	}
	if (!changed)
		return 0;
	err = vmt_live_follow(c->live, c->domains, diag);
	if (err < 0)
		write_uncaptured(c);
	if (err)
		document_err = write_document(c, diag);
	return err < 0 ? err : document_err;
}

static int look_at_cpus(struct vmt_capture *c, struct vmt_diag *diag)
{
	int *cpus = NULL;
	size_t nr = vmt_cpus_online(&cpus);
	int err = nr ? vmt_live_add_cpus(c->live, cpus, nr, diag) : 0;

	free(cpus);
	return err;
}

static int keep(int first, int next)
{
	return first < 0 ? first : next < 0 ? next : 0;
}

/* Empties the rings and ends the round. What the kernel or a ring left out becomes a LOSS. */
static int drain_rings(struct vmt_capture *c, struct vmt_diag *diag)
{
	struct vmt_capture_counts before = c->counts;
	uint64_t start_ns = c->watch ? vmt_clock_now_ns(&c->clock) : 0;
	int err = vmt_live_drain(c->live, &c->counts, diag);
	uint64_t now = c->counts.last_ns;

	if (c->watch)
		vmt_trigger_watch_check(c->watch, start_ns ? start_ns : now);
	c->unknown_losses += err == VMT_E_DAMAGED ? 1 : 0;
	c->unknown_losses += c->counts.pt.truncated + c->counts.pt.collisions -
			     before.pt.truncated - before.pt.collisions;
	c->unknown_losses += c->counts.throttles != before.throttles ? 1 : 0;
	if (err == VMT_E_DAMAGED)
		err = keep(err, vmt_store_loss(c->store, 0, "ring-damaged",
					       c->counts.unstored - before.unstored, UINT64_MAX,
					       now, diag));
	if (c->counts.throttles != before.throttles)
		err = keep(err, vmt_store_loss(c->store, 0, "throttled", 0, UINT64_MAX, now, diag));
	if (c->counts.records != before.records)
		err = keep(err, vmt_store_round(c->store, now, diag));
	return err;
}

/* What the rings lost last is told by no record in them: it becomes a LOSS. */
static int write_untold_loss(struct vmt_capture *c, struct vmt_diag *diag)
{
	uint64_t lost;
	bool known = vmt_live_lost(c->live, &lost);

	if (known ? lost <= c->counts.lost : !lost)
		return 0;
	if (known) {
		lost -= c->counts.lost;
		c->counts.lost += lost;
	}
	c->counts.overflows++;
	c->unknown_losses += known ? 0 : 1;
	return vmt_store_loss(c->store, 0, "ring-full", 0, lost, c->counts.last_ns, diag);
}

static int drain_live(struct vmt_capture *c, struct vmt_diag *diag)
{
	uint64_t now = vmt_io_monotonic_ns();
	int err = drain_rings(c, diag);

	if (now >= c->anchor_due_ns) {
		err = keep(err, look_at_cpus(c, diag));
		err = keep(err, follow(c, true, diag));
		err = keep(err, write_clocks(c, diag));
	} else {
		err = keep(err, follow(c, false, diag));
	}
	if (now >= c->document_due_ns)
		err = keep(err, write_document(c, diag));
	return err < 0 ? err : all_gone(c);
}

int vmt_capture_drain(struct vmt_capture *c, struct vmt_diag *diag)
{
	return c->replay ? vmt_replay_drain(c->replay, &c->counts, diag) : drain_live(c, diag);
}

static int take_snapshot(struct vmt_capture *c, struct vmt_diag *diag)
{
	int err = c->overwrites ? vmt_live_write_existing(c->live, c->domains, diag) : 0;
	int second = vmt_live_snapshot(c->live, vmt_capture_now_ns(c), &c->counts, diag);

	return err ? err : second;
}

int vmt_capture_flush(struct vmt_capture *c, struct vmt_diag *diag)
{
	int status = vmt_capture_drain(c, diag);
	int err = c->live ? take_snapshot(c, diag) : 0;

	return status < 0 ? status : err < 0 ? err : status;
}

bool vmt_capture_triggered(struct vmt_capture *c, struct vmt_trigger_hit *hit)
{
	return c->watch && vmt_trigger_watch_take(c->watch, hit);
}

int vmt_capture_mark(struct vmt_capture *c, uint32_t domain, const char *name, const char *detail,
		     struct vmt_diag *diag)
{
	int err = write_mark(c, domain, name, detail, diag);

	if (!c->live)
		return err;
	err = keep(err, follow(c, true, diag));
	return keep(err, write_clocks(c, diag));
}

struct vmt_capture_stats vmt_capture_stats(const struct vmt_capture *c)
{
	struct vmt_live_totals live =
		c->live ? vmt_live_totals(c->live) : (struct vmt_live_totals){ 0 };

	return (struct vmt_capture_stats){
		.records = c->counts.records,
		.bytes = c->counts.bytes,
		.lost_records = c->counts.lost + vmt_store_totals(c->store).lost_records,
		.unknown_losses = c->unknown_losses,
		.rings = live.rings,
		.descriptors = live.descriptors,
		.threads = live.threads,
		.exits = c->counts.exits,
		.pt_areas = live.pt_areas,
		.pt_bytes = c->counts.pt.bytes,
		.pt_truncated = c->counts.pt.truncated,
		.pt_partial = c->counts.pt.partial,
		.pt_collisions = c->counts.pt.collisions,
		.pt_unstored = c->counts.pt.unstored,
		.cpu_ns = cpu_now_ns() - c->cpu_start_ns,
	};
}

int vmt_capture_stop(struct vmt_capture *c, struct vmt_diag *diag)
{
	int err = 0;

	if (c->stopped)
		return 0;
	c->stopped = true;
	if (c->live) {
		vmt_live_disable(c->live);
		err = drain_rings(c, diag);
		err = keep(err, take_snapshot(c, diag));
		err = keep(err, write_untold_loss(c, diag));
		for (size_t i = 0; i < c->domains->count; i++) {
			if (!c->processes[i].gone && c->domains->items[i].pid > 0)
				vmt_domain_refresh(&c->domains->items[i], NULL);
		}
		err = keep(err, write_clocks(c, diag));
		err = keep(err, write_document(c, diag));
	}
	return keep(err, write_mark(c, 0, "capture-stop", NULL, diag));
}

int vmt_capture_close(struct vmt_capture *c, struct vmt_diag *diag)
{
	int err = vmt_capture_stop(c, diag);

	capture_free(c);
	return err;
}
