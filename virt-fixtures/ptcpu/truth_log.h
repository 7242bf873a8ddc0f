// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_TRUTH_LOG_H
#define VMT_PTCPU_TRUTH_LOG_H
/* Writes what truth.h describes, for all processors between truth_open and truth_close. */
#include "virt-fixtures/ptcpu/ptcpu.h"
#include "virt-fixtures/ptcpu/truth.h"

/* Files FOLDER/NAME.cpuN.truth and .pt; false (and a message) when they cannot be made. */
bool truth_open(const char *folder, const char *name);
void truth_close(void);

/* The instruction at ip, len bytes, is about to be executed. */
void truth_begin(struct ptcpu *p, uint64_t ip, unsigned int len);
/* The instruction of the last truth_begin has retired. */
void truth_retire(struct ptcpu *p);
/* Code was decoded anew: compare the page with its image again. */
void truth_decoded(struct ptcpu *p);

void truth_stream(struct ptcpu *p, const uint8_t *bytes, size_t count);
void truth_entry(struct ptcpu *p);
void truth_exit(struct ptcpu *p);
void truth_event(struct ptcpu *p, unsigned int vector, uint64_t from, uint64_t to);
void truth_trace(struct ptcpu *p, bool on, uint64_t ip);
void truth_lost(struct ptcpu *p, enum truth_lost what);
void truth_tsc(struct ptcpu *p, uint64_t tsc, uint64_t seen);
void truth_vmptrld(struct ptcpu *p);
void truth_control(struct ptcpu *p);

#endif
