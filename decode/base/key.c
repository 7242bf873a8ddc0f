// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/base/key.h"

#include <string.h>

#include "vmx/names.h"
#include "vmx/text.h"

enum access_words {
	WORDS_NONE, /* the kind has no access */
	WORDS_RW,   /* r, w, x */
	WORDS_PORT, /* in, out */
};

/* How each kind is written. `kind` and `sub_fixed` tell hypercalls of KVM and Hyper-V apart. */
static const struct form {
	const char *prefix;
	enum vmt_key_kind kind;
	enum access_words words;
	bool decimal;
	uint64_t number_max;
	uint32_t sub_fixed;
} forms[] = {
	{ "msr", VMT_KEY_MSR, WORDS_RW, false, UINT32_MAX, 0 },
	{ "port", VMT_KEY_PORT, WORDS_PORT, false, UINT16_MAX, 0 },
	{ "gpa", VMT_KEY_GPA, WORDS_RW, false, UINT64_MAX, 0 },
	{ "cpuid", VMT_KEY_CPUID, WORDS_NONE, false, UINT32_MAX, 0 },
	{ "cpuid", VMT_KEY_CPUID_LEAF, WORDS_NONE, false, UINT32_MAX, 0 },
	{ "vec", VMT_KEY_VECTOR, WORDS_NONE, true, UINT8_MAX, 0 },
	{ "cr", VMT_KEY_CR, WORDS_RW, true, 15, 0 },
	{ "dr", VMT_KEY_DR, WORDS_RW, true, 15, 0 },
	{ "hypercall", VMT_KEY_HYPERCALL, WORDS_NONE, false, UINT64_MAX, 0 },
	{ "hv", VMT_KEY_HYPERCALL, WORDS_NONE, false, UINT64_MAX, 1 },
	{ "apic", VMT_KEY_APIC, WORDS_RW, false, UINT32_MAX, 0 },
	{ "user", VMT_KEY_USERSPACE, WORDS_NONE, true, UINT32_MAX, 0 },
};

static const char *access_word(enum access_words words, enum vmt_access access)
{
	static const char *const rw[] = { NULL, "r", "w", "x" };
	static const char *const port[] = { NULL, "in", "out", NULL };

	if ((unsigned int)access > VMT_ACCESS_EXEC || words == WORDS_NONE)
		return NULL;
	return words == WORDS_PORT ? port[access] : rw[access];
}

static const struct form *form_of(const struct vmt_key *key)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (forms[i].kind == key->kind &&
		    (key->kind != VMT_KEY_HYPERCALL || forms[i].sub_fixed == !!key->sub))
			return &forms[i];
	}
	return NULL;
}

char *vmt_key_format(char *buf, size_t size, const struct vmt_key *key)
{
	const struct form *form = form_of(key);
	struct vmx_text t = vmx_text_of(buf, size);
	const char *word;

	if (!form)
		return buf;
	vmx_text_str(&t, form->prefix);
	vmx_text_char(&t, ':');
	if (form->decimal)
		vmx_text_dec(&t, key->number);
	else
		vmx_text_hex(&t, key->number);
	if (key->kind == VMT_KEY_CPUID) {
		vmx_text_char(&t, '/');
		vmx_text_hex(&t, key->sub);
	}
	word = access_word(form->words, key->access);
	if (word) {
		vmx_text_char(&t, ':');
		vmx_text_str(&t, word);
	}
	return buf;
}

static const char *parse_access(const char *s, const struct form *form, enum vmt_access *access)
{
	if (*s != ':')
		return s;
	for (int a = VMT_ACCESS_READ; a <= VMT_ACCESS_EXEC; a++) {
		const char *word = access_word(form->words, (enum vmt_access)a);

		if (word && !strcmp(s + 1, word)) {
			*access = (enum vmt_access)a;
			return s + 1 + strlen(word);
		}
	}
	return NULL;
}

static bool parse_body(const char *s, const struct form *form, struct vmt_key *key)
{
	struct vmt_key k = { .kind = form->kind, .sub = form->sub_fixed };
	uint64_t sub;

	s = vmx_text_number(s, &k.number);
	if (!s || k.number > form->number_max)
		return false;
	if (form->kind == VMT_KEY_CPUID && *s != '/')
		k.kind = VMT_KEY_CPUID_LEAF;
	if (form->kind == VMT_KEY_CPUID && *s == '/') {
		s = vmx_text_number(s + 1, &sub);
		if (!s || sub > UINT32_MAX)
			return false;
		k.sub = (uint32_t)sub;
	}
	s = parse_access(s, form, &k.access);
	if (!s || *s)
		return false;
	*key = k;
	return true;
}

bool vmt_key_parse(const char *text, struct vmt_key *key)
{
	const char *colon = strchr(text, ':');

	if (!colon)
		return false;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t len = strlen(forms[i].prefix);

		if ((size_t)(colon - text) == len && !strncmp(text, forms[i].prefix, len))
			return parse_body(colon + 1, &forms[i], key);
	}
	return false;
}

const char *vmt_key_name(const struct vmt_key *key)
{
	bool narrow = key->number <= UINT32_MAX;
	uint32_t number = (uint32_t)key->number;

	switch (key->kind) {
	case VMT_KEY_MSR:
		return narrow ? vmx_msr_name(number) : NULL;
	case VMT_KEY_PORT:
		return key->number <= UINT16_MAX ? vmx_port_name((uint16_t)number) : NULL;
	case VMT_KEY_GPA:
		return vmx_gpa_name(key->number);
	case VMT_KEY_CPUID:
	case VMT_KEY_CPUID_LEAF:
		return narrow ? vmx_cpuid_name(number) : NULL;
	case VMT_KEY_VECTOR:
		return narrow ? vmx_exception_name(number) : NULL;
	case VMT_KEY_HYPERCALL:
		if (!key->sub)
			return vmx_kvm_hypercall_name(key->number);
		return narrow ? vmx_hv_hypercall_name(number) : NULL;
	case VMT_KEY_APIC:
		return narrow ? vmx_apic_register_name(number) : NULL;
	case VMT_KEY_USERSPACE:
		return narrow ? vmx_kvm_exit_name(number) : NULL;
	case VMT_KEY_CR:
	case VMT_KEY_DR:
	case VMT_KEY_NONE:
		break;
	}
	return NULL;
}

bool vmt_key_equal(const struct vmt_key *a, const struct vmt_key *b)
{
	return a->kind == b->kind && a->access == b->access && a->number == b->number &&
	       a->sub == b->sub;
}
