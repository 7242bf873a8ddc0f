// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/remove_all.h"

#include <ftw.h>
#include <stdio.h>

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

int vmt_remove_all(const char *top)
{
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
