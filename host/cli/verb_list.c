// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace list: domains, their vCPU threads and TSC, what can be traced, how each fact was found.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/export/csv.h"
#include "decode/export/utf8.h"
#include "host/cli/result.h"
#include "host/domain/domain.h"
#include "host/domain/locate.h"
#include "host/domain/process.h"
#include "host/probe/traceable.h"
#include "host/session/info.h"
#include "host/session/registry.h"

#define PROCESSES_MAX 256

struct list {
	const struct vmt_cli *cli;
	struct vmt_result result;
	struct vmt_probe host;
	struct vmt_domains domains;	   /* of libvirt, and those of --pid */
	struct vmt_domains processes;	   /* KVM processes that libvirt does not know */
	struct vmt_session_info *sessions; /* that this user may see */
	size_t nr_sessions;
	unsigned int name_width; /* columns of the text table */
};

/* ---- what is listed ---- */
static struct vmt_domain_query query_of(const struct vmt_cli *cli)
{
	return (struct vmt_domain_query){ .uri = cli->uri,
					  .names = cli->domains,
					  .nr_names = cli->nr_domains,
					  .all = cli->all,
					  .pids = cli->pids,
					  .nr_pids = cli->nr_pids,
					  .use_monitor = cli->use_monitor };
}

static bool is_listed(const struct list *list, pid_t pid)
{
	for (size_t i = 0; i < list->domains.count; i++) {
		if (list->domains.items[i].pid == pid)
			return true;
	}
	return false;
}

/* A process that ends meanwhile is no error. */
static void add_processes(struct list *list)
{
	pid_t pids[PROCESSES_MAX];
	size_t n = vmt_kvm_processes(NULL, pids, PROCESSES_MAX);

	for (size_t i = 0; i < n; i++) {
		struct vmt_domain_query one = { .pids = &pids[i], .nr_pids = 1 };
		struct vmt_domains found, *all = &list->processes;
		struct vmt_domain *grown;

		if (is_listed(list, pids[i]) || vmt_domains_find(&found, &one, NULL))
			continue;
		grown = realloc(all->items, (all->count + 1) * sizeof(*grown));
		if (!grown) {
			vmt_domains_free(&found);
			return;
		}
		all->items = grown;
		grown[all->count++] = found.items[0]; /* its contents move over */
		free(found.items);
	}
}

/* Whether this host's processes belong to what was asked: not for a test or remote connection. */
static bool wants_processes(const struct vmt_cli *cli)
{
	const char *uri = cli->uri ? cli->uri : getenv("LIBVIRT_DEFAULT_URI");

	if (cli->nr_domains || cli->nr_pids)
		return false;
	return !uri || (strncmp(uri, "test:", 5) != 0 && vmt_uri_is_local(uri));
}

static int find(struct list *list)
{
	struct vmt_domain_query query = query_of(list->cli);
	struct vmt_diag diag = { .code = VMT_OK };
	int err = vmt_domains_find(&list->domains, &query, &diag);

	if (wants_processes(list->cli))
		add_processes(list);
	if (!err)
		return VMT_STATUS_OK;
	if (!list->processes.count)
		return vmt_cli_fail(&diag);
	vmt_cli_warn(list->cli, diag.what);
	return VMT_STATUS_OK;
}

static double ratio_of(const struct vmt_vcpu *vcpu)
{
	return (double)vcpu->tsc_ratio / (double)(UINT64_C(1) << vcpu->tsc_frac);
}

/* The guest's TSC frequency: the host's, scaled. */
static uint64_t guest_khz(const struct vmt_domain *domain, const struct vmt_vcpu *vcpu)
{
	unsigned __int128 khz = (unsigned __int128)domain->host_tsc_khz * vcpu->tsc_ratio;

	return vcpu->has_ratio ? (uint64_t)(khz >> vcpu->tsc_frac) : 0;
}

static const char *agent_word(const struct vmt_domain *domain)
{
	if (!domain->has_agent)
		return domain->xml ? "no" : "-";
	return domain->agent_connected ? "connected" : "yes";
}

static void trace_words(char *buf, size_t size, const struct vmt_traceable *trace)
{
	const char *const words[] = { trace->kvm ? "kvm" : NULL, trace->sched ? "sched" : NULL,
				      trace->pt ? "pt" : NULL, trace->replay ? "replay" : NULL };
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && len < size; i++) {
		if (words[i])
			len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? "," : "",
						words[i]);
	}
	if (!buf[0])
		snprintf(buf, size, "-");
}

