// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "host/cli/explain.h"
#include "vmx/text.h"

#define FINDS_MAX 40

/* What a search has found so far, each as the question that asks for it alone. */
struct finds {
	size_t count;
	bool more;
	struct find {
		const struct vmt_verdict_words *finding; /* or */
		bool is_exit, is_svm;			 /* or a key */
		uint32_t exit_number;
		struct vmt_key key;
	} items[FINDS_MAX];
};

static struct find *add_find(struct finds *finds)
{
	if (finds->count == FINDS_MAX) {
		finds->more = true;
		return NULL;
	}
	return &finds->items[finds->count++];
}

static void add_exit(struct finds *finds, bool is_svm, uint32_t number)
{
	struct find *f = add_find(finds);

	if (f)
		*f = (struct find){ .is_exit = true, .is_svm = is_svm, .exit_number = number };
}

static void add_key(struct finds *finds, enum vmt_key_kind kind, uint64_t number, uint32_t sub)
{
	struct find *f = add_find(finds);

	if (f)
		*f = (struct find){ .key = { .kind = kind, .number = number, .sub = sub } };
}

static void answer_of(struct vmt_answer *a, const struct find *f)
{
	if (f->finding)
		vmt_explain_finding(a, f->finding);
	else if (f->is_exit)
		vmt_explain_exit(a, f->is_svm, f->exit_number);
	else
		vmt_explain_key(a, &f->key);
}

/* ---- by name ---- */

enum match {
	MATCH_WHOLE, /* the name, without regard to case or a usual prefix */
	MATCH_PART,  /* a part of the name or of the title */
};

static bool same_word(const char *candidate, const char *name)
{
	static const char *const prefixes[] = {
		"",	    "#",    "IA32_",   "KVM_EXIT_", "HV_X64_MSR_",
		"MSR_KVM_", "MSR_", "KVM_HC_", "HVCALL_",   "IA32_X2APIC_"
	};

	if (!strncasecmp(name, "EXIT_REASON_", 12))
		name += 12;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(candidate, prefixes[i], len) && !strcasecmp(candidate + len, name))
			return true;
	}
	return false;
}

static bool matches(enum match match, const char *candidate, const char *name)
{
	return match == MATCH_WHOLE ? same_word(candidate, name)
				    : strcasestr(candidate, name) != NULL;
}

static bool in_search(const char *prefix, const char *kind)
{
	return !prefix || !strcmp(prefix, kind);
}

/* The title begins with the name of an instruction, and it is this one: VMMCALL, VMXOFF. */
static bool begins_with_word(const char *title, const char *name)
{
	size_t word = strcspn(title, " ");

	return title[1] >= 'A' && title[1] <= 'Z' && strlen(name) == word &&
	       !strncasecmp(title, name, word);
}

static void find_exits(struct finds *finds, enum match match, const char *name)
{
	for (int svm = 0; svm < 2; svm++) {
		size_t count;
		const struct vmx_reason_row *rows =
			svm ? svm_exit_rows(&count) : vmx_reason_rows(&count);

		for (size_t i = 0; i < count; i++) {
			if (begins_with_word(rows[i].title, name) ||
			    matches(match, rows[i].name, name) ||
			    (match == MATCH_PART && strcasestr(rows[i].title, name)))
				add_exit(finds, svm, rows[i].code);
		}
	}
}

static void find_msrs(struct finds *finds, enum match match, const char *name)
{
	size_t count;
	const struct vmx_msr_row *rows = vmx_msr_rows(&count);

	for (size_t i = 0; i < count; i++) {
		if (matches(match, rows[i].name, name))
			add_key(finds, VMT_KEY_MSR, rows[i].first, 0);
	}
}

static const struct {
	const char *prefix;
	enum vmx_name_kind names;
	enum vmt_key_kind key;
	uint32_t sub;
} tables[] = {
	{ "port", VMX_NAME_PORT, VMT_KEY_PORT, 0 },
	{ "gpa", VMX_NAME_GPA, VMT_KEY_GPA, 0 },
	{ "vec", VMX_NAME_EXCEPTION, VMT_KEY_VECTOR, 0 },
	{ "user", VMX_NAME_KVM_EXIT, VMT_KEY_USERSPACE, 0 },
	{ "cpuid", VMX_NAME_CPUID, VMT_KEY_CPUID, 0 },
	{ "hypercall", VMX_NAME_KVM_HYPERCALL, VMT_KEY_HYPERCALL, 0 },
	{ "hv", VMX_NAME_HV_HYPERCALL, VMT_KEY_HYPERCALL, 1 },
	{ "apic", VMX_NAME_APIC, VMT_KEY_APIC, 0 },
};

