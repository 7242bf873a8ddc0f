// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/pt_capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/base/event.h"
#include "decode/store/store.h"
#include "tests/support/pt_generate.h"

#define KERNEL	  "6.1"
#define PT_ID	  UINT64_C(1000)
#define PT_CONFIG UINT64_C(0x80002403) /* event, branch, tsc, cyc, pt */
#define START_NS  UINT64_C(7000000000)

static void must(int status, const struct vmt_diag *diag)
{
	if (!status)
		return;
	fprintf(stderr, "pt_capture: %s: %s\n", diag->what, diag->cure);
	abort();
}

static void write_head(struct vmt_store_writer *w, const struct vmt_machine *m)
{
	static const char session[] =
		"{\"schema\":\"vmtrace-session/1\",\"tool\":\"vmtrace\",\"session\":\"pt\","
		"\"backend\":\"kvm,pt\",\"host\":{\"hostname\":\"host01\",\"kernel\":\"6.1\","
		"\"cpu\":\"test\",\"vendor\":\"GenuineIntel\",\"cpus\":2,\"isa\":\"vmx\"},"
		"\"clock\":{\"tsc_convertible\":true},\"start_ns\":7000000000,"
		"\"start_realtime_ns\":1700000000000000000,\"has_switches\":false,\"domains\":[{"
		"\"name\":\"web01\",\"uuid\":null,\"pid\":6000,\"uri\":null,\"type\":\"kvm\","
		"\"xml\":null,\"tsc_khz\":null,\"vcpus\":[{\"id\":0,\"tid\":6001,\"source\":"
		"\"test\"},"
		"{\"id\":1,\"tid\":6002,\"source\":\"test\"}],\"threads\":["
		"{\"tid\":6000,\"role\":\"main\",\"name\":\"qemu-system-x86\"},"
		"{\"tid\":6001,\"role\":\"vcpu\",\"name\":\"CPU 0/KVM\"},"
		"{\"tid\":6002,\"role\":\"vcpu\",\"name\":\"CPU 1/KVM\"}]}]}";
	const uint64_t pt_ids[VMT_PT_CAPTURE_CPUS] = { PT_ID, PT_ID + 1 };
	const struct vmt_ring_attr pt = { .type = VMT_PT_CAPTURE_PMU_TYPE,
					  .config = PT_CONFIG,
					  .sample_type = 0x10087,
					  .flags = VMT_RING_FLAG_SAMPLE_ID_ALL };
	const struct vmt_format *formats;
	size_t nr = vmt_machine_formats(m, &formats);
	struct vmt_diag diag = { 0 };

	must(vmt_store_session(w, session, &diag), &diag);
	must(vmt_store_attr(w, &pt, pt_ids, VMT_PT_CAPTURE_CPUS, &diag), &diag);
	for (size_t i = 0; i < nr; i++) {
		struct vmt_ring_attr attr = vmt_stream_attr(formats[i].id);
		uint64_t id = i + 1;
		size_t len;
		char *text = vmt_stream_format_text(KERNEL, formats[i].name, &len);

		must(vmt_store_attr(w, &attr, &id, 1, &diag), &diag);
		must(vmt_store_format(w, text, &diag), &diag);
		free(text);
	}
}

static void write_info(struct vmt_store_writer *w)
{
	const struct vmt_pt_info info = { .pmu_type = VMT_PT_CAPTURE_PMU_TYPE,
					  .config = PT_CONFIG,
					  .has_time_conv = true,
					  .time_shift = 31,
					  .time_mult = UINT32_C(1) << 30,
					  .time_zero = START_NS,
					  .nom_ratio = 20,
					  .per_cpu = true,
					  .event_trace = true,
					  .has_cpu_id = true,
					  .family = 6,
					  .model = 143,
					  .stepping = 8 };
	struct vmt_diag diag = { 0 };

	must(vmt_store_aux_info(w, &info, &diag), &diag);
}

