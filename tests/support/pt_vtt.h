/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_VTT_H
#define VMT_SUPPORT_PT_VTT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/flow.h"
#include "decode/pt/decoder.h"
#include "tests/support/pt_encode.h"

/*
 * .vtt: an Intel PT stream as text. One statement a line; '#' begins a comment; numbers as in C,
 * or a name with an optional +N or -N behind it.
 *
 *   let NAME NUMBER                        a name
 *   NAME:                                  a name for the offset of the next packet
 *   cpu 6/0x55/4                           errata of this CPU (without: unknown CPU)
 *   vm VMCS|any [offset=N] [mult=N] [frac=N] [domain=N] [vcpu=N]
 *   clock [mtc=N] [n=N] [d=N] [nom=N] [hz=N] [ref=N]    n/d: CPUID.15H:EBX/EAX
 *   host-cpu N      thread PID/TID
 *   code ADDRESS HH HH ... [any|host|guest] [cr3=N] [vmcs=N] [from=N]      for the flow
 *   filter FIRST LAST      noretcomp       count-is-time
 *
 *   psb  psbend  ovf  tracestop            pad [N]
 *   tip|tip.pge|tip.pgd|fup ADDRESS|- [update16|update32|sign48|update48|full]     -: suppressed
 *   tnt TTN  tnt.long TTN                  T taken, N not; the oldest first
 *   pip cr3=N nr=0|1      vmcs N
 *   mode.exec 16|32|64|bad [if]            mode.tsx begin|end|abort|bad
 *   tsc N  mtc N  cyc N  cbr N             tma ctc=N fc=N
 *   ptw 4|8 N [ip]  exstop [ip]            mwait hints=N ext=N
 *   pwre state=N sub=N [hw]                pwrx last=N deepest=N wake=N      mnt N
 *   bbp TYPE 4|8  bip ID N  bep [ip]
 *   cfe NAME|N [ip=0|1] [vec=N]            evd PFA|VMXQ|VMXR|N N
 *   trig N [ip] [mult] [icnt=N]
 *   raw HH HH ...                          bytes as they are
 *   piece                                  what follows arrives later, without a gap
 *   gap                                    bytes may be missing here
 *   cut N                                  the last N bytes are missing; the last statement
 *
 * "--- packets", "--- events" and "--- flow" open the expected text; each ends at the next or at
 * the end.
 */
#define VMT_VTT_VMS_MAX	   16
#define VMT_VTT_PIECES_MAX 64
#define VMT_VTT_CODES_MAX  64

struct vmt_vtt_code {
	struct vmt_image_space space;
	uint64_t addr, from;
	uint8_t bytes[80];
	size_t len;
};

struct vmt_vtt_packet {
	size_t offset;
	char text[96]; /* as vmt_pt_packet_text writes it */
};

struct vmt_vtt {
	struct vmt_ptenc stream;
	struct vmt_vtt_packet *packets; /* what was written, without raw bytes */
	size_t nr_packets;
	bool has_raw, is_cut;
	size_t pieces[VMT_VTT_PIECES_MAX]; /* offsets at which a new piece begins */
	bool gaps[VMT_VTT_PIECES_MAX];
	size_t nr_pieces;
	struct vmt_pt_cpu cpu;
	struct vmt_pt_clock_params clock;
	struct vmt_pt_vm vms[VMT_VTT_VMS_MAX];
	size_t nr_vms;
	uint32_t host_cpu, pid, tid;
	struct vmt_vtt_code *codes;
	size_t nr_codes;
	struct vmt_flow_range filters[VMT_FLOW_FILTERS_MAX];
	size_t nr_filters;
	bool no_ret_compression, count_is_time;
	size_t source_len;	    /* bytes of the text before the first "---" */
	const char *expect_packets; /* into the text, NULL if there is none */
	size_t expect_packets_len;
	const char *expect_events;
	size_t expect_events_len;
	const char *expect_flow;
	size_t expect_flow_len;
};

struct vmt_vtt_error {
	unsigned int line; /* from 1 */
	char what[160];
};

/*
 * Assembles a text, which must outlive what points into it. False: *error says where and why; *out
 * needs vmt_vtt_free in both cases. A text has at most 2^18 packets and 512 bytes a line.
 */
bool vmt_vtt_assemble(const char *text, size_t len, struct vmt_vtt *out,
		      struct vmt_vtt_error *error);
void vmt_vtt_free(struct vmt_vtt *vtt);

/* A decoded packet as the statement that writes it, with every IP in full. size >= 96. */
char *vmt_pt_packet_text(char *buf, size_t size, const struct vmt_pt_packet *packet);

#endif
