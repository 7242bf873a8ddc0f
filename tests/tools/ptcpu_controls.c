// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the emulated CPU with Intel PT found at its VM entries (virt-fixtures/ptcpu/truth.h), as
 * JSON: how many entries had which controls.
 * usage: ptcpu_controls FILE.truth...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/ptcpu_truth.h"

enum { KINDS_MAX = 64, VALUES = 5 };

struct kinds {
	size_t nr;
	struct {
		uint64_t values[VALUES], entries;
	} rows[KINDS_MAX];
};

static int count(struct kinds *kinds, const uint64_t values[VALUES])
{
	size_t i = 0;

	while (i < kinds->nr && memcmp(kinds->rows[i].values, values, sizeof(uint64_t) * VALUES))
		i++;
	if (i == KINDS_MAX)
		return -1;
	if (i == kinds->nr)
		memcpy(kinds->rows[kinds->nr++].values, values, sizeof(uint64_t) * VALUES);
	kinds->rows[i].entries++;
	return 0;
}

static int read_truth(struct kinds *kinds, const char *path)
{
	struct ptcpu_record record;
	size_t size;
	uint8_t *bytes = ptcpu_read_file(path, &size);
	struct ptcpu_truth *truth = bytes ? ptcpu_truth_open(bytes, size) : NULL;
	int more = truth ? 1 : -1;

	while (more == 1) {
		more = ptcpu_truth_next(truth, &record);
		if (more == 1 && record.type == TRUTH_ENTRY_CONTROLS && count(kinds, record.values))
			more = -1;
	}
	if (truth)
		ptcpu_truth_close(truth);
	free(bytes);
	return more;
}

int main(int argc, char **argv)
{
	static const char *const names[VALUES] = { "secondary", "exit", "entry", "guest_ctl",
						   "host_ctl" };
	struct kinds kinds = { 0 };

	for (int i = 1; i < argc; i++) {
		if (read_truth(&kinds, argv[i])) {
			fprintf(stderr, "ptcpu_controls: %s cannot be read\n", argv[i]);
			return 1;
		}
	}
	for (size_t i = 0; i < kinds.nr; i++) {
		printf("{\"entries\":%" PRIu64, kinds.rows[i].entries);
		for (size_t v = 0; v < VALUES; v++)
			printf(",\"%s\":%" PRIu64, names[v], kinds.rows[i].values[v]);
		puts("}");
	}
	return 0;
}
