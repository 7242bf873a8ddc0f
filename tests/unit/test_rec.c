/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every kind of tracepoint in every kernel's format, and the ring's own records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/event.h"
#include "decode/kvm/rec.h"
#include "tests/support/stream.h"

static const char *const kernels[] = { "4.18", "5.4", "5.10", "5.15", "6.1", "6.18" };
#define NR_KERNELS (sizeof(kernels) / sizeof(kernels[0]))

/* A field is written, a member must hold `expected`; in a format without the field it must be 0. */
struct member {
	const char *field;
	uint64_t value;
	size_t offset;
	unsigned int size;
	uint64_t expected;
	unsigned int flag; /* set exactly when the format has the field */
};

struct kind_case {
	const char *name;
	uint8_t kind;
	const char *first, *last; /* kernels that have it; NULL: all */
	struct member members[10];
};

#define M64(field, value, m)                                                                       \
	{                                                                                          \
		field, value, offsetof(struct vmt_rec, u.m), 8, value, 0                           \
	}
#define M32(field, value, m)                                                                       \
	{                                                                                          \
		field, value, offsetof(struct vmt_rec, u.m), 4, value, 0                           \
	}
#define M32F(field, value, m, flag)                                                                \
	{                                                                                          \
		field, value, offsetof(struct vmt_rec, u.m), 4, value, flag                        \
	}
#define RW(field, value, rw)                                                                       \
	{                                                                                          \
		field, value, offsetof(struct vmt_rec, u.io.access), 4, rw, 0                      \
	}
#define RIP UINT64_C(0xffffffff81234567)
#define ANY UINT64_C(0xfedcba9876543210)

