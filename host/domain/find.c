// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "host/domain/ask.h"
#include "host/domain/locate.h"
#include "host/domain/near.h"
#include "host/domain/perf_page.h"
#include "host/domain/process.h"
#include "host/domain/threads.h"
#include "host/domain/xml_walk.h"

void vmt_domains_free(struct vmt_domains *domains)
{
	for (size_t i = 0; i < domains->count; i++) {
		struct vmt_domain *domain = &domains->items[i];

		free(domain->name);
		free(domain->xml);
		free(domain->vcpus);
		free(domain->helpers);
	}
	free(domains->items);
	*domains = (struct vmt_domains){ .count = 0 };
}

static struct vmt_domain *add_domain(struct vmt_domains *out, const struct vmt_domain_query *query)
{
	struct vmt_domain *grown = realloc(out->items, (out->count + 1) * sizeof(*grown));
	struct vmt_perf_page page;

	if (!grown)
		return NULL;
	out->items = grown;
	grown += out->count++;
	*grown = (struct vmt_domain){ .id = -1, .vm_fd = -1, .fs = query->fs };
	if (!query->fs && vmt_perf_page_read(&page) == 0)
		grown->host_tsc_khz = vmt_perf_page_tsc_khz(&page);
	return grown;
}

/* ---- a domain of libvirt ---- */
static void take_xml(struct vmt_domain *domain, char *xml)
{
	struct vmt_xml_facts facts;
	struct vmt_diag diag = { .code = VMT_OK };

	domain->xml = xml;
	if (!xml)
		return;
	if (vmt_xml_read(xml, strlen(xml), &facts, &diag)) {
		vmt_domain_note(domain, "%s", diag.what);
		return;
	}
	memcpy(domain->type, facts.domain_type, sizeof(domain->type));
	domain->has_agent = facts.has_agent_channel || facts.has_vsock;
	domain->agent_connected = facts.agent_connected;
	if (domain->nr_vcpus)
		return;
	for (unsigned int i = 0; i < facts.nr_vcpus; i++)
		vmt_domain_vcpu(domain, i);
}

static void take_vcpus(struct vmt_domain *domain, const struct vmt_ask_describe *ask)
{
	for (int i = 0; i < ask->nr_vcpus; i++) {
		struct vmt_vcpu *vcpu = vmt_domain_vcpu(domain, ask->vcpus[i].number);

		if (!vcpu)
			return;
		vcpu->host_cpu = ask->vcpus[i].cpu >= 0 ? ask->vcpus[i].cpu : -1;
		vmt_cpu_map_format(vcpu->affinity, sizeof(vcpu->affinity),
				   ask->maps + (size_t)i * VMT_ASK_MAPLEN, VMT_ASK_MAPLEN);
	}
}

/* {"return":[{"cpu-index":0,"thread-id":4720,…},…]} */
static void take_monitor(struct vmt_domain *domain, const char *answer)
{
	json_t *root = answer ? json_loads(answer, 0, NULL) : NULL, *cpu;
	size_t i;

	json_array_foreach(json_object_get(root, "return"), i, cpu)
	{
		json_int_t index = json_integer_value(json_object_get(cpu, "cpu-index"));
		json_int_t tid = json_integer_value(json_object_get(cpu, "thread-id"));

		if (index >= 0 && index <= UINT16_MAX && tid > 0 && tid <= INT32_MAX)
			vmt_domain_set_tid(domain, (unsigned int)index, (pid_t)tid, "monitor");
	}
	json_decref(root);
}

static void missing_threads(struct vmt_domain *domain)
{
	size_t missing = 0;

	for (size_t i = 0; i < domain->nr_vcpus; i++)
		missing += !domain->vcpus[i].tid;
	if (missing)
		vmt_domain_note(domain, "no thread found for %zu of %zu vCPUs", missing,
				domain->nr_vcpus);
}

static void read_local(struct vmt_domain *domain)
{
	struct vmt_status_xml *status = calloc(1, sizeof(*status));
	int err;

	vmt_locate_process(domain, status);
	if (domain->pid) {
		err = vmt_domain_read_process(domain, status);
		if (err < 0)
			vmt_domain_note(domain, "process %d: %s", domain->pid, strerror(-err));
		missing_threads(domain);
	}
	free(status);
}

