/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PROBE_TRACEABLE_H
#define VMT_PROBE_TRACEABLE_H

#include "host/probe/probe.h"

/* What can be traced of a domain on this host now. */
struct vmt_traceable {
	bool kvm, sched, pt;		  /* the backends of start */
	bool replay;			  /* a recorded file alone (libvirt's test driver) */
	char why_not[VMT_PROBE_MAX * 10]; /* what blocks kvm, "" */
};

void vmt_traceable_of(struct vmt_traceable *out, const struct vmt_probe *host,
		      const struct vmt_domain *domain);

#endif
