// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/ptcpu_pack.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/ptcpu_truth.h"

enum { BLOCK = 512, NAME_BYTES = 100, SIZE_AT = 124, SIZE_DIGITS = 11 };

bool ptcpu_pack_open(struct ptcpu_pack *pack, const char *path)
{
	pack->bytes = ptcpu_read_file(path, &pack->size);
	return pack->bytes != NULL;
}

void ptcpu_pack_close(struct ptcpu_pack *pack)
{
	free(pack->bytes);
	pack->bytes = NULL;
}

static bool ends_in(const char *name, const char *suffix)
{
	const size_t n = strlen(name), m = strlen(suffix);

	return n >= m && !strcmp(name + n - m, suffix);
}

bool ptcpu_pack_next(const struct ptcpu_pack *pack, struct ptcpu_member *m, const char *suffix)
{
	while (m->next + BLOCK <= pack->size && pack->bytes[m->next]) {
		const uint8_t *head = pack->bytes + m->next;
		char digits[SIZE_DIGITS + 1] = { 0 };
		size_t size;

		memcpy(m->name, head, NAME_BYTES);
		m->name[NAME_BYTES] = 0;
		memcpy(digits, head + SIZE_AT, SIZE_DIGITS);
		size = strtoull(digits, NULL, 8);
		if (size > pack->size - m->next - BLOCK)
			return false;
		m->bytes = head + BLOCK;
		m->size = size;
		m->next += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
		if (ends_in(m->name, suffix))
			return true;
	}
	return false;
}

bool ptcpu_pack_beside(const struct ptcpu_pack *pack, const struct ptcpu_member *member,
		       const char *suffix, struct ptcpu_member *other)
{
	const size_t stem = (size_t)(strrchr(member->name, '.') - member->name);

	*other = (struct ptcpu_member){ .next = 0 };
	while (ptcpu_pack_next(pack, other, suffix))
		if (!strncmp(other->name, member->name, stem) &&
		    strlen(other->name) == stem + strlen(suffix))
			return true;
	return false;
}
