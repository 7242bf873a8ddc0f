/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_READ_TRACE_H
#define VMT_SUPPORT_PT_READ_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/aux.h"

/*
 * All trace of a .vmt whose only area is the thread's, malloc'd, as is *marks: marks[i] is 1 where
 * a cut is marked before byte i. Aborts where bytes or the file's losses say otherwise.
 */
uint8_t *vmt_read_trace(const char *path, uint32_t tid, size_t *len, uint8_t **marks,
			struct vmt_pt_info *info);

#endif
