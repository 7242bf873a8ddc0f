// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Opening a session. Invariant: rights go before what they could be misused by is read: first what
 * opening does not need, before the domains' XML; then all but what following threads needs, before
 * control messages, libvirt's events and replayed files.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"
#include "host/capture/host_facts.h"
#include "host/session/control.h"
#include "host/session/guard.h"
#include "host/session/recorder_state.h"
#include "host/session/rights.h"

#define DEFAULT_LIMIT (UINT64_C(4) << 30)

static bool is_replay(const struct vmt_session_options *options)
{
	return options->backend && !strncmp(options->backend, "replay:", 7);
}

/* The file that is replayed; NULL: none. */
static const char *source_of(const struct vmt_session_options *options)
{
	return is_replay(options) ? options->backend + strlen("replay:") : NULL;
}

static uint64_t realtime_ns(void)
{
	struct timespec t = { 0, 0 };

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void time_text(uint64_t ns, char *text, size_t size)
{
	time_t seconds = (time_t)(ns / 1000000000u);
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(text, size, "%Y%m%d-%H%M%S", &tm))
		snprintf(text, size, "0");
}

static void make_id(struct vmt_recorder *r)
{
	char when[24];

	r->info.start_realtime_ns = realtime_ns();
	time_text(r->info.start_realtime_ns, when, sizeof(when));
	snprintf(r->info.id, sizeof(r->info.id), "s-%s-%d", when, getpid());
	r->info.pid = getpid();
	snprintf(r->info.backend, sizeof(r->info.backend), "%s",
		 r->options->backend ? r->options->backend : "auto");
	r->is_replay = is_replay(r->options);
	r->limit_bytes = r->options->limit_bytes ? r->options->limit_bytes : DEFAULT_LIMIT;
	snprintf(r->info.state, sizeof(r->info.state), "running");
}

/* ---- domains ---- */

static void name_of(const struct vmt_domain *d, char *text, size_t size)
{
	if (d->name)
		vmt_path_safe_name(d->name, text, size);
	else
		snprintf(text, size, "pid-%d", d->pid);
}

static void name_domains(struct vmt_recorder *r)
{
	size_t len = 0, size = sizeof(r->info.domains);

	for (size_t i = 0; i < r->domains.count && len < size; i++) {
		const struct vmt_domain *d = &r->domains.items[i];
		int n = d->name ? snprintf(r->info.domains + len, size - len, "%s%s", i ? "," : "",
					   d->name)
				: snprintf(r->info.domains + len, size - len, "%spid %d",
					   i ? "," : "", d->pid);

		len += n > 0 ? (size_t)n : 0;
	}
}

static int lock_domains(struct vmt_recorder *r, struct vmt_diag *diag)
{
	if (r->domains.count > VMT_LOCKS_MAX)
		return vmt_diag_printf(diag, VMT_E_USAGE, 0,
				       "name fewer, or start several sessions",
				       "a session holds at most %d domains", VMT_LOCKS_MAX);
	for (size_t i = 0; i < r->domains.count; i++) {
		const struct vmt_domain *d = &r->domains.items[i];
		char key[128];
		int fd;

		if (d->uuid[0])
			snprintf(key, sizeof(key), "%s", d->uuid);
		else
			name_of(d, key, sizeof(key));
		fd = vmt_domain_lock(key, r->info.id, diag);
		if (fd < 0)
			return fd;
		r->locks[r->nr_locks++] = fd;
	}
	return 0;
}

static int check_running(const struct vmt_recorder *r, struct vmt_diag *diag)
{
	for (size_t i = 0; i < r->domains.count && !is_replay(r->options); i++) {
		const struct vmt_domain *d = &r->domains.items[i];

		if (d->pid <= 0 && !strcmp(d->type, "test"))
			return vmt_diag_printf(
				diag, VMT_E_CAPABILITY, 0,
				"start --backend replay:FILE replays a recorded capture for it",
				"%s is a domain of libvirt's test driver and has no process",
				d->name ? d->name : "?");
		if (d->pid <= 0)
			return vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0,
					       d->note[0] ? d->note : "start it first",
					       "domain %s is not running on this host (%s)",
					       d->name ? d->name : "?", d->state);
	}
	return 0;
}

static int find_domains(struct vmt_recorder *r, struct vmt_diag *diag)
{
	const struct vmt_domain_query *query = &r->options->query;
	int err;

	/* A replay needs no domain of this host. */
	if (is_replay(r->options) && !query->nr_names && !query->nr_pids && !query->all)
		return 0;
	err = vmt_domains_find(&r->domains, query, diag);
	if (!err && !r->domains.count)
		err = vmt_diag_set(diag, VMT_E_NOT_FOUND, "no domain is running",
				   "vmtrace list --all shows those that are shut off");
	if (!err)
		err = check_running(r, diag);
	if (!err)
		err = lock_domains(r, diag);
	name_domains(r);
	return err;
}

