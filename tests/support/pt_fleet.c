/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The CPU whose time is least acts next, so that what happens, happens in order of time on all of
 * them; a vCPU is on one CPU at a time.
 */
#include "tests/support/pt_fleet.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/perfdata_file.h"

#define HOST_IP 0xffffffffc0395030u
#define MIGRATE 4000u /* TSC units at least from one CPU to another */
#define NO_EXIT SIZE_MAX

enum state {
	IDLE,
	HOST,
	GUEST,
};

struct cpu {
	enum state state;
	unsigned int vcpu;
	uint64_t now;
	unsigned int muted; /* actions whose packets are lost */
};

struct vcpu {
	bool busy;
	uint64_t free_since;
	size_t open; /* its last exit, until its entry */
};

struct world {
	struct vmt_ptfleet *out;
	const struct vmt_ptfleet_options *o;
	const struct vmt_format *formats;
	size_t entry, exit;
	struct cpu cpus[VMT_PTFLEET_CPUS_MAX];
	struct vcpu vcpus[VMT_PTFLEET_VCPUS_MAX];
	uint64_t random;
};

static uint64_t random_below(struct world *w, uint64_t below)
{
	w->random = w->random * 6364136223846793005 + 1442695040888963407;
	return (w->random >> 33) % below;
}

static bool chance(struct world *w, unsigned int permille)
{
	return random_below(w, 1000) < permille;
}

static uint64_t cr3_of(unsigned int vcpu)
{
	return 0x1234000 + 0x100000 * (uint64_t)vcpu;
}

static uint64_t rip_of(const struct world *w)
{
	return VMT_PTFLEET_RIP + 16 * w->out->nr_exits;
}

/* ---- records ---- */

static struct vmt_stream_at at(const struct world *w, unsigned int cpu, uint64_t tsc, size_t format)
{
	return (struct vmt_stream_at){ .time_ns = tsc / 2,
				       .id = format + 1,
				       .pid = VMT_PTFLEET_PID,
				       .tid = VMT_PTFLEET_TID + w->cpus[cpu].vcpu,
				       .cpu = cpu };
}

static void put_switch(struct world *w, unsigned int cpu, int out)
{
	const struct vmt_stream_at where = at(w, cpu, w->cpus[cpu].now, w->exit);

	if (w->o->switches)
		vmt_stream_switch(&w->out->rings[cpu], &where, out, 0);
}

static void put_kvm_entry(struct world *w, unsigned int cpu)
{
	const struct vmt_stream_value values[] = {
		{ "vcpu_id", w->cpus[cpu].vcpu },
		{ "rip", rip_of(w) },
	};
	const struct vmt_stream_at where = at(w, cpu, w->cpus[cpu].now, w->entry);

	if (w->o->tracepoints)
		vmt_stream_tracepoint(&w->out->rings[cpu], &w->formats[w->entry], &where, values,
				      2);
}

static void put_kvm_exit(struct world *w, unsigned int cpu, const struct vmt_ptfleet_exit *x,
			 uint64_t rip)
{
	const struct vmt_stream_value values[] = {
		{ "exit_reason", x->wrong_reason ? 28 : x->reason },
		{ "guest_rip", x->wrong_rip ? rip + 8 : rip },
		{ "isa", 1 },
		{ "vcpu_id", w->cpus[cpu].vcpu },
	};
	const struct vmt_stream_at where = at(w, cpu, w->cpus[cpu].now, w->exit);

	if (x->has_kvm)
		vmt_stream_tracepoint(&w->out->rings[cpu], &w->formats[w->exit], &where, values, 4);
}

/* ---- packets ---- */

static bool speaks(const struct world *w, unsigned int cpu)
{
	return !w->cpus[cpu].muted;
}

static void put_pip(struct world *w, unsigned int cpu)
{
	const struct cpu *c = &w->cpus[cpu];
	const bool guest = c->state == GUEST && !w->o->conceal;

	vmt_ptenc_pip(&w->out->streams[cpu], guest ? cr3_of(c->vcpu) : 0x10a2b000, guest);
}

