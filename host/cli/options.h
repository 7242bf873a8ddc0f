/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_OPTIONS_H
#define VMT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "host/cli/cli.h"

/* How an option's argument is read, and into what member of struct vmt_cli. */
enum vmt_option_kind {
	VMT_OPT_FLAG,	  /* bool := true */
	VMT_OPT_COUNT,	  /* int := int + 1 */
	VMT_OPT_TEXT,	  /* const char * */
	VMT_OPT_U64,	  /* C syntax; `has` member set */
	VMT_OPT_I64,	  /* the same, signed */
	VMT_OPT_SIZE,	  /* bytes with K, M, G, T (binary) */
	VMT_OPT_DURATION, /* ns, s (default), ms, us, ns, m, h */
	VMT_OPT_CUSTOM,	  /* custom() reads it */
};

struct vmt_option_row {
	const char *name;     /* long name without dashes */
	char letter;	      /* 0: none */
	const char *argument; /* NULL: takes none; "[=WORD]": may have one, behind = alone */
	const char *help;     /* one line without a full stop */
	const char *words;    /* completion: "text json csv", "@file", "@domain", NULL */
	enum vmt_option_kind kind;
	size_t member;	   /* offset in struct vmt_cli */
	size_t has_member; /* offset of a bool to set as well, 0 for none */
	/* VMT_OPT_CUSTOM: false and *why when the value is not understood */
	bool (*custom)(struct vmt_cli *cli, const char *value, const char **why);
};

/* Options that every verb takes, and all others. */
const struct vmt_option_row *vmt_options(size_t *count);
bool vmt_option_is_global(const struct vmt_option_row *row);

struct vmt_verb_row {
	const char *name;
	const char *arguments; /* synopsis after the options: "[FILE]", "WHAT...", "" */
	const char *brief;     /* one line without a full stop */
	const char *options;   /* names of its own options, space separated */
	const char *words;     /* completion of its arguments */
	vmt_verb_fn *run;
	unsigned int min_args, max_args;
	bool file_argument;   /* a bare FILE is the input */
	bool takes_command;   /* -- COMMAND */
	const char *examples; /* lines, each an example */
};

const struct vmt_verb_row *vmt_verbs(size_t *count);
const struct vmt_verb_row *vmt_verb_find(const char *name);
const struct vmt_option_row *vmt_option_find(const char *name, size_t len);
/* Whether a verb takes an option (its own or a global one). */
bool vmt_verb_takes(const struct vmt_verb_row *verb, const struct vmt_option_row *option);

/*
 * Reads the command line. Returns VMT_STATUS_OK, or the exit status after having printed why. On
 * --help, --version and no verb *done is set and the text has been printed.
 */
int vmt_cli_parse(struct vmt_cli *cli, int argc, char **argv, const struct vmt_verb_row **verb,
		  bool *done);

/*
 * Reads the number in C syntax (17, 0x11, 021) that text begins with, without sign or space before
 * it; *end is behind it. False when there is none or it is above 2^64-1.
 */
bool vmt_cli_number(const char *text, uint64_t *number, char **end);

/* Help texts on standard output. */
void vmt_help_print(void);
void vmt_help_verb_print(const struct vmt_verb_row *verb);

#endif