/* ---- output and document ---- */

static int output_path(struct vmt_recorder *r, struct vmt_diag *diag)
{
	char folder[VMT_SESSION_PATH_MAX - 160], domain[101] = "replay", when[24];
	int err;

	if (r->options->output)
		return vmt_path_absolute(r->options->output, r->info.file, sizeof(r->info.file),
					 diag);
	err = vmt_path_data(folder, sizeof(folder), diag);
	if (err)
		return err;
	if (r->domains.count)
		name_of(&r->domains.items[0], domain, sizeof(domain));
	time_text(r->info.start_realtime_ns, when, sizeof(when));
	snprintf(r->info.file, sizeof(r->info.file), "%s/vmtrace-%s-%s.vmt", folder, domain, when);
	/* Two sessions of one name within a second. */
	if (!access(r->info.file, F_OK))
		snprintf(r->info.file, sizeof(r->info.file), "%s/vmtrace-%s-%s-%d.vmt", folder,
			 domain, when, getpid());
	return 0;
}

static int create_output(struct vmt_recorder *r, struct vmt_diag *diag)
{
	struct vmt_store_options options = {
		.compress = r->options->compress,
		.force = r->options->force,
		.limit_bytes = r->limit_bytes,
		.keep_ns = vmt_flight_keep_ns(&r->flight, r->options->keep_ns),
	};
	struct vmt_diag own = { 0 };
	int err = output_path(r, diag);

	if (err)
		return err;
	err = vmt_guard_output(r->info.file, source_of(r->options), diag);
	if (err)
		return err;
	options.min_free_bytes = vmt_path_free_guard(r->info.file);
	err = vmt_store_create_late(&r->store, r->info.file, &options, &own);
	if (err && diag && !diag->code)
		*diag = own;
	if (!err && own.code) /* --keep without effect on this file system */
		vmt_recorder_note(r, &own);
	return err;
}

/*
 * The last moment at which a file may be put in its place with the right to do so: of a replay,
 * before its file is read. One that does not begin as a capture waits until it could be opened.
 */
static int commit_before_replay(struct vmt_recorder *r, struct vmt_diag *diag)
{
	return vmt_guard_is_capture(source_of(r->options)) ? vmt_store_commit(r->store, diag) : 0;
}

static json_t *text_or_null(const char *text)
{
	json_t *value = *text ? json_string(text) : NULL;

	return value ? value : json_null();
}

