/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_STREAM_H
#define VMT_SUPPORT_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "decode/kvm/rec.h"
#include "decode/ring/ring.h"

/*
 * Writes perf ring records as the kernel does, for tests, the embedded capture and the benchmarks.
 * A buffer that grows; aborts when memory is short.
 */
struct vmt_stream {
	uint8_t *bytes;
	size_t len, cap;
};

void vmt_stream_free(struct vmt_stream *s);
void vmt_stream_append(struct vmt_stream *s, const void *bytes, size_t len);
void vmt_stream_u64(struct vmt_stream *s, uint64_t v);

/*
 * The attr that vmtrace itself records with: type 2, IDENTIFIER|TID|TIME|CPU|RAW, sample_id_all.
 * (PERF_SAMPLE_IP is not asked for.)
 */
struct vmt_ring_attr vmt_stream_attr(uint64_t tracepoint_id);

/* Who and when, for every record below. id: the event's id (IDENTIFIER). */
struct vmt_stream_at {
	uint64_t time_ns, id;
	uint32_t pid, tid, cpu;
};

/* SAMPLE with a raw tracepoint record: values by field name, by the given format. */
struct vmt_stream_value {
	const char *field;
	uint64_t value;
};
void vmt_stream_tracepoint(struct vmt_stream *s, const struct vmt_format *format,
			   const struct vmt_stream_at *at, const struct vmt_stream_value *values,
			   size_t nr_values);

/* SWITCH out (preempted or not) and in; LOST; LOST_SAMPLES. */
void vmt_stream_switch(struct vmt_stream *s, const struct vmt_stream_at *at, int out,
		       int preempted);
void vmt_stream_lost(struct vmt_stream *s, const struct vmt_stream_at *at, uint64_t lost);
void vmt_stream_lost_samples(struct vmt_stream *s, const struct vmt_stream_at *at, uint64_t lost);

/* Text of a format fixture tests/golden/formats/KERNEL/NAME.format; aborts when absent. */
char *vmt_stream_format_text(const char *kernel, const char *name, size_t *len);
/* The same, parsed. */
struct vmt_format vmt_stream_format(const char *kernel, const char *name);

/*
 * A machine's exits, written in order with a clock that advances: the shortest way to a realistic
 * stream. All through the formats of one kernel.
 */
struct vmt_machine;
struct vmt_machine *vmt_machine_new(const char *kernel, struct vmt_stream *out);
void vmt_machine_free(struct vmt_machine *m);
/* ids and formats it uses: attr i has id i + 1. */
size_t vmt_machine_formats(const struct vmt_machine *m, const struct vmt_format **formats);
/* Entry after gap_ns, then an exit of that reason after guest_ns. */
struct vmt_machine_exit {
	uint32_t pid, tid, cpu, vcpu, isa, reason, intr_info;
	uint64_t rip, info1, info2, gap_ns, guest_ns;
};
void vmt_machine_run(struct vmt_machine *m, const struct vmt_machine_exit *exit);
/* Any tracepoint at the machine's present time of that thread; time advances by after_ns first. */
void vmt_machine_event(struct vmt_machine *m, const char *name, const struct vmt_machine_exit *who,
		       uint64_t after_ns, const struct vmt_stream_value *values, size_t nr_values);
void vmt_machine_switch(struct vmt_machine *m, const struct vmt_machine_exit *who,
			uint64_t after_ns, int out, int preempted);
uint64_t vmt_machine_now(const struct vmt_machine *m, uint32_t tid);

#endif
