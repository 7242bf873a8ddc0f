/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_REPORT_EXPORT_H
#define VMT_EXPORT_REPORT_EXPORT_H

#include <stdbool.h>

#include "decode/analyze/report.h"
#include "decode/export/out.h"

/* The report in each format. Errors of writing stay in `out` (vmt_out_finish tells them). */
#define VMT_TEXT_WIDTH_MIN 80u
#define VMT_TEXT_WIDTH_MAX 200u
#define VMT_TEXT_ROWS	   40u /* rows of the table in text; JSON and CSV have all */

struct vmt_report_view {
	unsigned int width; /* columns, brought into 80..200 */
	bool color;
	bool bill, storms; /* these sections as well (CSV: instead of the rows) */
};

/*
 * Text: where the time went, the top finding, how far to trust it (on the first 24 lines), the
 * other findings, the bill and the storms when asked for, the rows.
 */
void vmt_report_text(struct vmt_out *out, const struct vmt_report *report,
		     const struct vmt_report_view *view);

/* One document, schema vmtrace-report/1, keys as in the command line's contract. */
void vmt_report_json(struct vmt_out *out, const struct vmt_report *report);

/* A table with a header line: the rows, or the bill, or the storms; both with an empty line
 * between.
 */
void vmt_report_csv(struct vmt_out *out, const struct vmt_report *report,
		    const struct vmt_report_view *view);

#endif