static const struct kind_case cases[] = {
	{ "kvm_entry",
	  VMT_REC_KVM_ENTRY,
	  NULL,
	  NULL,
	  { M32F("vcpu_id", 7, entry.vcpu_id, VMT_REC_HAS_VCPU),
	    { "rip", RIP, offsetof(struct vmt_rec, u.entry.rip), 8, RIP, VMT_REC_HAS_RIP },
	    M32("immediate_exit", 1, entry.immediate_exit),
	    M32("intr_info", 0x800000ec, entry.intr_info),
	    M32F("error_code", 5, entry.error_code, VMT_REC_HAS_INTR) } },
	{ "kvm_exit",
	  VMT_REC_KVM_EXIT,
	  NULL,
	  NULL,
	  { M32("exit_reason", 0x80000021, exit.reason), M64("guest_rip", RIP, exit.rip),
	    M32("isa", 2, exit.isa), M64("info1", ANY, exit.info1), M64("info2", RIP, exit.info2),
	    M32("intr_info", 0x80000b0e, exit.intr_info),
	    M32F("error_code", 6, exit.error_code, VMT_REC_HAS_INTR),
	    M32F("vcpu_id", 3, exit.vcpu_id, VMT_REC_HAS_VCPU) } },
	{ "kvm_nested_vmexit",
	  VMT_REC_KVM_NESTED_VMEXIT,
	  "5.10",
	  NULL,
	  { M32("exit_reason", 48, exit.reason), M64("info1", ANY, exit.info1) } },
	{ "kvm_nested_vmexit",
	  VMT_REC_KVM_NESTED_VMEXIT,
	  NULL,
	  "5.4",
	  { M32("exit_code", 0x78, exit.reason), M64("rip", RIP, exit.rip),
	    M64("exit_info1", ANY, exit.info1), M32("exit_int_info", 9, exit.intr_info),
	    M32("isa", 2, exit.isa) } },
	{ "kvm_nested_vmexit_inject",
	  VMT_REC_KVM_NESTED_VMEXIT_INJECT,
	  NULL,
	  NULL,
	  { M32("exit_code", 12, exit.reason), M64("exit_info2", ANY, exit.info2),
	    M32("isa", 1, exit.isa) } },
	{ "kvm_nested_vmenter",
	  VMT_REC_KVM_NESTED_VMENTER,
	  "6.1",
	  NULL,
	  { M64("rip", RIP, any.first), M64("nested_rip", ANY, any.second) } },
	{ "kvm_nested_vmrun",
	  VMT_REC_KVM_NESTED_VMENTER,
	  NULL,
	  "5.15",
	  { M64("rip", RIP, any.first), M64("nested_rip", ANY, any.second) } },
	{ "kvm_nested_intr_vmexit", VMT_REC_KVM_NESTED_OTHER, NULL, NULL, { { 0 } } },
	{ "kvm_userspace_exit",
	  VMT_REC_KVM_USERSPACE_EXIT,
	  NULL,
	  NULL,
	  { M32("reason", 6, userspace.reason), M32("errno", 0xfffffffc, userspace.error) } },
	{ "kvm_pio",
	  VMT_REC_KVM_PIO,
	  NULL,
	  NULL,
	  { M64("port", 0x3f8, io.address), RW("rw", 1, VMT_ACCESS_WRITE), M32("size", 2, io.size),
	    M32("count", 3, io.count), M64("val", 0xdeadbeef, io.value) } },
	{ "kvm_mmio",
	  VMT_REC_KVM_MMIO,
	  NULL,
	  NULL,
	  { M64("gpa", ANY, io.address), RW("type", 2, VMT_ACCESS_WRITE), M32("len", 8, io.size),
	    M64("val", RIP, io.value) } },
	{ "kvm_mmio", VMT_REC_KVM_MMIO, NULL, NULL, { RW("type", 1, VMT_ACCESS_READ) } },
	{ "kvm_mmio", VMT_REC_KVM_MMIO, NULL, NULL, { RW("type", 0, VMT_ACCESS_READ) } },
	{ "kvm_fast_mmio", VMT_REC_KVM_FAST_MMIO, NULL, NULL, { M64("gpa", ANY, io.address) } },
	{ "kvm_msr",
	  VMT_REC_KVM_MSR,
	  NULL,
	  NULL,
	  { M64("ecx", 0xc0000080, io.address), RW("write", 0, VMT_ACCESS_READ),
	    M64("data", ANY, io.value), M32("exception", 1, io.exception) } },
	{ "kvm_cr",
	  VMT_REC_KVM_CR,
	  NULL,
	  NULL,
	  { M64("cr", 4, io.address), RW("rw", 1, VMT_ACCESS_WRITE), M64("val", ANY, io.value) } },
	{ "kvm_apic",
	  VMT_REC_KVM_APIC,
	  NULL,
	  NULL,
	  { M64("reg", 0x380, io.address), RW("rw", 0, VMT_ACCESS_READ),
	    M64("val", 0xfedcba98, io.value) } },
	{ "kvm_apic_ipi",
	  VMT_REC_KVM_APIC_IPI,
	  NULL,
	  NULL,
	  { M64("icr_low", 0xc08fd, any.first), M64("dest_id", 9, any.second) } },
	{ "kvm_apic_accept_irq",
	  VMT_REC_KVM_APIC_ACCEPT_IRQ,
	  NULL,
	  NULL,
	  { M64("vec", 236, any.first), M64("apicid", 2, any.second) } },
	{ "kvm_eoi",
	  VMT_REC_KVM_EOI,
	  NULL,
	  NULL,
	  { { "vector", UINT32_MAX, offsetof(struct vmt_rec, u.any.first), 8, UINT64_MAX, 0 } } },
	{ "kvm_pv_eoi", VMT_REC_KVM_PV_EOI, NULL, NULL, { M64("vector", 48, any.first) } },
	{ "kvm_cpuid",
	  VMT_REC_KVM_CPUID,
	  NULL,
	  NULL,
	  { M32("function", 0x80000001, cpuid.leaf),
	    M32F("index", 3, cpuid.subleaf, VMT_REC_HAS_SUBLEAF) } },
	{ "kvm_inj_virq", VMT_REC_KVM_INJ_VIRQ, NULL, "5.15", { M32("irq", 236, inject.vector) } },
	{ "kvm_inj_virq",
	  VMT_REC_KVM_INJ_VIRQ,
	  "6.1",
	  NULL,
	  { M32("vector", 236, inject.vector), M32("reinjected", 1, inject.reinjected) } },
	{ "kvm_inj_exception",
	  VMT_REC_KVM_INJ_EXCEPTION,
	  NULL,
	  NULL,
	  { M32("exception", 14, inject.vector), M32("has_error", 1, inject.has_error),
	    M32("error_code", 0x15, inject.error_code), M32("reinjected", 1, inject.reinjected) } },
	{ "kvm_hypercall",
	  VMT_REC_KVM_HYPERCALL,
	  NULL,
	  NULL,
	  { M64("nr", 5, hypercall.nr), M64("a0", ANY, hypercall.a0) } },
	{ "kvm_hv_hypercall",
	  VMT_REC_KVM_HV_HYPERCALL,
	  NULL,
	  NULL,
	  { M64("code", 0x5c, hypercall.nr), M64("ingpa", ANY, hypercall.ingpa) } },
	{ "kvm_hv_hypercall_done", VMT_REC_KVM_HV_OTHER, "5.10", NULL, { { 0 } } },
	{ "kvm_hv_synic_set_irq", VMT_REC_KVM_HV_OTHER, NULL, NULL, { { 0 } } },
	{ "kvm_page_fault",
	  VMT_REC_KVM_PAGE_FAULT,
	  NULL,
	  NULL,
	  { M64("fault_address", ANY, fault.gpa), M64("error_code", 0x14, fault.error_code),
	    M64("guest_rip", RIP, fault.rip),
	    M32F("vcpu_id", 2, fault.vcpu_id, VMT_REC_HAS_VCPU) } },
	{ "kvm_halt_poll_ns",
	  VMT_REC_KVM_HALT_POLL_NS,
	  NULL,
	  NULL,
	  { M64("new", 200000, any.first), M64("old", 10000, any.second), M32("grow", 1, any.third),
	    M32F("vcpu_id", 4, any.vcpu_id, VMT_REC_HAS_VCPU) } },
	{ "kvm_vcpu_wakeup",
	  VMT_REC_KVM_VCPU_WAKEUP,
	  NULL,
	  NULL,
	  { M64("ns", ANY, wakeup.ns), M32("waited", 1, wakeup.waited),
	    M32("valid", 1, wakeup.valid) } },
	{ "kvm_ple_window",
	  VMT_REC_KVM_PLE_WINDOW,
	  NULL,
	  "4.18",
	  { M64("new", 8192, any.first), M64("old", 4096, any.second),
	    M32F("vcpu_id", 1, any.vcpu_id, VMT_REC_HAS_VCPU) } },
	{ "kvm_ple_window_update",
	  VMT_REC_KVM_PLE_WINDOW,
	  "5.4",
	  NULL,
	  { M64("new", 8192, any.first), M64("old", 4096, any.second) } },
	{ "kvm_write_tsc_offset",
	  VMT_REC_KVM_WRITE_TSC_OFFSET,
	  NULL,
	  NULL,
	  { M32F("vcpu_id", 1, tsc.vcpu_id, VMT_REC_HAS_VCPU),
	    M64("previous_tsc_offset", ANY, tsc.previous),
	    M64("next_tsc_offset", RIP, tsc.next) } },
	{ "kvm_track_tsc",
	  VMT_REC_KVM_TRACK_TSC,
	  NULL,
	  NULL,
	  { M64("nr_vcpus_matched_tsc", 3, any.first), M64("online_vcpus", 4, any.second),
	    M32("use_master_clock", 1, any.third) } },
	{ "kvm_update_master_clock",
	  VMT_REC_KVM_UPDATE_MASTER_CLOCK,
	  NULL,
	  NULL,
	  { M64("use_master_clock", 1, any.first), M64("host_clock", 2, any.second) } },
	{ "kvm_pvclock_update",
	  VMT_REC_KVM_PVCLOCK_UPDATE,
	  NULL,
	  NULL,
	  { M64("tsc_timestamp", ANY, tsc.previous),
	    M64("system_time", RIP, tsc.next),
	    M32("tsc_to_system_mul", 0xfedcba98, tsc.mul),
	    { "tsc_shift", 0xff, offsetof(struct vmt_rec, u.tsc.shift), 4, UINT32_MAX, 0 },
	    M32("flags", 3, tsc.flags) } },
	{ "kvm_async_pf_not_present",
	  VMT_REC_KVM_ASYNC_PF,
	  NULL,
	  NULL,
	  { M64("gva", ANY, any.first), M64("token", RIP, any.second) } },
	{ "kvm_async_pf_doublefault",
	  VMT_REC_KVM_ASYNC_PF,
	  NULL,
	  "5.15",
	  { M64("gva", ANY, any.first) } },
	{ "kvm_async_pf_repeated_fault",
	  VMT_REC_KVM_ASYNC_PF,
	  "6.1",
	  NULL,
	  { M64("gva", ANY, any.first) } },
	{ "kvm_try_async_get_page",
	  VMT_REC_KVM_ASYNC_PF,
	  NULL,
	  NULL,
	  { M64("gva", ANY, any.first) } },
	{ "kvm_unmap_hva_range",
	  VMT_REC_KVM_UNMAP_HVA,
	  "5.15",
	  NULL,
	  { M64("start", ANY, any.first), M64("end", RIP, any.second) } },
	{ "kvm_set_irq",
	  VMT_REC_KVM_SET_IRQ,
	  NULL,
	  NULL,
	  { M64("gsi", 24, any.first), M64("level", 1, any.second) } },
	{ "kvm_msi_set_irq",
	  VMT_REC_KVM_MSI_SET_IRQ,
	  NULL,
	  NULL,
	  { M64("address", ANY, any.first), M64("data", RIP, any.second) } },
	{ "kvm_emulate_insn",
	  VMT_REC_KVM_EMULATE_INSN,
	  NULL,
	  NULL,
	  { M64("rip", RIP, any.first), M64("csbase", 0xf0000, any.second),
	    M32("len", 15, any.third) } },
	{ "kvm_vmgexit_enter",
	  VMT_REC_KVM_VMGEXIT,
	  "5.15",
	  NULL,
	  { M32F("exit_reason", 0x7b, exit.reason, VMT_REC_HAS_REASON),
	    M64("info1", ANY, exit.info1), M64("info2", RIP, exit.info2),
	    M32F("vcpu_id", 3, exit.vcpu_id, VMT_REC_HAS_VCPU) } },
	{ "kvm_vmgexit_msr_protocol_enter",
	  VMT_REC_KVM_VMGEXIT,
	  "5.15",
	  NULL,
	  { M32F("vcpu_id", 3, exit.vcpu_id, VMT_REC_HAS_VCPU) } },
	{ "kvm_fpu", VMT_REC_KVM_OTHER, NULL, NULL, { { 0 } } },
	{ "sched_switch",
	  VMT_REC_SCHED_SWITCH,
	  NULL,
	  NULL,
	  { M32("prev_pid", 101, sched_switch.prev_tid),
	    M32("next_pid", 102, sched_switch.next_tid),
	    M64("prev_state", 0x2001, sched_switch.prev_state) } },
	{ "sched_waking",
	  VMT_REC_SCHED_WAKING,
	  NULL,
	  NULL,
	  { M32("pid", 101, waking.tid), M32("target_cpu", 5, waking.target_cpu) } },
};

