/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_EXPLAIN_H
#define VMT_CLI_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/verdicts.h"
#include "decode/base/key.h"
#include "host/cli/cli.h"
#include "vmx/exit.h"
#include "vmx/names.h"

/*
 * The parts of `vmtrace explain`: verb_explain.c reads the question, explain_kinds.c builds the
 * answer, explain_find.c searches by name or bare number, explain_print.c writes.
 */
struct vmt_answer_field {
	const char *key; /* label in text, member in JSON */
	enum {
		VMT_FIELD_TEXT,
		VMT_FIELD_NUMBER, /* JSON number */
		VMT_FIELD_HEX,	  /* JSON string "0x…" */
	} type;
	bool json_only;
	uint64_t number;
	const char *fixed; /* static text, or NULL: text */
	char text[200];
};

#define VMT_ANSWER_FIELDS_MAX 14

struct vmt_answer {
	char what[80];	  /* as it can be asked for: exit:48 */
	const char *kind; /* exit, msr, port, … */
	bool known;
	char name[96];	 /* empty: none */
	char title[200]; /* one line of words */
	size_t nr_fields;
	struct vmt_answer_field fields[VMT_ANSWER_FIELDS_MAX];
};

void vmt_answer_text(struct vmt_answer *a, const char *key, const char *text);
/* The text must be static. */
void vmt_answer_fixed(struct vmt_answer *a, const char *key, const char *text);
void vmt_answer_number(struct vmt_answer *a, const char *key, uint64_t number);
void vmt_answer_hex(struct vmt_answer *a, const char *key, uint64_t number);

/* Where the answers go. */
struct vmt_explain {
	const struct vmt_cli *cli;
	void *results; /* json_t array, NULL for text */
	size_t answers;
	bool unknown; /* one of them was not known */
};

void vmt_explain_begin(struct vmt_explain *e, const struct vmt_cli *cli);
void vmt_explain_answer(struct vmt_explain *e, const char *query, const struct vmt_answer *a);
/* The same as one line of a list. */
void vmt_explain_line(struct vmt_explain *e, const char *query, const struct vmt_answer *a);
/* Writes the JSON document, if that is wanted and print says so, and frees it. */
void vmt_explain_end(struct vmt_explain *e, bool print);

/* Answers about one thing. Each fills *a completely. */
void vmt_explain_exit(struct vmt_answer *a, bool is_svm, uint32_t number);
void vmt_explain_key(struct vmt_answer *a, const struct vmt_key *key);
/* A finding of the report. */
void vmt_explain_finding(struct vmt_answer *a, const struct vmt_verdict_words *words);
/* An exit with its details. */
struct vmt_exit_details {
	bool is_svm;
	uint32_t reason;
	uint64_t first;	 /* exit qualification; EXITINFO1 on SVM */
	uint64_t second; /* interruption information; EXITINFO2 on SVM */
	bool has_error;	 /* VMX: the error code of the exception is given */
	uint32_t error;
};
void vmt_explain_qualification(struct vmt_answer *a, const struct vmt_exit_details *exit);

/*
 * Everything that a bare name (or, with is_number, a number) can be; prefix limits the search to
 * one kind ("msr", "exit", …), NULL does not. One find is answered in full, several as a list.
 * False when nothing is found.
 */
bool vmt_explain_find(struct vmt_explain *e, const char *query, const char *prefix,
		      const char *name);
bool vmt_explain_find_number(struct vmt_explain *e, const char *query, uint64_t number);

#endif
