/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_RESULT_H
#define VMT_CLI_RESULT_H

#include <stdbool.h>

#include "decode/export/json.h"
#include "decode/export/out.h"
#include "decode/export/text_lines.h"
#include "decode/io/output.h"
#include "host/cli/cli.h"

/* Where a verb's result goes: standard output, or the file of -o. */
struct vmt_result {
	const struct vmt_cli *cli;
	struct vmt_output file;
	bool has_file;
	struct vmt_out *out;
	struct vmt_page page; /* for text */
	struct vmt_json json; /* for JSON, pretty */
};

/*
 * Opens. VMT_STATUS_OK, or another exit status after having said why; vmt_result_close is to be
 * called in either case.
 */
int vmt_result_open(struct vmt_result *result, const struct vmt_cli *cli);

/* Writes what is buffered; status unless that fails. */
int vmt_result_finish(struct vmt_result *result, int status);
void vmt_result_close(struct vmt_result *result);

#endif
