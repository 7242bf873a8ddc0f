/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PROBE_PROBE_H
#define VMT_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/domain/domain.h"
#include "host/domain/perf_page.h"

/*
 * What this host and a domain allow. Every check is a row of a table; it reads, changes nothing and
 * does not print.
 */
enum vmt_check_status {
	VMT_CHECK_OK,
	VMT_CHECK_WARN,	   /* something is less good than it could be */
	VMT_CHECK_BLOCKED, /* what needs it does not work */
	VMT_CHECK_UNKNOWN, /* it could not be found out */
	VMT_CHECK_ABSENT,  /* this host has no such thing, and tracing needs none */
};

/* What a check is needed for; a blocked check blocks these. */
enum vmt_need {
	VMT_NEED_NONE = 0,
	VMT_NEED_KVM = 1u << 0,	  /* tracing kvm tracepoints */
	VMT_NEED_SCHED = 1u << 1, /* tracing context switches */
	VMT_NEED_PT = 1u << 2,	  /* Intel PT: what is absent blocks it as well */
};

struct vmt_check {
	const char *id, *title; /* "perf-rights", "right to trace" */
	enum vmt_check_status status;
	uint32_t needs;	 /* VMT_NEED_* */
	char cause[200]; /* what was found */
	char cure[240];	 /* what to do, "" when nothing is to be done */
};

#define VMT_PROBE_MAX 32
struct vmt_probe {
	size_t count;
	struct vmt_check checks[VMT_PROBE_MAX];
};

/* A host to look at: NULL is this one. */
struct vmt_probe_env {
	const struct vmt_hostfs *fs;
	int (*perf_page)(struct vmt_perf_page *out); /* 0 or -errno */
	/* Opens an event of PMU type for this thread, and closes it. 0 or -errno. */
	int (*pt_open)(uint32_t type, bool start_paused);
};

/* Checks of the host, in the order in which they matter. */
void vmt_probe_host(struct vmt_probe *out, const struct vmt_probe_env *env);

/* Checks of one domain as vmt_domains_find found it; needs as above. */
void vmt_probe_domain(struct vmt_probe *out, const struct vmt_domain *domain);

/* The first check that blocks a need, or NULL. */
const struct vmt_check *vmt_probe_blocked(const struct vmt_probe *probe, uint32_t need);

const char *vmt_check_status_name(enum vmt_check_status status); /* "ok", "warn", … */

#endif
