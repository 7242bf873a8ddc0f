/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_PT_PEBS_H
#define VMT_EXPORT_PT_PEBS_H

#include "decode/export/pt_packet.h"
#include "decode/pt/clock.h"
#include "decode/pt/pebs.h"

/*
 * A PEBS record among the lines of packets, behind the packet that completes it; mode: where the
 * CPU was. What the record does not hold is left out. As text a line a group, an LBR entry, an XMM
 * register; as JSON one line
 *   {"type":"pebs","world":"guest"|"host"|null,"ip":H,"basic":{"ip":H,"counters":H,"tsc":H},
 *    "gpr":{"RAX":H,...},"memory":{"address":H,"source":H,"latency":H,"tsx":H},
 *    "lbr":[{"entry":N,"from":H,"to":H,"info":H},...],"xmm":{"XMM0":H,...},"unknown":N}
 * "ip" is that of the record's FUP, "tsc" the guest's in a guest, "entry" N is TOS - N, an XMM
 * register has 32 digits, and "unknown" counts items that the manual reserves. CSV has no columns
 * for it and gets no line. Errors of writing stay in lines->out.
 */
void vmt_pt_lines_pebs(const struct vmt_pt_lines *lines, const struct vmt_pt_pebs_record *record,
		       enum vmt_pt_mode mode);

#endif
