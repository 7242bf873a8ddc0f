/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines, words, names and settings of the assembler. A line is copied, so the text stays as it is.
 */
#include "tests/support/pt_vtt.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_vtt_private.h"

#define LINE_MAX_BYTES 512

bool vmt_vtt_fail(struct vmt_vtt_state *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->error->what, sizeof(s->error->what), format, args);
	va_end(args);
	return false;
}

/* ---- words ---- */

static const struct vmt_vtt_name *find_name(const struct vmt_vtt_state *s, const char *text,
					    size_t len)
{
	for (size_t i = 0; i < s->nr_names; i++)
		if (strlen(s->names[i].name) == len && !memcmp(s->names[i].name, text, len))
			return &s->names[i];
	return NULL;
}

static bool parse_plain(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[text[0] == '-']))
		return false;
	errno = 0;
	*value = text[0] == '-' ? 0 - strtoull(text + 1, &end, 0) : strtoull(text, &end, 0);
	return !errno && *end == '\0';
}

bool vmt_vtt_number(struct vmt_vtt_state *s, const char *text, uint64_t max, uint64_t *value)
{
	const size_t len = strcspn(text, "+-");
	const struct vmt_vtt_name *name = len ? find_name(s, text, len) : NULL;
	uint64_t delta = 0;

	if (name) {
		if (text[len] && !parse_plain(text + len + (text[len] == '+'), &delta))
			return vmt_vtt_fail(s, "no number: %.60s", text);
		*value = name->value + delta;
	} else if (!parse_plain(text, value)) {
		return vmt_vtt_fail(s, "no number and no name: %.60s", text);
	}
	return *value <= max ||
	       vmt_vtt_fail(s, "%.60s is above 0x%llx", text, (unsigned long long)max);
}

const char *vmt_vtt_word(struct vmt_vtt_state *s, size_t at)
{
	if (at >= s->line.nr_words)
		return NULL;
	s->line.used[at] = true;
	return s->line.words[at];
}

bool vmt_vtt_position(struct vmt_vtt_state *s, size_t at, uint64_t max, uint64_t *value)
{
	const char *word = vmt_vtt_word(s, at);

	if (!word)
		return vmt_vtt_fail(s, "%s: a number is missing", s->line.words[0]);
	return vmt_vtt_number(s, word, max, value);
}

bool vmt_vtt_flag(struct vmt_vtt_state *s, const char *name)
{
	for (size_t i = 1; i < s->line.nr_words; i++)
		if (!s->line.used[i] && !strcmp(s->line.words[i], name))
			return s->line.used[i] = true;
	return false;
}

bool vmt_vtt_field(struct vmt_vtt_state *s, const char *name, bool required, uint64_t max,
		   uint64_t *value)
{
	const size_t len = strlen(name);

	for (size_t i = 1; i < s->line.nr_words; i++) {
		const char *word = s->line.words[i];

		if (s->line.used[i] || strncmp(word, name, len) != 0 || word[len] != '=')
			continue;
		s->line.used[i] = true;
		return vmt_vtt_number(s, word + len + 1, max, value);
	}
	return !required || vmt_vtt_fail(s, "%s: %s= is missing", s->line.words[0], name);
}

/* ---- statements that are no packets ---- */

static bool add_name(struct vmt_vtt_state *s, const char *text, size_t len, uint64_t value)
{
	struct vmt_vtt_name *name = &s->names[s->nr_names];

	if (!len || len >= sizeof(name->name) || isdigit((unsigned char)text[0]) ||
	    memchr(text, '+', len) || memchr(text, '-', len))
		return vmt_vtt_fail(s, "not good as a name: %.60s", text);
	if (find_name(s, text, len))
		return vmt_vtt_fail(s, "a second time: %.60s", text);
	if (s->nr_names == VMT_VTT_NAMES_MAX)
		return vmt_vtt_fail(s, "more than %d names", VMT_VTT_NAMES_MAX);
	memcpy(name->name, text, len);
	name->name[len] = '\0';
	name->value = value;
	s->nr_names++;
	return true;
}

static bool do_let(struct vmt_vtt_state *s)
{
	const char *name = vmt_vtt_word(s, 1);
	uint64_t value;

	if (!name)
		return vmt_vtt_fail(s, "let: a name is missing");
	return vmt_vtt_position(s, 2, UINT64_MAX, &value) && add_name(s, name, strlen(name), value);
}

static bool do_cpu(struct vmt_vtt_state *s)
{
	const char *text = vmt_vtt_word(s, 1);
	unsigned int family, model, stepping;
	char rest;

	if (!text || sscanf(text, "%u/%x/%u%c", &family, &model, &stepping, &rest) != 3 ||
	    family > 0xffff || model > 0xff || stepping > 0xff)
		return vmt_vtt_fail(s, "cpu: not FAMILY/0xMODEL/STEPPING");
	s->out->cpu =
		(struct vmt_pt_cpu){ true, (uint16_t)family, (uint8_t)model, (uint8_t)stepping };
	return true;
}

