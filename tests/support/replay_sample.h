/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_REPLAY_SAMPLE_H
#define VMT_SUPPORT_REPLAY_SAMPLE_H

#include <stdint.h>

/*
 * A finished .vmt to replay: one domain "recorded" with a vCPU (thread 4711), rounds of 20 entries
 * and exits each, round_ns apart. Aborts when it cannot be written.
 */
#define REPLAY_SAMPLE_TID	  4711u
#define REPLAY_SAMPLE_ROUND_EXITS 20u

void replay_sample_write(const char *path, unsigned int rounds, uint64_t round_ns);

#endif