static int order_of(const char *kernel)
{
	for (size_t k = 0; k < NR_KERNELS; k++)
		if (!strcmp(kernels[k], kernel))
			return (int)k;
	return -1;
}

static void decode_one(const struct kind_case *c, const char *kernel)
{
	struct vmt_format format = vmt_stream_format(kernel, c->name);
	struct vmt_catalog *catalog = vmt_catalog_new();
	struct vmt_ring_set *set = vmt_ring_set_new();
	struct vmt_ring_attr attr = vmt_stream_attr(format.id);
	const struct vmt_stream_at at = { 12345, 1, 100, 101, 6 };
	struct vmt_stream_value values[10];
	struct vmt_stream stream = { 0 };
	struct vmt_ring_record record;
	struct vmt_rec rec;
	size_t n = 0;

	assert_int_equal(vmt_catalog_add(catalog, &format), 0);
	assert_int_equal(vmt_ring_set_add(set, &attr, &at.id, 1), 0);
	for (; n < 10 && c->members[n].field; n++)
		values[n] = (struct vmt_stream_value){ c->members[n].field, c->members[n].value };
	vmt_stream_tracepoint(&stream, &format, &at, values, n);
	assert_int_equal(vmt_ring_parse(set, stream.bytes, stream.len, &record, NULL), stream.len);
	assert_int_equal(vmt_rec_decode(catalog, &record, &rec), 1);
	assert_int_equal(rec.kind, c->kind);
	assert_int_equal(rec.time_ns, 12345);
	assert_int_equal(rec.pid, 100);
	assert_int_equal(rec.tid, 101);
	assert_int_equal(rec.cpu, 6);
	assert_true(rec.flags & VMT_REC_HAS_TIME);
	assert_string_equal(vmt_catalog_name(catalog, rec.catalog), c->name);
	for (size_t i = 0; i < n; i++) {
		const struct member *m = &c->members[i];
		bool has = vmt_format_find(&format, m->field) != NULL;
		uint64_t v = 0;

		memcpy(&v, (const uint8_t *)&rec + m->offset, m->size);
		if (v != (has ? m->expected : 0))
			fail_msg("%s %s.%s is 0x%llx", kernel, c->name, m->field,
				 (unsigned long long)v);
		if (m->flag)
			assert_int_equal((rec.flags & m->flag) != 0, has);
	}
	/* one byte less than the fields need */
	record.raw_len = format.fields[format.nr_fields - 1].offset +
			 format.fields[format.nr_fields - 1].size - 1u;
	assert_int_equal(vmt_rec_decode(catalog, &record, &rec), VMT_E_DAMAGED);
	vmt_stream_free(&stream);
	vmt_ring_set_free(set);
	vmt_catalog_free(catalog);
}

