/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_TSC_MAPS_H
#define VMT_CLI_TSC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/anchor.h"
#include "decode/base/diag.h"
#include "vmx/tsc.h"

/* The TSC maps that a capture recorded: per vCPU, intervals in which the map was the same. */
#define VMT_TSC_VCPUS_MAX     4096u
#define VMT_TSC_INTERVALS_MAX 65536u

struct vmt_tsc_interval {
	struct vmx_tsc_map map;
	uint64_t from_ns, to_ns; /* perf clock, of the first and the last snapshot */
	uint64_t snapshots;
	uint32_t vcpu;	/* index into vcpus */
	uint8_t source; /* of the last snapshot, as vmt_vcpu_tsc.source */
	bool scaling;	/* the host has scaling hardware */
};

struct vmt_tsc_vcpu {
	uint32_t domain, id;
	struct vmt_tsc_interval last; /* exact also when intervals were left out */
	uint64_t changes;	      /* how often the map changed */
};

struct vmt_tsc_domain {
	char name[80], uuid[40]; /* empty: not known; control characters replaced */
	uint32_t pid;		 /* 0: not known */
};

struct vmt_tsc_maps {
	struct vmt_tsc_vcpu *vcpus;
	size_t nr_vcpus;
	uint16_t *slots;		    /* hash of (domain, id) -> index + 1 */
	struct vmt_tsc_interval *intervals; /* by vCPU, in time */
	size_t nr_intervals, intervals_capacity;
	struct vmt_tsc_domain *domains;
	size_t nr_domains;
	bool has_start;
	uint64_t start_ns;
	uint64_t left_out; /* intervals and vCPUs beyond the bounds, snapshots that cannot be */
};

/*
 * Reads every snapshot of a .vmt ("-": standard input). Errors: those of vmt_reader_open and
 * vmt_store_open; VMT_E_CAPABILITY when the capture holds none. Free with vmt_tsc_maps_free in any
 * case.
 */
int vmt_tsc_maps_read(struct vmt_tsc_maps *maps, const char *path, struct vmt_diag *diag);
void vmt_tsc_maps_free(struct vmt_tsc_maps *maps);

/* Name of a domain for a person: name, UUID, "pid N" or "domain N". Returns buf. */
const char *vmt_tsc_domain_name(const struct vmt_tsc_maps *maps, uint32_t domain, char *buf,
				size_t size);

/* debugfs, kvm_write_tsc_offset, replayed */
const char *vmt_tsc_source_name(uint8_t source);

#endif
