/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_EXPORT_VMT_H
#define VMT_CLI_EXPORT_VMT_H

#include "host/cli/cli.h"

/*
 * export --to vmt --privacy SIDE: a .vmt again, of whose Intel PT one side alone is left, and, for
 * guests, no record with addresses of the host's code. Returns the exit status.
 */
int vmt_export_vmt(struct vmt_cli *cli);

#endif
