/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_KVM_LOAD_H
#define VMT_SUPPORT_KVM_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/event.h"
#include "tests/support/perfdata_file.h"

/*
 * The kvm records of a busy host, one vCPU a CPU, without end and without repetition: entries,
 * exits of a dozen reasons and the records that give their sub-keys, in the layout of a
 * vmt_perfdata_file. Fast enough to feed gigabytes through a pipe. Every exit is followed by an
 * entry, so that each one counts for `perf kvm stat report` as well.
 */
struct vmt_kvm_load;

/* The events it writes, NULL ended: the `events` of the file's options. */
extern const char *const vmt_kvm_load_events[];

struct vmt_kvm_load *vmt_kvm_load_new(const struct vmt_perfdata_file *file, enum vmt_isa isa,
				      unsigned int cpus, uint64_t seed);
void vmt_kvm_load_free(struct vmt_kvm_load *load);

/*
 * Appends the records of one ring up to end_ns to `out`, and at most max_records (a few more, so
 * that the last exit has its entry). Returns how many.
 */
uint64_t vmt_kvm_load_ring(struct vmt_kvm_load *load, unsigned int cpu, uint64_t end_ns,
			   uint64_t max_records, struct vmt_stream *out);

/* Writes rounds of all rings into the file until there are nr_records. Returns how many. */
uint64_t vmt_kvm_load_fill(struct vmt_kvm_load *load, struct vmt_perfdata_file *file,
			   uint64_t nr_records, int with_rounds);

/* How many exits of that reason were written, and all. */
uint64_t vmt_kvm_load_exits(const struct vmt_kvm_load *load, uint32_t reason);
uint64_t vmt_kvm_load_all_exits(const struct vmt_kvm_load *load);

#define VMT_KVM_LOAD_START_NS UINT64_C(5000000000)
#define VMT_KVM_LOAD_PID      4000u /* of the VMM; vCPU n is thread PID + 1 + n */

#endif