/* ---- text ---- */
static void vcpu_line(const struct list *list, const struct vmt_domain *domain,
		      const struct vmt_vcpu *vcpu)
{
	char text[400], part[120];
	uint64_t khz = guest_khz(domain, vcpu);
	size_t n = 0;

	n += (size_t)snprintf(text + n, sizeof(text) - n, "vCPU %u", vcpu->id);
	if (vcpu->tid)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "  thread %d", vcpu->tid);
	else
		n += (size_t)snprintf(text + n, sizeof(text) - n, "  no thread");
	if (vcpu->host_cpu >= 0)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " on CPU %d", vcpu->host_cpu);
	if (vcpu->affinity[0])
		n += (size_t)snprintf(text + n, sizeof(text) - n, " of %s", vcpu->affinity);
	if (vcpu->has_offset)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "  TSC offset %" PRId64,
				      vcpu->tsc_offset);
	if (vcpu->has_ratio)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " ratio %.9g", ratio_of(vcpu));
	if (khz)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %" PRIu64 " kHz", khz);
	if (list->cli->verbose) {
		snprintf(part, sizeof(part), "  (thread by %s%s)",
			 vcpu->tid_source ? vcpu->tid_source : "nothing",
			 vcpu->has_offset ? ", TSC by debugfs" : "");
		snprintf(text + n, sizeof(text) - n, "%s", part);
	}
	vmt_page_wrap(&list->result.page, VMT_STYLE_PLAIN, "       ", 14, text, 0);
}

static void verbose_lines(const struct list *list, const struct vmt_domain *domain,
			  const struct vmt_traceable *trace)
{
	const struct vmt_page *page = &list->result.page;
	char text[700];

	if (domain->pid) {
		snprintf(text, sizeof(text), "process by %s%s%s",
			 domain->pid_source ? domain->pid_source : "?",
			 domain->debugfs[0] ? ", " : "", domain->debugfs);
		vmt_page_wrap(page, VMT_STYLE_DIM, "       ", 9, text, 0);
	}
	for (size_t i = 0; i < domain->nr_helpers; i++) {
		snprintf(text, sizeof(text), "%-8s thread %d  %s", domain->helpers[i].role,
			 domain->helpers[i].tid, domain->helpers[i].name);
		vmt_page_wrap(page, VMT_STYLE_DIM, "       ", 9, text, 0);
	}
	if (domain->uuid[0]) {
		snprintf(text, sizeof(text), "%s  %s  %s", domain->uuid, domain->type, domain->uri);
		vmt_page_wrap(page, VMT_STYLE_DIM, "       ", 9, text, 0);
	}
	if (trace->why_not[0]) {
		snprintf(text, sizeof(text), "no kvm tracing: %s", trace->why_not);
		vmt_page_wrap(page, VMT_STYLE_DIM, "       ", 9, text, 0);
	}
}

static const char *shown_name(const struct vmt_domain *domain, char *text, size_t size)
{
	if (domain->name)
		return domain->name;
	snprintf(text, size, "pid %d", domain->pid);
	return text;
}

/* The width of the longest name, as far as the page has room. */
static unsigned int name_width(const struct vmt_page *page, const struct vmt_domains *domains,
			       unsigned int width)
{
	unsigned int room = page->width - 56;
	char clean[256], text[24];

	for (size_t i = 0; i < domains->count; i++) {
		size_t n = vmt_utf8_clean(clean, sizeof(clean),
					  shown_name(&domains->items[i], text, sizeof(text)), 0);

		width = n > width ? (unsigned int)n : width;
	}
	return width < room ? width : room;
}

/* The session that records the domain now, NULL: none. */
static const struct vmt_session_info *session_of(const struct list *list,
						 const struct vmt_domain *domain)
{
	char text[24];
	const char *name = shown_name(domain, text, sizeof(text));

	for (size_t i = 0; i < list->nr_sessions; i++) {
		if (strcmp(list->sessions[i].state, "stale") != 0 &&
		    vmt_info_has_domain(&list->sessions[i], name))
			return &list->sessions[i];
	}
	return NULL;
}

