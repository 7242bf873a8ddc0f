// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/cli/result.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/terminal.h"

int vmt_result_open(struct vmt_result *result, const struct vmt_cli *cli)
{
	struct vmt_diag diag = { .code = VMT_OK };
	int fd = STDOUT_FILENO;

	memset(result, 0, sizeof(*result));
	result->cli = cli;
	result->out = malloc(sizeof(*result->out));
	if (!result->out) {
		vmt_diag_set(&diag, VMT_E_NOMEM, "no memory for the output", "");
		return vmt_cli_fail(&diag);
	}
	if (cli->output && strcmp(cli->output, "-") != 0) {
		if (vmt_output_not_input(cli->output, cli->input, &diag) ||
		    vmt_output_open(&result->file, cli->output, cli->force, NULL, &diag))
			return vmt_cli_fail(&diag);
		result->has_file = true;
		fd = result->file.fd;
	}
	vmt_out_init(result->out, fd, NULL);
	result->page = (struct vmt_page){ .out = result->out,
					  .width = vmt_cli_width(fd),
					  .color = vmt_cli_color(cli, fd) };
	if (result->page.width < 60)
		result->page.width = 60;
	result->json = (struct vmt_json){ .out = result->out, .pretty = true };
	return VMT_STATUS_OK;
}

int vmt_result_finish(struct vmt_result *result, int status)
{
	struct vmt_diag diag = { .code = VMT_OK };

	if (vmt_out_finish(result->out, &diag))
		return vmt_cli_fail(&diag);
	if (result->has_file) {
		result->has_file = false;
		if (vmt_output_finish(&result->file, &diag))
			return vmt_cli_fail(&diag);
	}
	return status;
}

void vmt_result_close(struct vmt_result *result)
{
	if (result->has_file) /* not finished: half a document is none */
		vmt_output_discard(&result->file);
	free(result->out);
}
