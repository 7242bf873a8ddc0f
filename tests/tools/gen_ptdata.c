// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gen_ptdata thread|cpu|guest|event OUT PROGRAM ENTRY OFFSET VADDR LEN
 * Writes the smallest perf.data from which perf decodes Intel PT of a program, with the product's
 * writer: PROGRAM is a static ELF whose code, LEN bytes at OFFSET of the file, is mapped at VADDR;
 * at ENTRY it runs
 *	mov ecx, imm32; 1: nop; dec ecx; jnz 1b; mov eax, imm32; xor edi, edi; syscall
 * five times around the loop. thread: no times, one thread. cpu: one CPU, with TSC. guest: the
 * program runs in a guest on that CPU. event: with Event Trace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/io/output.h"
#include "decode/perfdata/writer.h"
#include "tests/support/pt_encode.h"
#include "tests/support/stream.h"

#define PMU_TYPE  7u
#define HOST_ID	  UINT64_C(100)
#define GUEST_ID  UINT64_C(200)
#define PID	  77u
#define VMM_PID	  5000u
#define VCPU_TID  5001u
#define LOOPS	  5u
#define START_TSC UINT64_C(1000000)
#define CR3	  UINT64_C(0x1234000)

#define SAMPLE_PLAIN  UINT64_C(0x10003) /* IP|TID|IDENTIFIER */
#define SAMPLE_TIMED  UINT64_C(0x10087) /* and TIME, CPU */
#define FLAG_NOT_HOST (UINT64_C(1) << 19)
#define FLAG_SWITCHES (UINT64_C(1) << 26)
#define CONFIG_TSC    (UINT64_C(1) << 10)
#define CONFIG_BRANCH (UINT64_C(1) << 13)
#define CONFIG_EVENT  (UINT64_C(1) << 31)

#define COMM	      3u
#define MMAP2	      10u
#define ITRACE_START  12u
#define SWITCH	      14u
#define IN_USER	      2u
#define IN_GUEST      4u
#define IN_GUEST_USER 5u

struct shape {
	const char *name;
	bool timed, guest, event;
};

static const struct shape shapes[] = {
	{ "thread", false, false, false },
	{ "cpu", true, false, false },
	{ "guest", true, true, false },
	{ "event", true, false, true },
};

struct program {
	const char *path;
	uint64_t entry, offset, vaddr, len;
};

static struct vmt_diag diag;

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "gen_ptdata: %s\n", diag.what);
	exit(1);
}

/* ---- records of the kernel ---- */

static void put_record(struct vmt_perfdata_writer *w, const struct shape *shape, uint32_t type,
		       uint16_t misc, const struct vmt_stream *body, uint32_t pid, uint32_t tid,
		       uint64_t id)
{
	struct vmt_stream s = { 0 };
	const uint64_t who = pid | (uint64_t)tid << 32, time = 0, cpu = 0;
	const size_t len = 8 + body->len + (shape->timed ? 32 : 16);
	const uint64_t header = type | (uint64_t)misc << 32 | (uint64_t)len << 48;

	vmt_stream_append(&s, &header, 8);
	vmt_stream_append(&s, body->bytes, body->len);
	vmt_stream_append(&s, &who, 8);
	if (shape->timed) {
		vmt_stream_append(&s, &time, 8);
		vmt_stream_append(&s, &cpu, 8);
	}
	vmt_stream_append(&s, &id, 8);
	must(vmt_perfdata_records(w, s.bytes, s.len, &diag));
	vmt_stream_free(&s);
}

static void append_name(struct vmt_stream *s, const char *name)
{
	static const uint8_t zeros[8];

	vmt_stream_append(s, name, strlen(name) + 1);
	vmt_stream_append(s, zeros, -s->len & 7);
}

static void put_comm(struct vmt_perfdata_writer *w, const struct shape *shape, uint16_t misc,
		     uint32_t pid, uint32_t tid, const char *name, uint64_t id)
{
	const uint64_t who = pid | (uint64_t)tid << 32;
	struct vmt_stream body = { 0 };

	vmt_stream_append(&body, &who, 8);
	append_name(&body, name);
	put_record(w, shape, COMM, misc, &body, pid, tid, id);
	vmt_stream_free(&body);
}

