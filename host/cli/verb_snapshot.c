// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>

#include "host/cli/session_text.h"
#include "host/cli/to_stdout.h"

int vmt_verb_snapshot(struct vmt_cli *cli)
{
	struct vmt_session_info session, info;
	struct vmt_diag diag = { 0 };
	char path[sizeof(session.file) + 64], size[24];
	bool to_stdout = vmt_is_stdout(cli->output);
	FILE *out = to_stdout ? stderr : stdout;

	if (vmt_session_no_csv(cli))
		return VMT_STATUS_USAGE;
	if (to_stdout &&
	    (vmt_to_stdout_check(&diag) || vmt_to_stdout_path(path, sizeof(path), &diag)))
		return vmt_cli_fail(&diag);
	vmt_session_sweep(cli);
	if (vmt_session_find(vmt_session_wanted(cli), &session, &diag))
		return vmt_cli_fail(&diag);
	if (cli->output && !to_stdout)
		snprintf(path, sizeof(path), "%s", cli->output);
	else if (!to_stdout)
		vmt_session_snapshot_path(session.file, path, sizeof(path));
	if (vmt_session_snapshot(&session, path, cli->force, &info, &diag))
		return vmt_cli_fail(&diag);
	if (to_stdout) {
		if (vmt_to_stdout(path, &diag))
			return vmt_cli_fail(&diag);
		snprintf(path, sizeof(path), "standard output");
		snprintf(info.file, sizeof(info.file), "-");
	}
	if (cli->format == VMT_FORMAT_JSON) {
		vmt_print_session_json(out, &info);
	} else {
		char safe[sizeof(path)];

		fprintf(out, "%s (%s), session %s goes on\n",
			vmt_text_safe(safe, sizeof(safe), path),
			vmt_text_bytes(size, sizeof(size), info.file_bytes), info.id);
	}
	return VMT_STATUS_OK;
}