static void every_kind_in_every_kernel(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int first = cases[i].first ? order_of(cases[i].first) : 0;
		int last = cases[i].last ? order_of(cases[i].last) : (int)NR_KERNELS - 1;

		for (int k = first; k <= last && k < (int)NR_KERNELS; k++)
			decode_one(&cases[i], kernels[k]);
	}
}

static void every_kind_has_a_case(void **state)
{
	(void)state;
	for (unsigned int kind = VMT_REC_KVM_ENTRY; kind < VMT_REC_KIND_COUNT; kind++) {
		bool found = false;

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			found = found || cases[i].kind == kind;
		if (!found)
			fail_msg("no case for kind %u", kind);
	}
}

static void records_of_the_ring(void **state)
{
	const struct vmt_ring_record base = { .has_time = true,
					      .has_tid = true,
					      .has_cpu = true,
					      .time_ns = 9,
					      .pid = 1,
					      .tid = 2,
					      .cpu = 3,
					      .lost = 44 };
	static const struct {
		uint32_t type;
		int result;
		uint32_t cause;
		uint16_t misc;
		uint8_t kind, flags;
	} rows[] = {
		{ VMT_RING_SWITCH, 1, 0, 0, VMT_REC_SWITCH_IN, 0 },
		{ VMT_RING_SWITCH, 1, 0, 0x2000, VMT_REC_SWITCH_OUT, 0 },
		{ VMT_RING_SWITCH_CPU_WIDE, 1, 0, 0x6000, VMT_REC_SWITCH_OUT, VMT_REC_PREEMPTED },
		{ VMT_RING_SWITCH_CPU_WIDE, 1, 0, 0, VMT_REC_SWITCH_IN, 0 },
		{ VMT_RING_LOST, 1, VMT_LOST_RECORDS, 0, VMT_REC_LOST, 0 },
		{ VMT_RING_LOST_SAMPLES, 1, VMT_LOST_SAMPLES, 0, VMT_REC_LOST, 0 },
		{ VMT_RING_THROTTLE, 1, VMT_LOST_THROTTLED, 0, VMT_REC_LOST, 0 },
		{ VMT_RING_UNTHROTTLE, 1, VMT_LOST_THROTTLED, 0, VMT_REC_LOST, 0 },
		{ VMT_RING_COMM, 0, 0, 0, VMT_REC_NONE, 0 },
		{ VMT_RING_MMAP2, 0, 0, 0, VMT_REC_NONE, 0 },
		{ 77, 0, 0, 0, VMT_REC_NONE, 0 },
	};
	struct vmt_catalog *catalog = vmt_catalog_new();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vmt_ring_record r = base;
		struct vmt_rec rec;

		r.type = rows[i].type;
		r.misc = rows[i].misc;
		assert_int_equal(vmt_rec_decode(catalog, &r, &rec), rows[i].result);
		if (!rows[i].result)
			continue;
		assert_int_equal(rec.kind, rows[i].kind);
		assert_int_equal(rec.flags & ~VMT_REC_HAS_TIME, rows[i].flags);
		assert_int_equal(rec.tid, 2);
		assert_int_equal(rec.catalog, 0xffff);
		if (rec.kind == VMT_REC_LOST)
			assert_int_equal(rec.u.lost.cause, rows[i].cause);
	}
	vmt_catalog_free(catalog);
}

