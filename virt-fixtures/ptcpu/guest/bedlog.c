// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs in the emulated system: starts and ends the truth log round programs that know nothing of
 * the bed. usage: bedlog begin NAME | bedlog end
 */
#include "virt-fixtures/ptcpu/guest/bed.h"

#include <stdio.h>
#include <sys/io.h>

int main(int argc, char **argv)
{
	if (argc < 2 || iopl(3)) {
		fputs("usage: bedlog begin NAME | bedlog end\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "begin") && argc == 3)
		bed_name(PTCPU_CALL_BEGIN, argv[2]);
	else
		bed_call(PTCPU_CALL_END, 0, 0);
	return 0;
}
