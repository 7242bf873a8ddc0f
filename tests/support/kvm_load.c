/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/kvm_load.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS	   8
#define SAMPLE_MAX 256
#define ROUND_NS   UINT64_C(2000000)
#define REASONS	   4096

enum event {
	ENTRY,
	EXIT,
	MSR,
	PIO,
	CPUID,
	CR,
	USERSPACE,
	WAKEUP,
	FAULT,
	INJECT,
	FAST_MMIO,
	EVENTS,
};

const char *const vmt_kvm_load_events[] = {
	"kvm_entry",
	"kvm_exit",
	"kvm_msr",
	"kvm_pio",
	"kvm_cpuid",
	"kvm_cr",
	"kvm_userspace_exit",
	"kvm_vcpu_wakeup",
	"kvm_page_fault",
	"kvm_inj_virq",
	"kvm_fast_mmio",
	NULL,
};

/* The fields that are written, by event; a format that lacks one leaves it out. */
static const char *const field_names[EVENTS][FIELDS] = {
	[ENTRY] = { "vcpu_id", "rip" },
	[EXIT] = { "exit_reason", "guest_rip", "isa", "info1", "info2", "intr_info", "vcpu_id" },
	[MSR] = { "write", "ecx", "data" },
	[PIO] = { "rw", "port", "size", "count", "val" },
	[CPUID] = { "function", "index" },
	[CR] = { "rw", "cr", "val" },
	[USERSPACE] = { "reason", "errno" },
	[WAKEUP] = { "ns", "waited", "valid" },
	[FAULT] = { "vcpu_id", "guest_rip", "fault_address", "error_code" },
	[INJECT] = { "vector", "soft", "reinjected" },
	[FAST_MMIO] = { "gpa" },
};

/* What a guest does, of a hundred exits. */
static const struct {
	unsigned int weight;
	uint32_t vmx, svm;
	uint64_t vmx_info1;
	int event; /* the record that follows; EVENTS: none */
} mix[] = {
	{ 26, 32, 0x7c, 0, MSR },	 { 14, 1, 0x60, 0, INJECT },
	{ 12, 12, 0x78, 0, WAKEUP },	 { 12, 30, 0x7b, 0x3f80000, PIO },
	{ 10, 48, 0x400, 0x182, FAULT }, { 8, 49, 0x400, 0, FAST_MMIO },
	{ 6, 10, 0x72, 0, CPUID },	 { 4, 31, 0x7c, 0, MSR },
	{ 4, 52, 0x77, 0, EVENTS },	 { 2, 28, 0x13, 0x3, CR },
	{ 1, 7, 0x64, 0, EVENTS },	 { 1, 40, 0x77, 0, EVENTS },
};

/* A sample whose dynamic members are overwritten for each record. */
struct template
{
	uint8_t bytes[SAMPLE_MAX];
	size_t len;
	struct {
		uint16_t at, size;
	} fields[FIELDS];
};

struct vcpu {
	uint64_t now_ns, random;
	uint64_t rip;
	int entered;
};

struct vmt_kvm_load {
	struct template templates[EVENTS];
	enum vmt_isa isa;
	unsigned int cpus;
	size_t nr_formats;
	struct vcpu *vcpus;
	uint64_t round_end_ns;
	uint64_t exits[REASONS], all_exits;
	struct vmt_stream ring;
};

static uint64_t next(struct vcpu *v)
{
	v->random ^= v->random << 13;
	v->random ^= v->random >> 7;
	v->random ^= v->random << 17;
	return v->random >> 16;
}

static void store(uint8_t *p, uint64_t value, size_t size)
{
	memcpy(p, &value, size);
}

