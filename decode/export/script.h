/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_SCRIPT_H
#define VMT_EXPORT_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/analyze/input.h"
#include "decode/analyze/report.h"
#include "decode/base/event.h"
#include "decode/export/out.h"

/*
 * Events, one a line, in the order in which they are given. Errors of writing stay in `out`.
 *   text  time from the start, domain/vCPU, host CPU, type and what belongs to it
 *   JSON  JSON Lines, schema vmtrace-events/1: a header line, then an object an event
 *   CSV   a header line, then a line an event
 */
enum vmt_script_format {
	VMT_SCRIPT_TEXT,
	VMT_SCRIPT_JSON,
	VMT_SCRIPT_CSV,
};

struct vmt_script {
	struct vmt_out *out;
	enum vmt_script_format format;
	uint32_t types; /* bits 1 << type that are wanted; 0: all */
	bool tsc;	/* text: host TSC instead of time where it is known */
	const struct vmt_input_facts *facts;
	vmt_symbol_fn *symbol; /* NULL: none */
	void *symbol_context;
	bool has_start;
	uint64_t start_ns; /* text: time 0 */
	uint64_t written;
};

/* Writes the header. facts: what the head of the input says; they must outlive the script. */
void vmt_script_begin(struct vmt_script *script);
void vmt_script_event(struct vmt_script *script, const struct vmt_event *event);
/* JSON: a line of type join when Intel PT and tracepoints were joined. */
void vmt_script_end(struct vmt_script *script);

/* ---- the formats; event types are filtered by vmt_script_event ---- */
void vmt_script_text_event(struct vmt_script *script, const struct vmt_event *event);
void vmt_script_json_begin(struct vmt_script *script);
void vmt_script_json_event(struct vmt_script *script, const struct vmt_event *event);
void vmt_script_json_end(struct vmt_script *script);
void vmt_script_csv_begin(struct vmt_script *script);
void vmt_script_csv_event(struct vmt_script *script, const struct vmt_event *event);

/* "symbol+0x12" of the event's RIP into buf, or NULL. buf: VMT_SCRIPT_SYMBOL_MAX. */
#define VMT_SCRIPT_SYMBOL_MAX 180
const char *vmt_script_symbol(const struct vmt_script *script, const struct vmt_event *event,
			      char *buf, size_t size);

/* Name of the event's domain, or NULL. */
const char *vmt_script_domain(const struct vmt_script *script, const struct vmt_event *event);

/*
 * Name of an exit's reason as the kernel prints it, of a return to the VMM as KVM_EXIT_*; NULL when
 * it is not known. buf: 32 bytes.
 */
const char *vmt_script_reason(const struct vmt_event *event, char *buf, size_t size);

#endif
