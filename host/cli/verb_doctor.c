// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace doctor: one line a check of the host, and of domains with -d: cause and cure. */
#include <stdio.h>
#include <string.h>

#include "decode/export/csv.h"
#include "host/cli/result.h"
#include "host/domain/domain.h"
#include "host/probe/probe.h"

struct doctor {
	const struct vmt_cli *cli;
	struct vmt_result result;
	struct vmt_probe host;
	struct vmt_domains domains;
	uint32_t need;			 /* VMT_NEED_*: what was asked for */
	const struct vmt_check *blocked; /* what blocks that, NULL: nothing */
	const char *blocked_where;	 /* "host", or the domain's name */
	struct vmt_probe domain;	 /* of the domain that is blocked or written */
	struct vmt_check blocked_copy;
};

/* libvirt is a way to find domains, not needed with --pid. */
static void add_libvirt(struct doctor *doctor, const struct vmt_diag *diag)
{
	struct vmt_check *check = &doctor->host.checks[doctor->host.count];

	if (doctor->host.count == VMT_PROBE_MAX)
		return;
	doctor->host.count++;
	*check = (struct vmt_check){ .id = "libvirt", .title = "libvirt" };
	if (diag->code) {
		check->status = VMT_CHECK_WARN;
		snprintf(check->cause, sizeof(check->cause), "%s", diag->what);
		snprintf(check->cure, sizeof(check->cure), "%.230s", diag->cure);
	} else {
		check->status = VMT_CHECK_OK;
		snprintf(check->cause, sizeof(check->cause), "%zu running domain%s%s%.120s",
			 doctor->domains.count, doctor->domains.count == 1 ? "" : "s",
			 doctor->domains.count ? " at " : "",
			 doctor->domains.count ? doctor->domains.items[0].uri : "");
	}
}

static bool asks_domains(const struct vmt_cli *cli)
{
	return cli->nr_domains || cli->nr_pids || cli->all;
}

static int look(struct doctor *doctor)
{
	const struct vmt_cli *cli = doctor->cli;
	struct vmt_domain_query query = { .uri = cli->uri,
					  .names = cli->domains,
					  .nr_names = cli->nr_domains,
					  .pids = cli->pids,
					  .nr_pids = cli->nr_pids };
	struct vmt_diag diag = { .code = VMT_OK };

	vmt_probe_host(&doctor->host, NULL);
	if (vmt_domains_find(&doctor->domains, &query, &diag) && asks_domains(cli))
		return vmt_cli_fail(&diag);
	if (!asks_domains(cli)) {
		add_libvirt(doctor, &diag);
		vmt_domains_free(&doctor->domains);
	}
	doctor->blocked = vmt_probe_blocked(&doctor->host, doctor->need);
	doctor->blocked_where = "host";
	return VMT_STATUS_OK;
}

static const char *name_of(const struct vmt_domain *domain, char *buf, size_t size)
{
	if (domain->name)
		return domain->name;
	snprintf(buf, size, "process %d", domain->pid);
	return buf;
}

/* KVM's counters, which cost no tracing. */
static void add_counters(struct vmt_probe *probe, const struct vmt_domain *domain)
{
	struct vmt_check *check = &probe->checks[probe->count];
	struct vmt_diag diag = { .code = VMT_OK };
	struct vmt_counters counters;
	uint64_t exits = 0;

	if (probe->count == VMT_PROBE_MAX || !domain->pid)
		return;
	probe->count++;
	*check = (struct vmt_check){ .id = "counters", .title = "counters" };
	if (vmt_domain_counters(domain, &counters, &diag)) {
		check->status = VMT_CHECK_WARN;
		snprintf(check->cause, sizeof(check->cause), "%s", diag.what);
		snprintf(check->cure, sizeof(check->cure), "%.230s", diag.cure);
		return;
	}
	for (size_t i = 0; i < counters.count; i++) {
		if (!strcmp(counters.items[i].name, "exits"))
			exits += counters.items[i].value;
	}
	check->status = VMT_CHECK_OK;
	snprintf(check->cause, sizeof(check->cause), "%zu by %s, %llu exits so far", counters.count,
		 counters.source, (unsigned long long)exits);
	vmt_counters_free(&counters);
}

