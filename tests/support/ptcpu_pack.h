// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_TESTS_PTCPU_PACK_H
#define VMT_TESTS_PTCPU_PACK_H
/*
 * The recordings of one run of the emulated CPU with Intel PT: a tar archive (ustar), packed with
 * zstd, whose members are NAME.cpuN.truth, .pt, .aux and .side (virt-fixtures/ptcpu/README.md).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptcpu_pack {
	uint8_t *bytes;
	size_t size;
};

struct ptcpu_member {
	char name[101];
	const uint8_t *bytes;
	size_t size;
	size_t next; /* where the search goes on; 0 at first */
};

/* False (and a message on standard error) when the file cannot be read. */
bool ptcpu_pack_open(struct ptcpu_pack *pack, const char *path);
void ptcpu_pack_close(struct ptcpu_pack *pack);
/* The next member whose name ends in suffix; false at the end. */
bool ptcpu_pack_next(const struct ptcpu_pack *pack, struct ptcpu_member *member,
		     const char *suffix);
/* The member with the same name but another suffix. */
bool ptcpu_pack_beside(const struct ptcpu_pack *pack, const struct ptcpu_member *member,
		       const char *suffix, struct ptcpu_member *other);

#endif
