// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes documentation from the option and verb tables:
 *   gen_docs man NAME < NAME.in   replaces lines @HEADER@, @SYNOPSIS@, @VERBS@, @OPTIONS@,
 *                                 @GLOBALS@, @EXAMPLES@ of a mdoc source; NAME: vmtrace.1,
 *                                 vmtrace-VERB.1, …
 *   gen_docs completion           bash completion
 *   gen_docs names                one line a verb and an option, for check-docs
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/options.h"

static void escaped(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\\')
			fputs("\\e", stdout);
		else if (text[i] == '-')
			fputs("\\-", stdout);
		else
			putchar(text[i]);
	}
}

static void option_item(const struct vmt_option_row *row)
{
	fputs(".It ", stdout);
	if (row->letter)
		printf("Fl %c , ", row->letter);
	printf("Fl \\-%s", row->name);
	if (row->argument)
		printf(*row->argument == '[' ? " Ns Ar %s" : " Ar %s", row->argument);
	printf("\n%s.\n", row->help); /* as it is: it may begin with a value */
}

static void options_of(const struct vmt_verb_row *verb, bool global)
{
	size_t count, shown = 0;
	const struct vmt_option_row *rows = vmt_options(&count);

	for (size_t i = 0; i < count; i++) {
		if (vmt_option_is_global(&rows[i]) != global ||
		    (verb && !vmt_verb_takes(verb, &rows[i])))
			continue;
		if (!shown++)
			puts(".Bl -tag -width Ds");
		option_item(&rows[i]);
	}
	puts(shown ? ".El" : "This verb has no options of its own.");
}

static void verb_list(void)
{
	size_t count;
	const struct vmt_verb_row *rows = vmt_verbs(&count);

	puts(".Bl -tag -width snapshot");
	for (size_t i = 0; i < count; i++)
		printf(".It Cm %s%s%s\n%s: see\n.Xr vmtrace-%s 1 .\n", rows[i].name,
		       *rows[i].arguments ? " Ar " : "", rows[i].arguments, rows[i].brief,
		       rows[i].name);
	puts(".El");
}

static void examples_of(const struct vmt_verb_row *verb)
{
	puts(".Bd -literal -offset indent");
	for (const char *line = verb->examples; *line;) {
		size_t len = strcspn(line, "\n");

		escaped(line, len);
		putchar('\n');
		line += len + (line[len] == '\n');
	}
	puts(".Ed");
}

static void header(const char *name, const struct vmt_verb_row *verb)
{
	const char *dot = strrchr(name, '.');

	printf(".Dd $Mdocdate$\n.Dt %.*s %s\n.Os vmtrace %s\n.Sh NAME\n.Nm %.*s\n",
	       (int)(dot - name), name, dot + 1, VMT_VERSION, (int)(dot - name), name);
	if (verb)
		printf(".Nd %s\n", verb->brief);
}

static int man(const char *name)
{
	char line[2048], verb_name[64] = "";
	const struct vmt_verb_row *verb = NULL;

	if (sscanf(name, "vmtrace-%63[a-z].1", verb_name) == 1)
		verb = vmt_verb_find(verb_name);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "@HEADER@\n"))
			header(name, verb);
		else if (!strcmp(line, "@SYNOPSIS@\n") && verb)
			printf(".Sh SYNOPSIS\n.Nm vmtrace\n.Cm %s\n.Op Ar OPTIONS\n%s%s%s",
			       verb->name, *verb->arguments ? ".Ar " : "", verb->arguments,
			       *verb->arguments ? "\n" : "");
		else if (!strcmp(line, "@VERBS@\n"))
			verb_list();
		else if (!strcmp(line, "@GLOBALS@\n"))
			options_of(NULL, true);
		else if (!strcmp(line, "@OPTIONS@\n"))
			options_of(verb, false);
		else if (!strcmp(line, "@EXAMPLES@\n") && verb)
			examples_of(verb);
		else
			fputs(line, stdout);
	}
	return 0;
}

