/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_RTIT_H
#define VMX_RTIT_H

#include <stddef.h>
#include <stdint.h>

/* IA32_RTIT_CTL, MSR 570H (SDM vol. 3 33.2.8.2, table 33-6). */
#define VMX_RTIT_TRACE_EN  (UINT64_C(1) << 0)
#define VMX_RTIT_CYC_EN	   (UINT64_C(1) << 1)
#define VMX_RTIT_OS	   (UINT64_C(1) << 2)
#define VMX_RTIT_USER	   (UINT64_C(1) << 3)
#define VMX_RTIT_TOPA	   (UINT64_C(1) << 8)
#define VMX_RTIT_MTC_EN	   (UINT64_C(1) << 9)
#define VMX_RTIT_TSC_EN	   (UINT64_C(1) << 10)
#define VMX_RTIT_BRANCH_EN (UINT64_C(1) << 13)
#define VMX_RTIT_MTC_FREQ  14u
#define VMX_RTIT_EVENT_EN  (UINT64_C(1) << 31)

/* The fields that are set, by name: "TraceEn OS User TSCEn MTCFreq=3"; "0" for none. */
void vmx_rtit_ctl_text(uint64_t ctl, char *buf, size_t size);

#endif
