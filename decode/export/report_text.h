/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_REPORT_TEXT_H
#define VMT_EXPORT_REPORT_TEXT_H

#include "decode/export/report_export.h"
#include "decode/export/text_lines.h"

/* Parts of the text report. */

void vmt_text_bill_label(char *buf, size_t size, const struct vmt_report *r,
			 const struct vmt_bill *bill);
void vmt_text_bill_header(const struct vmt_page *page);
/* A line of percentages that sum to 100.0, and one of milliseconds that sum to the wall time. */
void vmt_text_bill_percent(const struct vmt_page *page, const char *label,
			   const struct vmt_bill *bill);
void vmt_text_bill_ms(const struct vmt_page *page, const char *label, const struct vmt_bill *bill);
/* "port I/O 15.2 %, MSR 3.1 %": the classes of exits_ns; max_lines 0: no limit. */
void vmt_text_classes(const struct vmt_page *page, const char *label, const struct vmt_bill *bill,
		      unsigned int max_lines);

/* Sections. */
void vmt_text_trust(const struct vmt_page *page, const struct vmt_report *r);
void vmt_text_bill(const struct vmt_page *page, const struct vmt_report *r);
void vmt_text_storms(const struct vmt_page *page, const struct vmt_report *r);
void vmt_text_rows(const struct vmt_page *page, const struct vmt_report *r);

/* "L2 IO_INSTRUCTION", "EPT_VIOLATION (entry failed)"; buf of 64 bytes or more. */
char *vmt_text_reason(char *buf, size_t size, const struct vmt_row *row);

/* "0xffffffff81012345 native_read_tsc+0x12 (97.2 % of them)"; false when there is no RIP. */
bool vmt_text_rip(char *buf, size_t size, const struct vmt_row *row);

#endif
