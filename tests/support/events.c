// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/events.h"

#include <string.h>

static struct vmt_event of_vcpu(enum vmt_event_type type, uint32_t vcpu, uint64_t time_ns)
{
	return (struct vmt_event){ .type = type,
				   .source = VMT_SOURCE_KVM,
				   .has = VMT_HAS_TIME | VMT_HAS_CPU | VMT_HAS_TID | VMT_HAS_VCPU |
					  VMT_HAS_DOMAIN,
				   .time = { time_ns },
				   .cpu = vcpu,
				   .pid = 1000,
				   .tid = 1000 + vcpu,
				   .vcpu = vcpu };
}

struct vmt_event vmt_make_entry(uint32_t vcpu, uint64_t time_ns)
{
	return of_vcpu(VMT_EVENT_ENTRY, vcpu, time_ns);
}

struct vmt_event vmt_make_exit(uint32_t vcpu, uint64_t time_ns, uint64_t duration_ns,
			       uint32_t reason, uint64_t rip)
{
	struct vmt_event e = of_vcpu(VMT_EVENT_EXIT, vcpu, time_ns);

	e.has |= VMT_HAS_REASON | VMT_HAS_RIP | VMT_HAS_DURATION | VMT_HAS_PARTS | VMT_HAS_NESTED |
		 VMT_HAS_QUALIFICATION;
	e.isa = VMT_ISA_VMX;
	e.reason = reason;
	e.guest_rip = rip;
	e.duration_ns = duration_ns;
	return e;
}

struct vmt_event vmt_make_mark(uint64_t time_ns, const char *name)
{
	return (struct vmt_event){ .type = VMT_EVENT_MARK,
				   .source = VMT_SOURCE_SESSION,
				   .has = VMT_HAS_TIME | VMT_HAS_DOMAIN,
				   .time = { time_ns },
				   .name = name };
}

struct vmt_event vmt_make_loss(uint64_t time_ns, uint64_t lost)
{
	return (struct vmt_event){ .type = VMT_EVENT_LOSS,
				   .source = VMT_SOURCE_KVM,
				   .has = VMT_HAS_TIME | VMT_HAS_VALUE,
				   .time = { time_ns },
				   .value = (int64_t)lost,
				   .name = "records" };
}

uint64_t vmt_feed_exit(struct vmt_report_builder *b, struct vmt_event exit)
{
	struct vmt_event entry = vmt_make_entry(exit.vcpu, exit.time.host_ns + exit.duration_ns);

	entry.domain = exit.domain;
	entry.tid = exit.tid;
	vmt_report_event(b, &exit);
	vmt_report_event(b, &entry);
	return entry.time.host_ns;
}

struct vmt_key vmt_make_key(enum vmt_key_kind kind, uint64_t number, enum vmt_access access)
{
	return (struct vmt_key){ .kind = kind, .access = access, .number = number };
}

struct vmt_report_options vmt_make_options(void)
{
	return (struct vmt_report_options){ .storms = true };
}

struct vmt_input_facts vmt_make_facts(uint64_t start_ns, uint64_t stop_ns, unsigned int vcpus)
{
	static struct vmt_domain_info web01 = { .name = "web01", .pid = 1000 };

	web01.nr_vcpus = vcpus;
	return (struct vmt_input_facts){ .format = "vmt",
					 .host = "host1",
					 .kernel = "6.1.0",
					 .tool = "vmtrace",
					 .isa = VMT_ISA_VMX,
					 .nr_domains = 1,
					 .domains = &web01,
					 .has_start = true,
					 .has_stop = true,
					 .start_ns = start_ns,
					 .stop_ns = stop_ns,
					 .has_switches = true,
					 .closed = true };
}

struct vmt_ledger vmt_make_ledger(uint64_t bytes)
{
	return (struct vmt_ledger){ .bytes_total = bytes, .bytes_decoded = bytes };
}

const struct vmt_verdict *vmt_verdict_of(const struct vmt_report *r, const char *id)
{
	for (size_t i = 0; i < r->nr_verdicts; i++) {
		if (strcmp(r->verdicts[i].id, id) == 0)
			return &r->verdicts[i];
	}
	return NULL;
}

uint64_t vmt_test_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
