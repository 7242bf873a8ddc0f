// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the command line by the tables of options.c and verbs.c. Options may stand before or after
 * the verb and between arguments; `--name value` and `--name=value`, `-n value` and `-nvalue`.
 * After `--` all are arguments, or the command of a verb that takes one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/options.h"

struct scan {
	struct vmt_cli *cli;
	const struct vmt_verb_row *verb;
	const struct vmt_option_row
		*seen[64]; /* own options, checked against the verb at the end */
	size_t nr_seen;
	bool want_help, want_version;
};

bool vmt_cli_number(const char *text, uint64_t *number, char **end)
{
	errno = 0;
	if (*text < '0' || *text > '9')
		return false;
	*number = strtoull(text, end, 0);
	return !errno;
}

static bool read_i64(const char *text, int64_t *out)
{
	char *end;

	errno = 0;
	if (text[*text == '-'] < '0' || text[*text == '-'] > '9')
		return false;
	*out = strtoll(text, &end, 0);
	return !errno && !*end;
}

static bool read_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;

	if (!vmt_cli_number(text, out, &end))
		return false;
	if (!*end)
		return true;
	unit = strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end);
	if (!unit)
		return false;
	for (const char *u = units; u <= unit; u++) {
		if (*out > UINT64_MAX / 1024)
			return false;
		*out *= 1024;
	}
	end++;
	if (!strcmp(end, "iB") || !strcmp(end, "B"))
		return true;
	return !*end;
}

static bool read_duration(const char *text, uint64_t *out)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "", 1e9 }, { "s", 1e9 },  { "ms", 1e6 },  { "us", 1e3 },
		      { "ns", 1 }, { "m", 60e9 }, { "h", 3600e9 } };
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || !(value >= 0))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(end, units[i].unit)) {
			value *= units[i].ns;
			if (value >= 1e19 || value < 1)
				return false;
			*out = (uint64_t)value;
			return true;
		}
	}
	return false;
}

/* Stores an option's value. False with *why. */
static bool store(struct vmt_cli *cli, const struct vmt_option_row *row, const char *value,
		  const char **why)
{
	char *member = (char *)cli + row->member;
	char *end;

	switch (row->kind) {
	case VMT_OPT_FLAG:
		*(bool *)(void *)member = true;
		return true;
	case VMT_OPT_COUNT:
		++*(int *)(void *)member;
		return true;
	case VMT_OPT_TEXT:
		*why = "a text that is not empty";
		*(const char **)(void *)member = value;
		return *value != '\0';
	case VMT_OPT_U64:
		*why = "a number in C syntax, 0 to 2^64-1";
		return vmt_cli_number(value, (uint64_t *)(void *)member, &end) && !*end;
	case VMT_OPT_I64:
		*why = "a signed number in C syntax, -2^63 to 2^63-1";
		return read_i64(value, (int64_t *)(void *)member);
	case VMT_OPT_SIZE:
		*why = "a size such as 64M or 4G";
		return read_size(value, (uint64_t *)(void *)member) &&
		       *(uint64_t *)(void *)member != 0;
	case VMT_OPT_DURATION:
		*why = "a time such as 30s, 250ms or 2m";
		return read_duration(value, (uint64_t *)(void *)member);
	case VMT_OPT_CUSTOM:
		return row->custom(cli, value, why);
	}
	return false;
}

static int bad_value(const struct vmt_cli *cli, const struct vmt_option_row *row, const char *value,
		     const char *why)
{
	char what[200];

	snprintf(what, sizeof(what), "--%s does not take '%.100s'", row->name, value);
	return vmt_cli_usage(cli, what, why);
}

/* A file that is named twice: the first one would be passed over without a word. */
static bool is_second_file(const struct vmt_cli *cli, const struct vmt_option_row *row)
{
	const void *member = (const char *)cli + row->member;

	return row->kind == VMT_OPT_TEXT && row->words && !strcmp(row->words, "@file") &&
	       *(const char *const *)member;
}

