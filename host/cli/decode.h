/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_DECODE_H
#define VMT_CLI_DECODE_H

#include "host/cli/feed.h"

/* What `vmtrace decode KIND` does with its open input; returns the exit status. */
typedef int vmt_decode_fn(struct vmt_feed *feed);

vmt_decode_fn vmt_decode_kvm, vmt_decode_pt;

#endif
