// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool vmt_cli_color(const struct vmt_cli *cli, int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (cli->color)
		return cli->color == 1;
	return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

unsigned int vmt_cli_width(int fd)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	unsigned long n;

	if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	n = columns ? strtoul(columns, NULL, 10) : 0;
	return n > 0 && n < 10000 ? (unsigned int)n : 80;
}
