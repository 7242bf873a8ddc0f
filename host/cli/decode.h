/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_DECODE_H
#define VMT_CLI_DECODE_H

#include "decode/export/pt_packet.h"
#include "host/cli/feed.h"

/* What `vmtrace decode KIND` does with its open input; returns the exit status. */
typedef int vmt_decode_fn(struct vmt_feed *feed);

vmt_decode_fn vmt_decode_kvm, vmt_decode_pt, vmt_decode_flow;

/*
 * The packets of a .vmt or perf.data, one area after the other. VMT_E_UNSUPPORTED when
 * there is no Intel PT, VMT_E_NOT_FOUND when none of the CPU that --cpu names; VMT_E_USAGE for a
 * file of neither format; errors of vmt_source_open.
 */
int vmt_decode_pt_file(struct vmt_feed *feed, struct vmt_pt_lines *lines, struct vmt_ledger *ledger,
		       struct vmt_diag *diag);

#endif
