/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as PT packets in batches: the engines give the same packets as vmt_pt_next, full,
 * careful and skimming. A PSB before them makes the last IP known, so that the fast loop runs; the
 * bytes come twice, so that short inputs fill a round.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_engines.h"

#define LEN_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t psb[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	const size_t n = size < LEN_MAX ? size : LEN_MAX;
	uint8_t *bytes = malloc(sizeof(psb) + 2 * n);
	char where[160];

	if (!bytes)
		abort();
	memcpy(bytes, psb, sizeof(psb));
	if (n) {
		memcpy(bytes + sizeof(psb), data, n);
		memcpy(bytes + sizeof(psb) + n, data, n);
	}
	if (!vmt_pt_engines_agree(bytes, sizeof(psb) + 2 * n, where, sizeof(where))) {
		fprintf(stderr, "%s\n", where);
		abort();
	}
	free(bytes);
	return 0;
}