/* Checks of domain i into doctor->domain; remembers the first that blocks. */
static const struct vmt_probe *probe_domain(struct doctor *doctor, size_t i)
{
	const struct vmt_check *blocked;

	vmt_probe_domain(&doctor->domain, &doctor->domains.items[i]);
	add_counters(&doctor->domain, &doctor->domains.items[i]);
	blocked = vmt_probe_blocked(&doctor->domain, doctor->need);
	if (blocked && !doctor->blocked) {
		doctor->blocked_copy = *blocked;
		doctor->blocked = &doctor->blocked_copy;
		doctor->blocked_where = doctor->domains.items[i].name;
	}
	return &doctor->domain;
}

/* ---- text ---- */
#define INDENT 28

static void check_lines(const struct vmt_page *page, const struct vmt_check *check, int verbose)
{
	static const enum vmt_text_style styles[] = {
		[VMT_CHECK_OK] = VMT_STYLE_PLAIN,	  [VMT_CHECK_WARN] = VMT_STYLE_WARN,
		[VMT_CHECK_BLOCKED] = VMT_STYLE_CRITICAL, [VMT_CHECK_UNKNOWN] = VMT_STYLE_DIM,
		[VMT_CHECK_ABSENT] = VMT_STYLE_DIM,
	};
	char label[64];

	snprintf(label, sizeof(label), "  %-8s %-17s", vmt_check_status_name(check->status),
		 check->title);
	vmt_page_wrap(page, styles[check->status], label, INDENT, check->cause, 0);
	if (check->cure[0] && (check->status != VMT_CHECK_OK || verbose)) {
		snprintf(label, sizeof(label), "%*s-> ", INDENT, "");
		vmt_page_wrap(page, VMT_STYLE_PLAIN, label, INDENT + 3, check->cure, 0);
	}
}

static const char *asked(const struct doctor *doctor)
{
	return doctor->cli->backend ? doctor->cli->backend : "kvm";
}

static void write_text(struct doctor *doctor)
{
	const struct vmt_page *page = &doctor->result.page;
	char line[300], buf[32];

	vmt_page_line(page, VMT_STYLE_HEADING, "host");
	for (size_t i = 0; i < doctor->host.count; i++)
		check_lines(page, &doctor->host.checks[i], doctor->cli->verbose);
	for (size_t d = 0; d < doctor->domains.count; d++) {
		const struct vmt_probe *probe = probe_domain(doctor, d);

		snprintf(line, sizeof(line), "domain %s",
			 name_of(&doctor->domains.items[d], buf, sizeof(buf)));
		vmt_page_line(page, VMT_STYLE_HEADING, line);
		for (size_t i = 0; i < probe->count; i++)
			check_lines(page, &probe->checks[i], doctor->cli->verbose);
	}
	if (doctor->blocked)
		snprintf(line, sizeof(line), "%s tracing is blocked: %s (%s)", asked(doctor),
			 doctor->blocked->title,
			 doctor->blocked_where ? doctor->blocked_where : "process");
	else
		snprintf(line, sizeof(line), "%s tracing is possible", asked(doctor));
	vmt_page_line(page, VMT_STYLE_HEADING, line);
}

/* ---- JSON ---- */
static void checks_json(struct vmt_json *json, const char *name, const struct vmt_probe *probe,
			uint32_t need)
{
	vmt_json_open(json, name, '[');
	for (size_t i = 0; i < probe->count; i++) {
		const struct vmt_check *check = &probe->checks[i];

		vmt_json_open(json, NULL, '{');
		vmt_json_text(json, "id", check->id);
		vmt_json_text(json, "title", check->title);
		vmt_json_text(json, "status", vmt_check_status_name(check->status));
		vmt_json_bool(json, "needed", true, check->needs & need);
		vmt_json_text(json, "cause", check->cause[0] ? check->cause : NULL);
		vmt_json_text(json, "cure", check->cure[0] ? check->cure : NULL);
		vmt_json_close(json, '}');
	}
	vmt_json_close(json, ']');
}

