// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace report: where the time went, the findings, how far to trust them, the exits. */
#include <stdio.h>

#include "decode/analyze/report.h"
#include "decode/export/report_export.h"
#include "host/cli/feed.h"
#include "host/cli/terminal.h"

static void take(void *context, const struct vmt_event *event)
{
	vmt_report_event(context, event);
}

static void write_report(struct vmt_feed *feed, const struct vmt_report *report)
{
	const struct vmt_cli *cli = feed->cli;
	struct vmt_report_view view = { .width = vmt_cli_width(feed->out->fd),
					.color = vmt_cli_color(cli, feed->out->fd),
					.bill = cli->bill,
					.storms = cli->storms };

	switch (cli->format) {
	case VMT_FORMAT_TEXT:
		vmt_report_text(feed->out, report, &view);
		break;
	case VMT_FORMAT_JSON:
		vmt_report_json(feed->out, report);
		break;
	case VMT_FORMAT_CSV:
		vmt_report_csv(feed->out, report, &view);
		break;
	}
}

/* Loss says that findings cannot be relied on: it is told first. */
static int judge(struct vmt_feed *feed, const struct vmt_report *report)
{
	int status = vmt_feed_finish(feed, report->ledger, feed->seen);

	if (status || !feed->cli->has_fail_on || !report->nr_verdicts)
		return status;
	return report->verdicts[0].severity >= feed->cli->fail_on ? VMT_STATUS_FINDING
								  : VMT_STATUS_OK;
}

static int run(struct vmt_feed *feed)
{
	const struct vmt_cli *cli = feed->cli;
	struct vmt_report_options options = { .by = cli->by,
					      .storms = true,
					      .recording = feed->recording,
					      .filtered = cli->vcpu_list || cli->nr_domains ||
							  cli->nr_pids };
	struct vmt_report_builder *builder = NULL;
	const struct vmt_report *report = NULL;
	int status;

	feed->types = VMT_REPORT_TYPES;
	feed->by_thread = true;
	status = vmt_feed_input(feed);

	if (status)
		return status;
	builder = vmt_report_new(&options);
	if (builder)
		status = vmt_feed_run(feed, take, builder);
	if (builder && !status)
		report = vmt_report_finish(builder, vmt_input_facts(feed->input),
					   vmt_input_ledger(feed->input), vmt_feed_symbols(feed),
					   feed);
	if (report) {
		write_report(feed, report);
		status = judge(feed, report);
	} else if (!status) {
		struct vmt_diag diag = { .code = VMT_E_NOMEM,
					 .what = "memory is too short for the report",
					 .cure = "use --time, --vcpu or --by reason" };

		status = vmt_cli_fail(&diag);
	}
	vmt_report_free(builder);
	return status;
}

int vmt_verb_report(struct vmt_cli *cli)
{
	struct vmt_feed feed;
	int status;

	if (!vmt_report_by_ok(cli->by))
		return vmt_cli_usage(cli, "--by takes a list of reason, key, rip and vcpu",
				     "for example --by reason,key,rip");
	status = vmt_feed_open(&feed, cli);
	if (!status)
		status = run(&feed);
	vmt_feed_close(&feed);
	return status;
}
