/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_CAPTURE_WITH_H
#define VMT_CAPTURE_CAPTURE_WITH_H

#include "host/capture/capture.h"
#include "host/capture/perf_event.h"
#include "host/domain/hostfs.h"

/*
 * vmt_capture_open with the system given by the caller: perf's table, the folder of tracefs (NULL:
 * it is looked for), and where sysfs is (NULL: the usual places).
 */
int vmt_capture_open_with(struct vmt_capture **out, const struct vmt_capture_options *options,
			  struct vmt_domains *domains, struct vmt_store_writer *store,
			  const struct vmt_perf_ops *ops, const char *tracefs,
			  const struct vmt_hostfs *fs, struct vmt_diag *diag);

#endif