static void make_template(struct template *t, const struct vmt_format *format, size_t index,
			  const char *const *names)
{
	size_t raw_len = 0;

	for (unsigned int i = 0; i < format->nr_fields; i++) {
		size_t end = (size_t)format->fields[i].offset + format->fields[i].size;

		raw_len = end > raw_len ? end : raw_len;
	}
	raw_len = ((raw_len + 4 + 7) & ~(size_t)7) - 4;
	t->len = VMT_PERFDATA_SAMPLE_RAW + raw_len;
	if (t->len > SAMPLE_MAX)
		abort();
	store(t->bytes, VMT_RING_SAMPLE, 4);
	store(t->bytes + 4, 1, 2);
	store(t->bytes + 6, t->len, 2);
	store(t->bytes + VMT_PERFDATA_SAMPLE_ID, index + 1, 8);
	store(t->bytes + VMT_PERFDATA_SAMPLE_IP, UINT64_C(0xffffffffc0001000), 8);
	store(t->bytes + VMT_PERFDATA_SAMPLE_PID, VMT_KVM_LOAD_PID, 4);
	store(t->bytes + VMT_PERFDATA_SAMPLE_CPU + 8, 1, 8);
	store(t->bytes + VMT_PERFDATA_SAMPLE_RAW - 4, raw_len, 4);
	store(t->bytes + VMT_PERFDATA_SAMPLE_RAW, format->id, 2);
	for (size_t i = 0; i < FIELDS && names[i]; i++) {
		const struct vmt_format_field *f = vmt_format_find(format, names[i]);

		if (!f)
			continue;
		t->fields[i].at = (uint16_t)(VMT_PERFDATA_SAMPLE_RAW + f->offset);
		t->fields[i].size = f->size < 8 ? f->size : 8;
	}
}

