/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_CSV_H
#define VMT_EXPORT_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/export/out.h"

/* RFC 4180 with line feeds: cells are separated by commas; an unknown value is an empty cell. */
struct vmt_csv {
	struct vmt_out *out;
	bool has_cell; /* in this line */
};

void vmt_csv_text(struct vmt_csv *csv, const char *text); /* NULL: unknown */
void vmt_csv_number(struct vmt_csv *csv, bool known, uint64_t n);
void vmt_csv_hex(struct vmt_csv *csv, bool known, uint64_t n);
void vmt_csv_end(struct vmt_csv *csv);

#endif
