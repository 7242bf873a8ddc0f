// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/csv.h"

#include "decode/export/utf8.h"

static void cell(struct vmt_csv *csv)
{
	if (csv->has_cell)
		vmt_out_char(csv->out, ',');
	csv->has_cell = true;
}

/* Control characters become '?'; a text that a spreadsheet would compute gets a quote in front. */
void vmt_csv_text(struct vmt_csv *csv, const char *text)
{
	bool quoted;

	cell(csv);
	if (!text)
		return;
	quoted = strpbrk(text, "\",\n\r") != NULL;
	if (quoted)
		vmt_out_char(csv->out, '"');
	if (*text && strchr("=+-@", *text))
		vmt_out_char(csv->out, '\'');
	while (*text) {
		uint32_t c;
		size_t n = vmt_utf8_next(text, &c);

		if (c == '"')
			vmt_out_char(csv->out, '"');
		if (vmt_utf8_is_harmless(c))
			vmt_out_bytes(csv->out, text, n);
		else
			vmt_out_char(csv->out, '?');
		text += n;
	}
	if (quoted)
		vmt_out_char(csv->out, '"');
}

void vmt_csv_number(struct vmt_csv *csv, bool known, uint64_t n)
{
	cell(csv);
	if (known)
		vmt_out_printf(csv->out, "%llu", (unsigned long long)n);
}

void vmt_csv_hex(struct vmt_csv *csv, bool known, uint64_t n)
{
	cell(csv);
	if (known)
		vmt_out_printf(csv->out, "0x%llx", (unsigned long long)n);
}

void vmt_csv_end(struct vmt_csv *csv)
{
	vmt_out_char(csv->out, '\n');
	csv->has_cell = false;
}
