// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gen_ptvmt OUT.vmt [SEED [PIECE]]
 * Writes a capture with kvm records and Intel PT of two CPUs, in pieces of PIECE bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/pt_capture.h"

int main(int argc, char **argv)
{
	struct vmt_pt_capture capture;

	if (argc < 2 || argc > 4) {
		fputs("usage: gen_ptvmt OUT.vmt [SEED [PIECE]]\n", stderr);
		return 2;
	}
	vmt_pt_capture_write(&capture, argv[1], argc > 2 ? strtoull(argv[2], NULL, 0) : 1,
			     argc > 3 ? strtoull(argv[3], NULL, 0) : 4093);
	vmt_pt_capture_free(&capture);
	return 0;
}
