// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "host/cli/session_text.h"

static int stop_one(const struct vmt_cli *cli, const struct vmt_session_info *session)
{
	struct vmt_session_info final;
	struct vmt_diag diag = { 0 };

	if (vmt_session_stop(session, &final, &diag))
		return vmt_cli_fail(&diag);
	if (final.last_error[0])
		vmt_cli_warn(cli, final.last_error);
	if (cli->format == VMT_FORMAT_JSON)
		vmt_print_session_json(stdout, &final);
	else
		vmt_print_session_summary(stdout, &final);
	return vmt_session_judge(cli, &final);
}

static int stop_all(const struct vmt_cli *cli)
{
	struct vmt_session_info *list;
	struct vmt_diag diag = { 0 };
	size_t count;
	int status = VMT_STATUS_OK;

	if (vmt_session_list_known(&list, &count, &diag))
		return vmt_cli_fail(&diag);
	for (size_t i = 0; i < count; i++) {
		int one = strcmp(list[i].state, "stale") ? stop_one(cli, &list[i]) : 0;

		status = status ? status : one;
	}
	free(list);
	return status;
}

int vmt_verb_stop(struct vmt_cli *cli)
{
	size_t count = cli->nr_args ? cli->nr_args : cli->nr_domains;
	int status = VMT_STATUS_OK;

	if (vmt_session_no_csv(cli))
		return VMT_STATUS_USAGE;
	vmt_session_sweep(cli);
	if (cli->all)
		return stop_all(cli);
	for (size_t i = 0; i < (count ? count : 1); i++) {
		const char *what = cli->nr_args ? cli->args[i] : count ? cli->domains[i] : NULL;
		struct vmt_session_info session;
		struct vmt_diag diag = { 0 };
		int one = vmt_session_find(what, &session, &diag) ? vmt_cli_fail(&diag)
								  : stop_one(cli, &session);

		status = status ? status : one;
	}
	return status;
}
