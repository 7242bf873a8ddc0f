// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/load.h"

#include <stdio.h>
#include <stdlib.h>

#define CPUS_MAX 64
#define PID	 4700u
#define ROUND_NS UINT64_C(8000000)

struct ring {
	struct vmt_machine *machine;
	struct vmt_stream out;
	struct vmt_machine_exit who;
	uint64_t random;
};

struct vmt_load {
	struct vmt_load_options o;
	struct ring rings[CPUS_MAX];
	uint64_t events, exits, round;
};

static uint64_t pick(struct ring *r, uint64_t from, uint64_t to)
{
	r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return from + (r->random >> 33) % (to - from + 1);
}

static void event(struct vmt_load *l, struct ring *r, const char *name, uint64_t after_ns,
		  const struct vmt_stream_value *values, size_t nr)
{
	vmt_machine_event(r->machine, name, &r->who, after_ns, values, nr);
	l->events++;
}

enum work {
	WORK_INTERRUPT,
	WORK_TIMER,
	WORK_PORT,
	WORK_KICK,
	WORK_HALT,
	WORK_CPUID,
	WORK_COUNT,
};

static const struct {
	uint32_t vmx, svm;
} reasons[WORK_COUNT] = {
	[WORK_INTERRUPT] = { 1, 0x60 }, [WORK_TIMER] = { 32, 0x7c }, [WORK_PORT] = { 30, 0x7b },
	[WORK_KICK] = { 49, 0x400 },	[WORK_HALT] = { 12, 0x78 },  [WORK_CPUID] = { 10, 0x72 },
};

static void exit_and_entry(struct vmt_load *l, struct ring *r, enum work work, uint64_t info1)
{
	r->who.reason = l->o.isa == VMT_ISA_SVM ? reasons[work].svm : reasons[work].vmx;
	r->who.rip = UINT64_C(0xffffffff81000000) + (uint64_t)work * 0x100000 + pick(r, 0, 40) * 16;
	r->who.info1 = info1;
	r->who.intr_info = work == WORK_INTERRUPT && l->o.isa == VMT_ISA_VMX ? 0x800000ec : 0;
	r->who.gap_ns = pick(r, 400, 1900);
	r->who.guest_ns = pick(r, 1000, 9000);
	vmt_machine_run(r->machine, &r->who);
	l->events += 2;
	l->exits++;
}

static void port(struct vmt_load *l, struct ring *r)
{
	uint64_t number = pick(r, 0, 1) ? 0x3f8 : 0x608;
	const struct vmt_stream_value pio[] = {
		{ "rw", 1 }, { "port", number }, { "size", 1 }, { "count", 1 }, { "val", 0x5a },
	};
	const struct vmt_stream_value user[] = { { "reason", 2 }, { "errno", 0 } };

	exit_and_entry(l, r, WORK_PORT, number << 16);
	event(l, r, "kvm_pio", 300, pio, 5);
	event(l, r, "kvm_userspace_exit", pick(r, 600, 1200), user, 2);
}

static void work(struct vmt_load *l, struct ring *r)
{
	const struct vmt_stream_value msr[] = {
		{ "write", 1 },
		{ "ecx", 0x6e0 },
		{ "data", pick(r, 0, 1u << 30) },
	};
	const struct vmt_stream_value mmio[] = { { "gpa", 0xfe003000 + pick(r, 0, 7) * 4096 } };
	const struct vmt_stream_value wake[] = { { "ns", pick(r, 2000, 40000) },
						 { "waited", pick(r, 0, 1) },
						 { "valid", 1 } };
	const struct vmt_stream_value cpuid[] = { { "function", pick(r, 0, 13) } };

	switch (pick(r, 0, 9)) {
	case 0:
	case 1:
	case 2:
		exit_and_entry(l, r, WORK_INTERRUPT, 0);
		break;
	case 3:
	case 4:
	case 5:
		exit_and_entry(l, r, WORK_TIMER, 1);
		event(l, r, "kvm_msr", 200, msr, 3);
		break;
	case 6:
		port(l, r);
		break;
	case 7:
		exit_and_entry(l, r, WORK_KICK, 0);
		event(l, r, "kvm_fast_mmio", 250, mmio, 1);
		break;
	case 8:
		exit_and_entry(l, r, WORK_HALT, 0);
		event(l, r, "kvm_vcpu_wakeup", pick(r, 2000, 60000), wake, 3);
		break;
	default:
		exit_and_entry(l, r, WORK_CPUID, 0);
		event(l, r, "kvm_cpuid", 150, cpuid, 1);
	}
}

struct vmt_load *vmt_load_new(const struct vmt_load_options *options)
{
	struct vmt_load *l = calloc(1, sizeof(*l));

	if (!l || !options->cpus || options->cpus > CPUS_MAX) {
		fputs("load: out of memory, or not 1..64 CPUs\n", stderr);
		abort();
	}
	l->o = *options;
	if (!l->o.round_ns)
		l->o.round_ns = ROUND_NS;
	for (unsigned int i = 0; i < options->cpus; i++) {
		struct ring *r = &l->rings[i];

		r->machine = vmt_machine_new(options->kernel, &r->out);
		r->random = options->seed * CPUS_MAX + i;
		r->who = (struct vmt_machine_exit){
			.pid = PID, .tid = PID + 1 + i, .cpu = i, .vcpu = i, .isa = options->isa
		};
	}
	return l;
}

void vmt_load_free(struct vmt_load *l)
{
	for (unsigned int i = 0; i < l->o.cpus; i++) {
		vmt_machine_free(l->rings[i].machine);
		vmt_stream_free(&l->rings[i].out);
	}
	free(l);
}

size_t vmt_load_formats(const struct vmt_load *l, const struct vmt_format **formats)
{
	return vmt_machine_formats(l->rings[0].machine, formats);
}

int vmt_load_round(struct vmt_load *l)
{
	uint64_t end = vmt_machine_now(l->rings[0].machine, 0) + ++l->round * l->o.round_ns;
	int last;

	if (l->events >= l->o.events)
		return 0;
	for (unsigned int i = 0; i < l->o.cpus; i++) {
		struct ring *r = &l->rings[i];

		r->out.len = 0;
		while (vmt_machine_now(r->machine, r->who.tid) < end)
			work(l, r);
	}
	last = l->events >= l->o.events;
	for (unsigned int i = 0; last && i < l->o.cpus; i++) {
		struct ring *r = &l->rings[i];
		const struct vmt_stream_value entry[] = { { "vcpu_id", i }, { "rip", r->who.rip } };

		event(l, r, "kvm_entry", 700, entry, 2);
	}
	return 1;
}

const struct vmt_stream *vmt_load_ring(const struct vmt_load *l, unsigned int cpu)
{
	return &l->rings[cpu].out;
}

uint64_t vmt_load_events(const struct vmt_load *l)
{
	return l->events;
}

uint64_t vmt_load_exits(const struct vmt_load *l)
{
	return l->exits;
}
