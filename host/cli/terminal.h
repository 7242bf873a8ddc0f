/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_TERMINAL_H
#define VMT_CLI_TERMINAL_H

#include <stdbool.h>

#include "host/cli/cli.h"

/* Whether text on a descriptor is coloured (--color, NO_COLOR, TERM). */
bool vmt_cli_color(const struct vmt_cli *cli, int fd);

/* Columns of text on a descriptor: the terminal's width; elsewhere COLUMNS, else 80. */
unsigned int vmt_cli_width(int fd);

#endif
