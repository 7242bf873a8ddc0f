// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/probe/traceable.h"

#include <stdio.h>
#include <string.h>

void vmt_traceable_of(struct vmt_traceable *out, const struct vmt_probe *host,
		      const struct vmt_domain *domain)
{
	struct vmt_probe own;
	const struct vmt_check *check;

	memset(out, 0, sizeof(*out));
	vmt_probe_domain(&own, domain);
	out->kvm = !vmt_probe_blocked(host, VMT_NEED_KVM) &&
		   !vmt_probe_blocked(&own, VMT_NEED_KVM) && domain->pid;
	out->sched = !vmt_probe_blocked(host, VMT_NEED_SCHED) &&
		     !vmt_probe_blocked(&own, VMT_NEED_SCHED) && domain->pid;
	out->pt = domain->pid && !vmt_probe_blocked(host, VMT_NEED_PT);
	out->replay = !out->sched && !strcmp(domain->type, "test") && domain->id >= 0;
	check = vmt_probe_blocked(&own, VMT_NEED_KVM);
	if (!check)
		check = vmt_probe_blocked(host, VMT_NEED_KVM);
	if (!out->kvm && check)
		snprintf(out->why_not, sizeof(out->why_not), "%s: %s", check->title, check->cause);
}
