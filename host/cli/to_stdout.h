/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_TO_STDOUT_H
#define VMT_CLI_TO_STDOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "decode/base/diag.h"

/*
 * `-o -` of verbs that write a capture: a capture is a file while it is written, so it is made in
 * the sessions' data folder, and goes to standard output when it is finished.
 */

/* Whether an output (NULL: the default one) is standard output. */
bool vmt_is_stdout(const char *output);

/* Refuses a terminal, which a capture would only garble: VMT_E_USAGE with diag. */
int vmt_to_stdout_check(struct vmt_diag *diag);

/* A name in the data folder that nobody else uses. Errors of vmt_path_data. */
int vmt_to_stdout_path(char *path, size_t size, struct vmt_diag *diag);

/* Removes the file's name and copies the file to standard output. VMT_E_IO, VMT_E_FULL, … */
int vmt_to_stdout(const char *path, struct vmt_diag *diag);

#endif