/* One selected domain; 1 when it has vanished meanwhile. */
static int describe(struct vmt_domains *out, struct vmt_link *link,
		    const struct vmt_ask_entry *entry, const char *uri,
		    const struct vmt_domain_query *query, struct vmt_diag *diag)
{
	struct vmt_ask_describe *ask = vmt_ask_describe_new(entry->domain, query->use_monitor);
	struct vmt_link_call *call = ask ? &ask->call : NULL;
	struct vmt_domain *domain;
	int err;

	if (!ask)
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for a domain", "");
	err = vmt_link_run(link, &call, diag);
	domain = err ? NULL : add_domain(out, query);
	if (!domain) {
		if (call)
			call->drop(call);
		return err ? err : vmt_diag_set(diag, VMT_E_NOMEM, "no memory for a domain", "");
	}
	domain->name = strdup(entry->name);
	domain->id = entry->id;
	snprintf(domain->uuid, sizeof(domain->uuid), "%s", entry->uuid);
	snprintf(domain->state, sizeof(domain->state), "%s", vmt_state_name(ask->state));
	vmt_text_copy(domain->uri, sizeof(domain->uri), uri);
	if (ask->note[0])
		vmt_domain_note(domain, "%s", ask->note);
	take_vcpus(domain, ask);
	take_xml(domain, ask->xml);
	ask->xml = NULL;
	take_monitor(domain, ask->monitor);
	call->drop(call);
	if (domain->id < 0 || !strcmp(domain->type, "test"))
		return VMT_OK;
	if (vmt_uri_is_local(domain->uri))
		read_local(domain);
	else
		vmt_domain_note(domain, "it runs on another host: vmtrace must run there");
	return VMT_OK;
}

static bool uuid_is(const char *uuid, const char *wanted)
{
	size_t digits = 0;

	for (;; uuid++, wanted++) {
		uuid += *uuid == '-';
		wanted += *wanted == '-';
		if (!*uuid || !*wanted)
			return !*uuid && !*wanted && digits == 32;
		if (strncasecmp(uuid, wanted, 1) != 0)
			return false;
		digits++;
	}
}

/* By name, else by id, else by UUID; count when there is none. */
static size_t match(const struct vmt_ask_inventory *all, const char *wanted)
{
	uint64_t id;
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (!strcmp(all->entries[i].name, wanted))
			return i;
	}
	if (vmt_parse_uint(wanted, INT32_MAX, &id)) {
		for (i = 0; i < all->count; i++) {
			if (all->entries[i].id >= 0 && (uint64_t)all->entries[i].id == id)
				return i;
		}
	}
	for (i = 0; i < all->count && !uuid_is(all->entries[i].uuid, wanted); i++)
		;
	return i;
}

static int no_domain(const struct vmt_ask_inventory *all, const char *wanted, struct vmt_diag *diag)
{
	const char **names = calloc(all->count + 1, sizeof(*names));
	char near[200] = "";

	for (size_t i = 0; names && i < all->count; i++)
		names[i] = all->entries[i].name;
	if (names)
		vmt_near_names(near, sizeof(near), wanted, names, all->count);
	free(names);
	vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0, "", "no domain '%s' at %s", wanted,
			all->uri ? all->uri : "libvirt");
	if (near[0])
		vmt_diag_cure(diag, "near it: %s", near);
	else
		vmt_diag_cure(diag, "vmtrace list --all shows the domains (%zu there)", all->count);
	return VMT_E_NOT_FOUND;
}

/* Marks the entries that the query selects. */
static int select_entries(const struct vmt_ask_inventory *all, const struct vmt_domain_query *query,
			  bool *selected, struct vmt_diag *diag)
{
	for (size_t i = 0; i < all->count && !query->nr_names; i++)
		selected[i] = query->all || all->entries[i].id >= 0;
	for (size_t n = 0; n < query->nr_names; n++) {
		size_t i = match(all, query->names[n]);

		if (i == all->count)
			return no_domain(all, query->names[n], diag);
		selected[i] = true;
	}
	return VMT_OK;
}

static int describe_selected(struct vmt_domains *out, struct vmt_link *link,
			     const struct vmt_ask_inventory *all,
			     const struct vmt_domain_query *query, struct vmt_diag *diag)
{
	bool *selected = calloc(all->count + 1, sizeof(*selected));
	int err;

	if (!selected)
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for the domains", "");
	err = select_entries(all, query, selected, diag);
	for (size_t i = 0; !err && i < all->count; i++) {
		if (!selected[i])
			continue;
		err = describe(out, link, &all->entries[i], all->uri, query, diag);
		if (err == VMT_E_NOT_FOUND && !query->nr_names) { /* it has gone meanwhile */
			vmt_diag_clear(diag);
			err = VMT_OK;
		}
	}
	free(selected);
	return err;
}

