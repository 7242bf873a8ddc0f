/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_HASH_H
#define VMT_STORE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* XXH3, 64 bits, seed 0, of some bytes and of the parts one behind the other. */
uint64_t vmt_store_hash(const void *bytes, size_t len);
uint64_t vmt_store_hash_parts(const struct iovec *parts, int n);

#endif
