/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_SYNTH_H
#define VMT_CAPTURE_SYNTH_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "decode/store/store.h"
#include "host/domain/domain.h"

/*
 * What the kernel tells only when it changes, for processes that were there before: a COMM record
 * of each thread, an MMAP2 record of each executable mapping, from PROC/PID/task and PROC/PID/maps.
 * As perf does it their time is 0: it held from the beginning. id: of an event that asks for such
 * records; its attr lays out their ends. mappings: with MMAP2, which has addresses of the host's
 * code.
 *
 * In RECORDS chunks of the stream, which is nobody else's. Files that cannot be read leave their
 * records out. Errors of vmt_store_append.
 */
int vmt_synth_domains(const struct vmt_domains *domains, uint64_t id, uint32_t stream,
		      bool mappings, struct vmt_store_writer *store, struct vmt_diag *diag);

#endif
