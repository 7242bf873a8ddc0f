// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: what is given out is a text that the kernel's driver takes. */
#include "host/capture/pt_filter.h"

#include <stdint.h>
#include <string.h>

#include "decode/io/diagf.h"
#include "vmx/text.h"

#define BLANKS " \t,"

static const struct {
	const char *word, *kernel; /* NULL: the driver refuses it */
} actions[] = {
	{ "filter", "filter" },
	{ "stop", "stop" },
	{ "tracestop", "stop" },
	{ "start", NULL },
};

static int expected(const char *text, const char *at, const char *what, struct vmt_diag *diag)
{
	if (diag && !diag->code) {
		vmt_diag_printf(diag, VMT_E_USAGE, 0, "",
				"an address filter cannot be read at offset %zu: '%s'",
				(size_t)(at - text), text);
		diag->has_offset = true;
		diag->offset = (uint64_t)(at - text);
	}
	vmt_diag_cure(diag, "expected there: %s", what);
	return VMT_E_USAGE;
}

static int take_action(const char *text, const char **at, const char **kernel,
		       struct vmt_diag *diag)
{
	size_t len = strcspn(*at, BLANKS);

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strlen(actions[i].word) != len || memcmp(actions[i].word, *at, len) != 0)
			continue;
		if (!actions[i].kernel)
			return vmt_diag_set(diag, VMT_E_CAPABILITY,
					    "Intel PT has no address filter `start`",
					    "use filter, or stop");
		*kernel = actions[i].kernel;
		*at += len;
		return 0;
	}
	return expected(text, *at, "filter, stop or tracestop", diag);
}

/* START/SIZE, whose end must be an address as well. */
static int take_range(const char *text, const char **at, struct vmx_text *out,
		      struct vmt_diag *diag)
{
	uint64_t start, size;
	const char *end = vmx_text_number(*at, &start);

	if (!end)
		return expected(text, *at, "an address in C syntax", diag);
	if (*end != '/')
		return expected(text, end, "/SIZE", diag);
	*at = end + 1;
	end = vmx_text_number(*at, &size);
	if (!end || !size || size - 1 > UINT64_MAX - start)
		return expected(text, *at, "a size above 0 that ends within the address space",
				diag);
	vmx_text_hex(out, start);
	vmx_text_char(out, '/');
	vmx_text_hex(out, size);
	*at = end;
	return 0;
}

static int take_file(const char **at, struct vmx_text *out, bool system_wide, struct vmt_diag *diag)
{
	size_t len = strcspn(*at, BLANKS);

	if (**at == '@' && system_wide)
		return vmt_diag_set(diag, VMT_E_CAPABILITY,
				    "an address filter by file needs a thread",
				    "leave off --system-wide, or give addresses");
	for (size_t i = 0; i < len; i++)
		vmx_text_char(out, (*at)[i]);
	*at += len;
	return 0;
}

static int take_one(const char *text, const char **at, struct vmx_text *out, bool system_wide,
		    struct vmt_diag *diag)
{
	const char *kernel = NULL;
	int err = take_action(text, at, &kernel, diag);

	if (err)
		return err;
	vmx_text_item(out, ",", kernel);
	vmx_text_char(out, ' ');
	*at += strspn(*at, " \t");
	err = take_range(text, at, out, diag);
	if (!err && **at && **at != '@' && !strchr(BLANKS, **at))
		err = expected(text, *at, "@FILE, a comma or the end", diag);
	return err ? err : take_file(at, out, system_wide, diag);
}

int vmt_pt_filter_make(char out[VMT_PT_FILTER_MAX], const char *text, unsigned int nr_max,
		       bool system_wide, struct vmt_diag *diag)
{
	struct vmx_text t = vmx_text_of(out, VMT_PT_FILTER_MAX);
	const char *at = text + strspn(text, BLANKS);
	unsigned int nr = 0;

	do {
		int err = take_one(text, &at, &t, system_wide, diag);

		if (err)
			return err;
		nr++;
		at += strspn(at, BLANKS);
	} while (*at);
	if (t.len + 1 == t.size)
		return expected(text, at, "a shorter text", diag);
	if (nr <= nr_max)
		return 0;
	return vmt_diag_printf(diag, VMT_E_CAPABILITY, 0,
			       "intel_pt/nr_addr_filters and caps/num_address_ranges say how many",
			       "this CPU has %u address ranges, %u are named", nr_max, nr);
}