static void put_psb(struct world *w, unsigned int cpu)
{
	struct vmt_ptenc *e = &w->out->streams[cpu];
	const struct cpu *c = &w->cpus[cpu];

	vmt_ptenc_psb(e);
	if (c->state != GUEST)
		vmt_ptenc_tsc(e, c->now);
	else if (w->o->inside && w->o->guest_tsc)
		vmt_ptenc_tsc(e, c->now + VMT_PTFLEET_OFFSET);
	if (c->state != IDLE && !w->o->conceal)
		vmt_ptenc_vmcs(e, VMT_PTFLEET_VMCS(c->vcpu));
	put_pip(w, cpu);
	vmt_ptenc_mode_exec(e, 1);
	vmt_ptenc_ip(e, VMT_PTENC_FUP, VMT_PTENC_FULL, c->state == GUEST ? rip_of(w) : HOST_IP);
	vmt_ptenc_psbend(e);
}

static void put_entry(struct world *w, unsigned int cpu)
{
	struct vmt_ptenc *e = &w->out->streams[cpu];

	vmt_ptenc_tsc(e, w->cpus[cpu].now);
	if (w->o->conceal)
		return;
	if (w->o->event_trace) {
		vmt_ptenc_cfe(e, 7, 0, true);
		vmt_ptenc_ip(e, VMT_PTENC_FUP, VMT_PTENC_AUTO, HOST_IP);
	}
	put_pip(w, cpu);
	vmt_ptenc_ip(e, VMT_PTENC_TIP, VMT_PTENC_AUTO, rip_of(w));
	if (w->o->guest_tsc)
		vmt_ptenc_tsc(e, w->cpus[cpu].now + 10 + VMT_PTFLEET_OFFSET);
}

static void put_exit(struct world *w, unsigned int cpu, uint32_t reason, uint64_t rip)
{
	struct vmt_ptenc *e = &w->out->streams[cpu];

	if (!w->o->conceal) {
		if (w->o->guest_tsc)
			vmt_ptenc_tsc(e, w->cpus[cpu].now - 5 + VMT_PTFLEET_OFFSET);
		if (w->o->event_trace) {
			vmt_ptenc_evd(e, 2, reason);
			vmt_ptenc_cfe(e, 8, 0, false);
		}
		vmt_ptenc_ip(e, VMT_PTENC_FUP, VMT_PTENC_AUTO, rip);
		put_pip(w, cpu);
		vmt_ptenc_ip(e, VMT_PTENC_TIP, VMT_PTENC_AUTO, HOST_IP);
	}
	vmt_ptenc_tsc(e, w->cpus[cpu].now + 20);
}

/* ---- what happens ---- */

static void unmute(struct world *w, unsigned int cpu)
{
	struct cpu *c = &w->cpus[cpu];

	if (!c->muted || --c->muted)
		return;
	c->now += 100;
	vmt_ptenc_ovf(&w->out->streams[cpu]);
	vmt_ptenc_ip(&w->out->streams[cpu], VMT_PTENC_FUP, VMT_PTENC_FULL,
		     c->state == GUEST ? rip_of(w) : HOST_IP);
	put_psb(w, cpu);
}

static void wake(struct world *w, unsigned int cpu)
{
	struct cpu *c = &w->cpus[cpu];
	const unsigned int vcpu = (unsigned int)random_below(w, w->o->vcpus);

	c->now += 500 + random_below(w, 3000);
	if (w->vcpus[vcpu].busy || w->vcpus[vcpu].free_since + MIGRATE > c->now)
		return;
	w->vcpus[vcpu].busy = true;
	c->vcpu = vcpu;
	c->state = HOST;
	put_switch(w, cpu, 0);
	c->now += 1500;
	if (speaks(w, cpu) && !w->o->conceal)
		vmt_ptenc_vmcs(&w->out->streams[cpu], VMT_PTFLEET_VMCS(vcpu));
}

