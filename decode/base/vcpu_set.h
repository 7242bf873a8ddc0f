/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_VCPU_SET_H
#define VMT_BASE_VCPU_SET_H

#include <stdbool.h>
#include <stdint.h>

/* vCPUs by their numbers; all zero: the empty set. KVM allows 1024 in a guest on x86. */
#define VMT_VCPU_SET_MAX 1024u

struct vmt_vcpu_set {
	uint64_t words[VMT_VCPU_SET_MAX / 64];
};

/* False for a number that no set can hold. */
static inline bool vmt_vcpu_set_add(struct vmt_vcpu_set *set, uint64_t vcpu)
{
	if (vcpu >= VMT_VCPU_SET_MAX)
		return false;
	set->words[vcpu / 64] |= UINT64_C(1) << vcpu % 64;
	return true;
}

static inline bool vmt_vcpu_set_has(const struct vmt_vcpu_set *set, uint64_t vcpu)
{
	return vcpu < VMT_VCPU_SET_MAX && (set->words[vcpu / 64] >> vcpu % 64 & 1);
}

#endif
