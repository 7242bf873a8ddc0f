// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/cli/session_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/to_stdout.h"

char *vmt_text_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(buf, size, "%u bytes", (unsigned int)bytes);
		return buf;
	}
	for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	snprintf(buf, size, "%.1f %s", value, units[unit]);
	return buf;
}

static json_t *text_or_null(const char *text)
{
	json_t *value = *text ? json_string(text) : NULL;

	return value ? value : json_null();
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *domains_json(const char *domains)
{
	json_t *list = json_array();

	while (*domains) {
		size_t len = strcspn(domains, ",");

		json_array_append_new(list, json_stringn(domains, len));
		domains += len + (domains[len] == ',');
	}
	return list;
}

static void fill_json(json_t *doc, const struct vmt_session_info *info)
{
	json_object_set_new(doc, "session", text_or_null(info->id));
	json_object_set_new(doc, "state", text_or_null(info->state));
	json_object_set_new(doc, "domains", domains_json(info->domains));
	json_object_set_new(doc, "backend", text_or_null(info->backend));
	json_object_set_new(doc, "file", text_or_null(info->file));
	json_object_set_new(doc, "pid", number((uint64_t)info->pid));
	json_object_set_new(doc, "start_realtime_ns", number(info->start_realtime_ns));
	json_object_set_new(doc, "elapsed_ns", number(info->elapsed_ns));
	json_object_set_new(doc, "file_bytes", number(info->file_bytes));
	json_object_set_new(doc, "records", number(info->records));
	json_object_set_new(doc, "exits", number(info->exits));
	json_object_set_new(doc, "records_lost", number(info->lost_records));
	json_object_set_new(doc, "bytes_per_minute",
			    info->bytes_per_minute ? number(info->bytes_per_minute) : json_null());
	json_object_set_new(doc, "keep_ns", info->keep_ns ? number(info->keep_ns) : json_null());
	json_object_set_new(doc, "kept_bytes", number(info->kept_bytes));
	json_object_set_new(doc, "kept_records", number(info->kept_records));
	json_object_set_new(doc, "kept_exits", number(info->kept_exits));
	json_object_set_new(doc, "pt_bytes", number(info->pt_bytes));
	json_object_set_new(doc, "pt_buffers_full", number(info->pt_truncated));
	json_object_set_new(doc, "pt_gaps_by_vmx", number(info->pt_partial));
	json_object_set_new(doc, "pt_collisions", number(info->pt_collisions));
	json_object_set_new(doc, "pt_bytes_not_stored", number(info->pt_unstored));
	json_object_set_new(doc, "recorder_cpu_ns", number(info->cpu_ns));
	json_object_set_new(doc, "losses_of_unknown_size", number(info->unknown_losses));
	json_object_set_new(doc, "triggers", text_or_null(info->triggers));
	json_object_set_new(doc, "triggered", number(info->triggered));
	json_object_set_new(doc, "snapshots", number(info->snapshots));
	json_object_set_new(doc, "last_snapshot", text_or_null(info->last_snapshot));
	json_object_set_new(doc, "end_reason", text_or_null(info->end_reason));
	json_object_set_new(doc, "last_error", text_or_null(info->last_error));
}

static void put(FILE *out, json_t *doc)
{
	vmt_text_put_json(out, doc, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
}

void vmt_print_session_json(FILE *out, const struct vmt_session_info *info)
{
	json_t *doc = json_object();

	json_object_set_new(doc, "schema", json_string("vmtrace-session-state/1"));
	fill_json(doc, info);
	put(out, doc);
}

void vmt_print_sessions_json(const struct vmt_session_info *list, size_t count)
{
	json_t *doc = json_object(), *sessions = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *one = json_object();

		fill_json(one, &list[i]);
		json_array_append_new(sessions, one);
	}
	json_object_set_new(doc, "schema", json_string("vmtrace-sessions/1"));
	json_object_set_new(doc, "sessions", sessions);
	put(stdout, doc);
}

static void print_kept(FILE *out, const struct vmt_session_info *info)
{
	char size[24];

	fprintf(out, "  kept: about the newest %g s (--keep), %s, %llu of %llu exits\n",
		(double)info->keep_ns / 1e9, vmt_text_bytes(size, sizeof(size), info->kept_bytes),
		(unsigned long long)info->kept_exits, (unsigned long long)info->exits);
}

void vmt_print_trace(FILE *out, const char *label, const struct vmt_session_info *info)
{
	char size[24];

	fprintf(out, "%s%s, buffers full %llu times", label,
		vmt_text_bytes(size, sizeof(size), info->pt_bytes),
		(unsigned long long)info->pt_truncated);
	if (info->pt_partial)
		fprintf(out, ", gaps by VMX %llu", (unsigned long long)info->pt_partial);
	if (info->pt_collisions)
		fprintf(out, ", collisions %llu", (unsigned long long)info->pt_collisions);
	if (info->pt_unstored)
		fprintf(out, ", %s not stored",
			vmt_text_bytes(size, sizeof(size), info->pt_unstored));
	fputc('\n', out);
}

void vmt_print_cost(FILE *out, const char *label, const struct vmt_session_info *info)
{
	fprintf(out, "%s%.1f ms of CPU", label, (double)info->cpu_ns / 1e6);
	if (info->exits)
		fprintf(out, ", %.0f ns an exit", (double)info->cpu_ns / (double)info->exits);
	fputc('\n', out);
}

void vmt_print_flight(FILE *out, const struct vmt_session_info *info)
{
	char text[sizeof(info->last_snapshot)];

	if (info->triggers[0])
		fprintf(out, "  trigger  %s: fired %llu times\n",
			vmt_text_safe(text, sizeof(text), info->triggers),
			(unsigned long long)info->triggered);
	if (info->snapshots)
		fprintf(out, "  snapshot %llu taken, the last is %s\n",
			(unsigned long long)info->snapshots,
			vmt_text_safe(text, sizeof(text), info->last_snapshot));
}

void vmt_print_session_summary(FILE *out, const struct vmt_session_info *info)
{
	char size[24], file[sizeof(info->file)], domains[sizeof(info->domains)];
	const char *where = vmt_is_stdout(info->file) ? "standard output" : info->file;

	fprintf(out, "%s: %.1f s, %s in %s, %llu exits, %llu records lost%s\n",
		vmt_text_safe(domains, sizeof(domains), *info->domains ? info->domains : info->id),
		(double)info->elapsed_ns / 1e9,
		vmt_text_bytes(size, sizeof(size), info->kept_bytes),
		vmt_text_safe(file, sizeof(file), where), (unsigned long long)info->kept_exits,
		(unsigned long long)info->lost_records,
		info->unknown_losses ? " and more that nobody counted" : "");
	if (info->pt_bytes)
		vmt_print_trace(out, "  Intel PT: ", info);
	if (info->keep_ns)
		print_kept(out, info);
	vmt_print_cost(out, "  recorder: ", info);
	if (info->triggers[0] || info->snapshots)
		vmt_print_flight(out, info);
	if (info->end_reason[0] && strcmp(info->end_reason, VMT_SESSION_STOPPED) != 0)
		fprintf(out, "  ended: %s\n", info->end_reason);
}

void vmt_session_options_of(const struct vmt_cli *cli, struct vmt_session_options *out)
{
	*out = (struct vmt_session_options){
		.query = { .uri = cli->uri,
			   .names = cli->domains,
			   .nr_names = cli->nr_domains,
			   .pids = cli->pids,
			   .nr_pids = cli->nr_pids },
		.backend = cli->backend,
		.pt_terms = cli->pt_terms,
		.pt_filter = cli->pt_filter,
		.vm_events_only = cli->vm_events_only,
		.system_wide = cli->system_wide,
		.privacy = cli->privacy,
		.pt_mode = cli->pt_mode,
		.pt_conceal = cli->conceal,
		.pt_buffer_bytes = cli->pt_buffer_bytes,
		.output = vmt_is_stdout(cli->output) ? NULL : cli->output,
		.force = cli->force,
		.compress = cli->compress,
		.buffer_bytes = cli->buffer_bytes,
		.keep_ns = cli->keep_ns,
		.limit_bytes = cli->limit_bytes,
		.duration_ns = cli->duration_ns,
		.triggers = cli->triggers,
		.nr_triggers = cli->nr_triggers,
		.before_ns = cli->before_ns,
		.after_ns = cli->after_ns,
	};
}

const char *vmt_session_wanted(const struct vmt_cli *cli)
{
	if (cli->nr_args)
		return cli->args[0];
	return cli->nr_domains ? cli->domains[0] : NULL;
}

void vmt_session_sweep(const struct vmt_cli *cli)
{
	struct vmt_session_info *list;
	size_t count;

	if (vmt_session_list_known(&list, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		char text[sizeof(list[i].file) + sizeof(list[i].domains) + 120];

		if (strcmp(list[i].state, "stale") != 0)
			continue;
		snprintf(text, sizeof(text),
			 "the recorder of session %s (%s) was killed; its capture is %s",
			 list[i].id, list[i].domains, list[i].file);
		vmt_cli_warn(cli, text);
	}
	free(list);
}

/*
 * Records that the kernel dropped are not among info->records, those that found no room in the file
 * are: the share is rather too large than too small.
 */
int vmt_session_judge(const struct vmt_cli *cli, const struct vmt_session_info *info)
{
	double lost = (double)info->lost_records, all = (double)info->records;

	if (!cli->has_max_loss || !info->lost_records ||
	    (lost < all && cli->max_loss > 0 && lost * 100 / all <= cli->max_loss) ||
	    cli->max_loss >= 100)
		return VMT_STATUS_OK;
	vmt_cli_warn(cli, "more is lost than --max-loss allows");
	return VMT_STATUS_LOSS;
}

int vmt_session_sides(const struct vmt_cli *cli)
{
	if ((cli->pt_mode == VMX_PT_GUEST_ONLY && cli->privacy == VMT_PRIVACY_HOST) ||
	    (cli->pt_mode == VMX_PT_HOST_ONLY && cli->privacy == VMT_PRIVACY_GUEST))
		return vmt_cli_usage(cli, "--mode and --privacy name different sides",
				     "leave one of them off");
	return VMT_STATUS_OK;
}

int vmt_session_no_csv(const struct vmt_cli *cli)
{
	if (cli->format == VMT_FORMAT_CSV)
		return vmt_cli_usage(cli, "there is no table to write as csv",
				     "use --format text or json");
	return VMT_STATUS_OK;
}