static bool do_vm(struct vmt_vtt_state *s)
{
	struct vmt_pt_vm *vm = &s->out->vms[s->out->nr_vms];
	const char *pointer = vmt_vtt_word(s, 1);
	uint64_t offset = 0, frac = 48, mult = 0, domain = UINT64_MAX, vcpu = UINT64_MAX;

	if (s->out->nr_vms == VMT_VTT_VMS_MAX)
		return vmt_vtt_fail(s, "more than %d vm", VMT_VTT_VMS_MAX);
	if (!pointer)
		return vmt_vtt_fail(s, "vm: the VMCS pointer is missing");
	*vm = (struct vmt_pt_vm){ .vmcs = VMT_PT_ANY_VMCS };
	for (size_t i = 2; i < s->line.nr_words; i++)
		if (!strncmp(s->line.words[i], "offset=", 7) ||
		    !strncmp(s->line.words[i], "mult=", 5))
			vm->has_map = true;
	if ((strcmp(pointer, "any") != 0 && !vmt_vtt_number(s, pointer, UINT64_MAX, &vm->vmcs)) ||
	    !vmt_vtt_field(s, "offset", false, UINT64_MAX, &offset) ||
	    !vmt_vtt_field(s, "frac", false, 63, &frac) ||
	    !vmt_vtt_field(s, "mult", false, UINT64_MAX, &mult) ||
	    !vmt_vtt_field(s, "domain", false, UINT32_MAX, &domain) ||
	    !vmt_vtt_field(s, "vcpu", false, UINT32_MAX, &vcpu))
		return false;
	if (!frac)
		return vmt_vtt_fail(s, "vm: frac=0");
	vm->map = (struct vmx_tsc_map){ mult ? mult : UINT64_C(1) << frac, offset, (uint8_t)frac };
	vm->has_domain = domain != UINT64_MAX;
	vm->domain = (uint32_t)domain;
	vm->has_vcpu = vcpu != UINT64_MAX;
	vm->vcpu = (uint32_t)vcpu;
	s->out->nr_vms++;
	return true;
}

static bool do_clock(struct vmt_vtt_state *s)
{
	struct vmt_pt_clock_params *clock = &s->out->clock;
	uint64_t mtc = 0, n = 0, d = 0, nom = 0, hz = 0, ref = 0;

	if (!vmt_vtt_field(s, "mtc", false, 15, &mtc) ||
	    !vmt_vtt_field(s, "n", false, UINT32_MAX, &n) ||
	    !vmt_vtt_field(s, "d", false, UINT32_MAX, &d) ||
	    !vmt_vtt_field(s, "nom", false, 255, &nom) ||
	    !vmt_vtt_field(s, "hz", false, UINT64_MAX, &hz) ||
	    !vmt_vtt_field(s, "ref", false, UINT64_MAX, &ref))
		return false;
	*clock = (struct vmt_pt_clock_params){ .mtc_freq = (uint8_t)mtc,
					       .tsc_num = (uint32_t)n,
					       .art_den = (uint32_t)d,
					       .nom_ratio = (uint32_t)nom,
					       .tsc_hz = hz,
					       .reference = ref };
	return true;
}

static bool do_host_cpu(struct vmt_vtt_state *s)
{
	uint64_t cpu;

	if (!vmt_vtt_position(s, 1, UINT32_MAX, &cpu))
		return false;
	s->out->host_cpu = (uint32_t)cpu;
	return true;
}

static bool do_thread(struct vmt_vtt_state *s)
{
	const char *text = vmt_vtt_word(s, 1);
	char rest;

	if (!text || sscanf(text, "%u/%u%c", &s->out->pid, &s->out->tid, &rest) != 2)
		return vmt_vtt_fail(s, "thread: not PID/TID");
	return true;
}

static bool new_piece(struct vmt_vtt_state *s, bool gap)
{
	if (s->out->nr_pieces == VMT_VTT_PIECES_MAX)
		return vmt_vtt_fail(s, "more than %d pieces", VMT_VTT_PIECES_MAX);
	s->out->pieces[s->out->nr_pieces] = s->out->stream.len;
	s->out->gaps[s->out->nr_pieces++] = gap;
	return true;
}

static bool do_piece(struct vmt_vtt_state *s)
{
	return new_piece(s, false);
}

static bool do_gap(struct vmt_vtt_state *s)
{
	return new_piece(s, true);
}

static bool do_cut(struct vmt_vtt_state *s)
{
	struct vmt_vtt *out = s->out;
	const size_t last = out->nr_pieces ? out->pieces[out->nr_pieces - 1] : 0;
	uint64_t bytes;

	if (!vmt_vtt_position(s, 1, out->stream.len - last, &bytes))
		return false;
	out->stream.len -= bytes;
	out->is_cut = true;
	return true;
}

