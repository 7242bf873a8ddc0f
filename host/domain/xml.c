// SPDX-License-Identifier: LGPL-2.1-or-later
/* What findings quote from domain XML (libvirt's formatdomain), and what the status file adds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/domain/domain.h"
#include "host/domain/status_xml.h"
#include "host/domain/xml_walk.h"

#define AGENT_CHANNEL "org.vmtrace.agent.0"

struct facts_walk {
	struct vmt_xml_facts *facts;
	char channel_path[128]; /* of the channel that is open */
	bool channel_is_agent;
	uint64_t current_vcpus; /* <vcpu current='N'>, 0 none */
};

typedef void take_fn(struct facts_walk *walk, const struct vmt_xml_node *node);

static void take_domain(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	vmt_xml_attr(node, "type", walk->facts->domain_type, sizeof(walk->facts->domain_type));
}

static void take_machine(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	vmt_xml_attr(node, "machine", walk->facts->machine, sizeof(walk->facts->machine));
}

static void take_cpu(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	vmt_xml_attr(node, "mode", walk->facts->cpu_mode, sizeof(walk->facts->cpu_mode));
}

static void take_feature(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	struct vmt_xml_facts *facts = walk->facts;
	char name[40], policy[16];

	if (!vmt_xml_attr(node, "name", name, sizeof(name)))
		return;
	vmt_xml_attr(node, "policy", policy, sizeof(policy));
	vmt_text_append(facts->features, sizeof(facts->features), "%s=%s", name,
			policy[0] ? policy : "require");
}

static void take_clock(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	vmt_xml_attr(node, "offset", walk->facts->clock_offset, sizeof(walk->facts->clock_offset));
}

static void take_timer(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	static const char *const details[] = { "present", "mode", "tickpolicy", "track",
					       "frequency" };
	struct vmt_xml_facts *facts = walk->facts;
	char name[24], value[24], one[160];
	uint64_t hz;

	if (!vmt_xml_attr(node, "name", name, sizeof(name)))
		return;
	if (!strcmp(name, "tsc") && vmt_xml_attr_u64(node, "frequency", &hz)) {
		facts->has_tsc_hz = true;
		facts->tsc_hz = hz;
	}
	snprintf(one, sizeof(one), "%s", name);
	for (size_t i = 0; i < sizeof(details) / sizeof(details[0]); i++) {
		size_t used = strlen(one);

		if (vmt_xml_attr(node, details[i], value, sizeof(value)))
			snprintf(one + used, sizeof(one) - used, ",%s=%s", details[i], value);
	}
	vmt_text_append(facts->timers, sizeof(facts->timers), "%s", one);
}

/* <vcpu current='2'>4</vcpu>: 2 of at most 4 are there. */
static void take_vcpu(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	if (!vmt_xml_attr_u64(node, "current", &walk->current_vcpus))
		walk->current_vcpus = 0;
}

static void take_count(unsigned int *number, const char *text)
{
	unsigned long n = strtoul(text, NULL, 10);

	*number = n > 65536 ? 0 : (unsigned int)n;
}

static void take_vsock(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	(void)node;
	walk->facts->has_vsock = true;
}

static void take_cid(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	uint64_t cid;

	if (vmt_xml_attr_u64(node, "address", &cid) && cid <= UINT32_MAX)
		walk->facts->vsock_cid = (uint32_t)cid;
}

static void take_channel(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	(void)node;
	walk->channel_path[0] = '\0';
	walk->channel_is_agent = false;
}

static void take_channel_source(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	vmt_xml_attr(node, "path", walk->channel_path, sizeof(walk->channel_path));
}

/* libvirt writes a channel's source, then its target, then its alias. */
static void take_channel_target(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	struct vmt_xml_facts *facts = walk->facts;

	if (!vmt_xml_attr_is(node, "name", AGENT_CHANNEL))
		return;
	walk->channel_is_agent = true;
	facts->has_agent_channel = true;
	facts->agent_connected = vmt_xml_attr_is(node, "state", "connected");
	memcpy(facts->agent_path, walk->channel_path, sizeof(facts->agent_path));
}

static void take_channel_alias(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	if (walk->channel_is_agent)
		vmt_xml_attr(node, "name", walk->facts->agent_alias,
			     sizeof(walk->facts->agent_alias));
}

static void take_pmu(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	walk->facts->pmu_off = vmt_xml_attr_is(node, "state", "off");
}

static void take_hidden(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	walk->facts->kvm_hidden = vmt_xml_attr_is(node, "state", "on");
}

static void take_pin(struct facts_walk *walk, const struct vmt_xml_node *node)
{
	char vcpu[8], cpus[64];

	if (vmt_xml_attr(node, "vcpu", vcpu, sizeof(vcpu)) &&
	    vmt_xml_attr(node, "cpuset", cpus, sizeof(cpus)))
		vmt_text_append(walk->facts->pinning, sizeof(walk->facts->pinning), "%s:%s", vcpu,
				cpus);
}