static int take(struct scan *s, const struct vmt_option_row *row, const char *value)
{
	const char *why = "";
	char what[64];

	if (is_second_file(s->cli, row)) {
		snprintf(what, sizeof(what), "--%s is given twice", row->name);
		return vmt_cli_usage(s->cli, what, "it takes one file");
	}
	if (!strcmp(row->name, "help"))
		s->want_help = true;
	else if (!strcmp(row->name, "version"))
		s->want_version = true;
	else if (!store(s->cli, row, value ? value : "", &why))
		return bad_value(s->cli, row, value, why);
	if (row->has_member)
		*(bool *)(void *)((char *)s->cli + row->has_member) = true;
	if (!vmt_option_is_global(row) && s->nr_seen < sizeof(s->seen) / sizeof(s->seen[0]))
		s->seen[s->nr_seen++] = row;
	return VMT_STATUS_OK;
}

static int unknown_option(const struct scan *s, const char *arg)
{
	char what[200];

	snprintf(what, sizeof(what), "no option '%.100s'", arg);
	return vmt_cli_usage(s->cli, what,
			     s->verb ? "vmtrace VERB --help lists the options of a verb"
				     : "vmtrace --help lists verbs and options");
}

/* One argument that begins with a dash; *i moves on when the next argument is the value. */
static int option(struct scan *s, char **argv, int *i, int argc)
{
	const char *arg = argv[*i];
	const struct vmt_option_row *row = NULL;
	const char *value = NULL;
	char what[100];
	size_t count;

	if (arg[1] == '-') {
		const char *equals = strchr(arg, '=');
		size_t len = equals ? (size_t)(equals - arg - 2) : strlen(arg + 2);

		row = vmt_option_find(arg + 2, len);
		value = equals ? equals + 1 : NULL;
	} else {
		const struct vmt_option_row *rows = vmt_options(&count);

		for (size_t k = 0; k < count; k++) {
			if (rows[k].letter == arg[1])
				row = &rows[k];
		}
		if (arg[2]) {
			if (row && !row->argument) { /* -vq: flags side by side */
				for (const char *p = arg + 2; *p; p++) {
					char one[3] = { '-', *p, '\0' };
					char *single[1] = { one };
					int k = 0, status = option(s, single, &k, 1);

					if (status)
						return status;
				}
			} else {
				value = arg + 2;
			}
		}
	}
	if (!row)
		return unknown_option(s, arg);
	if (!row->argument && value) {
		snprintf(what, sizeof(what), "--%s takes no value", row->name);
		return vmt_cli_usage(s->cli, what, NULL);
	}
	if (row->argument && *row->argument != '[' && !value) {
		if (*i + 1 >= argc) {
			snprintf(what, sizeof(what), "--%s needs %s", row->name, row->argument);
			return vmt_cli_usage(s->cli, what, row->help);
		}
		value = argv[++*i];
	}
	return take(s, row, value);
}

#define NO_TYPO 99u