static void put_map(struct vmt_perfdata_writer *w, const struct shape *shape,
		    const struct program *program, uint64_t id)
{
	const uint64_t fields[] = {
		PID | (uint64_t)PID << 32,
		program->vaddr,
		program->len,
		program->offset,
		0,		       /* device */
		0,		       /* inode */
		0,		       /* generation */
		5 | UINT64_C(2) << 32, /* PROT_READ|PROT_EXEC, MAP_PRIVATE */
	};
	struct vmt_stream body = { 0 };

	vmt_stream_append(&body, fields, sizeof(fields));
	append_name(&body, program->path);
	put_record(w, shape, MMAP2, shape->guest ? IN_GUEST_USER : IN_USER, &body, PID, PID, id);
	vmt_stream_free(&body);
}

/* Who runs on the CPU, of the host and of the guest. */
static void put_owner(struct vmt_perfdata_writer *w, const struct shape *shape)
{
	const uint64_t who = PID | (uint64_t)PID << 32;
	struct vmt_stream none = { 0 }, body = { 0 };

	if (shape->guest) {
		put_record(w, shape, SWITCH, 0, &none, VMM_PID, VCPU_TID, HOST_ID);
		put_record(w, shape, SWITCH, IN_GUEST, &none, PID, PID, GUEST_ID);
	} else {
		vmt_stream_append(&body, &who, 8);
		put_record(w, shape, ITRACE_START, 0, &body, PID, PID, HOST_ID);
		put_record(w, shape, SWITCH, 0, &none, PID, PID, HOST_ID);
	}
	vmt_stream_free(&body);
}

/* ---- trace ---- */

static void put_trace(struct vmt_ptenc *e, const struct shape *shape, uint64_t entry)
{
	const uint64_t around = entry + 5;

	vmt_ptenc_psb(e);
	if (shape->timed)
		vmt_ptenc_tsc(e, START_TSC);
	if (shape->guest)
		vmt_ptenc_pip(e, CR3, true);
	vmt_ptenc_mode_exec(e, 1);
	vmt_ptenc_psbend(e);
	vmt_ptenc_ip(e, VMT_PTENC_TIP_PGE, VMT_PTENC_FULL, entry);
	if (shape->event) {
		vmt_ptenc_tnt(e, 3, 2);
		vmt_ptenc_evd(e, 1, 0x1f0003);
		vmt_ptenc_evd(e, 2, 0xa);
		vmt_ptenc_cfe(e, 8, 0, false);
		vmt_ptenc_ip(e, VMT_PTENC_FUP, VMT_PTENC_AUTO, around);
	} else {
		vmt_ptenc_tnt(e, (1u << LOOPS) - 2, LOOPS);
	}
	vmt_ptenc_ip(e, VMT_PTENC_TIP_PGD, VMT_PTENC_SUPPRESSED, 0);
}

/* ---- the file ---- */

static void put_events(struct vmt_perfdata_writer *w, const struct shape *shape)
{
	const uint64_t ids[] = { HOST_ID, GUEST_ID };
	const struct vmt_ring_attr pt = {
		.type = PMU_TYPE,
		.config = CONFIG_BRANCH | (shape->timed ? CONFIG_TSC : 0) |
			  (shape->event ? CONFIG_EVENT : 0),
		.sample_type = shape->timed ? SAMPLE_TIMED : SAMPLE_PLAIN,
		.flags = VMT_RING_FLAG_SAMPLE_ID_ALL | (shape->timed ? FLAG_SWITCHES : 0),
	};
	const struct vmt_ring_attr dummy = {
		.type = 1,
		.config = 9,
		.sample_type = SAMPLE_TIMED,
		.flags = VMT_RING_FLAG_SAMPLE_ID_ALL | FLAG_SWITCHES | FLAG_NOT_HOST,
	};
	struct vmt_perfdata_event event = { .attr = &pt, .ids = &ids[0], .nr_ids = 1 };

	must(vmt_perfdata_attr(w, &event, &diag));
	event = (struct vmt_perfdata_event){ .attr = &dummy, .ids = &ids[1], .nr_ids = 1 };
	if (shape->guest)
		must(vmt_perfdata_attr(w, &event, &diag));
}