static void take_hyperv(struct facts_walk *walk, const char *name, const struct vmt_xml_node *node)
{
	struct vmt_xml_facts *facts = walk->facts;
	char retries[16];

	if (strchr(name, '/') || !vmt_xml_attr_is(node, "state", "on"))
		return;
	if (vmt_xml_attr(node, "retries", retries, sizeof(retries)))
		vmt_text_append(facts->hyperv, sizeof(facts->hyperv), "%s=%s", name, retries);
	else
		vmt_text_append(facts->hyperv, sizeof(facts->hyperv), "%s", name);
}

static const struct {
	const char *path;
	take_fn *take;
} rows[] = {
	{ "/domain", take_domain },
	{ "/domain/vcpu", take_vcpu },
	{ "/domain/os/type", take_machine },
	{ "/domain/cpu", take_cpu },
	{ "/domain/cpu/feature", take_feature },
	{ "/domain/clock", take_clock },
	{ "/domain/clock/timer", take_timer },
	{ "/domain/features/pmu", take_pmu },
	{ "/domain/features/kvm/hidden", take_hidden },
	{ "/domain/cputune/vcpupin", take_pin },
	{ "/domain/devices/vsock", take_vsock },
	{ "/domain/devices/vsock/cid", take_cid },
	{ "/domain/devices/channel", take_channel },
	{ "/domain/devices/channel/source", take_channel_source },
	{ "/domain/devices/channel/target", take_channel_target },
	{ "/domain/devices/channel/alias", take_channel_alias },
};

#define HYPERV "/domain/features/hyperv/"

static void facts_element(void *context, const char *path, const struct vmt_xml_node *node)
{
	struct facts_walk *walk = context;

	if (!strncmp(path, HYPERV, strlen(HYPERV))) {
		take_hyperv(walk, path + strlen(HYPERV), node);
		return;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strcmp(path, rows[i].path))
			rows[i].take(walk, node);
	}
}

static void facts_text(void *context, const char *path, const char *text)
{
	struct facts_walk *walk = context;
	struct vmt_xml_facts *facts = walk->facts;

	if (!strcmp(path, "/domain/vcpu")) {
		take_count(&facts->nr_vcpus, text);
		if (walk->current_vcpus && walk->current_vcpus < facts->nr_vcpus)
			facts->nr_vcpus = (unsigned int)walk->current_vcpus;
	} else if (!strcmp(path, "/domain/iothreads"))
		take_count(&facts->nr_iothreads, text);
	else if (!strcmp(path, "/domain/cpu/model"))
		vmt_text_copy(facts->cpu_model, sizeof(facts->cpu_model), text);
}

int vmt_xml_read(const char *xml, size_t len, struct vmt_xml_facts *out, struct vmt_diag *diag)
{
	struct facts_walk walk = { .facts = out };

	memset(out, 0, sizeof(*out));
	return vmt_xml_walk(xml, len,
			    &(struct vmt_xml_walk){ .element = facts_element,
						    .text = facts_text,
						    .context = &walk },
			    diag);
}

/* ---- /run/libvirt/qemu/NAME.xml ---- */
static void status_element(void *context, const char *path, const struct vmt_xml_node *node)
{
	struct vmt_status_xml *out = context;
	uint64_t id, pid;

	if (!strcmp(path, "/domstatus") && vmt_xml_attr_u64(node, "pid", &pid) && pid <= INT32_MAX)
		out->pid = (pid_t)pid;
	if (!strcmp(path, "/domstatus/vcpus/vcpu") && out->nr_vcpus < VMT_STATUS_VCPUS_MAX &&
	    vmt_xml_attr_u64(node, "id", &id) && vmt_xml_attr_u64(node, "pid", &pid) &&
	    id <= UINT16_MAX && pid <= INT32_MAX) {
		out->vcpus[out->nr_vcpus].id = (unsigned int)id;
		out->vcpus[out->nr_vcpus++].tid = (pid_t)pid;
	}
}

static void status_text(void *context, const char *path, const char *text)
{
	struct vmt_status_xml *out = context;

	if (!strcmp(path, "/domstatus/domain/uuid"))
		vmt_text_copy(out->uuid, sizeof(out->uuid), text);
}

int vmt_status_xml_read(const char *xml, size_t len, struct vmt_status_xml *out,
			struct vmt_diag *diag)
{
	memset(out, 0, sizeof(*out));
	return vmt_xml_walk(xml, len,
			    &(struct vmt_xml_walk){ .element = status_element,
						    .text = status_text,
						    .context = out },
			    diag);
}
