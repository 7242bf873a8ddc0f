// SPDX-License-Identifier: LGPL-2.1-or-later
/* Any sequence of chunks, under any options and whatever the system reads at a time, comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/store/store.h"

#define ROUNDS	   300
#define CHUNKS_MAX 60
#define LEN_MAX	   70000u

static char folder[] = "/tmp/vmt-roundtrip-XXXXXX";
static char path[64];
static uint64_t x = 88172645463325252u;

static uint64_t random_below(uint64_t n)
{
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % n;
}

static ssize_t read_some(int fd, void *buf, size_t len)
{
	size_t most = 1 + random_below(random_below(2) ? 100 : 100000);

	return read(fd, buf, len < most ? len : most);
}

struct kept {
	enum vmt_chunk_type type;
	uint32_t stream;
	uint8_t *bytes;
	size_t len;
};

/* Bytes that compress well, badly or not at all. */
static struct kept random_chunk(void)
{
	static const enum vmt_chunk_type types[] = { VMT_CHUNK_SESSION, VMT_CHUNK_FORMAT,
						     VMT_CHUNK_RECORDS, VMT_CHUNK_RECORDS,
						     VMT_CHUNK_RECORDS, VMT_CHUNK_ROUND,
						     VMT_CHUNK_MARK,	VMT_CHUNK_ANCHOR };
	struct kept k = { .type = types[random_below(8)], .stream = (uint32_t)random_below(9) };
	uint64_t spread = 1 + random_below(256);

	if (k.type != VMT_CHUNK_ROUND)
		k.len = random_below(1 + random_below(LEN_MAX));
	if (k.type == VMT_CHUNK_ANCHOR)
		k.len = k.len / sizeof(struct vmt_anchor) * sizeof(struct vmt_anchor);
	k.bytes = malloc(k.len + 1);
	assert_non_null(k.bytes);
	for (size_t i = 0; i < k.len; i++)
		k.bytes[i] = (uint8_t)random_below(spread);
	return k;
}

static void append(struct vmt_store_writer *w, const struct kept *k)
{
	struct vmt_store_chunk chunk = { .type = k->type, .stream = k->stream, .cpu = -1 };
	size_t at = 0;

	chunk.nr_parts = k->len ? 1 + (unsigned int)random_below(4) : (unsigned int)random_below(2);
	for (unsigned int i = 0; i < chunk.nr_parts; i++) {
		size_t len = i + 1 == chunk.nr_parts ? k->len - at : random_below(k->len - at + 1);

		chunk.parts[i] = (struct vmt_store_part){ k->bytes + at, len };
		at += len;
	}
	assert_int_equal(vmt_store_append(w, &chunk, NULL), 0);
}

static bool seen_before(const struct kept *kept, size_t n)
{
	for (size_t i = 0; i < n && kept[n].type == VMT_CHUNK_FORMAT; i++)
		if (kept[i].type == VMT_CHUNK_FORMAT && kept[i].len == kept[n].len &&
		    !memcmp(kept[i].bytes, kept[n].bytes, kept[n].len))
			return true;
	return false;
}

static void compare(struct vmt_store_reader *store, const struct kept *kept, size_t n)
{
	struct vmt_item item;
	struct vmt_ledger l;

	for (size_t i = 0; i < n; i++) {
		if (seen_before(kept, i))
			continue;
		assert_int_equal(vmt_store_next(store, &item, NULL), 1);
		assert_int_equal(item.type, kept[i].type);
		assert_int_equal(item.stream, kept[i].stream);
		assert_int_equal(item.len, kept[i].len);
		if (item.len)
			assert_memory_equal(item.data, kept[i].bytes, item.len);
		assert_int_equal((uintptr_t)item.data % 8, 0);
	}
	assert_int_equal(vmt_store_next(store, &item, NULL), 1);
	assert_int_equal(item.type, VMT_ITEM_END);
	assert_int_equal(vmt_store_next(store, &item, NULL), 0);
	l = vmt_store_ledger(store);
	assert_int_equal(l.bytes_total, l.bytes_decoded);
	assert_int_equal(l.bytes_skipped, 0);
}

static void what_is_written_is_read(void **state)
{
	struct vmt_io_ops ops = vmt_io_system;

	(void)state;
	ops.read = read_some;
	for (int round = 0; round < ROUNDS; round++) {
		struct vmt_store_options options = { .compress = random_below(2) };
		struct kept kept[CHUNKS_MAX];
		size_t n = random_below(CHUNKS_MAX);
		struct vmt_store_writer *w;
		struct vmt_reader *reader;
		struct vmt_store_reader *store;

		assert_int_equal(vmt_store_create(&w, path, &options, NULL), 0);
		for (size_t i = 0; i < n; i++) {
			kept[i] = random_chunk();
			append(w, &kept[i]);
		}
		assert_int_equal(vmt_store_finish(w, NULL), 0);
		assert_int_equal(vmt_reader_open(&reader, path, &ops, NULL), 0);
		assert_int_equal(vmt_store_open(&store, reader, NULL), 0);
		compare(store, kept, n);
		vmt_store_close(store);
		unlink(path);
		for (size_t i = 0; i < n; i++)
			free(kept[i].bytes);
	}
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.vmt", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
