// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/analyze/verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/key.h"

struct scored {
	struct vmt_verdict verdict;
	double score;
	size_t order; /* of the rule: the table breaks ties */
};

double vmt_verdict_share(const struct vmt_verdict_facts *facts, uint64_t ns)
{
	return facts->all.wall_ns ? (double)ns / (double)facts->all.wall_ns : 0;
}

double vmt_verdict_rate(const struct vmt_verdict_facts *facts, uint64_t count)
{
	return facts->seconds > 0 ? (double)count / facts->seconds : 0;
}

char *vmt_verdict_number(char *buf, size_t size, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	size_t at = 0;

	for (int i = 0; i < len && at + 2 < size; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

char *vmt_verdict_what(char *buf, size_t size, const struct vmt_row *row)
{
	char reason[32] = "exits", key[VMT_KEY_TEXT_MAX];
	const char *name = vmt_key_name(&row->key);

	if (row->has_reason)
		vmx_reason_text(reason, sizeof(reason), row->isa == VMT_ISA_SVM, row->reason);
	if (row->key.kind == VMT_KEY_NONE)
		snprintf(buf, size, "%s%s", reason,
			 row->has_reason && !row->failed_entry ? " exits" : "");
	else
		snprintf(buf, size, "%s exits on %s%s%s%s", reason,
			 vmt_key_format(key, sizeof(key), &row->key), name ? " (" : "",
			 name ? name : "", name ? ")" : "");
	return buf;
}

char *vmt_verdict_rip(char *buf, size_t size, const struct vmt_row *row)
{
	if (row->rip_symbol)
		snprintf(buf, size, "%.60s+0x%llx (0x%llx)", row->rip_symbol,
			 (unsigned long long)row->rip_symbol_offset,
			 (unsigned long long)row->guest_rip);
	else
		snprintf(buf, size, "0x%llx", (unsigned long long)row->guest_rip);
	return buf;
}

static int worst_first(const void *a, const void *b)
{
	const struct scored *x = a, *y = b;

	if (x->verdict.severity != y->verdict.severity)
		return x->verdict.severity > y->verdict.severity ? -1 : 1;
	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static size_t find_all(const struct vmt_verdict_facts *facts, struct scored *found)
{
	size_t nr_rules, n = 0;
	const struct vmt_rule *rules = vmt_rules(&nr_rules);

	for (size_t i = 0; i < nr_rules; i++) {
		for (unsigned int nth = 0; nth < rules[i].max; nth++) {
			struct scored *s = &found[n];

			*s = (struct scored){ .order = i };
			s->verdict.id = rules[i].id;
			if (!rules[i].find(facts, nth, &s->verdict, &s->score))
				break;
			n++;
		}
	}
	return n;
}

struct vmt_verdict *vmt_verdicts_find(const struct vmt_verdict_facts *facts, size_t *nr)
{
	size_t nr_rules, most = 1;
	const struct vmt_rule *rules = vmt_rules(&nr_rules);
	struct vmt_verdict *out = NULL;
	struct scored *found;

	*nr = 0;
	for (size_t i = 0; i < nr_rules; i++)
		most += rules[i].max;
	found = calloc(most, sizeof(*found));
	if (!found)
		return NULL;
	most = find_all(facts, found);
	qsort(found, most, sizeof(*found), worst_first);
	out = calloc(most + 1, sizeof(*out));
	for (size_t i = 0; out && i < most; i++)
		out[i] = found[i].verdict;
	if (out)
		*nr = most;
	free(found);
	return out;
}
