// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/session_text.h"

static void print_text(const struct vmt_session_info *info)
{
	char size[24], file[sizeof(info->file)], domains[sizeof(info->domains)];
	char error[sizeof(info->last_error)];
	double seconds = (double)info->elapsed_ns / 1e9;

	vmt_text_safe(domains, sizeof(domains), *info->domains ? info->domains : "-");
	printf("%s  %s  %s\n", info->id, info->state, domains);
	printf("  file     %s (%s)\n", vmt_text_safe(file, sizeof(file), info->file),
	       vmt_text_bytes(size, sizeof(size), info->kept_bytes));
	printf("  running  %.1f s, recorder %d, backend %s\n", seconds, info->pid,
	       vmt_text_safe(domains, sizeof(domains), info->backend));
	printf("  records  %llu, of these %llu exits (%.0f/s), %llu lost%s\n",
	       (unsigned long long)info->records, (unsigned long long)info->exits,
	       seconds > 0 ? (double)info->exits / seconds : 0.0,
	       (unsigned long long)info->lost_records,
	       info->unknown_losses ? " and more that nobody counted" : "");
	vmt_print_cost(stdout, "  cost     ", info);
	if (info->pt_bytes)
		vmt_print_trace(stdout, "  trace    Intel PT: ", info);
	if (info->keep_ns)
		printf("  kept     about the newest %g s (--keep): %llu records, %llu exits\n",
		       (double)info->keep_ns / 1e9, (unsigned long long)info->kept_records,
		       (unsigned long long)info->kept_exits);
	vmt_print_flight(stdout, info);
	if (info->bytes_per_minute)
		printf("  size     about %s a minute\n",
		       vmt_text_bytes(size, sizeof(size), info->bytes_per_minute));
	if (info->last_error[0])
		printf("  warning  %s\n", vmt_text_safe(error, sizeof(error), info->last_error));
}

/* How the last session ended, when none is running. */
static void print_last(void)
{
	struct vmt_session_info last;
	char file[sizeof(last.file)], domains[sizeof(last.domains)];

	puts("no session is running");
	if (vmt_session_last(NULL, &last, NULL))
		return;
	printf("  the last one (%s, %s) is over: %s; its capture is %s\n", last.id,
	       vmt_text_safe(domains, sizeof(domains), *last.domains ? last.domains : "-"),
	       *last.end_reason ? last.end_reason : "it was killed",
	       vmt_text_safe(file, sizeof(file), last.file));
}

static void print_stale(const struct vmt_session_info *info)
{
	char size[24], file[sizeof(info->file)], domains[sizeof(info->domains)];

	printf("%s  stale  %s\n", info->id, vmt_text_safe(domains, sizeof(domains), info->domains));
	printf("  its recorder (%d) was killed; the capture up to then is %s (%s)\n", info->pid,
	       vmt_text_safe(file, sizeof(file), info->file),
	       vmt_text_bytes(size, sizeof(size), info->file_bytes));
}

static void put_csv_text(const char *text)
{
	char part[sizeof(((struct vmt_session_info *)0)->file)];

	vmt_text_safe(part, sizeof(part), text);
	putchar('"');
	for (const char *at = part; *at; at++) {
		if (*at == '"')
			putchar('"');
		putchar(*at);
	}
	putchar('"');
}

static void print_csv(const struct vmt_session_info *list, size_t count)
{
	puts("session,state,domains,file,elapsed_ns,file_bytes,records,exits,records_lost,pt_"
	     "bytes");
	for (size_t i = 0; i < count; i++) {
		printf("%s,%s,", list[i].id, list[i].state);
		put_csv_text(list[i].domains);
		putchar(',');
		put_csv_text(list[i].file);
		printf(",%llu,%llu,%llu,%llu,%llu,%llu\n", (unsigned long long)list[i].elapsed_ns,
		       (unsigned long long)list[i].file_bytes, (unsigned long long)list[i].records,
		       (unsigned long long)list[i].exits, (unsigned long long)list[i].lost_records,
		       (unsigned long long)list[i].pt_bytes);
	}
}

static bool is_wanted(const struct vmt_session_info *info, const char *what)
{
	size_t len = what ? strlen(what) : 0;

	if (!what || !strcmp(info->id, what))
		return true;
	for (const char *at = info->domains; *at; at += strcspn(at, ","), at += *at == ',') {
		if (strcspn(at, ",") == len && !memcmp(at, what, len))
			return true;
	}
	return false;
}

int vmt_verb_status(struct vmt_cli *cli)
{
	const char *what = vmt_session_wanted(cli);
	struct vmt_session_info *list;
	struct vmt_diag diag = { 0 };
	size_t count, nr = 0;

	if (vmt_session_list(&list, &count, &diag))
		return vmt_cli_fail(&diag);
	for (size_t i = 0; i < count; i++) {
		if (is_wanted(&list[i], what))
			list[nr++] = list[i];
	}
	if (what && !nr) {
		free(list);
		vmt_session_find(what, &(struct vmt_session_info){ 0 }, &diag);
		return vmt_cli_fail(&diag);
	}
	if (cli->format == VMT_FORMAT_JSON)
		vmt_print_sessions_json(list, nr);
	else if (cli->format == VMT_FORMAT_CSV)
		print_csv(list, nr);
	else if (!nr)
		print_last();
	for (size_t i = 0; i < nr && cli->format == VMT_FORMAT_TEXT; i++) {
		if (!strcmp(list[i].state, "stale"))
			print_stale(&list[i]);
		else
			print_text(&list[i]);
	}
	free(list);
	return VMT_STATUS_OK;
}
