/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_LOCATE_H
#define VMT_DOMAIN_LOCATE_H

#include "host/domain/domain.h"
#include "host/domain/status_xml.h"

/* Whether a libvirt URI names this host: no host part, or localhost, or this host's name. */
bool vmt_uri_is_local(const char *uri);

/*
 * Finds the VMM of a running domain: libvirt's pid file, its status file, the command line of a
 * process. A pid counts only when the process' command line names the domain, since a pid in a
 * file may be of the past. Sets pid and pid_source, or a note; status is filled when it could be
 * read.
 */
void vmt_locate_process(struct vmt_domain *domain, struct vmt_status_xml *status);

/* libvirt's status file alone; false when it cannot be read (then status is empty). */
bool vmt_locate_status(const struct vmt_domain *domain, struct vmt_status_xml *status);

#endif
