// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace explain: what the numbers mean that exits carry. */
#include <stdio.h>
#include <string.h>

#include "host/cli/explain.h"
#include "vmx/text.h"

static const char questions[] =
	"vmtrace explain WHAT...\n"
	"\n"
	"  exit:48                  a VMX exit reason; flags in bits 31:16 are split off\n"
	"  exit:svm:0x400           an SVM exit code\n"
	"  exit:EPT_VIOLATION       either, by the name that kvm_exit prints\n"
	"  qual:30:0x3f80000        a VMX reason and its exit qualification\n"
	"  qual:0:ADDR:INFO[:ERR]   the same with interruption information, error code\n"
	"  qual:svm:0x7b:0x3f80210  an SVM exit code and EXITINFO1 [:EXITINFO2]\n"
	"  msr:0x6e0                an MSR: architectural, x2APIC, AMD, Hyper-V, KVM\n"
	"  port:0x608               an I/O port of a PC\n"
	"  gpa:0xfee00380           a guest-physical address: known device windows\n"
	"  vec:14                   an exception or interrupt vector\n"
	"  cr:3  dr:7               a control or debug register\n"
	"  cpuid:0x4/0x0            a CPUID leaf and sub-leaf\n"
	"  apic:0x380               a register of the local APIC\n"
	"  user:2                   a KVM_EXIT_* reason of kvm_userspace_exit\n"
	"  hypercall:5  hv:0x5c     a hypercall of KVM or of Hyper-V\n"
	"  finding:rip-loop         a finding of vmtrace report\n"
	"  48  npf  deadline        anything that the number or the name may be\n"
	"\n"
	"Names do as well as numbers (msr:IA32_TSC_DEADLINE, port:COM1); keys may be\n"
	"pasted from a report with their access (msr:0x6e0:w).\n";

static void answer_unknown(struct vmt_explain *e, const char *query, const char *kind)
{
	struct vmt_answer a = { .kind = kind };
	size_t n = 0;

	for (const char *s = query; *s && n + 1 < sizeof(a.what); s++)
		a.what[n++] = (char)(*s < ' ' || *s > '~' ? '?' : *s);
	snprintf(a.title, sizeof(a.title), "not in the tables of this version");
	vmt_explain_answer(e, query, &a);
}

/*
 * Nothing was found for `text`, a part of the query: not known, or, when it can be neither a number
 * nor a name, a usage error.
 */
static int not_found(struct vmt_explain *e, const char *query, const char *kind, const char *text)
{
	bool number = *text == '-' || (*text >= '0' && *text <= '9');
	uint64_t value;
	const char *end = number ? vmx_text_number(text, &value) : NULL;
	char what[160];

	if (number ? end && (!*end || strchr(":/", *end)) : *text != '\0') {
		answer_unknown(e, query, kind);
		return VMT_STATUS_OK;
	}
	snprintf(what, sizeof(what),
		 *text ? "'%.80s' is no number in C syntax" : "'%.80s' names nothing", query);
	return vmt_cli_usage(e->cli, what, "vmtrace explain, alone, lists what can be asked");
}

/* A whole number, or one that ends at a colon. Returns what follows it, NULL when it is none. */
static const char *read_number(const char *text, uint64_t *value)
{
	const char *end = vmx_text_number(text, value);

	return end && (!*end || *end == ':') ? end : NULL;
}

static bool skip_word(const char **text, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*text, word, len) != 0)
		return false;
	*text += len;
	return true;
}

static int explain_exit(struct vmt_explain *e, const char *query, const char *text)
{
	bool is_svm = skip_word(&text, "svm:");
	struct vmt_answer a;
	uint64_t number;
	const char *end;

	if (!is_svm)
		skip_word(&text, "vmx:");
	end = read_number(text, &number);
	if (end && !*end && number <= UINT32_MAX) {
		vmt_explain_exit(&a, is_svm, (uint32_t)number);
		vmt_explain_answer(e, query, &a);
	} else if (!vmt_explain_find(e, query, "exit", text)) {
		return not_found(e, query, "exit", text);
	}
	return VMT_STATUS_OK;
}

