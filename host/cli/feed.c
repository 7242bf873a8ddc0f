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
 * A file that is to be replaced is put in place at once: later, without root, the folder may not
 * be writable any more.
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
		err = vmt_output_commit(&feed->file, diag);
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

static int open_all(struct vmt_feed *feed, struct vmt_reader **kallsyms, struct vmt_diag *diag)
{
	const struct vmt_cli *cli = feed->cli;
	int err = choose_path(feed, diag);

	if (!err)
		err = vmt_reader_open(&feed->reader, feed->path, NULL, diag);
	if (!err && cli->guest_kallsyms)
		err = vmt_reader_open(kallsyms, cli->guest_kallsyms, NULL, diag);
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

int vmt_feed_input(struct vmt_feed *feed)
{
	const struct vmt_cli *cli = feed->cli;
	struct vmt_input_options options = cli->window;
	struct vmt_diag diag = { 0 };

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

static void take(void *context, const struct vmt_event *event)
{
	struct vmt_feed *feed = context;

	feed->seen++;
	if (feed->filter.by_domain)
		look_up_domains(feed);
	if (vmt_filter_passes(&feed->filter, event))
		feed->emit(feed->context, event);
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
	return check_domains(feed);
}

static double percent_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part * 100 / (double)whole : 0;
}

/* A capture that is cut off lost something of unknown size: more than none. */
bool vmt_feed_lost_more(const struct vmt_ledger *ledger, uint64_t records, double percent)
{
	double lost = percent_of(ledger->records_lost, ledger->records_lost + records);
	bool something = ledger->truncated || ledger->records_lost || ledger->bytes_skipped ||
			 ledger->overflows;

	return lost > percent || percent_of(ledger->bytes_skipped, ledger->bytes_total) > percent ||
	       (percent <= 0 && something);
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
	if (feed->cli->has_max_loss && vmt_feed_lost_more(&ledger, records, feed->cli->max_loss)) {
		vmt_cli_warn(feed->cli, "more is lost than --max-loss allows");
		return VMT_STATUS_LOSS;
	}
	return VMT_STATUS_OK;
}

void vmt_feed_close(struct vmt_feed *feed)
{
	if (feed->input)
		vmt_input_close(feed->input);
	if (feed->reader)
		vmt_reader_close(feed->reader);
	if (feed->has_file)
		vmt_output_close(&feed->file);
	vmt_kallsyms_free(feed->symbols);
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
