// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes the capture that `make demo` replays: four seconds of a guest with two vCPUs that halts,
 * sends, is interrupted, and for one second reads the ACPI PM timer in a loop. gen_capture OUT.vmt
 * the capture gen_capture --kallsyms OUT   symbols of its guest
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/event.h"
#include "decode/store/store.h"
#include "tests/support/stream.h"

#define KERNEL	      "6.1"
#define START_NS      UINT64_C(5000000000000)
#define SPAN_NS	      UINT64_C(4000000000)
#define ROUND_NS      UINT64_C(250000000)
#define STORM_FROM_NS (START_NS + UINT64_C(1500000000))
#define STORM_TO_NS   (START_NS + UINT64_C(2500000000))
#define PID	      4700u
#define NR_VCPUS      2u
#define HOST_KHZ      UINT64_C(3500000)
#define GUEST_KHZ     UINT64_C(2500000)
#define US	      UINT64_C(1000)

enum {
	REASON_INTERRUPT = 1,
	REASON_HLT = 12,
	REASON_IO = 30,
	REASON_WRMSR = 32,
	REASON_EPT_MISCONFIG = 49
};

static const struct {
	uint64_t address;
	const char *name;
} symbols[] = {
	{ 0xffffffff81000000, "_stext" },	 { 0xffffffff810715f0, "native_write_msr" },
	{ 0xffffffff81a4c7b0, "acpi_pm_read" },	 { 0xffffffff81a4c7d0, "acpi_pm_check_blacklist" },
	{ 0xffffffff816d1120, "vp_notify" },	 { 0xffffffff81c10d40, "pv_native_safe_halt" },
	{ 0xffffffff8172ab60, "io_serial_out" }, { 0xffffffff82000000, "_etext" },
};

#define RIP_WRMSR    UINT64_C(0xffffffff810715f6)
#define RIP_PM_TIMER UINT64_C(0xffffffff81a4c7bb)
#define RIP_KICK     UINT64_C(0xffffffff816d1131)
#define RIP_HLT	     UINT64_C(0xffffffff81c10d4b)
#define RIP_SERIAL   UINT64_C(0xffffffff8172ab6c)

struct vcpu {
	struct vmt_machine *machine;
	struct vmt_stream stream;
	struct vmt_machine_exit who;
	size_t written; /* bytes of the stream that are in the file */
	uint64_t random;
};

static uint64_t pick(struct vcpu *v, uint64_t from, uint64_t to)
{
	v->random = v->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return from + (v->random >> 33) % (to - from + 1);
}

static uint64_t now(const struct vcpu *v)
{
	return vmt_machine_now(v->machine, v->who.tid);
}

static void run(struct vcpu *v, uint32_t reason, uint64_t rip, uint64_t info1, uint64_t guest_ns)
{
	v->who.reason = reason;
	v->who.rip = rip;
	v->who.info1 = info1;
	v->who.intr_info = reason == REASON_INTERRUPT ? 0x800000ec : 0;
	v->who.gap_ns = pick(v, 400, 900);
	v->who.guest_ns = guest_ns;
	vmt_machine_run(v->machine, &v->who);
}

static void event(struct vcpu *v, const char *name, uint64_t after_ns,
		  const struct vmt_stream_value *values, size_t nr)
{
	vmt_machine_event(v->machine, name, &v->who, after_ns, values, nr);
}

static void userspace(struct vcpu *v, uint64_t in_qemu_ns)
{
	const struct vmt_stream_value io[] = { { "reason", 2 }, { "errno", 0 } };

	event(v, "kvm_userspace_exit", 900, io, 2);
	v->who.gap_ns = in_qemu_ns;
}

static void port(struct vcpu *v, uint64_t rip, uint16_t number, int in, unsigned int size,
		 uint64_t guest_ns, uint64_t in_qemu_ns)
{
	const struct vmt_stream_value pio[] = {
		{ "rw", !in },	{ "port", number }, { "size", size },
		{ "count", 1 }, { "val", 0x5a },
	};

	run(v, REASON_IO, rip, (uint64_t)number << 16 | (in ? 8u : 0u) | (size - 1), guest_ns);
	event(v, "kvm_pio", 300, pio, 5);
	userspace(v, in_qemu_ns);
	/* The next entry comes when QEMU is done. */
	event(v, "kvm_fpu", in_qemu_ns, (const struct vmt_stream_value[]){ { "load", 1 } }, 1);
}

static void timer(struct vcpu *v)
{
	const struct vmt_stream_value msr[] = {
		{ "write", 1 },
		{ "ecx", 0x6e0 },
		{ "data", now(v) },
		{ "exception", 0 },
	};

	run(v, REASON_WRMSR, RIP_WRMSR, 0, pick(v, 15 * US, 60 * US));
	event(v, "kvm_msr", 200, msr, 4);
}