/* The reason of a qualification: number or name. Returns what follows its colon, or NULL. */
static const char *read_reason(const char *text, bool *is_svm, uint32_t *reason)
{
	const struct vmx_reason_row *row;
	const char *colon = strchr(text, ':'), *end;
	char name[64];
	uint64_t number;

	if (!colon || (size_t)(colon - text) >= sizeof(name))
		return NULL;
	end = read_number(text, &number);
	if (end == colon && number <= UINT32_MAX) {
		*reason = *is_svm ? (uint32_t)number : (uint32_t)number & VMX_REASON_BASIC_MASK;
		return colon + 1;
	}
	memcpy(name, text, (size_t)(colon - text));
	name[colon - text] = '\0';
	row = vmx_reason_by_name(name, is_svm);
	if (!row)
		return NULL;
	*reason = row->code;
	return colon + 1;
}

/* VALUE[:SECOND[:ERROR]] behind the reason; ERROR on VMX only. */
static bool read_details(const char *text, struct vmt_exit_details *exit)
{
	uint64_t error = 0;

	text = read_number(text, &exit->first);
	if (text && *text)
		text = read_number(text + 1, &exit->second);
	if (text && *text && !exit->is_svm) {
		text = read_number(text + 1, &error);
		exit->has_error = true;
		exit->error = (uint32_t)error;
	}
	return text && !*text && error <= UINT32_MAX &&
	       (exit->is_svm || exit->second <= UINT32_MAX);
}

static int explain_qualification(struct vmt_explain *e, const char *query, const char *text)
{
	struct vmt_exit_details exit = { .is_svm = skip_word(&text, "svm:") };
	const char *details;
	struct vmt_answer a;
	char what[160];

	if (!exit.is_svm)
		skip_word(&text, "vmx:");
	details = read_reason(text, &exit.is_svm, &exit.reason);
	if (!details && strchr(text, ':'))
		return not_found(e, query, "qual", text);
	if (!details || !read_details(details, &exit)) {
		snprintf(what, sizeof(what), "'%.80s' is no reason with its qualification", query);
		return vmt_cli_usage(e->cli, what, "as in qual:30:0x3f80000");
	}
	vmt_explain_qualification(&a, &exit);
	vmt_explain_answer(e, query, &a);
	return VMT_STATUS_OK;
}

/* kind:NAME, as msr:IA32_TSC_DEADLINE or port:COM1 */
static int explain_named_key(struct vmt_explain *e, const char *query, const char *kind,
			     const char *name)
{
	if (!vmt_explain_find(e, query, kind, name))
		return not_found(e, query, kind, name);
	return VMT_STATUS_OK;
}

static int explain_bare(struct vmt_explain *e, const char *query)
{
	uint64_t number;
	const char *end = vmx_text_number(query, &number);
	bool found = end && !*end ? vmt_explain_find_number(e, query, number)
				  : vmt_explain_find(e, query, NULL, query);

	if (!found)
		return not_found(e, query, end && !*end ? "number" : "name", query);
	return VMT_STATUS_OK;
}

static int explain_one(struct vmt_explain *e, const char *query)
{
	static const char *const kinds[] = {
		"finding", "msr", "port",      "gpa",	"vec",	"cr",
		"dr",	   "hv",  "hypercall", "cpuid", "user", "apic"
	};
	const char *colon = strchr(query, ':');
	struct vmt_answer a;
	struct vmt_key key;
	char what[160];

	if (!colon)
		return explain_bare(e, query);
	if (!strncmp(query, "exit:", 5))
		return explain_exit(e, query, query + 5);
	if (!strncmp(query, "qual:", 5))
		return explain_qualification(e, query, query + 5);
	if (vmt_key_parse(query, &key)) {
		vmt_explain_key(&a, &key);
		vmt_explain_answer(e, query, &a);
		return VMT_STATUS_OK;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if ((size_t)(colon - query) == strlen(kinds[i]) &&
		    !strncmp(query, kinds[i], strlen(kinds[i]))) {
			return explain_named_key(e, query, kinds[i], colon + 1);
		}
	}
	snprintf(what, sizeof(what), "explain does not know the kind '%.60s'", query);
	return vmt_cli_usage(e->cli, what, "vmtrace explain, alone, lists what can be asked");
}

int vmt_verb_explain(struct vmt_cli *cli)
{
	struct vmt_explain e;
	int status = VMT_STATUS_OK;

	if (!cli->nr_args) {
		fputs(questions, stdout);
		return VMT_STATUS_OK;
	}
	vmt_explain_begin(&e, cli);
	for (size_t i = 0; i < cli->nr_args && !status; i++)
		status = explain_one(&e, cli->args[i]);
	vmt_explain_end(&e, !status);
	if (status)
		return status;
	return e.unknown ? VMT_STATUS_FAILURE : VMT_STATUS_OK;
}
