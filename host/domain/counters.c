// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * virDomainListGetStats gives "vcpu.N.time", "vcpu.N.exits.sum" (.cur, .max, .sum: QEMU's
 * query-stats); debugfs gives a file a statistic, summed over the vCPUs.
 */
#include <dirent.h>
#include <errno.h>
#include <libvirt/libvirt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/io/diagf.h"
#include "host/domain/domain.h"
#include "host/domain/link.h"

#define COUNTERS_MAX 200000

void vmt_counters_free(struct vmt_counters *counters)
{
	free(counters->items);
	*counters = (struct vmt_counters){ .count = 0 };
}

static void add(struct vmt_counters *out, int vcpu, const char *name, size_t len, uint64_t value)
{
	struct vmt_counter *grown = out->items;

	if (out->count >= COUNTERS_MAX || len >= sizeof(grown->name))
		return;
	if (!(out->count & (out->count - 1))) { /* full at each power of two */
		size_t room = out->count ? out->count * 2 : 1;

		grown = realloc(out->items, room * sizeof(*grown));
		if (!grown)
			return;
		out->items = grown;
	}
	grown += out->count++;
	grown->vcpu = vcpu;
	grown->value = value;
	memcpy(grown->name, name, len);
	grown->name[len] = '\0';
}

static bool param_value(const virTypedParameter *param, uint64_t *value)
{
	switch (param->type) {
	case VIR_TYPED_PARAM_ULLONG:
		*value = param->value.ul;
		return true;
	case VIR_TYPED_PARAM_UINT:
		*value = param->value.ui;
		return true;
	case VIR_TYPED_PARAM_LLONG:
		*value = param->value.l >= 0 ? (uint64_t)param->value.l : 0;
		return param->value.l >= 0;
	case VIR_TYPED_PARAM_BOOLEAN:
		*value = param->value.b != 0;
		return true;
	default:
		return false;
	}
}

/* "vcpu.3.exits.sum": vCPU 3, "exits". Others ("vcpu.current", "vm.…") belong to the VM. */
static void take_param(struct vmt_counters *out, const virTypedParameter *param)
{
	static const char *const kinds[] = { ".sum", ".cur", ".max" };
	const char *name = param->field;
	uint64_t value;
	int vcpu = -1;
	size_t len;

	if (!param_value(param, &value))
		return;
	if (!strncmp(name, "vcpu.", 5) && name[5] >= '0' && name[5] <= '9') {
		char *end;

		vcpu = (int)strtol(name + 5, &end, 10);
		if (*end != '.')
			return;
		name = end + 1;
	} else if (!strncmp(name, "vm.", 3)) {
		name += 3;
	} else {
		return;
	}
	len = strlen(name);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (len > 4 && !strcmp(name + len - 4, kinds[i])) {
			len -= 4;
			break;
		}
	}
	add(out, vcpu, name, len, value);
}

/* ---- libvirt ---- */
struct stats_call {
	struct vmt_link_call call;
	char uuid[40];
	virDomainStatsRecordPtr *records;
};

static int run_stats(virConnectPtr connection, struct vmt_link_call *call)
{
	struct stats_call *stats = (struct stats_call *)call;
	virDomainPtr domains[2] = { virDomainLookupByUUIDString(connection, stats->uuid), NULL };
	int n;

	if (!domains[0])
		return -1;
	n = virDomainListGetStats(domains, VIR_DOMAIN_STATS_VCPU | VIR_DOMAIN_STATS_VM,
				  &stats->records, 0);
	if (n < 0)
		vmt_link_keep_error(call);
	virDomainFree(domains[0]);
	return n;
}

static void drop_stats(struct vmt_link_call *call)
{
	struct stats_call *stats = (struct stats_call *)call;

	if (stats->records)
		virDomainStatsRecordListFree(stats->records);
	free(stats);
}

static int by_libvirt(const struct vmt_domain *domain, struct vmt_counters *out,
		      struct vmt_diag *diag)
{
	struct stats_call *stats = calloc(1, sizeof(*stats));
	struct vmt_link_call *call;
	struct vmt_link *link;
	int err;

	if (!stats)
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for counters", "");
	*stats = (struct stats_call){ .call = { .run = run_stats, .drop = drop_stats } };
	snprintf(stats->uuid, sizeof(stats->uuid), "%s", domain->uuid);
	call = &stats->call;
	err = vmt_link_open(&link, domain->uri, false, 0, diag);
	if (err) {
		call->drop(call);
		return err;
	}
	err = vmt_link_run(link, &call, diag);
	if (!err && stats->records && stats->records[0]) {
		for (int i = 0; i < stats->records[0]->nparams; i++)
			take_param(out, &stats->records[0]->params[i]);
	}
	if (call)
		call->drop(call);
	vmt_link_close(link);
	return err;
}

static bool has_kvm_counter(const struct vmt_counters *counters)
{
	for (size_t i = 0; i < counters->count; i++) {
		if (!strcmp(counters->items[i].name, "exits"))
			return true;
	}
	return false;
}

/* ---- debugfs ---- */
static int by_debugfs(const struct vmt_domain *domain, struct vmt_counters *out,
		      struct vmt_diag *diag)
{
	DIR *dir = domain->debugfs[0] ? opendir(domain->debugfs) : NULL;
	const struct dirent *entry;
	size_t before = out->count;
	bool refused = false;
	uint64_t value;

	while (dir && (entry = readdir(dir))) {
		int err;

		if (entry->d_name[0] == '.' || !strncmp(entry->d_name, "vcpu", 4))
			continue;
		err = vmt_hostfs_u64(&value, "%s/%s", domain->debugfs, entry->d_name);
		if (!err)
			add(out, -1, entry->d_name, strlen(entry->d_name), value);
		refused |= err == -EPERM || err == -EACCES;
	}
	if (dir)
		closedir(dir);
	if (out->count > before)
		return VMT_OK;
	if (refused)
		return vmt_diag_printf(diag, VMT_E_PERMISSION, EPERM,
				       "kernel lockdown forbids debugfs counters even to root: a "
				       "domain of libvirt has them by its statistics",
				       "%s", domain->debugfs);
	return vmt_diag_set(diag, VMT_E_CAPABILITY, "no KVM counters for this domain",
			    "libvirt from 8.9 with QEMU from 7.1 tells them, or debugfs");
}

int vmt_domain_counters(const struct vmt_domain *domain, struct vmt_counters *out,
			struct vmt_diag *diag)
{
	struct vmt_diag first = { .code = VMT_OK }, second = { .code = VMT_OK };
	bool times;

	*out = (struct vmt_counters){ .source = "libvirt" };
	if (domain->uri[0])
		by_libvirt(domain, out, &first);
	if (has_kvm_counter(out))
		return VMT_OK;
	times = out->count > 0;
	if (by_debugfs(domain, out, &second) == VMT_OK) {
		out->source = times ? "libvirt and debugfs" : "debugfs";
		return VMT_OK;
	}
	if (times) /* better than nothing */
		return VMT_OK;
	vmt_counters_free(out);
	if (first.code == VMT_E_TIMEOUT)
		second = first;
	if (diag && !diag->code)
		*diag = second;
	return (int)second.code;
}