/* The part of the session document that does not change. malloc'd. */
static char *base_document(const struct vmt_recorder *r)
{
	struct vmt_host_facts facts;
	json_t *doc = json_object(), *host = json_object();
	char *text, tool[40];

	snprintf(tool, sizeof(tool), "vmtrace %s", VMT_VERSION);
	vmt_host_facts_read(&facts);
	json_object_set_new(host, "hostname", text_or_null(facts.hostname));
	json_object_set_new(host, "kernel", text_or_null(facts.kernel));
	json_object_set_new(host, "cpu", text_or_null(facts.cpu));
	json_object_set_new(host, "vendor", text_or_null(facts.vendor));
	json_object_set_new(host, "cpus", json_integer(facts.nr_cpus));
	json_object_set_new(host, "isa",
			    facts.isa == VMT_ISA_VMX   ? json_string("vmx")
			    : facts.isa == VMT_ISA_SVM ? json_string("svm")
						       : json_null());
	json_object_set_new(doc, "schema", json_string("vmtrace-session/1"));
	json_object_set_new(doc, "tool", json_string(tool));
	json_object_set_new(doc, "session", json_string(r->info.id));
	json_object_set_new(doc, "backend", text_or_null(r->info.backend));
	json_object_set_new(doc, "host", host);
	json_object_set_new(doc, "start_realtime_ns",
			    json_integer((json_int_t)r->info.start_realtime_ns));
	text = json_dumps(doc, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(doc);
	return text;
}

/* What Intel PT had to be set up without. */
static void note_setup(struct vmt_recorder *r)
{
	const char *note = r->capture ? vmt_capture_note(r->capture) : NULL;
	struct vmt_diag diag = { 0 };

	if (!note)
		return;
	vmt_diag_set(&diag, VMT_E_UNSUPPORTED, note, "");
	vmt_recorder_note(r, &diag);
}

static int open_capture(struct vmt_recorder *r, struct vmt_diag *diag)
{
	char *json = base_document(r);
	struct vmt_capture_options options = { .backend = r->options->backend,
					       .buffer_bytes = r->options->buffer_bytes,
					       .pt_buffer_bytes = r->options->pt_buffer_bytes,
					       .pt_terms = r->options->pt_terms,
					       .pt_filter = r->options->pt_filter,
					       .vm_events_only = r->options->vm_events_only,
					       .system_wide = r->options->system_wide,
					       .pt_mode = r->options->pt_mode,
					       .pt_conceal = r->options->pt_conceal,
					       .pt_overwrite = r->options->keep_ns != 0,
					       .privacy = r->options->privacy,
					       .triggers = r->flight.triggers,
					       .nr_triggers = r->flight.nr_triggers,
					       .session_json = json };
	int err = json ? vmt_capture_open(&r->capture, &options, &r->domains, r->store, diag)
		       : vmt_diag_set(diag, VMT_E_NOMEM, "cannot start", "memory is short");

	free(json);
	note_setup(r);
	r->start_monotonic_ns = vmt_io_monotonic_ns();
	r->head_bytes = vmt_store_totals(r->store).file_bytes;
	return err;
}

/* A connection for the domains' events; a session without them goes on. */
static void open_watch(struct vmt_recorder *r)
{
	struct vmt_diag diag = { 0 };
	const char *uri = NULL;

	for (size_t i = 0; i < r->domains.count && !uri; i++) {
		if (r->domains.items[i].name && r->domains.items[i].uri[0])
			uri = r->domains.items[i].uri;
	}
	if (uri && vmt_watch_open(&r->watch, uri, &diag)) {
		r->watch = NULL;
		vmt_recorder_note(r, &diag);
	}
}

/* ---- the whole ---- */

static void name_triggers(struct vmt_recorder *r)
{
	size_t len = 0, size = sizeof(r->info.triggers);

	r->info.keep_ns = vmt_flight_keep_ns(&r->flight, r->options->keep_ns);
	for (size_t i = 0; i < r->flight.nr_triggers && len < size; i++)
		len += (size_t)snprintf(r->info.triggers + len, size - len, "%s%s", i ? "; " : "",
					r->flight.triggers[i].text);
}

static int open_steps(struct vmt_recorder *r, struct vmt_diag *diag)
{
	bool replay = is_replay(r->options);
	int err = vmt_flight_init(&r->flight, r->options, diag);

	name_triggers(r);
	if (!err)
		err = vmt_capture_prepare(r->options->backend, diag);
	if (!err)
		err = vmt_folder_make(&r->folder, r->info.id, diag);
	if (!err)
		err = vmt_rights_drop(VMT_RIGHTS_OPEN, diag);
	if (!err)
		err = find_domains(r, diag);
	if (!err)
		err = create_output(r, diag);
	if (!err)
		vmt_flight_open(r);
	if (!err && replay)
		err = commit_before_replay(r, diag);
	if (!err && replay)
		err = vmt_rights_drop(VMT_RIGHTS_REPLAY, diag);
	if (!err)
		err = open_capture(r, diag);
	if (!err)
		err = vmt_store_commit(r->store, diag);
	if (!err && !replay)
		err = vmt_rights_drop(VMT_RIGHTS_RUN, diag);
	if (!err)
		err = vmt_history_write(&r->info, diag);
	if (err)
		return err;
	open_watch(r);
	r->listener = vmt_control_listen(r->folder.dir, diag);
	if (r->listener < 0)
		return r->listener;
	vmt_recorder_update(r);
	return vmt_folder_write(&r->folder, &r->info, diag);
}

/* Frees a recorder that did not come up; the output is as it was before. */
static void abandon(struct vmt_recorder *r)
{
	if (r->capture)
		vmt_capture_close(r->capture, NULL);
	r->capture = NULL;
	if (r->store)
		vmt_store_discard(r->store);
	r->store = NULL;
	vmt_recorder_close(r, NULL, NULL);
}

int vmt_recorder_open(struct vmt_recorder **out, const struct vmt_session_options *options,
		      struct vmt_diag *diag)
{
	struct vmt_recorder *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot start", "memory is short");
	r->options = options;
	r->folder.dir = r->folder.alive = r->listener = -1;
	for (size_t i = 0; i < VMT_CONNECTIONS_MAX; i++)
		r->connections[i] = -1;
	make_id(r);
	err = open_steps(r, diag);
	if (!err) {
		r->ended = calloc(r->domains.count + 1, sizeof(*r->ended));
		err = r->ended ? 0
			       : vmt_diag_set(diag, VMT_E_NOMEM, "cannot start", "memory is short");
	}
	if (err) {
		abandon(r);
		return err;
	}
	*out = r;
	return 0;
}
