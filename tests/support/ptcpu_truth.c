// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: images[n] is image number n; maps is an open-addressed table that is at most half
 * full. */
#include "tests/support/ptcpu_truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

struct map {
	uint64_t space, page; /* space: CR3 << 1 | NR */
	const uint8_t *image; /* NULL: free */
};

struct ptcpu_truth {
	const uint8_t *at, *end;
	uint64_t last_end;
	uint64_t state[PTCPU_MAX_VALUES];
	const uint8_t **images;
	size_t image_count, image_room;
	struct map *maps;
	size_t map_count, map_room; /* room: a power of two */
};

static uint8_t *unpack(uint8_t *packed, size_t *size)
{
	const unsigned long long room = ZSTD_getFrameContentSize(packed, *size);
	uint8_t *bytes = NULL;
	size_t n;

	if (room < 1ULL << 32)
		bytes = malloc((size_t)room + 1);
	if (bytes) {
		n = ZSTD_decompress(bytes, (size_t)room, packed, *size);
		if (ZSTD_isError(n) || n != room) {
			free(bytes);
			bytes = NULL;
		}
		*size = n;
	}
	free(packed);
	return bytes;
}

uint8_t *ptcpu_read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = NULL;
	long end = -1;

	if (f && fseek(f, 0, SEEK_END) == 0)
		end = ftell(f);
	if (end >= 0 && fseek(f, 0, SEEK_SET) == 0)
		bytes = malloc((size_t)end + 1);
	if (bytes && fread(bytes, 1, (size_t)end, f) == (size_t)end) {
		*size = (size_t)end;
		if (strlen(path) > 4 && !strcmp(path + strlen(path) - 4, ".zst"))
			bytes = unpack(bytes, size);
	} else {
		free(bytes);
		bytes = NULL;
	}
	if (f)
		fclose(f);
	if (!bytes)
		fprintf(stderr, "%s cannot be read\n", path);
	return bytes;
}

struct ptcpu_truth *ptcpu_truth_open(const uint8_t *bytes, size_t size)
{
	struct ptcpu_truth *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->map_room = 1024;
	t->maps = calloc(t->map_room, sizeof(*t->maps));
	if (!t->maps || size < 8 || memcmp(bytes, TRUTH_MAGIC, 8) != 0) {
		ptcpu_truth_close(t);
		return NULL;
	}
	t->at = bytes + 8;
	t->end = bytes + size;
	return t;
}

void ptcpu_truth_close(struct ptcpu_truth *t)
{
	if (!t)
		return;
	free(t->images);
	free(t->maps);
	free(t);
}

const uint64_t *ptcpu_truth_state(const struct ptcpu_truth *t)
{
	return t->state;
}

static bool read_u(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; *at < end && shift < 64; shift += 7) {
		const uint8_t b = *(*at)++;

		*value |= (uint64_t)(b & 127) << shift;
		if (!(b & 128))
			return true;
	}
	return false;
}

static size_t slot(const struct ptcpu_truth *t, uint64_t space, uint64_t page)
{
	size_t i = (size_t)((space ^ page << 21) * 0x9e3779b97f4a7c15 >> 32) & (t->map_room - 1);

	while (t->maps[i].image && (t->maps[i].space != space || t->maps[i].page != page))
		i = (i + 1) & (t->map_room - 1);
	return i;
}

static bool grow(struct ptcpu_truth *t)
{
	struct map *old = t->maps;
	const size_t room = t->map_room;

	t->maps = calloc(room * 2, sizeof(*old));
	if (!t->maps) {
		t->maps = old;
		return false;
	}
	t->map_room = room * 2;
	for (size_t i = 0; i < room; i++)
		if (old[i].image)
			t->maps[slot(t, old[i].space, old[i].page)] = old[i];
	free(old);
	return true;
}

static bool add_map(struct ptcpu_truth *t, uint64_t page, uint64_t number)
{
	const uint64_t space = t->state[4] << 1 | t->state[1];
	size_t i;

	if (number >= t->image_count || (t->map_count * 2 >= t->map_room && !grow(t)))
		return false;
	i = slot(t, space, page);
	t->map_count += !t->maps[i].image;
	t->maps[i] = (struct map){ space, page, t->images[number] };
	return true;
}

static bool add_image(struct ptcpu_truth *t, const uint8_t *image)
{
	if (t->image_count == t->image_room) {
		const size_t room = t->image_room ? t->image_room * 2 : 256;
		const uint8_t **images = realloc(t->images, room * sizeof(*images));

		if (!images)
			return false;
		t->images = images;
		t->image_room = room;
	}
	t->images[t->image_count++] = image;
	return true;
}

static int read_block(struct ptcpu_truth *t, unsigned int count, struct ptcpu_record *r)
{
	uint64_t step;

	r->type = PTCPU_BLOCK;
	r->values[0] = count;
	if (!read_u(&t->at, t->end, &step) || !read_u(&t->at, t->end, &r->values[2]))
		return -1;
	r->values[1] = t->last_end + (step >> 1 ^ (0 - (step & 1)));
	t->last_end = r->values[1] + r->values[2];
	return 1;
}

int ptcpu_truth_next(struct ptcpu_truth *t, struct ptcpu_record *r)
{
	const uint8_t *at, *end;
	uint64_t count;
	unsigned int b;

	*r = (struct ptcpu_record){ .type = 0 };
	if (t->at == t->end)
		return 0;
	b = *t->at++;
	if (b < 128)
		return b ? read_block(t, b, r) : -1;
	if (!read_u(&t->at, t->end, &count) || count > (uint64_t)(t->end - t->at))
		return -1;
	r->type = (int)b - 128;
	at = t->at;
	end = t->at += count;
	if (r->type == TRUTH_IMAGE) {
		r->image = at;
		return count == PTCPU_PAGE && add_image(t, at) ? 1 : -1;
	}
	for (size_t i = 0; at < end && i < PTCPU_MAX_VALUES; i++)
		if (!read_u(&at, end, &r->values[i]))
			return -1;
	if (r->type == TRUTH_STATE)
		memcpy(t->state, r->values, sizeof(t->state));
	return r->type != TRUTH_MAP || add_map(t, r->values[0], r->values[1]) ? 1 : -1;
}

size_t ptcpu_truth_read(const struct ptcpu_truth *t, uint64_t cr3, bool nr, uint64_t address,
			uint8_t *bytes, size_t count)
{
	size_t done = 0;

	while (done < count) {
		const uint64_t from = address + done;
		const uint8_t *image = t->maps[slot(t, cr3 << 1 | nr, from >> 12)].image;
		size_t n = PTCPU_PAGE - (from & (PTCPU_PAGE - 1));

		if (!image)
			break;
		n = n < count - done ? n : count - done;
		memcpy(bytes + done, image + (from & (PTCPU_PAGE - 1)), n);
		done += n;
	}
	return done;
}