static int find_by_libvirt(struct vmt_domains *out, const struct vmt_domain_query *query,
			   struct vmt_diag *diag)
{
	struct vmt_ask_inventory *all = vmt_ask_inventory_new();
	struct vmt_link_call *call = all ? &all->call : NULL;
	struct vmt_link *link;
	int err;

	if (!all)
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for the domains", "");
	err = vmt_link_open(&link, query->uri, query->use_monitor, query->deadline_ms, diag);
	if (err) {
		call->drop(call);
		return err;
	}
	err = vmt_link_run(link, &call, diag);
	if (!err)
		err = describe_selected(out, link, all, query, diag);
	if (call)
		call->drop(call);
	vmt_link_close(link);
	return err;
}

/* ---- a process by its pid ---- */
static void take_own_name(struct vmt_domain *domain)
{
	char cmdline[8192];
	int len = vmt_process_cmdline(domain->fs, domain->pid, cmdline, sizeof(cmdline));
	const char *value = len > 0 ? vmt_cmdline_value(cmdline, (size_t)len, "-name") : NULL;

	if (value && !strncmp(value, "guest=", 6))
		value += 6;
	if (value)
		vmt_domain_note(domain, "its command line names it '%.*s'",
				(int)strcspn(value, ","), value);
	value = len > 0 ? vmt_cmdline_value(cmdline, (size_t)len, "-uuid") : NULL;
	if (value)
		vmt_text_copy(domain->uuid, sizeof(domain->uuid), value);
}

static int find_by_pid(struct vmt_domains *out, pid_t pid, const struct vmt_domain_query *query,
		       struct vmt_diag *diag)
{
	struct vmt_vm_fds fds;
	struct vmt_domain *domain;
	int err = vmt_process_vm_fds(query->fs, pid, &fds);

	for (size_t i = 0; i < out->count; i++) {
		if (out->items[i].pid == pid)
			return VMT_OK;
	}
	if (err == -ENOENT)
		return vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0,
				       "name the process id of a running QEMU; vmtrace list shows "
				       "the domains with theirs",
				       "no process %d", pid);
	if (err)
		return vmt_diag_printf(
			diag, vmt_err_of_errno(-err), -err,
			"run as root, or with CAP_SYS_PTRACE: the process belongs to somebody else",
			"descriptors of process %d", pid);
	if (!fds.count)
		return vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0,
				       "it holds no kvm-vm descriptor: name QEMU's process, or a "
				       "domain with --domain",
				       "process %d runs no KVM virtual machine", pid);
	domain = add_domain(out, query);
	if (!domain)
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for a domain", "");
	domain->pid = pid;
	domain->pid_source = "--pid";
	snprintf(domain->state, sizeof(domain->state), "running");
	snprintf(domain->type, sizeof(domain->type), "kvm");
	take_own_name(domain);
	err = vmt_domain_read_process(domain, NULL);
	if (err < 0)
		return vmt_diag_printf(diag, vmt_err_of_errno(-err), -err, NULL, "process %d", pid);
	if (domain->nr_vcpus < fds.nr_vcpu_fds)
		vmt_domain_note(domain, "%u vCPUs are open, threads of %zu were found",
				fds.nr_vcpu_fds, domain->nr_vcpus);
	return VMT_OK;
}

int vmt_domains_find(struct vmt_domains *out, const struct vmt_domain_query *query,
		     struct vmt_diag *diag)
{
	int err = VMT_OK;

	*out = (struct vmt_domains){ .count = 0 };
	if (query->nr_names || !query->nr_pids)
		err = find_by_libvirt(out, query, diag);
	for (size_t i = 0; !err && i < query->nr_pids; i++)
		err = find_by_pid(out, query->pids[i], query, diag);
	if (err)
		vmt_domains_free(out);
	return err;
}

int vmt_domain_refresh(struct vmt_domain *domain, struct vmt_diag *diag)
{
	struct vmt_status_xml *status;
	struct vmt_task_stat stat;
	int err;

	if (!domain->pid)
		return VMT_OK;
	err = vmt_process_stat(domain->fs, domain->pid, domain->pid, &stat);
	if (err < 0 || (domain->pid_start && stat.start != domain->pid_start))
		return vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0, "the domain has stopped",
				       "process %d has gone", domain->pid);
	domain->note[0] = '\0';
	status = calloc(1, sizeof(*status));
	if (status && domain->name)
		vmt_locate_status(domain, status);
	err = vmt_domain_read_process(domain, status);
	free(status);
	if (err < 0)
		return vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0, "the domain has stopped",
				       "process %d has gone", domain->pid);
	missing_threads(domain);
	return VMT_OK;
}