static void completion_words(const char *words)
{
	if (!words)
		puts("return ;;");
	else if (!strcmp(words, "@file"))
		puts("_vmtrace_files; return ;;");
	else if (!strcmp(words, "@domain"))
		puts("_vmtrace_names list name; return ;;");
	else if (!strcmp(words, "@session"))
		puts("_vmtrace_names status id; return ;;");
	else
		printf("_vmtrace_words '%s'; return ;;\n", words);
}

static int completion(void)
{
	size_t nr_options, nr_verbs;
	const struct vmt_option_row *options = vmt_options(&nr_options);
	const struct vmt_verb_row *verbs = vmt_verbs(&nr_verbs);

	puts("# bash completion for vmtrace, made from its option table\n"
	     "_vmtrace_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
	     "_vmtrace_files() { compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "
	     "\"$cur\")); }\n"
	     "_vmtrace_names() { _vmtrace_words \"$(vmtrace \"$1\" --format csv 2>/dev/null |\n"
	     "    awk -F, -v want=\"$2\" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == want) c = "
	     "i; next} c {print $c}')\"; }\n"
	     "_vmtrace() {\n"
	     "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' w\n"
	     "    COMPREPLY=()");
	printf("    for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do case $w in");
	for (size_t i = 0; i < nr_verbs; i++)
		printf("%s%s", i ? "|" : " ", verbs[i].name);
	puts(") verb=$w; break ;; esac; done\n    case $prev in");
	for (size_t i = 0; i < nr_options; i++) {
		if (!options[i].argument || *options[i].argument == '[')
			continue;
		printf("    --%s", options[i].name);
		if (options[i].letter)
			printf("|-%c", options[i].letter);
		fputs(") ", stdout);
		completion_words(options[i].words);
	}
	puts("    esac\n    if [[ $cur == -* ]]; then\n        case $verb in");
	for (size_t v = 0; v <= nr_verbs; v++) {
		printf("        %s) _vmtrace_words '", v < nr_verbs ? verbs[v].name : "*");
		for (size_t i = 0; i < nr_options; i++) {
			if (v < nr_verbs ? vmt_verb_takes(&verbs[v], &options[i])
					 : vmt_option_is_global(&options[i]))
				printf("--%s ", options[i].name);
		}
		puts("' ;;");
	}
	puts("        esac\n        return\n    fi\n    case $verb in");
	for (size_t v = 0; v < nr_verbs; v++) {
		printf("    %s) ", verbs[v].name);
		completion_words(verbs[v].words);
	}
	printf("    '') _vmtrace_words '");
	for (size_t v = 0; v < nr_verbs; v++)
		printf("%s ", verbs[v].name);
	puts("' ;;\n    esac\n}\ncomplete -F _vmtrace vmtrace");
	return 0;
}

static int names(void)
{
	size_t count;
	const struct vmt_verb_row *verbs = vmt_verbs(&count);
	const struct vmt_option_row *options;

	for (size_t i = 0; i < count; i++)
		printf("verb %s\n", verbs[i].name);
	for (size_t v = 0; v < count; v++) {
		size_t nr_options;

		options = vmt_options(&nr_options);
		for (size_t i = 0; i < nr_options; i++) {
			if (!vmt_option_is_global(&options[i]) &&
			    vmt_verb_takes(&verbs[v], &options[i]))
				printf("option %s %s\n", verbs[v].name, options[i].name);
		}
	}
	options = vmt_options(&count);
	for (size_t i = 0; i < count && vmt_option_is_global(&options[i]); i++)
		printf("global %s\n", options[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "man"))
		return man(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "completion"))
		return completion();
	if (argc == 2 && !strcmp(argv[1], "names"))
		return names();
	fputs("usage: gen_docs man NAME | completion | names\n", stderr);
	return 2;
}