static void session_line(const struct list *list, const struct vmt_domain *domain)
{
	const struct vmt_session_info *session = session_of(list, domain);
	char text[700];

	if (!session)
		return;
	snprintf(text, sizeof(text), "session %s records %s into %s", session->id, session->backend,
		 session->file);
	vmt_page_wrap(&list->result.page, VMT_STYLE_PLAIN, "       ", 9, text, 0);
}

static void domain_lines(const struct list *list, const struct vmt_domain *domain)
{
	const struct vmt_page *page = &list->result.page;
	struct vmt_out *out = page->out;
	struct vmt_traceable trace;
	char text[64];

	vmt_traceable_of(&trace, &list->host, domain);
	snprintf(text, sizeof(text), "%d", domain->id);
	vmt_out_char(out, ' ');
	vmt_page_left(page, domain->id >= 0 ? text : "-", 5);
	vmt_page_left(page, shown_name(domain, text, sizeof(text)), list->name_width);
	vmt_out_char(out, ' ');
	vmt_page_left(page, domain->state, 10);
	snprintf(text, sizeof(text), "%d", domain->pid);
	vmt_page_left(page, domain->pid ? text : "-", 9);
	snprintf(text, sizeof(text), "%zu", domain->nr_vcpus);
	vmt_page_left(page, text, 7);
	vmt_page_left(page, agent_word(domain), 11);
	trace_words(text, sizeof(text), &trace);
	vmt_out_str(out, text);
	vmt_out_char(out, '\n');
	for (size_t i = 0; i < domain->nr_vcpus && (domain->pid || list->cli->verbose); i++) {
		if (vmt_cli_wants_vcpu(list->cli, domain->vcpus[i].id))
			vcpu_line(list, domain, &domain->vcpus[i]);
	}
	session_line(list, domain);
	if (list->cli->verbose)
		verbose_lines(list, domain, &trace);
	if (domain->note[0])
		vmt_page_wrap(page, VMT_STYLE_WARN, "       note: ", 13, domain->note, 0);
}

static void write_text(struct list *list)
{
	const struct vmt_page *page = &list->result.page;
	char line[400];

	if (!list->domains.count && !list->processes.count) {
		vmt_page_line(page, VMT_STYLE_PLAIN,
			      list->cli->all ? "no domains"
					     : "no running domains (--all shows all)");
		return;
	}
	list->name_width = name_width(page, &list->domains, 4);
	list->name_width = name_width(page, &list->processes, list->name_width);
	snprintf(line, sizeof(line), " Id   %-*s %-10s%-9s%-7s%-11s%s", (int)list->name_width,
		 "Name", "State", "Pid", "vCPUs", "Agent", "Trace");
	vmt_page_line(page, VMT_STYLE_HEADING, line);
	for (size_t i = 0; i < list->domains.count; i++)
		domain_lines(list, &list->domains.items[i]);
	for (size_t i = 0; i < list->processes.count; i++)
		domain_lines(list, &list->processes.items[i]);
	if (list->cli->verbose && list->domains.count && list->domains.items[0].host_tsc_khz) {
		snprintf(line, sizeof(line), "host TSC %" PRIu64 " kHz, by the perf clock's page",
			 list->domains.items[0].host_tsc_khz);
		vmt_page_line(page, VMT_STYLE_DIM, line);
	}
}

/* ---- JSON ---- */
static void text_or_null(struct vmt_json *json, const char *name, const char *text)
{
	vmt_json_text(json, name, text && *text ? text : NULL);
}

static void vcpu_json(struct vmt_json *json, const struct vmt_domain *domain,
		      const struct vmt_vcpu *vcpu)
{
	uint64_t khz = guest_khz(domain, vcpu);
	const char *cpu_source = vcpu->tid ? "proc" : "libvirt";

	vmt_json_open(json, NULL, '{');
	vmt_json_number(json, "id", true, vcpu->id);
	vmt_json_signed(json, "tid", vcpu->tid > 0, vcpu->tid);
	vmt_json_text(json, "tid_source", vcpu->tid_source);
	vmt_json_signed(json, "host_cpu", vcpu->host_cpu >= 0, vcpu->host_cpu);
	vmt_json_text(json, "host_cpu_source", vcpu->host_cpu >= 0 ? cpu_source : NULL);
	text_or_null(json, "affinity", vcpu->affinity);
	vmt_json_text(json, "affinity_source", vcpu->affinity[0] ? cpu_source : NULL);
	vmt_json_hex(json, "tsc_offset", vcpu->has_offset, (uint64_t)vcpu->tsc_offset);
	vmt_json_hex(json, "tsc_ratio", vcpu->has_ratio, vcpu->tsc_ratio);
	vmt_json_number(json, "tsc_frac", vcpu->has_ratio, vcpu->tsc_frac);
	vmt_json_number(json, "tsc_khz", khz != 0, khz);
	vmt_json_text(json, "tsc_source", vcpu->has_offset ? "debugfs" : NULL);
	vmt_json_close(json, '}');
}

