/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_DOCUMENT_H
#define VMT_CAPTURE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/domain/domain.h"
#include "vmx/kmod/vmtrace_vmx.h"

/*
 * The JSON texts of a capture: the session document ("vmtrace-session/1") and marks. Texts are
 * malloc'd, the caller frees; NULL when memory is short or the base is no JSON object.
 */
struct vmt_document_facts {
	uint64_t start_ns; /* perf clock, 0: not known */
	bool tsc_convertible, has_switches;
	uint64_t cpu_ns; /* CPU time that the recorder itself has used */
	uint64_t exits;	 /* that it has seen */
};

/* How Intel PT is recorded, and the VMX controls of vCPU threads where a kernel module sets them.
 */
struct vmt_document_pt {
	bool recorded;
	const char *mode, *means; /* vmx_pt_mode_name, vmt_pt_means_name */
	const char *privacy;	  /* the side that is stored, NULL: both */
	bool conceal;
	struct vmtrace_vmx_state *controls;
	size_t nr_controls;
};

/* base_json (tool, session, backend, host, …) completed by the facts and the domains' threads. */
char *vmt_document_live(const char *base_json, const struct vmt_document_facts *facts,
			const struct vmt_document_pt *pt, const struct vmt_domains *domains);

/*
 * The document of a replay: domains are those of the recorded document with the live domains' names
 * (by name, else by position); host, clock and start are the recorded ones.
 */
char *vmt_document_replay(const char *base_json, const char *recorded, size_t recorded_len,
			  const struct vmt_domains *domains);

/* {"time_ns":N,"domain":N,"name":S,"detail":S}; detail may be NULL. */
char *vmt_document_mark(uint64_t time_ns, uint32_t domain, const char *name, const char *detail);

/* Name of a recorded mark, copied; false when the text is no mark. */
bool vmt_document_mark_name(const void *json, size_t len, char *name, size_t size);

/* start_ns of a session document, time_ns of a mark; 0 when it says none. */
uint64_t vmt_document_start_ns(const void *json, size_t len);
uint64_t vmt_document_mark_time_ns(const void *json, size_t len);

#endif