static void samples_that_cannot_be_read(void **state)
{
	struct vmt_catalog *catalog = vmt_catalog_new();
	uint8_t raw[64] = { 1, 2 };
	struct vmt_ring_record r = { .type = VMT_RING_SAMPLE };
	struct vmt_rec rec;

	(void)state;
	assert_int_equal(vmt_rec_decode(catalog, &r, &rec), 0);
	r.raw = raw;
	r.raw_len = 7;
	assert_int_equal(vmt_rec_decode(catalog, &r, &rec), VMT_E_DAMAGED);
	r.raw_len = 64;
	assert_int_equal(vmt_rec_decode(catalog, &r, &rec), VMT_E_UNSUPPORTED);
	vmt_catalog_free(catalog);
}

static void tid_from_the_sample_itself(void **state)
{
	struct vmt_format format = vmt_stream_format("6.18", "kvm_fpu");
	struct vmt_catalog *catalog = vmt_catalog_new();
	uint8_t raw[16] = { (uint8_t)format.id, (uint8_t)(format.id >> 8), 0, 0, 0x39, 0x30 };
	struct vmt_ring_record r = { .type = VMT_RING_SAMPLE, .raw = raw, .raw_len = 12 };
	struct vmt_rec rec;

	(void)state;
	assert_int_equal(vmt_catalog_add(catalog, &format), 0);
	assert_int_equal(vmt_rec_decode(catalog, &r, &rec), 1);
	assert_int_equal(rec.tid, 12345);
	assert_int_equal(rec.flags, 0);
	assert_int_equal(rec.cpu, UINT32_MAX);
	vmt_catalog_free(catalog);
}