#define NR_TABLES (sizeof(tables) / sizeof(tables[0]))

static void find_in_tables(struct finds *finds, enum match match, const char *prefix,
			   const char *name)
{
	for (size_t t = 0; t < NR_TABLES; t++) {
		size_t count;
		const struct vmx_range_row *rows = vmx_name_rows(tables[t].names, &count);

		for (size_t i = 0; in_search(prefix, tables[t].prefix) && i < count; i++) {
			if (matches(match, rows[i].name, name))
				add_key(finds, tables[t].key, rows[i].first, tables[t].sub);
		}
	}
}

static void find_findings(struct finds *finds, enum match match, const char *name)
{
	size_t count;
	const struct vmt_verdict_words *words = vmt_verdict_words(&count);

	for (size_t i = 0; i < count; i++) {
		struct find *f = matches(match, words[i].id, name) ? add_find(finds) : NULL;

		if (f)
			*f = (struct find){ .finding = &words[i] };
	}
}

static void find_all(struct finds *finds, enum match match, const char *prefix, const char *name)
{
	finds->count = 0;
	finds->more = false;
	if (in_search(prefix, "exit"))
		find_exits(finds, match, name);
	if (in_search(prefix, "msr"))
		find_msrs(finds, match, name);
	find_in_tables(finds, match, prefix, name);
	if (in_search(prefix, "finding"))
		find_findings(finds, match, name);
}

/* ---- answers ---- */

static bool answer_finds(struct vmt_explain *e, const char *query, const struct finds *finds)
{
	struct vmt_answer a;

	if (finds->count == 1) {
		answer_of(&a, &finds->items[0]);
		vmt_explain_answer(e, query, &a);
		return true;
	}
	if (!finds->count)
		return false;
	if (!e->results)
		printf("%s%.80s may be\n", e->answers ? "\n" : "", query);
	for (size_t i = 0; i < finds->count; i++) {
		answer_of(&a, &finds->items[i]);
		vmt_explain_line(e, query, &a);
	}
	if (finds->more && !e->results)
		printf("  … and more: write a longer part of the name\n");
	return true;
}

bool vmt_explain_find(struct vmt_explain *e, const char *query, const char *prefix,
		      const char *name)
{
	struct finds finds;

	if (!*name)
		return false;
	find_all(&finds, MATCH_WHOLE, prefix, name);
	if (!finds.count)
		find_all(&finds, MATCH_PART, prefix, name);
	return answer_finds(e, query, &finds);
}

static void add_known_key(struct finds *finds, enum vmt_key_kind kind, uint64_t number,
			  uint32_t sub)
{
	struct vmt_key key = { .kind = kind, .number = number, .sub = sub };
	struct vmt_answer a;

	vmt_explain_key(&a, &key);
	if (a.known)
		add_key(finds, kind, number, sub);
}

bool vmt_explain_find_number(struct vmt_explain *e, const char *query, uint64_t number)
{
	struct finds finds = { 0 };
	uint32_t narrow = (uint32_t)number;

	if (number <= UINT32_MAX) {
		if (vmx_reason_find(narrow & VMX_REASON_BASIC_MASK))
			add_exit(&finds, false, narrow);
		if (svm_exit_find(narrow))
			add_exit(&finds, true, narrow);
		add_known_key(&finds, VMT_KEY_MSR, number, 0);
	}
	for (size_t t = 0; t < NR_TABLES; t++) {
		if (tables[t].key != VMT_KEY_VECTOR || number <= UINT8_MAX)
			add_known_key(&finds, tables[t].key, number, tables[t].sub);
	}
	if (number < 16) {
		add_known_key(&finds, VMT_KEY_CR, number, 0);
		add_known_key(&finds, VMT_KEY_DR, number, 0);
	}
	return answer_finds(e, query, &finds);
}