static void sleep_now(struct world *w, unsigned int cpu)
{
	struct cpu *c = &w->cpus[cpu];

	c->now += 1500;
	put_switch(w, cpu, 1);
	w->vcpus[c->vcpu].busy = false;
	w->vcpus[c->vcpu].free_since = c->now;
	c->state = IDLE;
	c->now += 500;
}

static void enter(struct world *w, unsigned int cpu)
{
	struct cpu *c = &w->cpus[cpu];
	struct vcpu *v = &w->vcpus[c->vcpu];

	c->now += 1000 + random_below(w, 4000);
	put_kvm_entry(w, cpu);
	c->now += 100 + random_below(w, 900);
	c->state = GUEST;
	if (speaks(w, cpu))
		put_entry(w, cpu);
	if (v->open != NO_EXIT) {
		struct vmt_ptfleet_exit *x = &w->out->exits[v->open];

		x->has_end = true;
		x->end_cpu = cpu;
		x->end_tsc = c->now;
		x->end_has_pt = speaks(w, cpu);
	}
	v->open = NO_EXIT;
}

static void leave(struct world *w, unsigned int cpu)
{
	static const uint32_t reasons[] = { 1, 7, 10, 12, 30, 31, 32, 48, 49, 52 };
	struct vmt_ptfleet *out = w->out;
	struct cpu *c = &w->cpus[cpu];
	const uint64_t rip = rip_of(w);
	struct vmt_ptfleet_exit *x;

	if (out->nr_exits == out->room) {
		out->room = 2 * out->room + 64;
		out->exits = realloc(out->exits, out->room * sizeof(*x));
		if (!out->exits)
			abort();
	}
	x = &out->exits[out->nr_exits];
	c->now += 500 + random_below(w, 20000);
	*x = (struct vmt_ptfleet_exit){
		.cpu = cpu,
		.vcpu = c->vcpu,
		.reason = reasons[random_below(w, sizeof(reasons) / sizeof(reasons[0]))],
		.tsc = c->now,
		.has_pt = speaks(w, cpu) && !w->o->conceal,
		.has_kvm = w->o->tracepoints && !chance(w, w->o->lose_kvm),
	};
	x->wrong_rip = x->has_kvm && chance(w, w->o->wrong_rip);
	x->wrong_reason = x->has_kvm && chance(w, w->o->wrong_reason);
	c->state = HOST;
	if (speaks(w, cpu))
		put_exit(w, cpu, x->reason, rip);
	c->now += 100 + random_below(w, 1500);
	put_kvm_exit(w, cpu, x, rip);
	w->vcpus[c->vcpu].open = out->nr_exits++;
}

static void act(struct world *w, unsigned int cpu)
{
	struct cpu *c = &w->cpus[cpu];

	if (speaks(w, cpu) && chance(w, 20))
		put_psb(w, cpu);
	if (speaks(w, cpu) && chance(w, w->o->overflow))
		c->muted = 1 + (unsigned int)random_below(w, 6);
	if (c->state == IDLE)
		wake(w, cpu);
	else if (c->state == GUEST)
		leave(w, cpu);
	else if (chance(w, 250))
		sleep_now(w, cpu);
	else
		enter(w, cpu);
	unmute(w, cpu);
}

static size_t format_named(const struct world *w, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(w->formats[i].name, name))
			return i;
	abort();
}

static void begin_inside(struct world *w, unsigned int cpu)
{
	w->cpus[cpu].vcpu = cpu;
	w->cpus[cpu].state = GUEST;
	w->vcpus[cpu].busy = true;
}