static void catalog_rules(void **state)
{
	struct vmt_format entry = vmt_stream_format("6.18", "kvm_entry");
	struct vmt_format other = vmt_stream_format("6.1", "kvm_entry");
	struct vmt_catalog *catalog = vmt_catalog_new();

	(void)state;
	assert_int_equal(vmt_catalog_add(catalog, &entry), 0);
	assert_int_equal(vmt_catalog_add(catalog, &entry), 0);
	assert_int_equal(vmt_catalog_count(catalog), 1);
	assert_int_equal(vmt_catalog_add(catalog, &other), 1);
	other.id = entry.id;
	assert_int_equal(vmt_catalog_add(catalog, &other), VMT_E_DAMAGED);
	entry.id = 65536;
	assert_int_equal(vmt_catalog_add(catalog, &entry), VMT_E_DAMAGED);
	assert_null(vmt_catalog_name(catalog, 2));
	assert_null(vmt_catalog_format(catalog, 2));
	assert_string_equal(vmt_catalog_format(catalog, 1)->name, "kvm_entry");
	for (uint32_t id = 10000; vmt_catalog_count(catalog) < 4096; id++) {
		entry.id = id;
		assert_true(vmt_catalog_add(catalog, &entry) > 0);
	}
	entry.id = 60000;
	assert_int_equal(vmt_catalog_add(catalog, &entry), VMT_E_LIMIT);
	vmt_catalog_free(catalog);
}

/* Field widths and places that no kernel has: the loads stay inside the record. */
static void odd_formats(void **state)
{
	struct vmt_format format = vmt_stream_format("6.18", "kvm_exit");
	struct vmt_catalog *catalog = vmt_catalog_new();
	uint8_t *raw = calloc(1, 65536);
	struct vmt_rec rec;

	(void)state;
	assert_non_null(raw);
	for (unsigned int i = 0; i < 200; i++) {
		struct vmt_ring_record r = { .type = VMT_RING_SAMPLE, .raw = raw };
		uint32_t end = 8;

		format.id = 1000 + i;
		for (unsigned int f = 4; f < format.nr_fields; f++) {
			format.fields[f].offset = (uint16_t)(i * 331 * (f + 1));
			format.fields[f].size = (uint16_t)((i + f) % 11);
			format.fields[f].is_signed = (i + f) % 2;
			if (format.fields[f].offset + format.fields[f].size > (int)end)
				end = (uint32_t)format.fields[f].offset + format.fields[f].size;
		}
		assert_int_equal(vmt_catalog_add(catalog, &format), i);
		raw[0] = (uint8_t)format.id;
		raw[1] = (uint8_t)(format.id >> 8);
		r.raw_len = end;
		/* beyond what a record can hold: of no interest */
		assert_int_equal(vmt_rec_decode(catalog, &r, &rec), end > 65535 ? 0 : 1);
	}
	free(raw);
	vmt_catalog_free(catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_in_every_kernel),
		cmocka_unit_test(every_kind_has_a_case),
		cmocka_unit_test(records_of_the_ring),
		cmocka_unit_test(samples_that_cannot_be_read),
		cmocka_unit_test(tid_from_the_sample_itself),
		cmocka_unit_test(catalog_rules),
		cmocka_unit_test(odd_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
