// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_TESTS_PTCPU_TRUTH_H
#define VMT_TESTS_PTCPU_TRUTH_H
/*
 * Reads the truth log of the emulated CPU with Intel PT (virt-fixtures/ptcpu/truth.h) and keeps the
 * code memory as of the record that was read last.
 */
#include "virt-fixtures/ptcpu/truth.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PTCPU_BLOCK = -1, PTCPU_MAX_VALUES = 10, PTCPU_PAGE = 4096 };

struct ptcpu_record {
	int type; /* enum truth_type, or PTCPU_BLOCK */
	/* as truth.h lists them; of a block: instructions, start address, bytes */
	uint64_t values[PTCPU_MAX_VALUES];
	const uint8_t *image; /* of TRUTH_IMAGE */
};

struct ptcpu_truth;

/* The file's bytes, and those of a file that ends in .zst unpacked; NULL (and a message on standard
 * error) when it cannot be read. The caller frees them. */
uint8_t *ptcpu_read_file(const char *path, size_t *size);

/* bytes must outlive the reader. NULL without memory or magic. */
struct ptcpu_truth *ptcpu_truth_open(const uint8_t *bytes, size_t size);
void ptcpu_truth_close(struct ptcpu_truth *t);
/* 1 a record, 0 end of file, -1 malformed. Images and maps are applied to the memory. */
int ptcpu_truth_next(struct ptcpu_truth *t, struct ptcpu_record *record);
/* Values of the last TRUTH_STATE, and how often it came. */
const uint64_t *ptcpu_truth_state(const struct ptcpu_truth *t);
/* Copies code at that address of an address space, as known now; the bytes that there are. */
size_t ptcpu_truth_read(const struct ptcpu_truth *t, uint64_t cr3, bool nr, uint64_t address,
			uint8_t *bytes, size_t count);

#endif