static void trace_json(struct vmt_json *json, const struct vmt_traceable *trace)
{
	vmt_json_open(json, "trace", '[');
	if (trace->kvm)
		vmt_json_text(json, NULL, "kvm");
	if (trace->sched)
		vmt_json_text(json, NULL, "sched");
	if (trace->pt)
		vmt_json_text(json, NULL, "pt");
	if (trace->replay)
		vmt_json_text(json, NULL, "replay");
	vmt_json_close(json, ']');
	text_or_null(json, "trace_blocked_by", trace->why_not);
}

static void session_json(const struct list *list, const struct vmt_domain *domain,
			 struct vmt_json *json)
{
	const struct vmt_session_info *session = session_of(list, domain);

	if (!session) {
		vmt_json_text(json, "session", NULL);
		return;
	}
	vmt_json_open(json, "session", '{');
	vmt_json_text(json, "id", session->id);
	vmt_json_text(json, "backend", session->backend);
	vmt_json_text(json, "file", session->file);
	vmt_json_close(json, '}');
}

static void domain_json(const struct list *list, const struct vmt_domain *domain,
			struct vmt_json *json)
{
	const char *source = domain->name ? "libvirt" : "proc";
	struct vmt_traceable trace;

	vmt_traceable_of(&trace, &list->host, domain);
	vmt_json_open(json, NULL, '{');
	vmt_json_signed(json, "id", domain->id >= 0, domain->id);
	vmt_json_text(json, "name", domain->name);
	text_or_null(json, "uuid", domain->uuid);
	vmt_json_text(json, "state", domain->state);
	vmt_json_text(json, "state_source", source);
	text_or_null(json, "type", domain->type);
	text_or_null(json, "uri", domain->uri);
	vmt_json_signed(json, "pid", domain->pid > 0, domain->pid);
	vmt_json_text(json, "pid_source", domain->pid_source);
	vmt_json_signed(json, "vm_fd", domain->vm_fd >= 0, domain->vm_fd);
	text_or_null(json, "debugfs", domain->debugfs);
	vmt_json_number(json, "host_tsc_khz", domain->host_tsc_khz != 0, domain->host_tsc_khz);
	vmt_json_text(json, "host_tsc_source", domain->host_tsc_khz ? "perf page" : NULL);
	vmt_json_bool(json, "agent", domain->xml != NULL, domain->has_agent);
	vmt_json_bool(json, "agent_connected", domain->xml != NULL, domain->agent_connected);
	vmt_json_text(json, "agent_source", domain->xml ? "XML" : NULL);
	trace_json(json, &trace);
	session_json(list, domain, json);
	vmt_json_open(json, "vcpus", '[');
	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		if (vmt_cli_wants_vcpu(list->cli, domain->vcpus[i].id))
			vcpu_json(json, domain, &domain->vcpus[i]);
	}
	vmt_json_close(json, ']');
	vmt_json_open(json, "threads", '[');
	for (size_t i = 0; i < domain->nr_helpers; i++) {
		vmt_json_open(json, NULL, '{');
		vmt_json_signed(json, "tid", true, domain->helpers[i].tid);
		vmt_json_text(json, "role", domain->helpers[i].role);
		vmt_json_text(json, "name", domain->helpers[i].name);
		vmt_json_close(json, '}');
	}
	vmt_json_close(json, ']');
	text_or_null(json, "note", domain->note);
	vmt_json_close(json, '}');
}