struct vmt_kvm_load *vmt_kvm_load_new(const struct vmt_perfdata_file *file, enum vmt_isa isa,
				      unsigned int cpus, uint64_t seed)
{
	struct vmt_kvm_load *l = calloc(1, sizeof(*l));
	const struct vmt_format *formats;

	if (!l)
		abort();
	l->isa = isa;
	l->cpus = cpus ? cpus : 1;
	l->nr_formats = vmt_perfdata_file_formats(file, &formats);
	l->vcpus = calloc(l->cpus, sizeof(*l->vcpus));
	if (!l->vcpus)
		abort();
	for (size_t e = 0; e < EVENTS; e++) {
		for (size_t i = 0; i < l->nr_formats; i++)
			if (!strcmp(formats[i].name, vmt_kvm_load_events[e]))
				make_template(&l->templates[e], &formats[i], i, field_names[e]);
		if (!l->templates[e].len)
			abort();
	}
	for (unsigned int i = 0; i < l->cpus; i++) {
		l->vcpus[i].now_ns = VMT_KVM_LOAD_START_NS + 37 * i;
		l->vcpus[i].random = (seed + i + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	}
	l->round_end_ns = VMT_KVM_LOAD_START_NS;
	return l;
}

void vmt_kvm_load_free(struct vmt_kvm_load *l)
{
	if (!l)
		return;
	vmt_stream_free(&l->ring);
	free(l->vcpus);
	free(l);
}

/* One record at the vCPU's time, after_ns later than the one before. */
static void emit(struct vmt_kvm_load *l, unsigned int cpu, enum event event, uint64_t after_ns,
		 const uint64_t *values, struct vmt_stream *out)
{
	struct template *t = &l->templates[event];
	struct vcpu *v = &l->vcpus[cpu];
	uint8_t *p;
	uint64_t id = 0;

	v->now_ns += after_ns;
	vmt_stream_append(out, t->bytes, t->len);
	p = out->bytes + out->len - t->len;
	memcpy(&id, p + VMT_PERFDATA_SAMPLE_ID, 8);
	store(p + VMT_PERFDATA_SAMPLE_ID, id + cpu * l->nr_formats, 8);
	store(p + VMT_PERFDATA_SAMPLE_TID, VMT_KVM_LOAD_PID + 1 + cpu, 4);
	store(p + VMT_PERFDATA_SAMPLE_TIME, v->now_ns, 8);
	store(p + VMT_PERFDATA_SAMPLE_CPU, cpu, 4);
	store(p + VMT_PERFDATA_SAMPLE_RAW + 4, VMT_KVM_LOAD_PID + 1 + cpu, 4);
	for (size_t i = 0; i < FIELDS; i++)
		memcpy(p + t->fields[i].at, &values[i], t->fields[i].size);
}

static void emit_entry(struct vmt_kvm_load *l, unsigned int cpu, struct vmt_stream *out)
{
	struct vcpu *v = &l->vcpus[cpu];

	emit(l, cpu, ENTRY, 300 + next(v) % 500, (const uint64_t[FIELDS]){ cpu, v->rip }, out);
}

/* What follows the exit; returns how many records. */
static unsigned int emit_key(struct vmt_kvm_load *l, unsigned int cpu, int event, int write,
			     struct vmt_stream *out)
{
	static const uint32_t msrs[] = { 0x6e0, 0x830, 0x80b, 0x40000070, 0x1b, 0x10 };
	static const uint32_t ports[] = { 0x3f8, 0x3fd, 0x608, 0x70, 0x71, 0xcf8 };
	struct vcpu *v = &l->vcpus[cpu];
	uint64_t r = next(v), w = (uint64_t)write;
	const uint64_t values[EVENTS][FIELDS] = {
		[MSR] = { w, msrs[r % 6], r },
		[PIO] = { r / 8 % 2, ports[r % 6], 1, 1, r & 0xff },
		[CPUID] = { r % 8 ? 1 : 0x40000000, 0 },
		[CR] = { r % 2, 3, r << 12 },
		[WAKEUP] = { 4000 + r % 30000, 1, 1 },
		[FAULT] = { cpu, v->rip, 0xfed00000 + (r % 512) * 4096, 0x182 },
		[INJECT] = { 0xec + r % 4, 0, 0 },
		[FAST_MMIO] = { 0xfe003000 + r % 4 * 4096 },
		[USERSPACE] = { 2, 0 },
	};

	if (event == EVENTS)
		return 0;
	emit(l, cpu, (enum event)event, event == WAKEUP ? values[WAKEUP][0] : 150 + r % 200,
	     values[event], out);
	if (event != PIO)
		return 1;
	emit(l, cpu, USERSPACE, 200 + r % 900, values[USERSPACE], out);
	return 2;
}

static unsigned int emit_exit(struct vmt_kvm_load *l, unsigned int cpu, struct vmt_stream *out)
{
	struct vcpu *v = &l->vcpus[cpu];
	uint64_t r = next(v);
	unsigned int pick = (unsigned int)(r % 100), row = 0;
	uint32_t reason;

	while (pick >= mix[row].weight)
		pick -= mix[row++].weight;
	reason = l->isa == VMT_ISA_SVM ? mix[row].svm : mix[row].vmx;
	v->rip = UINT64_C(0xffffffff81000000) + (row * 64 + r / 128 % 64) * 16;
	emit(l, cpu, EXIT, 1000 + r / 8192 % 4000,
	     (const uint64_t[FIELDS]){ reason, v->rip, (uint64_t)l->isa,
				       l->isa == VMT_ISA_SVM ? mix[row].vmx == 32
							     : mix[row].vmx_info1,
				       0, reason == 1 ? 0x800000ec : 0, cpu },
	     out);
	l->exits[reason % REASONS]++;
	l->all_exits++;
	return 2 + emit_key(l, cpu, mix[row].event, mix[row].vmx == 32, out);
}

uint64_t vmt_kvm_load_ring(struct vmt_kvm_load *l, unsigned int cpu, uint64_t end_ns,
			   uint64_t max_records, struct vmt_stream *out)
{
	struct vcpu *v = &l->vcpus[cpu];
	uint64_t n = 0;

	if (!v->entered && max_records) {
		emit_entry(l, cpu, out);
		v->entered = 1;
		n++;
	}
	while (n < max_records && v->now_ns < end_ns) {
		n += emit_exit(l, cpu, out);
		emit_entry(l, cpu, out);
	}
	return n;
}

uint64_t vmt_kvm_load_fill(struct vmt_kvm_load *l, struct vmt_perfdata_file *file,
			   uint64_t nr_records, int with_rounds)
{
	uint64_t n = 0;

	while (n < nr_records) {
		l->round_end_ns += ROUND_NS;
		for (unsigned int cpu = 0; cpu < l->cpus && n < nr_records; cpu++) {
			l->ring.len = 0;
			n += vmt_kvm_load_ring(l, cpu, l->round_end_ns, nr_records - n, &l->ring);
			vmt_perfdata_file_records(file, l->ring.bytes, l->ring.len);
		}
		if (with_rounds)
			vmt_perfdata_file_round(file);
	}
	return n;
}

uint64_t vmt_kvm_load_exits(const struct vmt_kvm_load *l, uint32_t reason)
{
	return reason < REASONS ? l->exits[reason] : 0;
}

uint64_t vmt_kvm_load_all_exits(const struct vmt_kvm_load *l)
{
	return l->all_exits;
}