static void write_records(struct vmt_store_writer *w, struct vmt_pt_capture *out,
			  struct vmt_machine *m, struct vmt_stream *ring, uint32_t vcpu)
{
	static const uint32_t reasons[] = { 1, 12, 30, 32, 48 };
	struct vmt_diag diag = { 0 };
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_RECORDS,
					 .stream = vcpu + 1,
					 .cpu = -1,
					 .time_first_ns = START_NS,
					 .time_last_ns = START_NS,
					 .nr_parts = 1 };

	/* An entry closes the last exit: perf counts no other. */
	for (uint32_t i = 0; i <= VMT_PT_CAPTURE_EXITS; i++) {
		const struct vmt_machine_exit exit = { .pid = VMT_PT_CAPTURE_PID,
						       .tid = VMT_PT_CAPTURE_PID + 1 + vcpu,
						       .cpu = vcpu,
						       .vcpu = vcpu,
						       .isa = VMT_ISA_VMX,
						       .reason = reasons[i % 5],
						       .rip = 0xffffffff81000000 + i,
						       .gap_ns = 1000,
						       .guest_ns = 2000 };
		const size_t whole = ring->len;

		vmt_machine_run(m, &exit);
		if (i == VMT_PT_CAPTURE_EXITS)
			ring->len = whole + vmt_load_u16(ring->bytes + whole + 6);
	}
	chunk.parts[0] = (struct vmt_store_part){ ring->bytes, ring->len };
	must(vmt_store_append(w, &chunk, &diag), &diag);
	vmt_stream_append(&out->records, ring->bytes, ring->len);
}

/* Pieces of the CPUs in turn. */
static void write_trace(struct vmt_store_writer *w, const struct vmt_pt_capture *out, size_t piece)
{
	size_t at[VMT_PT_CAPTURE_CPUS] = { 0 };
	struct vmt_diag diag = { 0 };
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t cpu = 0; cpu < VMT_PT_CAPTURE_CPUS; cpu++) {
			const struct vmt_ptenc *e = &out->trace[cpu];
			const struct vmt_aux_area area = { .idx = cpu, .cpu = cpu };
			struct vmt_store_trace trace = { .aux_offset = at[cpu],
							 .reference = 1000 + at[cpu] };
			size_t n = e->len - at[cpu] < piece ? e->len - at[cpu] : piece;

			if (!n)
				continue;
			more = true;
			trace.parts[0] = (struct vmt_store_part){ e->bytes + at[cpu], n };
			must(vmt_store_aux(w, &area, &trace, &diag), &diag);
			at[cpu] += n;
		}
		must(vmt_store_round(w, START_NS, &diag), &diag);
	}
}

static void generate(struct vmt_ptenc *out, uint64_t seed)
{
	const struct vmt_ptgen_options options = { .seed = seed,
						   .rounds = 100,
						   .nr_vms = 1,
						   .event_trace = true,
						   .branch = true,
						   .tsc = true,
						   .cyc = true,
						   .psb = 20 };
	struct vmt_ptgen gen;

	vmt_ptgen_run(&gen, &options);
	vmt_ptenc_raw(out, gen.stream.bytes, gen.stream.len);
	vmt_ptgen_free(&gen);
}

void vmt_pt_capture_write(struct vmt_pt_capture *out, const char *path, uint64_t seed, size_t piece)
{
	const struct vmt_store_options options = { .force = true };
	struct vmt_stream rings[VMT_PT_CAPTURE_CPUS] = { { 0 } };
	struct vmt_diag diag = { 0 };
	struct vmt_store_writer *w;

	memset(out, 0, sizeof(*out));
	must(vmt_store_create(&w, path, &options, &diag), &diag);
	for (uint32_t cpu = 0; cpu < VMT_PT_CAPTURE_CPUS; cpu++) {
		struct vmt_machine *m = vmt_machine_new(KERNEL, &rings[cpu]);

		if (!cpu) {
			write_head(w, m);
			write_info(w);
		}
		generate(&out->trace[cpu], seed + cpu);
		write_records(w, out, m, &rings[cpu], cpu);
		vmt_machine_free(m);
		vmt_stream_free(&rings[cpu]);
	}
	write_trace(w, out, piece);
	must(vmt_store_finish(w, &diag), &diag);
}

void vmt_pt_capture_free(struct vmt_pt_capture *capture)
{
	vmt_stream_free(&capture->records);
	for (uint32_t cpu = 0; cpu < VMT_PT_CAPTURE_CPUS; cpu++)
		vmt_ptenc_free(&capture->trace[cpu]);
}