static bool do_raw(struct vmt_vtt_state *s)
{
	if (s->line.nr_words < 2)
		return vmt_vtt_fail(s, "raw: no bytes");
	for (size_t i = 1; i < s->line.nr_words; i++) {
		const char *word = vmt_vtt_word(s, i);
		uint8_t byte;

		if (!isxdigit((unsigned char)word[0]) || !isxdigit((unsigned char)word[1]) ||
		    word[2])
			return vmt_vtt_fail(s, "raw: no byte of two hex digits: %.60s", word);
		byte = (uint8_t)strtoul(word, NULL, 16);
		vmt_ptenc_raw(&s->out->stream, &byte, 1);
	}
	s->out->has_raw = true;
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct vmt_vtt_state *s);
} settings[] = {
	{ "let", do_let },     { "cpu", do_cpu },	    { "vm", do_vm },
	{ "clock", do_clock }, { "host-cpu", do_host_cpu }, { "thread", do_thread },
	{ "piece", do_piece }, { "gap", do_gap },	    { "cut", do_cut },
	{ "raw", do_raw },
};

static bool statement(struct vmt_vtt_state *s)
{
	const char *name = vmt_vtt_word(s, 0);
	const size_t len = strlen(name);
	bool known = true, done;

	if (s->out->is_cut)
		return vmt_vtt_fail(s, "nothing can follow a cut");
	if (len > 1 && name[len - 1] == ':' && s->line.nr_words == 1)
		return add_name(s, name, len - 1, s->out->stream.len);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (!strcmp(settings[i].name, name)) {
			done = settings[i].run(s);
			goto finish;
		}
	done = vmt_vtt_code_statement(s, &known);
	if (!known) {
		known = true;
		done = vmt_vtt_packet_statement(s, &known);
	}
	if (!known)
		return vmt_vtt_fail(s, "no such statement: %.60s", name);
finish:
	for (size_t i = 0; done && i < s->line.nr_words; i++)
		if (!s->line.used[i])
			return vmt_vtt_fail(s, "%s: not understood: %.60s", name, s->line.words[i]);
	return done;
}

static bool run_line(struct vmt_vtt_state *s, const char *text, size_t len)
{
	char copy[LINE_MAX_BYTES], *save, *comment;

	if (len >= sizeof(copy))
		return vmt_vtt_fail(s, "a line of more than %d bytes", LINE_MAX_BYTES - 1);
	if (memchr(text, '\0', len))
		return vmt_vtt_fail(s, "a zero byte");
	memcpy(copy, text, len);
	copy[len] = '\0';
	comment = strchr(copy, '#');
	if (comment)
		*comment = '\0';
	s->line = (struct vmt_vtt_line){ 0 };
	for (char *w = strtok_r(copy, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
		if (s->line.nr_words == VMT_VTT_WORDS_MAX)
			return vmt_vtt_fail(s, "more than %d words", VMT_VTT_WORDS_MAX);
		s->line.words[s->line.nr_words++] = w;
	}
	return !s->line.nr_words || statement(s);
}

/* ---- the text ---- */

static size_t line_len(const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);

	return end ? (size_t)(end - text) : len;
}

static bool is_rule(const char *text, size_t len)
{
	return len >= 3 && !memcmp(text, "---", 3);
}

static bool open_section(struct vmt_vtt_state *s, const char *text, size_t len, const char *body,
			 size_t **length)
{
	const struct {
		const char *title, **body;
		size_t *length;
	} sections[] = {
		{ "--- packets", &s->out->expect_packets, &s->out->expect_packets_len },
		{ "--- events", &s->out->expect_events, &s->out->expect_events_len },
		{ "--- flow", &s->out->expect_flow, &s->out->expect_flow_len },
	};

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (len != strlen(sections[i].title) || memcmp(text, sections[i].title, len) != 0 ||
		    *sections[i].body)
			continue;
		*sections[i].body = body;
		*length = sections[i].length;
		return true;
	}
	return vmt_vtt_fail(s, "no section of expected text, or a second time");
}

bool vmt_vtt_assemble(const char *text, size_t len, struct vmt_vtt *out,
		      struct vmt_vtt_error *error)
{
	struct vmt_vtt_state s = { .out = out, .error = error };
	size_t at = 0, *section = NULL;

	*out = (struct vmt_vtt){ .host_cpu = UINT32_MAX, .source_len = len };
	*error = (struct vmt_vtt_error){ 0 };
	while (at < len) {
		const size_t n = line_len(text + at, len - at);
		const size_t next = at + n < len ? at + n + 1 : len;

		error->line++;
		if (is_rule(text + at, n)) {
			if (!section)
				out->source_len = at;
			if (!open_section(&s, text + at, n, text + next, &section))
				return false;
		} else if (section) {
			*section += next - at;
		} else if (!run_line(&s, text + at, n)) {
			return false;
		}
		at = next;
	}
	return true;
}

void vmt_vtt_free(struct vmt_vtt *vtt)
{
	vmt_ptenc_free(&vtt->stream);
	free(vtt->packets);
	free(vtt->codes);
	*vtt = (struct vmt_vtt){ 0 };
}
