// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks of one domain, from what was found of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/probe/check.h"

struct domain_facts {
	const struct vmt_domain *domain;
	bool has_xml;
	struct vmt_xml_facts xml;
};

typedef void domain_check_fn(struct vmt_check *check, const struct domain_facts *facts);

static bool is_test(const struct vmt_domain *domain)
{
	return !strcmp(domain->type, "test");
}

static void check_state(struct vmt_check *check, const struct domain_facts *facts)
{
	const struct vmt_domain *domain = facts->domain;

	if (domain->name && domain->id < 0)
		vmt_check_set(check, VMT_CHECK_BLOCKED, "virsh start it", "%s", domain->state);
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%s", domain->state);
}

static void check_type(struct vmt_check *check, const struct domain_facts *facts)
{
	const struct vmt_domain *domain = facts->domain;

	if (!strcmp(domain->type, "kvm") || domain->vm_fd >= 0)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "kvm");
	else if (is_test(domain))
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "start --backend replay:FILE replays a recorded capture for it",
			      "a domain of libvirt's test driver has no process");
	else
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "<domain type='kvm'> in its XML; start --backend sched records its "
			      "context switches",
			      "%s: QEMU emulates its CPUs, KVM has no exits of it", domain->type);
}

static void check_process(struct vmt_check *check, const struct domain_facts *facts)
{
	const struct vmt_domain *domain = facts->domain;

	if (domain->pid)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%d, by %s", domain->pid,
			      domain->pid_source ? domain->pid_source : "its descriptors");
	else if (domain->name && domain->id < 0)
		vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL, "it is not running");
	else if (is_test(domain))
		vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL, "the test driver has none");
	else
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "run vmtrace on the host of the domain, as root", "%s",
			      domain->note[0] ? domain->note : "not found");
}

static void check_vcpus(struct vmt_check *check, const struct domain_facts *facts)
{
	const struct vmt_domain *domain = facts->domain;
	size_t known = 0;
	const char *source = "";

	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		if (domain->vcpus[i].tid) {
			source = domain->vcpus[i].tid_source;
			known++;
		}
	}
	if (!domain->pid)
		vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL, "no process is known");
	else if (!known)
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "list --monitor asks QEMU itself (it taints the domain)",
			      "no thread of %zu vCPUs was found", domain->nr_vcpus);
	else if (known < domain->nr_vcpus)
		vmt_check_set(check, VMT_CHECK_WARN,
			      "list --monitor asks QEMU itself (it taints the domain)",
			      "threads of %zu of %zu vCPUs, by %s", known, domain->nr_vcpus,
			      source);
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%zu of %zu, by %s", known,
			      domain->nr_vcpus, source);
}

static void check_guest_tsc(struct vmt_check *check, const struct domain_facts *facts)
{
	const struct vmt_domain *domain = facts->domain;
	size_t known = 0;

	for (size_t i = 0; i < domain->nr_vcpus; i++)
		known += domain->vcpus[i].has_offset;
	if (!domain->pid)
		vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL, "no process is known");
	else if (known && known == domain->nr_vcpus)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "offsets of all vCPUs, by debugfs");
	else
		vmt_check_set(check, VMT_CHECK_WARN,
			      geteuid() ? "debugfs as root gives them"
					: "the kernel shows them in /sys/kernel/debug/kvm: is "
					  "debugfs mounted?",
			      "offsets of %zu of %zu vCPUs are known", known, domain->nr_vcpus);
}

static void check_guest_clock(struct vmt_check *check, const struct domain_facts *facts)
{
	if (!facts->has_xml)
		vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL, "no XML");
	else if (facts->xml.has_tsc_hz)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "TSC of %.3f MHz by XML",
			      (double)facts->xml.tsc_hz / 1e6);
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%s",
			      facts->xml.timers[0] ? facts->xml.timers : "libvirt's defaults");
}

static void check_agent(struct vmt_check *check, const struct domain_facts *facts)
{
	if (!facts->has_xml)
		vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL, "no XML");
	else if (facts->xml.has_agent_channel)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "channel, %s",
			      facts->xml.agent_connected ? "connected" : "nobody in the guest");
	else if (facts->xml.has_vsock)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "vsock, CID %u", facts->xml.vsock_cid);
	else
		vmt_check_set(check, VMT_CHECK_WARN,
			      "<channel type='unix'><target type='virtio' "
			      "name='org.vmtrace.agent.0'/></channel>; tracing works without",
			      "no channel for the guest agent");
}

#define NEED_ALL (VMT_NEED_KVM | VMT_NEED_SCHED | VMT_NEED_PT)

static const struct {
	const char *id, *title;
	uint32_t needs;
	domain_check_fn *run;
} rows[] = {
	{ "state", "state", NEED_ALL, check_state },
	{ "type", "virtual machine", VMT_NEED_KVM | VMT_NEED_PT, check_type },
	{ "process", "process", NEED_ALL, check_process },
	{ "vcpus", "vCPU threads", NEED_ALL, check_vcpus },
	{ "guest-tsc", "guest TSC", VMT_NEED_NONE, check_guest_tsc },
	{ "guest-clock", "guest clock", VMT_NEED_NONE, check_guest_clock },
	{ "agent", "guest agent", VMT_NEED_NONE, check_agent },
};

void vmt_probe_domain(struct vmt_probe *out, const struct vmt_domain *domain)
{
	struct domain_facts *facts = calloc(1, sizeof(*facts));

	memset(out, 0, sizeof(*out));
	if (!facts)
		return;
	facts->domain = domain;
	facts->has_xml = domain->xml && vmt_xml_read(domain->xml, strlen(domain->xml), &facts->xml,
						     NULL) == VMT_OK;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vmt_check *check = &out->checks[out->count++];

		check->id = rows[i].id;
		check->title = rows[i].title;
		check->needs = rows[i].needs;
		check->status = VMT_CHECK_UNKNOWN;
		rows[i].run(check, facts);
	}
	free(facts);
}
