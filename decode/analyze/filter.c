// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/analyze/filter.h"

#include <stddef.h>

bool vmt_filter_add_domain(struct vmt_filter *filter, uint32_t domain)
{
	if (domain >= VMT_FILTER_DOMAINS)
		return false;
	filter->by_domain = true;
	filter->domains[domain / 64] |= UINT64_C(1) << domain % 64;
	return true;
}

bool vmt_filter_add_pid(struct vmt_filter *filter, uint32_t pid)
{
	if (filter->nr_pids == VMT_FILTER_PIDS)
		return false;
	filter->by_domain = true;
	filter->pids[filter->nr_pids++] = pid;
	return true;
}

static bool has_domain(const struct vmt_filter *f, uint32_t domain)
{
	return domain < VMT_FILTER_DOMAINS && (f->domains[domain / 64] >> domain % 64 & 1);
}

static bool has_pid(const struct vmt_filter *f, uint32_t pid)
{
	for (unsigned int i = 0; i < f->nr_pids; i++) {
		if (f->pids[i] == pid)
			return true;
	}
	return false;
}

bool vmt_filter_passes(const struct vmt_filter *filter, const struct vmt_event *event)
{
	bool general = event->type == VMT_EVENT_LOSS || event->type == VMT_EVENT_MARK;
	bool says_domain = event->has & VMT_HAS_DOMAIN, says_pid = event->has & VMT_HAS_TID;

	if (filter->by_domain && !(says_domain && has_domain(filter, event->domain)) &&
	    !(says_pid && has_pid(filter, event->pid)) && !(general && !says_domain && !says_pid))
		return false;
	if (filter->by_vcpu) {
		if (!(event->has & VMT_HAS_VCPU))
			return general;
		return vmt_vcpu_set_has(&filter->vcpus, event->vcpu);
	}
	return true;
}
