// SPDX-License-Identifier: LGPL-2.1-or-later
/* How the program speaks of errors, and which exit status they give. */
#include "host/cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/terminal.h"
#include "host/cli/text.h"

static const struct {
	enum vmt_err code;
	enum vmt_exit_status status;
} statuses[] = {
	{ VMT_E_USAGE, VMT_STATUS_USAGE },
	{ VMT_E_NOT_FOUND, VMT_STATUS_NO_DOMAIN },
	{ VMT_E_PERMISSION, VMT_STATUS_NOT_PERMITTED },
	{ VMT_E_CAPABILITY, VMT_STATUS_NO_CAPABILITY },
	{ VMT_E_DAMAGED, VMT_STATUS_LOSS },
	{ VMT_E_TRUNCATED, VMT_STATUS_LOSS },
};

static void put_line(const char *prefix, const char *text)
{
	fputs(prefix, stderr);
	vmt_text_put(stderr, text);
	fputc('\n', stderr);
}

#define CURE_INDENT 2

static size_t columns_of(const char *text, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80; /* a character's first byte */
	return n;
}

/* A cure: on a terminal broken at spaces to fit its width, elsewhere one line. */
static void put_cure(const char *text)
{
	size_t width = isatty(STDERR_FILENO) ? vmt_cli_width(STDERR_FILENO) : SIZE_MAX;
	size_t column = CURE_INDENT;
	char clean[1024];

	vmt_text_safe(clean, sizeof(clean), text);
	fprintf(stderr, "%*s", CURE_INDENT, "");
	for (const char *word = clean + strspn(clean, " "); *word;) {
		size_t bytes = strcspn(word, " "), columns = columns_of(word, bytes);

		if (column > CURE_INDENT && column + 1 + columns > width) {
			fprintf(stderr, "\n%*s", CURE_INDENT, "");
			column = CURE_INDENT;
		} else if (column > CURE_INDENT) {
			fputc(' ', stderr);
			column++;
		}
		fwrite(word, 1, bytes, stderr);
		column += columns;
		word += bytes;
		word += strspn(word, " ");
	}
	fputc('\n', stderr);
}

int vmt_cli_fail(const struct vmt_diag *diag)
{
	fputs("vmtrace: error: ", stderr);
	vmt_text_put(stderr, diag->what[0] ? diag->what : "unknown error");
	if (diag->has_offset)
		fprintf(stderr, " (at offset %llu)", (unsigned long long)diag->offset);
	fputc('\n', stderr);
	if (diag->cure[0])
		put_cure(diag->cure);
	if (diag->code == VMT_E_NOT_FOUND && diag->sys_errno)
		return VMT_STATUS_FAILURE; /* a file, not a domain */
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].code == diag->code)
			return (int)statuses[i].status;
	}
	return VMT_STATUS_FAILURE;
}

int vmt_cli_usage(const struct vmt_cli *cli, const char *what, const char *cure)
{
	put_line("vmtrace: error: ", what);
	if (cure && *cure)
		put_cure(cure);
	else if (cli->verb)
		fprintf(stderr, "  vmtrace %s --help says how it is used\n", cli->verb);
	return VMT_STATUS_USAGE;
}

void vmt_cli_warn(const struct vmt_cli *cli, const char *what)
{
	if (!cli->quiet)
		put_line("vmtrace: warning: ", what);
}
