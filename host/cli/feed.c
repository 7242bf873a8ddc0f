// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/cli/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "host/cli/drop.h"
#include "host/session/session.h"

static int choose_path(struct vmt_feed *feed, struct vmt_diag *diag)
{
	const struct vmt_cli *cli = feed->cli;

	if (cli->pt.hex)
		return 0;
	if (!cli->input)
		return vmt_session_newest(cli->nr_domains ? cli->domains[0] : NULL, feed->path,
					  sizeof(feed->path), diag);
	if (strlen(cli->input) >= sizeof(feed->path))
		return vmt_diag_printf(diag, VMT_E_USAGE, 0, "use a shorter path or standard input",
				       "the path of the input is too long");
	snprintf(feed->path, sizeof(feed->path), "%s", cli->input);
	return 0;
}

/*
 * For root a file that is to be replaced is put in place at once: later, without root, the folder
 * may not be writable any more. For others the old one stays until the new one is whole.
 */
static int open_output(struct vmt_feed *feed, struct vmt_diag *diag)
{
	const char *path = feed->cli->output;
	int fd = STDOUT_FILENO, err;

	feed->out = malloc(sizeof(*feed->out));
	if (!feed->out)
		return vmt_diag_set(diag, VMT_E_NOMEM, "memory is short", "");
	if (path && strcmp(path, "-") != 0) {
		err = vmt_output_not_input(path, feed->path, diag);
		if (!err)
			err = vmt_output_not_input(path, feed->cli->guest_kallsyms, diag);
		if (err)
			return err;
		err = vmt_output_open(&feed->file, path, feed->cli->force, NULL, diag);
		if (err)
			return err;
		feed->has_file = true;
		err = geteuid() ? 0 : vmt_output_commit(&feed->file, diag);
		if (err)
			return err;
		fd = feed->file.fd;
	}
	vmt_out_init(feed->out, fd, NULL);
	return 0;
}

/* The symbols' text is taken from a descriptor that was opened before root was given up. */
static int read_symbols(struct vmt_feed *feed, struct vmt_reader *text, struct vmt_diag *diag)
{
	const uint8_t *bytes;
	int64_t n = vmt_reader_peek(text, VMT_READER_MAX, &bytes, diag);

	if (n < 0)
		return (int)n;
	return vmt_kallsyms_from_text(&feed->symbols, bytes, (size_t)n, diag);
}

static int open_codes(struct vmt_feed *feed, struct vmt_diag *diag)
{
	const struct vmt_pt_cli *pt = &feed->cli->pt;

	for (; feed->nr_codes < pt->nr_codes; feed->nr_codes++) {
		int err = vmt_pt_code_open(&pt->codes[feed->nr_codes], &feed->codes[feed->nr_codes],
					   diag);

		if (err)
			return err;
	}
	return 0;
}

static int open_all(struct vmt_feed *feed, struct vmt_reader **kallsyms, struct vmt_diag *diag)
{
	const struct vmt_cli *cli = feed->cli;
	int err = choose_path(feed, diag);

	if (!err && !cli->pt.hex)
		err = vmt_reader_open(&feed->reader, feed->path, NULL, diag);
	if (!err)
		feed->recording = vmt_session_writes(feed->path);
	if (!err && cli->guest_kallsyms)
		err = vmt_reader_open(kallsyms, cli->guest_kallsyms, NULL, diag);
	if (!err)
		err = open_codes(feed, diag);
	if (!err)
		err = open_output(feed, diag);
	if (!err)
		err = vmt_cli_drop_rights(diag);
	if (!err && *kallsyms)
		err = read_symbols(feed, *kallsyms, diag);
	return err;
}

int vmt_feed_open(struct vmt_feed *feed, const struct vmt_cli *cli)
{
	struct vmt_reader *kallsyms = NULL;
	struct vmt_diag diag = { 0 };
	int err;

	memset(feed, 0, sizeof(*feed));
	feed->cli = cli;
	err = open_all(feed, &kallsyms, &diag);
	if (kallsyms)
		vmt_reader_close(kallsyms);
	return err ? vmt_cli_fail(&diag) : VMT_STATUS_OK;
}

