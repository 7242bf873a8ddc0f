/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_HOST_FACTS_H
#define VMT_CAPTURE_HOST_FACTS_H

#include <stddef.h>

#include "decode/base/event.h"
#include "host/domain/hostfs.h"

/* What a session document says about the host. "" where it is not known. */
struct vmt_host_facts {
	char hostname[80], kernel[80], cpu[128], vendor[32];
	unsigned int nr_cpus;
	enum vmt_isa isa; /* by the flags vmx and svm of /proc/cpuinfo */
};

void vmt_host_facts_read(struct vmt_host_facts *out);

/*
 * Calls fn for each parameter of kvm, kvm_intel and kvm_amd that may be read, at most 128 of a
 * module, without line end. Errors leave parameters out.
 */
typedef void vmt_kvm_parameter_fn(void *context, const char *module, const char *name,
				  const char *value);
void vmt_kvm_parameters(const struct vmt_hostfs *fs, vmt_kvm_parameter_fn *fn, void *context);

/* A list of CPUs as the kernel writes them ("0-3,8"). Returns how many, at most max. */
size_t vmt_cpu_list_parse(const char *text, int *cpus, size_t max);

/* CPUs that are online now; the caller frees *cpus. 0 when it cannot be known. */
size_t vmt_cpus_online(int **cpus);

#endif
