// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace script: events one a line, in order of time. */
#include <stdio.h>
#include <string.h>

#include "decode/analyze/reorder.h"
#include "decode/export/join.h"
#include "decode/export/names.h"
#include "decode/export/script.h"
#include "host/cli/feed.h"

struct writer {
	struct vmt_script script;
	struct vmt_reorder *reorder;
	bool begun;
};

static void write_event(void *context, const struct vmt_event *event)
{
	struct writer *w = context;

	vmt_script_event(&w->script, event);
}

/* The header names the domains, which are known from the first event on. */
static void begin(struct writer *w)
{
	if (!w->begun)
		vmt_script_begin(&w->script);
	w->begun = true;
}

/* What is not wanted is left out before the reordering, so that it does not fill it. */
static void take(void *context, const struct vmt_event *event)
{
	struct writer *w = context;

	begin(w);
	if (!w->script.types || (w->script.types >> event->type & 1))
		vmt_reorder_push(w->reorder, event);
}

static int run_all(struct vmt_feed *feed, struct writer *w)
{
	char text[120], join[320];
	int status;

	status = vmt_feed_run(feed, take, w);
	begin(w);
	vmt_reorder_flush(w->reorder);
	vmt_script_end(&w->script);
	if (feed->cli->verbose && w->script.format == VMT_SCRIPT_TEXT && w->script.facts->has_join)
		vmt_out_printf(feed->out, "%s\n",
			       vmt_join_text(join, sizeof(join), w->script.facts));
	if (vmt_reorder_late(w->reorder)) {
		snprintf(text, sizeof(text), "%llu events are printed behind younger ones",
			 (unsigned long long)vmt_reorder_late(w->reorder));
		vmt_cli_warn(feed->cli, text);
	}
	return status ? status : vmt_feed_finish(feed, vmt_input_ledger(feed->input), feed->seen);
}

static int run(struct vmt_feed *feed, uint32_t types)
{
	const struct vmt_cli *cli = feed->cli;
	struct writer w = { .script = { .out = feed->out,
					.format = (enum vmt_script_format)cli->format,
					.types = types,
					.tsc = cli->tsc,
					.symbol = vmt_feed_symbols(feed),
					.symbol_context = feed } };
	int status = vmt_feed_input(feed);

	if (status)
		return status;
	w.script.facts = vmt_input_facts(feed->input);
	w.reorder = vmt_reorder_new(0, write_event, &w);
	if (w.reorder) {
		status = run_all(feed, &w);
	} else {
		struct vmt_diag diag = { .code = VMT_E_NOMEM, .what = "memory is short" };

		status = vmt_cli_fail(&diag);
	}
	vmt_reorder_free(w.reorder);
	return status;
}

int vmt_verb_script(struct vmt_cli *cli)
{
	const char *bad = NULL;
	uint32_t types = cli->types ? vmt_event_types_parse(cli->types, &bad) : 0;
	struct vmt_feed feed;
	char what[120];
	int status;

	if (cli->types && !types) {
		snprintf(what, sizeof(what), "--type: '%.*s' is no type of event",
			 (int)(strcspn(bad, ",") < 60 ? strcspn(bad, ",") : 60), bad);
		return vmt_cli_usage(cli, what,
				     "types: entry, exit, userspace, switch, wakeup, inject, "
				     "tsc_write, note, mark, loss, gap");
	}
	status = vmt_feed_open(&feed, cli);
	if (!status)
		status = run(&feed, types);
	vmt_feed_close(&feed);
	return status;
}