struct vmt_input_pt vmt_feed_bare_stream(const struct vmt_cli *cli)
{
	const struct vmt_pt_cli *pt = &cli->pt;
	struct vmt_input_pt in = {
		.is_bare = pt->raw,
		.cpu = pt->cpu,
		.clock = pt->clock,
		.vms = pt->vms,
		.nr_vms = pt->nr_vms,
		.names = pt->names,
		.nr_names = pt->nr_names,
	};

	in.clock.tsc_hz = vmt_pt_tsc_hz(pt);
	return in;
}

int vmt_feed_input(struct vmt_feed *feed)
{
	const struct vmt_cli *cli = feed->cli;
	struct vmt_input_options options = cli->window;
	struct vmt_diag diag = { 0 };

	feed->pt = vmt_feed_bare_stream(cli);
	options.pt = &feed->pt;
	/* What is left out by type is not looked at by time, domain and vCPU. */
	if (!options.has_from && !options.has_to && !cli->nr_domains && !cli->nr_pids &&
	    !cli->vcpu_list) {
		options.types = feed->types;
		options.by_thread = feed->by_thread;
	}
	if (vmt_input_open(&feed->input, feed->reader, &options, &diag))
		return vmt_cli_fail(&diag);
	feed->reader = NULL;
	return VMT_STATUS_OK;
}

static bool is_named(const struct vmt_domain_info *d, const char *what)
{
	return (d->name && strcmp(d->name, what) == 0) || (d->uuid && strcmp(d->uuid, what) == 0);
}

static int refuse_domain(const struct vmt_input_facts *facts, const char *what)
{
	struct vmt_diag diag = { 0 };
	char names[200] = "";
	size_t at = 0;

	for (size_t i = 0; i < facts->nr_domains && at + 70 < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%.60s", at ? ", " : "",
				       facts->domains[i].name ? facts->domains[i].name : "?");
	vmt_diag_printf(&diag, VMT_E_NOT_FOUND, 0, NULL, "the capture has no domain %s", what);
	vmt_diag_cure(&diag, facts->nr_domains ? "it has: %s" : "it names no domains at all%s",
		      names);
	return vmt_cli_fail(&diag);
}

/* Compares the domains that the session document has named since the last time. */
static void look_up_domains(struct vmt_feed *feed)
{
	const struct vmt_input_facts *facts = vmt_input_facts(feed->input);

	for (; feed->nr_looked_up < facts->nr_domains; feed->nr_looked_up++) {
		for (size_t n = 0; n < feed->cli->nr_domains; n++) {
			if (is_named(&facts->domains[feed->nr_looked_up], feed->cli->domains[n]))
				vmt_filter_add_domain(&feed->filter, (uint32_t)feed->nr_looked_up);
		}
	}
}

static void note_pid(struct vmt_feed *feed, uint32_t pid)
{
	const struct vmt_cli *cli = feed->cli;

	for (size_t n = 0; n < cli->nr_pids; n++) {
		if ((uint32_t)cli->pids[n] == pid) {
			feed->pids_seen |= UINT64_C(1) << n;
			return;
		}
	}
	for (size_t n = 0; n < feed->nr_others; n++) {
		if (feed->others[n] == pid)
			return;
	}
	if (feed->nr_others < sizeof(feed->others) / sizeof(feed->others[0]))
		feed->others[feed->nr_others++] = pid;
}

static void note_seen(struct vmt_feed *feed, const struct vmt_event *event)
{
	struct vmt_filter any_vcpu;

	if (feed->cli->nr_pids && (event->has & VMT_HAS_TID) && event->pid)
		note_pid(feed, event->pid);
	if (!feed->filter.by_vcpu || !(event->has & VMT_HAS_VCPU) ||
	    vmt_vcpu_set_has(&feed->vcpus_seen, event->vcpu))
		return;
	any_vcpu = feed->filter;
	any_vcpu.by_vcpu = false;
	if (vmt_filter_passes(&any_vcpu, event))
		vmt_vcpu_set_add(&feed->vcpus_seen, event->vcpu);
}

