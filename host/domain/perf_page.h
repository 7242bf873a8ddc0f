/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_PERF_PAGE_H
#define VMT_DOMAIN_PERF_PAGE_H

#include <stdbool.h>
#include <stdint.h>

/* What the kernel says about its clock on the first page of a perf event's ring. */
struct vmt_perf_page {
	bool cap_user_time, cap_user_time_zero, cap_user_rdpmc;
	uint16_t time_shift;
	uint32_t time_mult;
	uint64_t time_zero;
};

/* Maps the page of a software event of this process. Returns 0 or -errno. */
int vmt_perf_page_read(struct vmt_perf_page *out);

/* Host TSC frequency by that page, in kHz: 0 when the kernel does not say it. */
uint64_t vmt_perf_page_tsc_khz(const struct vmt_perf_page *page);

#endif
