/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_vtt_private.h"

static bool add_byte(struct vmt_vtt_code *code, const char *word)
{
	if (!isxdigit((unsigned char)word[0]) || !isxdigit((unsigned char)word[1]) || word[2] ||
	    code->len == sizeof(code->bytes))
		return false;
	code->bytes[code->len++] = (uint8_t)strtoul(word, NULL, 16);
	return true;
}

static bool do_code(struct vmt_vtt_state *s)
{
	struct vmt_vtt_code code = { .addr = 0 };
	size_t i;

	if (!vmt_vtt_position(s, 1, UINT64_MAX, &code.addr))
		return false;
	for (i = 2; i < s->line.nr_words && add_byte(&code, s->line.words[i]); i++)
		vmt_vtt_word(s, i);
	if (!code.len)
		return vmt_vtt_fail(s, "code: no bytes");
	code.space.world = vmt_vtt_flag(s, "host")    ? VMT_IMAGE_HOST
			   : vmt_vtt_flag(s, "guest") ? VMT_IMAGE_GUEST
						      : VMT_IMAGE_ANY;
	vmt_vtt_flag(s, "any");
	for (; i < s->line.nr_words; i++) {
		code.space.has_cr3 |= !strncmp(s->line.words[i], "cr3=", 4);
		code.space.has_vmcs |= !strncmp(s->line.words[i], "vmcs=", 5);
	}
	if (!vmt_vtt_field(s, "cr3", false, UINT64_MAX, &code.space.cr3) ||
	    !vmt_vtt_field(s, "vmcs", false, UINT64_MAX, &code.space.vmcs) ||
	    !vmt_vtt_field(s, "from", false, UINT64_MAX, &code.from))
		return false;
	if (s->out->nr_codes == VMT_VTT_CODES_MAX)
		return vmt_vtt_fail(s, "more than %d code", VMT_VTT_CODES_MAX);
	if (!s->out->codes)
		s->out->codes = calloc(VMT_VTT_CODES_MAX, sizeof(*s->out->codes));
	if (!s->out->codes)
		abort();
	s->out->codes[s->out->nr_codes++] = code;
	return true;
}

static bool do_filter(struct vmt_vtt_state *s)
{
	struct vmt_flow_range *range = &s->out->filters[s->out->nr_filters];

	if (s->out->nr_filters == VMT_FLOW_FILTERS_MAX)
		return vmt_vtt_fail(s, "more than %d filter", VMT_FLOW_FILTERS_MAX);
	if (!vmt_vtt_position(s, 1, UINT64_MAX, &range->first) ||
	    !vmt_vtt_position(s, 2, UINT64_MAX, &range->last))
		return false;
	s->out->nr_filters++;
	return true;
}

bool vmt_vtt_code_statement(struct vmt_vtt_state *s, bool *known)
{
	const char *name = s->line.words[0];

	*known = true;
	if (!strcmp(name, "code"))
		return do_code(s);
	if (!strcmp(name, "filter"))
		return do_filter(s);
	if (!strcmp(name, "noretcomp"))
		return s->out->no_ret_compression = true;
	if (!strcmp(name, "count-is-time"))
		return s->out->count_is_time = true;
	*known = false;
	return false;
}