static void take(void *context, const struct vmt_event *event)
{
	struct vmt_feed *feed = context;

	feed->seen++;
	if (feed->filter.by_domain)
		look_up_domains(feed);
	note_seen(feed, event);
	if (vmt_filter_passes(&feed->filter, event))
		feed->emit(feed->context, event);
}

/* Appends to a list in words; what does not fit is left out. */
static void list_number(char *text, size_t size, unsigned int n)
{
	size_t at = strlen(text);

	if (at + 16 < size)
		snprintf(text + at, size - at, "%s%u", at ? ", " : "", n);
}

static int check_pids(const struct vmt_feed *feed)
{
	const struct vmt_input_facts *facts = vmt_input_facts(feed->input);
	struct vmt_diag diag = { 0 };
	char there[200] = "";

	for (size_t n = 0; n < feed->cli->nr_pids; n++) {
		bool found = feed->pids_seen >> n & 1;

		for (size_t i = 0; i < facts->nr_domains; i++)
			found |= facts->domains[i].pid == (uint32_t)feed->cli->pids[n];
		if (found)
			continue;
		for (size_t i = 0; i < feed->nr_others; i++)
			list_number(there, sizeof(there), feed->others[i]);
		vmt_diag_printf(&diag, VMT_E_NOT_FOUND, 0, NULL, "the capture has no process %ld",
				(long)feed->cli->pids[n]);
		vmt_diag_cure(&diag, there[0] ? "it has: %s" : "it names no process at all%s",
			      there);
		return vmt_cli_fail(&diag);
	}
	return VMT_STATUS_OK;
}

/* A vCPU that the session document names is there, with or without events. */
static int check_vcpus(const struct vmt_feed *feed)
{
	const struct vmt_input_facts *facts = vmt_input_facts(feed->input);
	struct vmt_diag diag = { 0 };
	struct vmt_vcpu_set there = feed->vcpus_seen;
	char list[200] = "";

	for (size_t i = 0; i < facts->nr_domains; i++) {
		unsigned int v = 0;

		while (v < facts->domains[i].nr_vcpus && vmt_vcpu_set_add(&there, v))
			v++;
	}
	for (unsigned int v = 0; v < VMT_VCPU_SET_MAX; v++) {
		if (!vmt_vcpu_set_has(&there, v))
			continue;
		if (vmt_cli_wants_vcpu(feed->cli, v))
			return VMT_STATUS_OK;
		list_number(list, sizeof(list), v);
	}
	if (!feed->cli->vcpu_list)
		return VMT_STATUS_OK;
	vmt_diag_printf(&diag, VMT_E_NOT_FOUND, 0, NULL, "the capture has no vCPU %.60s",
			feed->cli->vcpu_list);
	vmt_diag_cure(&diag, list[0] ? "it has: %s" : "it has no event of a vCPU%s", list);
	return vmt_cli_fail(&diag);
}

static int check_pt(const struct vmt_feed *feed)
{
	const struct vmt_pt_cli *pt = &feed->cli->pt;
	struct vmt_diag diag = { 0 };

	if (!pt->given || pt->raw || vmt_input_facts(feed->input)->has_pt)
		return VMT_STATUS_OK;
	vmt_diag_printf(&diag, VMT_E_USAGE, 0, "a bare PT stream needs --pt-raw",
			"%s is for Intel PT, and the input has none", pt->given);
	return vmt_cli_fail(&diag);
}

static int check_domains(const struct vmt_feed *feed)
{
	const struct vmt_input_facts *facts = vmt_input_facts(feed->input);

	for (size_t n = 0; n < feed->cli->nr_domains; n++) {
		bool found = false;

		for (size_t i = 0; i < facts->nr_domains; i++)
			found |= is_named(&facts->domains[i], feed->cli->domains[n]);
		if (!found)
			return refuse_domain(facts, feed->cli->domains[n]);
	}
	return VMT_STATUS_OK;
}