static void kick(struct vcpu *v)
{
	const struct vmt_stream_value mmio[] = { { "gpa", 0xfe003000 } };

	run(v, REASON_EPT_MISCONFIG, RIP_KICK, 0, pick(v, 20 * US, 90 * US));
	event(v, "kvm_fast_mmio", 250, mmio, 1);
}

static void halt(struct vcpu *v)
{
	uint64_t poll = pick(v, 5 * US, 50 * US), sleep = pick(v, 200 * US, 900 * US);
	int blocked = pick(v, 0, 2) > 0;
	struct vmt_stream_value wakeup[] = { { "ns", poll },
					     { "waited", (uint64_t)blocked },
					     { "valid", 1 } };

	run(v, REASON_HLT, RIP_HLT, 0, pick(v, 10 * US, 80 * US));
	if (blocked) {
		vmt_machine_switch(v->machine, &v->who, poll, 1, 0);
		vmt_machine_switch(v->machine, &v->who, sleep, 0, 0);
		wakeup[0].value = poll + sleep;
		event(v, "kvm_vcpu_wakeup", 100, wakeup, 3);
	} else {
		event(v, "kvm_vcpu_wakeup", poll, wakeup, 3);
	}
}

/* One stretch of ordinary work, or of the storm. */
static void work(struct vcpu *v)
{
	if (v->who.vcpu == 0 && now(v) >= STORM_FROM_NS && now(v) < STORM_TO_NS) {
		port(v, RIP_PM_TIMER, 0x608, 1, 4, pick(v, 2 * US, 5 * US),
		     pick(v, 14 * US, 22 * US));
		return;
	}
	timer(v);
	if (pick(v, 0, 3) == 0)
		kick(v);
	if (pick(v, 0, 40) == 0)
		port(v, RIP_SERIAL, 0x3f8, 0, 1, pick(v, 3 * US, 9 * US),
		     pick(v, 20 * US, 60 * US));
	run(v, REASON_INTERRUPT, 0x55d0c0de0000 + pick(v, 0, 4096), 0, pick(v, 30 * US, 200 * US));
	halt(v);
}

static void check(int status, const struct vmt_diag *diag)
{
	if (status) {
		fprintf(stderr, "gen_capture: %s: %s\n", diag->what, diag->cure);
		exit(1);
	}
}

static void write_head(struct vmt_store_writer *w, const struct vmt_machine *m,
		       struct vmt_diag *diag)
{
	const struct vmt_format *formats;
	size_t nr = vmt_machine_formats(m, &formats);
	char json[1024];
	struct vmt_anchor anchor = {
		.host_tsc_before = START_NS / 1000000 * HOST_KHZ,
		.host_tsc_after = START_NS / 1000000 * HOST_KHZ + 60,
		.host_ns = START_NS,
		.monotonic_raw_ns = START_NS,
		.realtime_ns = UINT64_C(1700000000000000000),
		.time_mult = (uint32_t)((UINT64_C(1000000) << 31) / HOST_KHZ),
		.time_shift = 31,
	};

	snprintf(json, sizeof(json),
		 "{\"schema\":\"vmtrace-session/1\",\"tool\":\"vmtrace "
		 "%s\",\"session\":\"recorded\","
		 "\"backend\":\"kvm,sched\",\"host\":{\"hostname\":\"host01\",\"kernel\":\"%s\","
		 "\"cpu\":\"recorded\",\"vendor\":\"GenuineIntel\",\"cpus\":8,\"isa\":\"vmx\"},"
		 "\"clock\":{\"tsc_convertible\":true},\"start_ns\":%" PRIu64
		 ",\"start_realtime_ns\":%" PRIu64
		 ",\"has_switches\":true,\"domains\":[{\"name\":\"web01\","
		 "\"uuid\":\"5e3a7c1e-0b2d-4f6a-9c1b-77aa00000001\",\"pid\":%u,\"uri\":null,"
		 "\"type\":\"kvm\","
		 "\"xml\":null,\"tsc_khz\":%" PRIu64
		 ",\"vcpus\":[{\"id\":0,\"tid\":%u,\"source\":\"recorded\"},"
		 "{\"id\":1,\"tid\":%u,\"source\":\"recorded\"}],\"threads\":[]}]}",
		 VMT_VERSION, KERNEL, START_NS, anchor.realtime_ns, PID, GUEST_KHZ, PID + 1,
		 PID + 2);
	check(vmt_store_session(w, json, diag), diag);
	for (size_t i = 0; i < nr; i++) {
		struct vmt_ring_attr attr = vmt_stream_attr(formats[i].id);
		uint64_t id = i + 1;
		size_t len;
		char *text = vmt_stream_format_text(KERNEL, formats[i].name, &len);

		check(vmt_store_attr(w, &attr, &id, 1, diag), diag);
		check(vmt_store_format(w, text, diag), diag);
		free(text);
	}
	check(vmt_store_append(w,
			       &(struct vmt_store_chunk){
				       .type = VMT_CHUNK_ANCHOR,
				       .cpu = -1,
				       .time_first_ns = START_NS,
				       .time_last_ns = START_NS,
				       .nr_parts = 1,
				       .parts = { { &anchor, sizeof(anchor) } } },
			       diag),
	      diag);
}

