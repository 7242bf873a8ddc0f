/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_INPUT_AUX_H
#define VMT_ANALYZE_INPUT_AUX_H

#include "decode/analyze/fuse.h"
#include "decode/analyze/input_private.h"

/* TSC of a vCPU: of a domain, or of a process whose domain is not known. */
struct tsc_map {
	uint64_t owner;
	uint32_t vcpu;
	bool known;
	bool not_followed; /* it changes in a way that cannot be told */
	struct vmx_tsc_map map;
	const struct vmt_pt_map_change *changes;
	size_t nr_changes;
};

/* Whose an area is that a thread has for itself. */
struct own_vm {
	bool known;
	uint64_t owner;
	uint32_t vcpu;
};

/* How the TSC packets of guests are read. */
struct input_tsc {
	struct vmt_pt_vm vms[VMT_PT_VMS_MAX]; /* given ones, then learnt ones, then free ones */
	size_t nr_given, nr_vms;
	uint64_t owners[VMT_PT_VMS_MAX]; /* of learnt ones */
	struct tsc_map *maps;
	size_t nr_maps;
	struct vmt_pt_map_change *changes; /* of all maps */
	struct own_vm *own;		   /* of the areas */
	struct vmt_pt_vm *own_vms;
	size_t nr_own;
};

struct input_aux {
	struct vmt_pt_streams *streams; /* NULL: no Intel PT, or not yet */
	struct vmt_fuse *fuse;
	struct input_tsc tsc;
	bool ran;	/* a vCPU's thread was seen on a CPU with PT */
	bool kvm_exits; /* there was a kvm_exit on one */
	int status;
};

/* The index of a domain by name; a new one when there is none. UINT32_MAX: no room. */
uint32_t input_domain_by_name(struct vmt_input *in, const char *name, uint32_t pid);

/* ---- input_tsc.c ---- */
/* Before the first pull: what is known of domains and threads by then names the writes. 0,
 * VMT_E_NOMEM. */
int input_tsc_start(struct vmt_input *in, const struct vmt_aux_index *index);
void input_tsc_free(struct input_tsc *tsc);
/* A VMCS has become known to be a vCPU's: its TSC packets can be read with the map of that. */
void input_tsc_vmcs(void *context, uint64_t vmcs);

#endif