static void put_info(struct vmt_perfdata_writer *w, const struct shape *shape)
{
	const struct vmt_pt_info info = { .pmu_type = PMU_TYPE,
					  .has_time_conv = shape->timed,
					  .time_shift = 10,
					  .time_mult = 1024,
					  .per_cpu = shape->timed,
					  .event_trace = shape->event };
	const struct vmt_perfdata_id index[] = {
		{ .id = HOST_ID, .cpu = 0, .tid = -1 },
		{ .id = GUEST_ID, .idx = 1, .cpu = -1, .tid = VCPU_TID, .machine_pid = VMM_PID },
	};

	must(vmt_perfdata_pt_info(w, &info,
				  shape->timed ? VMT_PERFDATA_SWITCHES_IN
					       : VMT_PERFDATA_SWITCHES_NONE,
				  &diag));
	if (shape->guest)
		must(vmt_perfdata_id_index(w, index, 2, &diag));
}

static void put_records(struct vmt_perfdata_writer *w, const struct shape *shape,
			const struct program *program)
{
	const uint64_t id = shape->guest ? GUEST_ID : HOST_ID;

	if (shape->guest) {
		put_comm(w, shape, 0, VMM_PID, VMM_PID, "qemu", HOST_ID);
		put_comm(w, shape, 0, VMM_PID, VCPU_TID, "CPU 0/KVM", HOST_ID);
	}
	put_comm(w, shape, shape->guest ? IN_GUEST_USER : 0, PID, PID, "loop", id);
	put_map(w, shape, program, id);
	if (shape->timed)
		put_owner(w, shape);
	must(vmt_perfdata_round(w, &diag));
}

static void put_aux(struct vmt_perfdata_writer *w, const struct shape *shape, uint64_t entry)
{
	struct vmt_ptenc trace = { 0 };
	struct vmt_perfdata_aux aux = { .reference = shape->timed ? START_TSC : 0,
					.tid = shape->timed ? UINT32_MAX : PID,
					.cpu = shape->timed ? 0 : VMT_AUX_NO_CPU };

	put_trace(&trace, shape, entry);
	aux.size = trace.len;
	must(vmt_perfdata_aux_begin(w, &aux, &diag));
	must(vmt_perfdata_aux_bytes(w, trace.bytes, trace.len, &diag));
	must(vmt_perfdata_aux_end(w, &diag));
	vmt_ptenc_free(&trace);
}

static const struct shape *shape_of(const char *name)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!strcmp(shapes[i].name, name))
			return &shapes[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct shape *shape = argc == 8 ? shape_of(argv[1]) : NULL;
	struct vmt_perfdata_writer *w;
	struct vmt_output file;
	struct program program;

	if (!shape) {
		fprintf(stderr, "usage: gen_ptdata thread|cpu|guest|event OUT PROGRAM ENTRY OFFSET "
				"VADDR LEN\n");
		return 2;
	}
	program = (struct program){ .path = argv[3],
				    .entry = strtoull(argv[4], NULL, 0),
				    .offset = strtoull(argv[5], NULL, 0),
				    .vaddr = strtoull(argv[6], NULL, 0),
				    .len = strtoull(argv[7], NULL, 0) };
	must(vmt_output_open(&file, argv[2], true, NULL, &diag));
	must(vmt_perfdata_create(&w, &file, &diag));
	put_events(w, shape);
	put_info(w, shape);
	put_records(w, shape, &program);
	put_aux(w, shape, program.entry);
	must(vmt_perfdata_finish(w, &diag));
	return 0;
}
