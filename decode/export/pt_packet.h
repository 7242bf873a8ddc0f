/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_PT_PACKET_H
#define VMT_EXPORT_PT_PACKET_H

#include <stdint.h>

#include "decode/base/aux.h"
#include "decode/base/item.h"
#include "decode/export/script.h"
#include "decode/pt/errata.h"
#include "decode/pt/packet.h"

/*
 * Intel PT packets, one a line, each with offset and length, in the order of the stream. Errors of
 * writing stay in `out`. JSON Lines of schema vmtrace-packets/1: a header line, which
 * names the errata that decoding takes into account, then
 *   {"offset":N,"len":N,"packet":S, members of its kind ..., "payload":H}
 *   {"offset":N,"skipped":N,"error":S}   bytes that are no packet
 *   {"ledger":{...}}                     the last line
 * With areas each line but the first and the last begins with "cpu":N or "tid":N: whose bytes
 * they are; in CSV two columns at the end.
 */
#define VMT_PT_TAIL_MAX 63u

#define VMT_PT_HEAD_MAX 64u

struct vmt_pt_tail { /* what stands behind the offset, as far as the packet's first byte tells it */
	uint8_t len; /* 0: nothing */
	char text[VMT_PT_TAIL_MAX];
};

struct vmt_pt_lines {
	struct vmt_out *out;
	enum vmt_script_format format;
	uint64_t packets;
	uint32_t errata;    /* enum vmt_pt_erratum that decoding takes into account */
	bool areas;	    /* set before vmt_pt_lines_begin */
	char area_json[24]; /* vmt_pt_lines_area */
	char area_text[16];
	char area_csv[24];
	struct vmt_pt_tail tails[256]; /* by the first byte; vmt_pt_lines_begin */
	/* What lines with offsets in [head_base, head_base + head_span) begin with, but for the
	 * last two digits of the offset; span 0: none. */
	uint64_t head_base;
	unsigned int head_span;
	unsigned int head_len;
	char head[VMT_PT_HEAD_MAX];
};

void vmt_pt_lines_begin(struct vmt_pt_lines *lines);
/* Whose packets follow: cpu, or, where that is VMT_AUX_NO_CPU, tid. */
void vmt_pt_lines_area(struct vmt_pt_lines *lines, uint32_t cpu, uint32_t tid);
/* bytes: the packet's own, of which it has at least one. */
void vmt_pt_lines_packet(struct vmt_pt_lines *lines, uint64_t offset, const uint8_t *bytes,
			 const struct vmt_pt_packet *packet);
void vmt_pt_lines_skipped(const struct vmt_pt_lines *lines, uint64_t offset, uint64_t len,
			  const char *why);
void vmt_pt_lines_ledger(const struct vmt_pt_lines *lines, const struct vmt_ledger *ledger);

#define VMT_PT_FIELDS_MAX 8

enum vmt_pt_field_kind {
	VMT_PT_FIELD_HEX,
	VMT_PT_FIELD_NUMBER,
	VMT_PT_FIELD_TEXT, /* needs no quoting */
	VMT_PT_FIELD_TNT,  /* value: results, count of them, the oldest on top */
};

/* A member of a packet's line. */
struct vmt_pt_field {
	const char *name;
	enum vmt_pt_field_kind kind;
	bool known;
	uint8_t count;
	uint64_t value;
	const char *text;
};

/* What a packet carries, taken apart by its type. Returns how many; fields: VMT_PT_FIELDS_MAX. */
unsigned int vmt_pt_fields(const struct vmt_pt_packet *packet, struct vmt_pt_field *fields);

#endif
