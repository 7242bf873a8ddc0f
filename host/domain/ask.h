/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_ASK_H
#define VMT_DOMAIN_ASK_H

#include "host/domain/domain.h"
#include "host/domain/link.h"

/* What libvirt is asked about its domains; each is one call of a link, freed by its drop. */

struct vmt_ask_entry {
	virDomainPtr domain;
	const char *name;
	char uuid[VIR_UUID_STRING_BUFLEN];
	int id; /* -1: not running */
};

struct vmt_ask_inventory {
	struct vmt_link_call call;
	char *uri; /* as the connection spells it */
	size_t count;
	struct vmt_ask_entry *entries; /* sorted by name */
	virDomainPtr *domains;
};
struct vmt_ask_inventory *vmt_ask_inventory_new(void);

#define VMT_ASK_MAPLEN 128 /* bytes of a CPU map: 1024 CPUs */

struct vmt_ask_describe {
	struct vmt_link_call call;
	virDomainPtr domain; /* of its own */
	bool use_monitor;
	int state;
	char *xml;
	int nr_vcpus; /* of the arrays; 0 when libvirt does not tell */
	virVcpuInfoPtr vcpus;
	unsigned char *maps; /* nr_vcpus * VMT_ASK_MAPLEN */
	char *monitor;	     /* answer to query-cpus-fast */
	char note[160];	     /* what was refused, "" */
};
struct vmt_ask_describe *vmt_ask_describe_new(virDomainPtr domain, bool use_monitor);

/* "running", "paused", "shut off", … as virsh words them. */
const char *vmt_state_name(int state);

/* CPU map as "0-3,8"; at most 64 bytes with the NUL, "…" at the end when cut. */
void vmt_cpu_map_format(char *buf, size_t size, const unsigned char *map, size_t len);

#endif
