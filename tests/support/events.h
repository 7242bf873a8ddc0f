/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_EVENTS_H
#define VMT_SUPPORT_EVENTS_H

#include <stdint.h>

#include "decode/analyze/report.h"
#include "decode/base/event.h"

/* Events as the join makes them, for tests of what comes behind it. */

/* Entry of a vCPU of domain 0; thread 1000 + vcpu. */
struct vmt_event vmt_make_entry(uint32_t vcpu, uint64_t time_ns);
/* VMX exit that lasts until the next entry; the whole duration is KVM's (all parts 0). */
struct vmt_event vmt_make_exit(uint32_t vcpu, uint64_t time_ns, uint64_t duration_ns,
			       uint32_t reason, uint64_t rip);
struct vmt_event vmt_make_mark(uint64_t time_ns, const char *name);
struct vmt_event vmt_make_loss(uint64_t time_ns, uint64_t lost);

/* Exit and following entry at once: returns the time of the entry. */
uint64_t vmt_feed_exit(struct vmt_report_builder *b, struct vmt_event exit);

struct vmt_key vmt_make_key(enum vmt_key_kind kind, uint64_t number, enum vmt_access access);

/* Options for everything, by reason and key. */
struct vmt_report_options vmt_make_options(void);
/* Facts of a capture of one domain web01 with context switches, closed in order. */
struct vmt_input_facts vmt_make_facts(uint64_t start_ns, uint64_t stop_ns, unsigned int vcpus);
struct vmt_ledger vmt_make_ledger(uint64_t bytes);

/* The finding of that id, or NULL. */
const struct vmt_verdict *vmt_verdict_of(const struct vmt_report *r, const char *id);

/* xorshift, for properties that are the same in every run. */
uint64_t vmt_test_random(uint64_t *state);

#endif
