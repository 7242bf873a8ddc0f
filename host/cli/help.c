// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>
#include <string.h>

#include "host/cli/options.h"

#define HELP_COLUMN 28
#define HELP_WIDTH  80

/* Text wrapped at HELP_WIDTH, continued at HELP_COLUMN. `at` is the present column. */
static void wrapped(const char *text, int at)
{
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (at + 1 + len > HELP_WIDTH && at > HELP_COLUMN) {
			printf("\n%*s", HELP_COLUMN, "");
			at = HELP_COLUMN;
		} else if (at > HELP_COLUMN) {
			putchar(' ');
			at++;
		}
		printf("%.*s", len, text);
		at += len;
		text += len + (text[len] == ' ');
	}
	putchar('\n');
}

static void option_line(const struct vmt_option_row *row)
{
	char left[80];
	int n;

	n = snprintf(left, sizeof(left), "  %c%c%s --%s%s%s", row->letter ? '-' : ' ',
		     row->letter ? row->letter : ' ', row->letter ? "," : " ", row->name,
		     row->argument && *row->argument != '[' ? " " : "",
		     row->argument ? row->argument : "");
	printf("%s", left);
	if (n >= HELP_COLUMN - 1)
		printf("\n%*s", HELP_COLUMN, "");
	else
		printf("%*s", HELP_COLUMN - n, "");
	wrapped(row->help, HELP_COLUMN);
}

static void global_options(void)
{
	size_t count;
	const struct vmt_option_row *rows = vmt_options(&count);

	for (size_t i = 0; i < count && vmt_option_is_global(&rows[i]); i++)
		option_line(&rows[i]);
}

/* Names alone, wrapped. */
static void global_names(void)
{
	size_t count;
	const struct vmt_option_row *rows = vmt_options(&count);
	size_t at = 0;

	for (size_t i = 0; i < count && vmt_option_is_global(&rows[i]); i++) {
		size_t len = strlen(rows[i].name) + 3;

		if (at + len > HELP_WIDTH) {
			putchar('\n');
			at = 0;
		}
		printf("%s--%s", at ? " " : "  ", rows[i].name);
		at += at ? len : len + 1;
	}
	putchar('\n');
}

void vmt_help_print(void)
{
	size_t count;
	const struct vmt_verb_row *rows = vmt_verbs(&count);

	printf("usage: vmtrace VERB [OPTIONS] [ARGUMENTS]\n\n"
	       "Records the VM exits of a KVM guest and says where its time went.\n\n"
	       "  vmtrace start --domain web01     capture in the background\n"
	       "  vmtrace stop                     end it\n"
	       "  vmtrace report                   where the time went, and what to change\n\n"
	       "Verbs:\n");
	for (size_t i = 0; i < count; i++) {
		int n = printf("  %s", rows[i].name);

		printf("%*s", 14 - n, "");
		printf("%s\n", rows[i].brief);
	}
	printf("\nOptions of every verb:\n");
	global_options();
	printf("\nExit status: 0 ok, 1 failure, 2 usage, 3 domain not found or not running,\n"
	       "4 not permitted, 5 capability missing, 6 data lost beyond --max-loss,\n"
	       "10 a finding at or above --fail-on.\n\n"
	       "vmtrace VERB --help and the man page vmtrace-VERB(1) say more.\n");
}

void vmt_help_verb_print(const struct vmt_verb_row *verb)
{
	size_t count;
	const struct vmt_option_row *rows = vmt_options(&count);
	bool own = false;

	printf("usage: vmtrace %s [OPTIONS]%s%s\n\n%c%s.\n", verb->name,
	       *verb->arguments ? " " : "", verb->arguments,
	       verb->brief[0] >= 'a' && verb->brief[0] <= 'z' ? verb->brief[0] - 'a' + 'A'
							      : verb->brief[0],
	       verb->brief + 1);
	for (size_t i = 0; i < count; i++) {
		if (vmt_option_is_global(&rows[i]) || !vmt_verb_takes(verb, &rows[i]))
			continue;
		if (!own)
			printf("\nOptions of %s:\n", verb->name);
		own = true;
		option_line(&rows[i]);
	}
	printf("\nOptions of every verb (vmtrace --help explains them):\n");
	global_names();
	printf("\nExamples:\n");
	for (const char *line = verb->examples; *line;) {
		int len = (int)strcspn(line, "\n");

		printf("  %.*s\n", len, line);
		line += len + (line[len] == '\n');
	}
}