void vmt_ptfleet_run(struct vmt_ptfleet *out, const struct vmt_ptfleet_options *o,
		     const struct vmt_machine *machine)
{
	struct world w = { .out = out, .o = o, .random = o->seed };
	const size_t n = vmt_machine_formats(machine, &w.formats);

	*out = (struct vmt_ptfleet){ .first_tsc = UINT64_C(1) << 41 };
	w.entry = format_named(&w, n, "kvm_entry");
	w.exit = format_named(&w, n, "kvm_exit");
	for (unsigned int i = 0; i < o->vcpus; i++)
		w.vcpus[i].open = NO_EXIT;
	for (unsigned int i = 0; i < o->cpus; i++) {
		w.cpus[i].now = out->first_tsc + 1000 * i;
		if (o->inside && i % 2 && i < o->vcpus)
			begin_inside(&w, i);
		put_psb(&w, i);
	}
	for (unsigned int step = 0; step < o->steps; step++) {
		unsigned int next = 0;

		for (unsigned int i = 1; i < o->cpus; i++)
			if (w.cpus[i].now < w.cpus[next].now)
				next = i;
		act(&w, next);
		out->last_tsc = w.cpus[next].now;
	}
	for (unsigned int i = 0; i < o->cpus; i++)
		while (out->streams[i].len % 8)
			vmt_ptenc_pad(&out->streams[i]);
}

void vmt_ptfleet_free(struct vmt_ptfleet *fleet)
{
	for (unsigned int i = 0; i < VMT_PTFLEET_CPUS_MAX; i++) {
		vmt_ptenc_free(&fleet->streams[i]);
		vmt_stream_free(&fleet->rings[i]);
	}
	free(fleet->exits);
	*fleet = (struct vmt_ptfleet){ 0 };
}

/* ---- the file ---- */

enum {
	AUXTRACE_INFO = 70,
	AUXTRACE = 71,
};

static void put_info(struct vmt_perfdata_file *file)
{
	uint64_t info[19] = { 1 };
	uint64_t *words = info + 1;

	words[0] = 8;  /* PMU type */
	words[1] = 31; /* time shift, mult, zero: TSC / 2 */
	words[2] = 1 << 30;
	words[4] = 1;	    /* cap_user_time_zero */
	words[5] = 1 << 10; /* TSC */
	words[7] = 2;	    /* context switches */
	words[9] = 1;	    /* per CPU */
	vmt_perfdata_file_user(file, AUXTRACE_INFO, info, sizeof(info));
}

static void put_trace(struct vmt_perfdata_file *file, const struct vmt_ptfleet *fleet, uint32_t cpu,
		      size_t from, size_t to)
{
	uint64_t body[5] = { to - from, from, fleet->first_tsc };
	uint32_t who[4] = { cpu, UINT32_MAX, cpu, 0 };

	memcpy(body + 3, who, sizeof(who));
	vmt_perfdata_file_user(file, AUXTRACE, body, sizeof(body));
	vmt_perfdata_file_records(file, fleet->streams[cpu].bytes + from, to - from);
}

/* Multiples of 8, as perf has them. */
static size_t third(const struct vmt_ptfleet *fleet, uint32_t cpu, unsigned int nth)
{
	return (fleet->streams[cpu].len * nth / 3 + 7) & ~(size_t)7;
}

uint8_t *vmt_ptfleet_perfdata(const struct vmt_ptfleet *fleet, const struct vmt_ptfleet_options *o,
			      const struct vmt_machine *machine, const char *kernel, bool pipe,
			      size_t *len)
{
	static const char *const events[] = { "kvm_entry", "kvm_exit", NULL };
	const struct vmt_perfdata_file_options options = { .kernel = kernel,
							   .events = events,
							   .isa = VMT_ISA_VMX,
							   .cpus = o->cpus,
							   .pipe = pipe,
							   .fd = -1 };
	struct vmt_perfdata_file *file = vmt_perfdata_file_new(&options);
	uint8_t *bytes;

	put_info(file);
	for (unsigned int nth = 0; nth < 3; nth++) {
		for (uint32_t cpu = 0; cpu < o->cpus; cpu++)
			put_trace(file, fleet, cpu, third(fleet, cpu, nth),
				  third(fleet, cpu, nth + 1));
	}
	for (uint32_t cpu = 0; cpu < o->cpus; cpu++)
		vmt_perfdata_file_machine(file, machine, &fleet->rings[cpu]);
	vmt_perfdata_file_round(file);
	vmt_perfdata_file_finish(file);
	bytes = vmt_perfdata_file_take(file, len);
	vmt_perfdata_file_free(file);
	return bytes;
}