static void write_tsc(struct vmt_store_writer *w, struct vmt_diag *diag)
{
	struct vmt_vcpu_tsc tsc[NR_VCPUS];

	memset(tsc, 0, sizeof(tsc));
	for (unsigned int i = 0; i < NR_VCPUS; i++) {
		tsc[i].host_ns = START_NS;
		tsc[i].ratio = (uint64_t)(((unsigned __int128)1 << 48) * GUEST_KHZ / HOST_KHZ);
		tsc[i].offset = -INT64_C(12499999990000);
		tsc[i].vcpu = i;
		tsc[i].frac = 48;
		tsc[i].source = 1;
	}
	check(vmt_store_append(w,
			       &(struct vmt_store_chunk){ .type = VMT_CHUNK_VCPU_TSC,
							  .cpu = -1,
							  .time_first_ns = START_NS,
							  .time_last_ns = START_NS,
							  .nr_parts = 1,
							  .parts = { { tsc, sizeof(tsc) } } },
			       diag),
	      diag);
}

static void write_records(struct vmt_store_writer *w, struct vcpu *v, uint64_t from_ns,
			  struct vmt_diag *diag)
{
	if (v->stream.len == v->written)
		return;
	check(vmt_store_append(w,
			       &(struct vmt_store_chunk){
				       .type = VMT_CHUNK_RECORDS,
				       .stream = v->who.vcpu + 1,
				       .cpu = -1,
				       .time_first_ns = from_ns,
				       .time_last_ns = now(v),
				       .nr_parts = 1,
				       .parts = { { v->stream.bytes + v->written,
						    v->stream.len - v->written } } },
			       diag),
	      diag);
	v->written = v->stream.len;
}

static void write_mark(struct vmt_store_writer *w, uint64_t time_ns, const char *name,
		       struct vmt_diag *diag)
{
	char json[128];

	snprintf(json, sizeof(json),
		 "{\"time_ns\":%" PRIu64 ",\"domain\":0,\"name\":\"%s\",\"detail\":\"\"}", time_ns,
		 name);
	check(vmt_store_mark(w, json, time_ns, diag), diag);
}

static void write_capture(const char *path)
{
	struct vmt_store_options options = { .force = true };
	struct vmt_diag diag = { 0 };
	struct vmt_store_writer *w;
	struct vcpu vcpus[NR_VCPUS];

	memset(vcpus, 0, sizeof(vcpus));
	check(vmt_store_create(&w, path, &options, &diag), &diag);
	for (unsigned int i = 0; i < NR_VCPUS; i++) {
		vcpus[i].machine = vmt_machine_new(KERNEL, &vcpus[i].stream);
		vcpus[i].random = 17 + i;
		vcpus[i].who = (struct vmt_machine_exit){
			.pid = PID,
			.tid = PID + 1 + i,
			.cpu = 2 * i,
			.vcpu = i,
			.isa = VMT_ISA_VMX,
			.gap_ns = START_NS > now(&vcpus[i]) ? START_NS - now(&vcpus[i]) : 0
		};
		vmt_machine_event(vcpus[i].machine, "kvm_fpu", &vcpus[i].who, vcpus[i].who.gap_ns,
				  (const struct vmt_stream_value[]){ { "load", 1 } }, 1);
	}
	write_head(w, vcpus[0].machine, &diag);
	write_tsc(w, &diag);
	write_mark(w, START_NS, "capture-start", &diag);
	for (uint64_t t = START_NS; t < START_NS + SPAN_NS; t += ROUND_NS) {
		for (unsigned int i = 0; i < NR_VCPUS; i++) {
			uint64_t from = now(&vcpus[i]);

			while (now(&vcpus[i]) < t + ROUND_NS)
				work(&vcpus[i]);
			write_records(w, &vcpus[i], from, &diag);
		}
		check(vmt_store_round(w, t + ROUND_NS, &diag), &diag);
	}
	write_mark(w, START_NS + SPAN_NS, "capture-stop", &diag);
	check(vmt_store_finish(w, &diag), &diag);
	for (unsigned int i = 0; i < NR_VCPUS; i++) {
		vmt_machine_free(vcpus[i].machine);
		vmt_stream_free(&vcpus[i].stream);
	}
}

static int write_kallsyms(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f) {
		perror(path);
		return 1;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		fprintf(f, "%016" PRIx64 " T %s\n", symbols[i].address, symbols[i].name);
	return fclose(f) ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--kallsyms"))
		return write_kallsyms(argv[2]);
	if (argc != 2) {
		fputs("usage: gen_capture OUT.vmt | --kallsyms OUT\n", stderr);
		return 2;
	}
	write_capture(argv[1]);
	return 0;
}
