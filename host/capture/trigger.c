// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: a parser's position never passes the text's end, and the first thing that does not fit
 * is the one that is told, with its offset and what could stand there.
 */
#include "host/capture/trigger.h"

#include <string.h>

#include "decode/io/diagf.h"
#include "vmx/exit.h"
#include "vmx/text.h"

#define MILLI	    UINT64_C(1000)
#define DIGITS_MAX  15u /* of a number's value in thousandths: no 64-bit word overflows */
#define REASON_MAX  40u
#define PERCENT_MAX UINT64_C(100000) /* thousandths */

struct parser {
	const char *text, *at;
	const char *expected; /* NULL: nothing was wrong so far */
};

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit counts[] = { { "k", 1000 }, { "M", 1000000 }, { "G", 1000000000 } };
static const struct unit times[] = { { "ns", 1 },
				     { "us", 1000 },
				     { "ms", 1000000 },
				     { "s", 1000000000 },
				     { "m", UINT64_C(60000000000) } };

static bool fail(struct parser *p, const char *expected)
{
	if (!p->expected)
		p->expected = expected;
	return false;
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t");
}

static bool take(struct parser *p, const char *word)
{
	size_t len = strlen(word);

	skip_blanks(p);
	if (strncmp(p->at, word, len) != 0)
		return false;
	p->at += len;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A decimal number in thousandths. */
static bool take_number(struct parser *p, uint64_t *milli)
{
	unsigned int digits = 0, decimals = 0;
	uint64_t value = 0;

	skip_blanks(p);
	if (!is_digit(*p->at))
		return fail(p, "a number");
	for (; is_digit(*p->at) && digits < DIGITS_MAX - 3; p->at++, digits++)
		value = value * 10 + (uint64_t)(*p->at - '0');
	if (*p->at == '.' && is_digit(p->at[1])) {
		for (p->at++; is_digit(*p->at) && decimals < 3; p->at++, decimals++)
			value = value * 10 + (uint64_t)(*p->at - '0');
	}
	if (is_digit(*p->at))
		return fail(p, "a number of at most 12 digits, and 3 behind the point");
	for (; decimals < 3; decimals++)
		value *= 10;
	*milli = value;
	return true;
}

/* The longest unit that the text begins with; NULL: none. */
static const struct unit *take_unit(struct parser *p, const struct unit *units, size_t nr)
{
	const struct unit *best = NULL;

	for (size_t i = 0; i < nr; i++) {
		size_t len = strlen(units[i].name);

		if (!strncmp(p->at, units[i].name, len) && (!best || len > strlen(best->name)))
			best = &units[i];
	}
	p->at += best ? strlen(best->name) : 0;
	return best;
}

static bool scale(uint64_t milli, uint64_t factor, uint64_t *out)
{
	if (milli > UINT64_MAX / factor)
		return false;
	*out = milli * factor / MILLI;
	return true;
}

static bool take_time(struct parser *p, uint64_t *ns)
{
	const struct unit *unit;
	uint64_t milli = 0;

	if (!take_number(p, &milli))
		return false;
	unit = take_unit(p, times, sizeof(times) / sizeof(times[0]));
	if (!unit)
		return fail(p, "ns, us, ms, s or m");
	return scale(milli, unit->factor, ns) || fail(p, "a time of less than 500 years");
}

static bool take_rate(struct parser *p, uint64_t *rate)
{
	const struct unit *unit;
	uint64_t milli = 0;

	if (!take_number(p, &milli))
		return false;
	unit = take_unit(p, counts, sizeof(counts) / sizeof(counts[0]));
	if (!scale(milli, unit ? unit->factor : 1, rate))
		return fail(p, "a smaller rate");
	return take(p, "/s") || fail(p, unit ? "/s" : "k, M, G or /s");
}

static bool take_percent(struct parser *p, uint64_t *milli)
{
	if (!take_number(p, milli))
		return false;
	if (*milli > PERCENT_MAX)
		return fail(p, "at most 100 %");
	return take(p, "%") || fail(p, "%");
}

static bool is_name(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool same_name(const char *name, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (lower(name[i]) != lower(text[i])) /* a shorter name ends in a NUL */
			return false;
	}
	return name[len] == '\0';
}

static uint32_t find_reason(const struct vmx_reason_row *rows, size_t nr, const char *text,
			    size_t len)
{
	for (size_t i = 0; i < nr; i++) {
		if (same_name(rows[i].name, text, len))
			return rows[i].code;
	}
	return VMT_TRIGGER_NO_REASON;
}

static bool take_reason(struct parser *p, struct vmt_trigger *out)
{
	const struct vmx_reason_row *vmx, *svm;
	size_t len = 0, nr_vmx, nr_svm;
	uint64_t number;

	skip_blanks(p);
	if (is_digit(*p->at)) {
		const char *end = vmx_text_number(p->at, &number);

		if (!end || number >= VMT_TRIGGER_NO_REASON)
			return fail(p, "the number of an exit reason");
		out->vmx_reason = out->svm_reason = (uint32_t)number;
		p->at = end;
		return true;
	}
	while (len < REASON_MAX && is_name(p->at[len]))
		len++;
	vmx = vmx_reason_rows(&nr_vmx);
	svm = svm_exit_rows(&nr_svm);
	out->vmx_reason = find_reason(vmx, nr_vmx, p->at, len);
	out->svm_reason = find_reason(svm, nr_svm, p->at, len);
	if (out->vmx_reason == VMT_TRIGGER_NO_REASON && out->svm_reason == VMT_TRIGGER_NO_REASON)
		return fail(p, "the name or number of an exit reason, as EPT_MISCONFIG");
	p->at += len;
	return true;
}

static bool take_percentile(struct parser *p, struct vmt_trigger *out)
{
	unsigned int value = 0;

	for (int i = 0; i < 2 && is_digit(*p->at); i++)
		value = value * 10 + (unsigned int)(*p->at++ - '0');
	if (!value || is_digit(*p->at))
		return fail(p, "a percentile from 1 to 99");
	out->percentile = value;
	return (take(p, "(") || fail(p, "(")) && take_reason(p, out) &&
	       (take(p, ")") || fail(p, ")"));
}

static bool take_above(struct parser *p)
{
	return take(p, ">") || fail(p, ">");
}

static bool take_measure(struct parser *p, struct vmt_trigger *out)
{
	if (take(p, "exits")) {
		out->kind = VMT_TRIGGER_EXITS;
		out->for_ns = UINT64_C(100000000);
		return take_above(p) && take_rate(p, &out->limit);
	}
	if (take(p, "reason")) {
		out->kind = VMT_TRIGGER_REASON;
		out->for_ns = UINT64_C(100000000);
		return (take(p, "=") || fail(p, "=")) && take_reason(p, out) && take_above(p) &&
		       take_rate(p, &out->limit);
	}
	if (take(p, "steal")) {
		out->kind = VMT_TRIGGER_STEAL;
		out->for_ns = UINT64_C(200000000);
		return take_above(p) && take_percent(p, &out->limit);
	}
	if (take(p, "p")) {
		out->kind = VMT_TRIGGER_PERCENTILE;
		out->for_ns = UINT64_C(1000000000);
		return take_percentile(p, out) && take_above(p) && take_time(p, &out->limit);
	}
	return fail(p, "exits, reason=NAME, p99(NAME) or steal");
}

static bool take_all(struct parser *p, struct vmt_trigger *out)
{
	size_t len = strlen(p->text);

	if (len > VMT_TRIGGER_TEXT_MAX) {
		p->at = p->text + VMT_TRIGGER_TEXT_MAX;
		return fail(p, "the end: a trigger has at most 80 characters");
	}
	memcpy(out->text, p->text, len + 1);
	if (!take_measure(p, out))
		return false;
	if (take(p, "for")) {
		const char *start = p->at;

		if (!take_time(p, &out->for_ns))
			return false;
		if (out->for_ns < VMT_TRIGGER_FOR_MIN_NS || out->for_ns > VMT_TRIGGER_FOR_MAX_NS) {
			p->at = start;
			return fail(p, "a time from 4ms to 60s");
		}
	}
	skip_blanks(p);
	return !*p->at || fail(p, "`for TIME` or the end");
}

int vmt_trigger_parse(const char *text, struct vmt_trigger *out, struct vmt_diag *diag)
{
	struct parser p = { .text = text, .at = text };

	*out = (struct vmt_trigger){ .vmx_reason = VMT_TRIGGER_NO_REASON,
				     .svm_reason = VMT_TRIGGER_NO_REASON };
	if (take_all(&p, out))
		return 0;
	if (diag && !diag->code) {
		vmt_diag_printf(diag, VMT_E_USAGE, 0, "",
				"a trigger cannot be read at offset %zu: '%s'",
				(size_t)(p.at - text), text);
		diag->has_offset = true;
		diag->offset = (uint64_t)(p.at - text);
	}
	vmt_diag_cure(diag, "expected there: %s", p.expected);
	return VMT_E_USAGE;
}
