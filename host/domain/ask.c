// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/ask.h"

#include <libvirt/libvirt-qemu.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VCPUS_MAX 4096

static const char *const states[] = {
	[VIR_DOMAIN_NOSTATE] = "no state",     [VIR_DOMAIN_RUNNING] = "running",
	[VIR_DOMAIN_BLOCKED] = "idle",	       [VIR_DOMAIN_PAUSED] = "paused",
	[VIR_DOMAIN_SHUTDOWN] = "in shutdown", [VIR_DOMAIN_SHUTOFF] = "shut off",
	[VIR_DOMAIN_CRASHED] = "crashed",      [VIR_DOMAIN_PMSUSPENDED] = "pmsuspended",
};

const char *vmt_state_name(int state)
{
	if (state < 0 || (size_t)state >= sizeof(states) / sizeof(states[0]))
		return "unknown";
	return states[state];
}

/* ---- all domains ---- */
static int compare_entries(const void *a, const void *b)
{
	const struct vmt_ask_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int run_inventory(virConnectPtr connection, struct vmt_link_call *call)
{
	struct vmt_ask_inventory *ask = (struct vmt_ask_inventory *)call;
	int n;

	ask->uri = virConnectGetURI(connection);
	n = virConnectListAllDomains(connection, &ask->domains, 0);
	if (n < 0)
		return n;
	ask->entries = calloc((size_t)n + 1, sizeof(*ask->entries));
	if (!ask->entries)
		return -1;
	for (int i = 0; i < n; i++) {
		struct vmt_ask_entry *entry = &ask->entries[ask->count];

		entry->domain = ask->domains[i];
		entry->name = virDomainGetName(entry->domain);
		entry->id = (int)virDomainGetID(entry->domain);
		if (entry->name && !virDomainGetUUIDString(entry->domain, entry->uuid))
			ask->count++;
	}
	qsort(ask->entries, ask->count, sizeof(*ask->entries), compare_entries);
	return 0;
}

static void drop_inventory(struct vmt_link_call *call)
{
	struct vmt_ask_inventory *ask = (struct vmt_ask_inventory *)call;

	for (size_t i = 0; ask->domains && ask->domains[i]; i++)
		virDomainFree(ask->domains[i]);
	free(ask->domains);
	free(ask->entries);
	free(ask->uri);
	free(ask);
}

struct vmt_ask_inventory *vmt_ask_inventory_new(void)
{
	struct vmt_ask_inventory *ask = calloc(1, sizeof(*ask));

	if (ask) {
		ask->call.run = run_inventory;
		ask->call.drop = drop_inventory;
	}
	return ask;
}

/* ---- one domain ---- */
static void refused(struct vmt_ask_describe *ask, const char *what)
{
	size_t used = strlen(ask->note);

	snprintf(ask->note + used, sizeof(ask->note) - used, "%s%s: %s", used ? "; " : "", what,
		 virGetLastErrorMessage());
}

static void ask_vcpus(struct vmt_ask_describe *ask)
{
	virDomainInfo info;
	int n;

	if (virDomainGetInfo(ask->domain, &info) < 0 || !info.nrVirtCpu ||
	    info.nrVirtCpu > VCPUS_MAX)
		return;
	ask->vcpus = calloc(info.nrVirtCpu, sizeof(*ask->vcpus));
	ask->maps = calloc(info.nrVirtCpu, VMT_ASK_MAPLEN);
	if (!ask->vcpus || !ask->maps)
		return;
	n = virDomainGetVcpus(ask->domain, ask->vcpus, info.nrVirtCpu, ask->maps, VMT_ASK_MAPLEN);
	if (n < 0)
		refused(ask, "vCPUs");
	ask->nr_vcpus = n > 0 ? n : 0;
}

static int run_describe(virConnectPtr connection, struct vmt_link_call *call)
{
	struct vmt_ask_describe *ask = (struct vmt_ask_describe *)call;
	int err = virDomainGetState(ask->domain, &ask->state, NULL, 0);

	(void)connection;
	if (err < 0)
		return err;
	ask->xml = virDomainGetXMLDesc(ask->domain, 0);
	if (!ask->xml)
		refused(ask, "XML");
	if (virDomainIsActive(ask->domain) != 1)
		return 0;
	ask_vcpus(ask);
	if (ask->use_monitor &&
	    virDomainQemuMonitorCommand(ask->domain, "{\"execute\":\"query-cpus-fast\"}",
					&ask->monitor, VIR_DOMAIN_QEMU_MONITOR_COMMAND_DEFAULT) < 0)
		refused(ask, "monitor");
	return 0;
}

static void drop_describe(struct vmt_link_call *call)
{
	struct vmt_ask_describe *ask = (struct vmt_ask_describe *)call;

	virDomainFree(ask->domain);
	free(ask->xml);
	free(ask->vcpus);
	free(ask->maps);
	free(ask->monitor);
	free(ask);
}

struct vmt_ask_describe *vmt_ask_describe_new(virDomainPtr domain, bool use_monitor)
{
	struct vmt_ask_describe *ask = calloc(1, sizeof(*ask));

	if (!ask)
		return NULL;
	virDomainRef(domain);
	ask->domain = domain;
	ask->use_monitor = use_monitor;
	ask->call.run = run_describe;
	ask->call.drop = drop_describe;
	return ask;
}

/* ---- CPU maps ---- */
static bool cpu_in(const unsigned char *map, size_t len, size_t cpu)
{
	return cpu / 8 < len && (map[cpu / 8] >> (cpu % 8) & 1);
}

void vmt_cpu_map_format(char *buf, size_t size, const unsigned char *map, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t cpu = 0; cpu < len * 8; cpu++) {
		char range[48];
		size_t first = cpu;

		if (!cpu_in(map, len, cpu))
			continue;
		while (cpu_in(map, len, cpu + 1))
			cpu++;
		if (cpu == first)
			snprintf(range, sizeof(range), "%s%zu", used ? "," : "", first);
		else
			snprintf(range, sizeof(range), "%s%zu-%zu", used ? "," : "", first, cpu);
		if (used + strlen(range) + 4 > size) {
			snprintf(buf + used, size - used, "…");
			return;
		}
		used += (size_t)snprintf(buf + used, size - used, "%s", range);
	}
}