static void write_json(struct doctor *doctor)
{
	struct vmt_json *json = &doctor->result.json;

	vmt_json_open(json, NULL, '{');
	vmt_json_text(json, "schema", "vmtrace-doctor/1");
	checks_json(json, "host", &doctor->host, doctor->need);
	vmt_json_open(json, "domains", '[');
	for (size_t d = 0; d < doctor->domains.count; d++) {
		const struct vmt_domain *domain = &doctor->domains.items[d];

		vmt_json_open(json, NULL, '{');
		vmt_json_text(json, "name", domain->name);
		vmt_json_signed(json, "pid", domain->pid > 0, domain->pid);
		checks_json(json, "checks", probe_domain(doctor, d), doctor->need);
		vmt_json_close(json, '}');
	}
	vmt_json_close(json, ']');
	vmt_json_bool(json, "kvm_traceable", true,
		      !(doctor->need == VMT_NEED_KVM
				? doctor->blocked
				: vmt_probe_blocked(&doctor->host, VMT_NEED_KVM)));
	vmt_json_bool(json, "traceable", true, !doctor->blocked);
	vmt_json_text(json, "blocked_by", doctor->blocked ? doctor->blocked->id : NULL);
	vmt_json_close(json, '}');
	vmt_out_char(doctor->result.out, '\n');
}

/* ---- CSV ---- */
static void checks_csv(struct vmt_out *out, const char *where, const struct vmt_probe *probe,
		       uint32_t need)
{
	for (size_t i = 0; i < probe->count; i++) {
		const struct vmt_check *check = &probe->checks[i];
		struct vmt_csv csv = { .out = out };

		vmt_csv_text(&csv, where);
		vmt_csv_text(&csv, check->id);
		vmt_csv_text(&csv, vmt_check_status_name(check->status));
		vmt_csv_number(&csv, true, (check->needs & need) != 0);
		vmt_csv_text(&csv, check->cause);
		vmt_csv_text(&csv, check->cure);
		vmt_csv_end(&csv);
	}
}

static void write_csv(struct doctor *doctor)
{
	char buf[32];

	vmt_out_str(doctor->result.out, "where,id,status,needed,cause,cure\n");
	checks_csv(doctor->result.out, "host", &doctor->host, doctor->need);
	for (size_t d = 0; d < doctor->domains.count; d++)
		checks_csv(doctor->result.out, name_of(&doctor->domains.items[d], buf, sizeof(buf)),
			   probe_domain(doctor, d), doctor->need);
}

static void write_all(struct doctor *doctor)
{
	switch (doctor->cli->format) {
	case VMT_FORMAT_TEXT:
		write_text(doctor);
		break;
	case VMT_FORMAT_JSON:
		write_json(doctor);
		break;
	case VMT_FORMAT_CSV:
		write_csv(doctor);
		break;
	}
}

/* A list of backends as start takes it, without replay:FILE. */
static bool read_need(const char *backend, uint32_t *need)
{
	static const struct {
		const char *name;
		uint32_t need;
	} rows[] = {
		{ "auto", VMT_NEED_KVM | VMT_NEED_SCHED },
		{ "kvm", VMT_NEED_KVM },
		{ "sched", VMT_NEED_SCHED },
		{ "pt", VMT_NEED_PT },
	};

	*need = backend ? 0 : VMT_NEED_KVM;
	for (const char *at = backend; at && *at;) {
		size_t len = strcspn(at, ","), i = 0;

		while (i < 4 &&
		       (strlen(rows[i].name) != len || strncmp(at, rows[i].name, len) != 0))
			i++;
		if (i == 4)
			return false;
		*need |= rows[i].need;
		at += len + (at[len] == ',');
	}
	return *need != 0;
}

int vmt_verb_doctor(struct vmt_cli *cli)
{
	struct doctor doctor = { .cli = cli };
	int status;

	if (!read_need(cli->backend, &doctor.need))
		return vmt_cli_usage(cli, "--backend is a list of kvm, sched and pt, or auto",
				     "vmtrace doctor --backend kvm,pt");
	status = look(&doctor);
	if (!status) {
		status = vmt_result_open(&doctor.result, cli);
		if (!status) {
			write_all(&doctor);
			if (doctor.blocked)
				status = !strcmp(doctor.blocked->id, "state")
						 ? VMT_STATUS_NO_DOMAIN
						 : VMT_STATUS_NO_CAPABILITY;
			status = vmt_result_finish(&doctor.result, status);
		}
		vmt_result_close(&doctor.result);
	}
	vmt_domains_free(&doctor.domains);
	return status;
}
