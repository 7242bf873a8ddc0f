/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_MEMORY_FILE_H
#define VMT_SUPPORT_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* A file in memory that holds a copy of the bytes and can seek; aborts when there is none. */
int vmt_memory_file(const uint8_t *bytes, size_t len);

/* The reading end of a pipe that delivers the bytes and ends; at most 1 MiB. */
int vmt_memory_pipe(const uint8_t *bytes, size_t len);

#endif