int vmt_feed_run(struct vmt_feed *feed, vmt_event_fn *emit, void *context)
{
	const struct vmt_cli *cli = feed->cli;
	struct vmt_diag diag = { 0 };
	int status;

	feed->emit = emit;
	feed->context = context;
	feed->filter.by_domain = cli->nr_domains > 0;
	for (size_t n = 0; n < cli->nr_pids; n++)
		vmt_filter_add_pid(&feed->filter, (uint32_t)cli->pids[n]);
	feed->filter.by_vcpu = cli->vcpu_list != NULL;
	feed->filter.vcpus = cli->vcpus;
	if (vmt_input_run(feed->input, take, feed, &diag))
		return vmt_cli_fail(&diag);
	feed->seen += vmt_input_facts(feed->input)->unsent;
	status = check_pt(feed);
	if (!status)
		status = check_domains(feed);
	if (!status)
		status = check_pids(feed);
	return status ? status : check_vcpus(feed);
}

static double percent_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part * 100 / (double)whole : 0;
}

/* A capture that is cut off lost something of unknown size: more than none. */
bool vmt_feed_lost_more(const struct vmt_ledger *ledger, uint64_t records, double percent,
			char *what, size_t size)
{
	double lost = percent_of(ledger->records_lost, ledger->records_lost + records);
	double skipped = percent_of(ledger->bytes_skipped, ledger->bytes_total);

	if (lost > percent && lost >= skipped)
		snprintf(what, size, "%.3g %% of the records are lost", lost);
	else if (skipped > percent)
		snprintf(what, size, "%.3g %% of the bytes are lost", skipped);
	else if (percent <= 0 && ledger->truncated)
		snprintf(what, size, "the capture is cut off: an unknown part is lost");
	else if (percent <= 0 && ledger->overflows)
		snprintf(what, size, "%llu losses of unknown size",
			 (unsigned long long)ledger->overflows);
	else
		return false;
	return true;
}

int vmt_feed_finish(struct vmt_feed *feed, struct vmt_ledger ledger, uint64_t records)
{
	struct vmt_diag diag = { 0 };

	if (vmt_out_finish(feed->out, &diag))
		return vmt_cli_fail(&diag);
	if (feed->has_file) {
		feed->has_file = false;
		if (vmt_output_finish(&feed->file, &diag))
			return vmt_cli_fail(&diag);
	}
	if (feed->recording)
		ledger.truncated = false; /* the end is not there yet */
	if (feed->cli->has_max_loss && vmt_feed_lost_more(&ledger, records, feed->cli->max_loss,
							  diag.what, sizeof(diag.what))) {
		diag.code = VMT_E_TRUNCATED;
		vmt_diag_cure(&diag, "more than --max-loss %g allows", feed->cli->max_loss);
		return vmt_cli_fail(&diag);
	}
	return VMT_STATUS_OK;
}

void vmt_feed_close(struct vmt_feed *feed)
{
	if (feed->input)
		vmt_input_close(feed->input);
	if (feed->reader)
		vmt_reader_close(feed->reader);
	if (feed->has_file) /* not finished: half an output is none */
		vmt_output_discard(&feed->file);
	vmt_kallsyms_free(feed->symbols);
	for (size_t i = 0; i < feed->nr_codes; i++)
		if (feed->codes[i] >= 0)
			close(feed->codes[i]);
	free(feed->out);
}

static const char *find_symbol(void *context, uint64_t guest_rip, uint64_t *offset)
{
	const struct vmt_feed *feed = context;

	return vmt_kallsyms_find(feed->symbols, guest_rip, offset);
}

vmt_symbol_fn *vmt_feed_symbols(const struct vmt_feed *feed)
{
	return feed->symbols ? find_symbol : NULL;
}