static void write_json(struct list *list)
{
	struct vmt_json *json = &list->result.json;

	vmt_json_open(json, NULL, '{');
	vmt_json_text(json, "schema", "vmtrace-list/1");
	vmt_json_open(json, "domains", '[');
	for (size_t i = 0; i < list->domains.count; i++)
		domain_json(list, &list->domains.items[i], json);
	for (size_t i = 0; i < list->processes.count; i++)
		domain_json(list, &list->processes.items[i], json);
	vmt_json_close(json, ']');
	vmt_json_close(json, '}');
	vmt_out_char(list->result.out, '\n');
}

/* ---- CSV: a line a vCPU ---- */
static void csv_line(const struct list *list, const struct vmt_domain *domain,
		     const struct vmt_vcpu *vcpu)
{
	struct vmt_csv csv = { .out = list->result.out };
	struct vmt_traceable trace;
	char words[32];

	vmt_traceable_of(&trace, &list->host, domain);
	trace_words(words, sizeof(words), &trace);
	vmt_csv_number(&csv, domain->id >= 0, (uint64_t)domain->id);
	vmt_csv_text(&csv, domain->name);
	vmt_csv_text(&csv, domain->uuid);
	vmt_csv_text(&csv, domain->state);
	vmt_csv_text(&csv, domain->type);
	vmt_csv_number(&csv, domain->pid > 0, (uint64_t)domain->pid);
	vmt_csv_text(&csv, domain->pid_source);
	vmt_csv_text(&csv, agent_word(domain));
	vmt_csv_text(&csv, words);
	vmt_csv_number(&csv, vcpu != NULL, vcpu ? vcpu->id : 0);
	vmt_csv_number(&csv, vcpu && vcpu->tid, vcpu ? (uint64_t)vcpu->tid : 0);
	vmt_csv_text(&csv, vcpu ? vcpu->tid_source : NULL);
	vmt_csv_number(&csv, vcpu && vcpu->host_cpu >= 0, vcpu ? (uint64_t)vcpu->host_cpu : 0);
	vmt_csv_hex(&csv, vcpu && vcpu->has_offset, vcpu ? (uint64_t)vcpu->tsc_offset : 0);
	vmt_csv_hex(&csv, vcpu && vcpu->has_ratio, vcpu ? vcpu->tsc_ratio : 0);
	vmt_csv_number(&csv, vcpu && vcpu->has_ratio, vcpu ? vcpu->tsc_frac : 0);
	vmt_csv_number(&csv, vcpu && guest_khz(domain, vcpu), vcpu ? guest_khz(domain, vcpu) : 0);
	vmt_csv_end(&csv);
}

static void csv_domains(const struct list *list, const struct vmt_domains *domains)
{
	for (size_t i = 0; i < domains->count; i++) {
		const struct vmt_domain *domain = &domains->items[i];

		if (!domain->nr_vcpus)
			csv_line(list, domain, NULL);
		for (size_t j = 0; j < domain->nr_vcpus; j++) {
			if (vmt_cli_wants_vcpu(list->cli, domain->vcpus[j].id))
				csv_line(list, domain, &domain->vcpus[j]);
		}
	}
}

static void write_csv(const struct list *list)
{
	vmt_out_str(list->result.out,
		    "id,name,uuid,state,type,pid,pid_source,agent,trace,vcpu,tid,tid_source,"
		    "host_cpu,tsc_offset,tsc_ratio,tsc_frac,tsc_khz\n");
	csv_domains(list, &list->domains);
	csv_domains(list, &list->processes);
}

static void write_list(struct list *list)
{
	switch (list->cli->format) {
	case VMT_FORMAT_TEXT:
		write_text(list);
		break;
	case VMT_FORMAT_JSON:
		write_json(list);
		break;
	case VMT_FORMAT_CSV:
		write_csv(list);
		break;
	}
}

int vmt_verb_list(struct vmt_cli *cli)
{
	struct list list = { .cli = cli };
	int status = find(&list);

	if (!status) {
		vmt_probe_host(&list.host, NULL);
		if (vmt_registry_look(&list.sessions, &list.nr_sessions, NULL))
			list.nr_sessions = 0;
		status = vmt_result_open(&list.result, cli);
		if (!status) {
			write_list(&list);
			status = vmt_result_finish(&list.result, status);
		}
		vmt_result_close(&list.result);
	}
	vmt_domains_free(&list.domains);
	vmt_domains_free(&list.processes);
	free(list.sessions);
	return status;
}
