// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace export: a capture in the format of another program. */
#include <stdio.h>
#include <string.h>

#include "decode/export/perfdata.h"
#include "decode/io/diagf.h"
#include "host/cli/export_vmt.h"
#include "host/cli/feed.h"

/* The output is feed->file, which an exporter takes over. */
typedef int export_fn(struct vmt_feed *feed);

static export_fn export_perfdata;

static const struct format_row {
	const char *name;
	export_fn *run;
} formats[] = {
	{ "perfdata", export_perfdata }, { "vmt", NULL }, /* writes its file itself */
};

static void warn_losses(const struct vmt_cli *cli, const struct vmt_perfdata_totals *t)
{
	char text[120];

	if (t->lost_trace_bytes) {
		snprintf(text, sizeof(text), "%llu bytes of trace could not be read",
			 (unsigned long long)t->lost_trace_bytes);
		vmt_cli_warn(cli, text);
	}
	if (t->sections_left_out) {
		snprintf(text, sizeof(text), "%llu header features are too large and left out",
			 (unsigned long long)t->sections_left_out);
		vmt_cli_warn(cli, text);
	}
}

static int export_perfdata(struct vmt_feed *feed)
{
	const struct vmt_input_pt pt = vmt_feed_bare_stream(feed->cli);
	struct vmt_perfdata_writer *writer;
	struct vmt_perfdata_totals totals;
	struct vmt_diag diag = { 0 };
	struct vmt_reader *reader = feed->reader;

	feed->has_file = false;
	if (vmt_perfdata_create(&writer, &feed->file, &diag))
		return vmt_cli_fail(&diag);
	feed->reader = NULL;
	if (vmt_perfdata_export(reader, feed->cli->pt.raw ? &pt : NULL, writer, &totals, &diag)) {
		vmt_perfdata_discard(writer);
		return vmt_cli_fail(&diag);
	}
	if (vmt_perfdata_finish(writer, &diag))
		return vmt_cli_fail(&diag);
	warn_losses(feed->cli, &totals);
	return vmt_feed_finish(feed, totals.ledger, totals.records);
}

static const struct format_row *format_of(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	}
	return NULL;
}

static int refuse_format(const struct vmt_cli *cli)
{
	char what[120], names[120] = "formats:";
	size_t at = strlen(names);

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, " %s", formats[i].name);
	if (!cli->to)
		return vmt_cli_usage(cli, "export needs --to FORMAT", names);
	snprintf(what, sizeof(what), "--to: '%.60s' is no format", cli->to);
	return vmt_cli_usage(cli, what, names);
}

int vmt_verb_export(struct vmt_cli *cli)
{
	const struct format_row *format = cli->to ? format_of(cli->to) : NULL;
	struct vmt_feed feed;
	int status;

	if (!format)
		return refuse_format(cli);
	if (!cli->output || !strcmp(cli->output, "-"))
		return vmt_cli_usage(cli, "export writes a file",
				     "name it with -o: the header of the file is written last");
	if (cli->time_text || cli->vcpu_list || cli->nr_pids)
		return vmt_cli_usage(cli, "export writes the whole capture",
				     "leave off --time, --vcpu and --pid");
	if (!format->run)
		return vmt_export_vmt(cli);
	if (cli->privacy)
		return vmt_cli_usage(cli, "--privacy goes with --to vmt",
				     "what that writes can be exported to other formats");
	status = vmt_feed_open(&feed, cli);
	if (!status)
		status = format->run(&feed);
	vmt_feed_close(&feed);
	return status;
}
