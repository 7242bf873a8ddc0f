/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_STATUS_XML_H
#define VMT_DOMAIN_STATUS_XML_H

#include <stddef.h>
#include <sys/types.h>

#include "decode/base/diag.h"

#define VMT_STATUS_VCPUS_MAX 1024

/*
 * What libvirt keeps of a running QEMU domain in /run/libvirt/qemu/NAME.xml:
 * <domstatus pid='4711'> … <vcpus><vcpu id='0' pid='4720'/></vcpus> … <domain>…</domain>.
 */
struct vmt_status_xml {
	pid_t pid; /* 0: not said */
	char uuid[40];
	size_t nr_vcpus;
	struct {
		unsigned int id;
		pid_t tid;
	} vcpus[VMT_STATUS_VCPUS_MAX];
};

/* VMT_E_DAMAGED, VMT_E_LIMIT as vmt_xml_read. */
int vmt_status_xml_read(const char *xml, size_t len, struct vmt_status_xml *out,
			struct vmt_diag *diag);

#endif