static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[32];
	size_t n = strlen(b);

	if (n >= 32 || strlen(a) >= 32)
		return NO_TYPO;
	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; a[i - 1]; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= n; j++) {
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

/*
 * NO_TYPO unless the word may be meant: two changes at most, fewer than half of its letters, and
 * the first letter is right (export and import are not report, top is not stop).
 */
static unsigned int typo_distance(const char *word, const char *meant)
{
	unsigned int d = distance(word, meant);

	return d <= 2 && 2 * d < strlen(word) && word[0] == meant[0] ? d : NO_TYPO;
}

static int unknown_verb(const struct scan *s, const char *name)
{
	char what[200], cure[200] = "vmtrace --help lists the verbs";
	unsigned int nearest = NO_TYPO;
	size_t count;
	const struct vmt_verb_row *rows = vmt_verbs(&count);

	snprintf(what, sizeof(what), "no verb '%.100s'", name);
	for (size_t i = 0; i < count; i++) {
		unsigned int d = typo_distance(name, rows[i].name);

		if (d < nearest) {
			nearest = d;
			snprintf(cure, sizeof(cure), "did you mean 'vmtrace %s'?", rows[i].name);
		}
	}
	return vmt_cli_usage(s->cli, what, cure);
}

/* A dash and something behind it; negative numbers are arguments of tsc. */
static bool is_option(const struct scan *s, const char *arg)
{
	if (arg[0] != '-' || !arg[1])
		return false;
	return !(s->verb && s->verb->max_args && arg[1] >= '0' && arg[1] <= '9');
}

static int argument(struct scan *s, const char *arg)
{
	struct vmt_cli *cli = s->cli;

	if (!s->verb) {
		if (!strcmp(arg, "help") && !s->want_help) {
			s->want_help = true;
			return VMT_STATUS_OK;
		}
		s->verb = vmt_verb_find(arg);
		if (!s->verb)
			return unknown_verb(s, arg);
		cli->verb = s->verb->name;
		return VMT_STATUS_OK;
	}
	if (cli->nr_args >= s->verb->max_args) {
		char what[200];

		snprintf(what, sizeof(what), "%s does not take '%.100s'", s->verb->name, arg);
		return vmt_cli_usage(cli, what,
				     s->verb->max_args ? NULL
						       : "name the domain with --domain NAME");
	}
	cli->args[cli->nr_args++] = arg;
	return VMT_STATUS_OK;
}

static int finish(struct scan *s)
{
	struct vmt_cli *cli = s->cli;
	const struct vmt_verb_row *verb = s->verb;
	char what[120];

	for (size_t i = 0; i < s->nr_seen; i++) {
		if (!vmt_verb_takes(verb, s->seen[i])) {
			snprintf(what, sizeof(what), "%s has no option --%s", verb->name,
				 s->seen[i]->name);
			return vmt_cli_usage(cli, what, NULL);
		}
	}
	if (cli->has_fail_on && verb->run != vmt_verb_report) {
		snprintf(what, sizeof(what), "%s has no findings for --fail-on", verb->name);
		return vmt_cli_usage(cli, what, "vmtrace report has");
	}
	if (cli->nr_args < verb->min_args) {
		snprintf(what, sizeof(what), "%s needs an argument", verb->name);
		return vmt_cli_usage(cli, what, NULL);
	}
	if (verb->file_argument && cli->nr_args == verb->max_args) {
		if (cli->input)
			return vmt_cli_usage(cli, "two inputs: --input and a file argument",
					     "give one of them");
		cli->input = cli->args[--cli->nr_args];
	}
	return VMT_STATUS_OK;
}

int vmt_cli_parse(struct vmt_cli *cli, int argc, char **argv, const struct vmt_verb_row **verb,
		  bool *done)
{
	struct scan s = { .cli = cli };
	int status = VMT_STATUS_OK;
	bool ended = false; /* by --: what follows is no option */

	memset(cli, 0, sizeof(*cli));
	*done = false;
	for (int i = 1; i < argc && !status; i++) {
		if (!ended && !strcmp(argv[i], "--")) {
			ended = true;
			if (s.verb && s.verb->takes_command) {
				cli->command = argv + i + 1;
				if (!*cli->command)
					return vmt_cli_usage(cli, "no command after --", NULL);
				break;
			}
		} else if (!ended && is_option(&s, argv[i])) {
			status = option(&s, argv, &i, argc);
		} else {
			status = argument(&s, argv[i]);
		}
	}
	if (status)
		return status;
	*verb = s.verb;
	if (s.want_version || s.want_help || !s.verb) {
		*done = true;
		if (s.want_version)
			printf("vmtrace %s\n", VMT_VERSION);
		else if (s.verb)
			vmt_help_verb_print(s.verb);
		else
			vmt_help_print();
		if (!s.want_version && !s.want_help)
			return VMT_STATUS_USAGE;
		return VMT_STATUS_OK;
	}
	return finish(&s);
}
