// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/join.h"

#include <stdio.h>

#include "decode/export/names.h"

char *vmt_join_text(char *buf, size_t size, const struct vmt_input_facts *facts)
{
	const struct vmt_fuse_counts *j = &facts->join;
	char n[5][28];
	size_t at;

	buf[0] = '\0';
	if (!facts->has_join)
		return buf;
	vmt_count_text(n[0], sizeof(n[0]), j->joined);
	vmt_count_text(n[1], sizeof(n[1]), j->only_pt);
	vmt_count_text(n[2], sizeof(n[2]), j->only_kvm);
	vmt_count_text(n[3], sizeof(n[3]), j->disagree_reason);
	vmt_count_text(n[4], sizeof(n[4]), j->disagree_rip);
	at = (size_t)snprintf(buf, size,
			      "Intel PT and kvm_exit: %s exits joined, %s only in PT, %s only in "
			      "kvm_exit; %s reasons and %s RIPs disagree.",
			      n[0], n[1], n[2], n[3], n[4]);
	if (j->untimed && at < size)
		at += (size_t)snprintf(buf + at, size - at,
				       " %llu exits of PT have no time and are left out.",
				       (unsigned long long)j->untimed);
	if (facts->vmcs_moved && at < size)
		snprintf(buf + at, size - at,
			 " %llu times a VMCS was seen with another thread than before.",
			 (unsigned long long)facts->vmcs_moved);
	return buf;
}

void vmt_json_join(struct vmt_json *json, const struct vmt_input_facts *facts)
{
	const struct vmt_fuse_counts *j = &facts->join;

	vmt_json_number(json, "joined", true, j->joined);
	vmt_json_number(json, "only_pt", true, j->only_pt);
	vmt_json_number(json, "only_kvm", true, j->only_kvm);
	vmt_json_number(json, "disagree_reason", true, j->disagree_reason);
	vmt_json_number(json, "disagree_rip", true, j->disagree_rip);
	vmt_json_number(json, "untimed", true, j->untimed);
	vmt_json_number(json, "vmcs_moved", true, facts->vmcs_moved);
}
