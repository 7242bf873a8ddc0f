// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>
#include <string.h>

#include "host/cli/session_text.h"
#include "host/cli/to_stdout.h"

static void print_text(const struct vmt_session_info *info)
{
	char size[24], file[sizeof(info->file)], domains[sizeof(info->domains)];

	printf("session %s captures %s\n", info->id,
	       vmt_text_safe(domains, sizeof(domains),
			     *info->domains ? info->domains : info->backend));
	printf("  file %s\n", vmt_text_safe(file, sizeof(file), info->file));
	if (info->bytes_per_minute)
		printf("  about %s a minute at the present rate\n",
		       vmt_text_bytes(size, sizeof(size), info->bytes_per_minute));
}

int vmt_verb_start(struct vmt_cli *cli)
{
	struct vmt_session_options options;
	struct vmt_session_info info;
	struct vmt_diag diag = { 0 };
	bool replay = cli->backend && !strncmp(cli->backend, "replay:", 7);

	if (vmt_session_no_csv(cli) || vmt_session_sides(cli))
		return VMT_STATUS_USAGE;
	if (!cli->nr_domains && !cli->nr_pids && !cli->all && !replay)
		return vmt_cli_usage(cli, "no domain is named",
				     "use --domain NAME, --all, or --pid PID; vmtrace list shows "
				     "the domains");
	if (vmt_is_stdout(cli->output))
		return vmt_cli_usage(cli, "a session in the background has no standard output",
				     "vmtrace record -o - writes the capture there at its end");
	vmt_session_sweep(cli);
	vmt_session_options_of(cli, &options);
	if (vmt_session_start(&options, &info, &diag))
		return vmt_cli_fail(&diag);
	if (info.last_error[0])
		vmt_cli_warn(cli, info.last_error);
	if (cli->format == VMT_FORMAT_JSON)
		vmt_print_session_json(stdout, &info);
	else
		print_text(&info);
	return VMT_STATUS_OK;
}
