// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A .vmt cut off at every byte, and with every single bit of it changed: it is read to the end,
 * nothing is delivered that was not written, the ledger balances, and what is missing is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/store/layout.h"
#include "tests/support/store_sample.h"

#if defined(__SANITIZE_ADDRESS__)
#define STRIDE_CUTS 7u
#define STRIDE_BITS 61u
#else
#define STRIDE_CUTS 1u
#define STRIDE_BITS 1u
#endif

static char folder[] = "/tmp/vmt-damage-XXXXXX";

static struct vmt_sample make(bool compress, uint32_t chunks)
{
	struct vmt_store_options store = { .compress = compress, .segment_bytes = 24576 };
	struct vmt_sample_options options = { .chunks = chunks, .nr_records = 24 };
	char path[64];

	snprintf(path, sizeof(path), "%s/a.vmt", folder);
	return vmt_sample_make(path, &store, &options);
}

static void flip_bits(const struct vmt_sample *s, size_t stride)
{
	uint8_t *copy = malloc(s->len);

	assert_non_null(copy);
	memcpy(copy, s->bytes, s->len);
	for (size_t bit = 0; bit < s->len * 8; bit += stride) {
		const char *wrong;

		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		wrong = vmt_sample_check(s, copy, s->len);
		if (wrong)
			fail_msg("bit %zu changed: %s", bit, wrong);
		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	free(copy);
	print_message("# %zu bits of %zu bytes, every %zu\n", s->len * 8, s->len, stride);
}

static void cut_off(const struct vmt_sample *s, size_t stride)
{
	size_t len;

	for (len = 0; len <= s->len; len += stride) {
		/* A copy of that length, so that a read beyond it is seen by a sanitizer. */
		uint8_t *copy = malloc(len ? len : 1);
		const char *wrong;

		assert_non_null(copy);
		memcpy(copy, s->bytes, len);
		wrong = vmt_sample_check(s, copy, len);
		free(copy);
		if (wrong)
			fail_msg("cut off at %zu: %s", len, wrong);
	}
	print_message("# %zu bytes, every %zu\n", s->len, stride);
}

static void every_bit(void **state)
{
	struct vmt_sample s = make(false, 36);

	(void)state;
	assert_true(s.len >= 65536);
	assert_null(vmt_sample_check(&s, s.bytes, s.len));
	flip_bits(&s, STRIDE_BITS);
	vmt_sample_free(&s);
}

static void bits_of_compressed_chunks(void **state)
{
	struct vmt_sample s = make(true, 66);

	(void)state;
	assert_true(s.len >= 65536);
	assert_null(vmt_sample_check(&s, s.bytes, s.len));
	flip_bits(&s, (size_t)31 * STRIDE_BITS);
	vmt_sample_free(&s);
}

static void every_length(void **state)
{
	struct vmt_sample s = make(false, 36);

	(void)state;
	cut_off(&s, STRIDE_CUTS);
	vmt_sample_free(&s);
	s = make(true, 66);
	cut_off(&s, (size_t)7 * STRIDE_CUTS);
	vmt_sample_free(&s);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Pieces cut out, doubled, zeroed, overwritten or put elsewhere. */
static void pieces_moved(void **state)
{
	struct vmt_sample s = make(false, 36);
	uint8_t *copy = malloc(s.len * 2);
	uint64_t x = 88172645463325252u;

	(void)state;
	assert_non_null(copy);
	for (int i = 0; i < 3000; i++) {
		size_t from = next_random(&x) % s.len, to = 8 + next_random(&x) % (s.len - 8);
		size_t n = 1 + next_random(&x) % 9000, len = s.len;
		const char *wrong;

		memcpy(copy, s.bytes, s.len);
		n = n < s.len - from ? n : s.len - from;
		n = n < s.len - to ? n : s.len - to;
		if (i % 4 == 0) {
			memset(copy + to, 0, n);
		} else if (i % 4 == 1) {
			memmove(copy + to, copy + to + n, s.len - to - n);
			len -= n;
		} else if (i % 4 == 2) {
			memcpy(copy + to, s.bytes + from, n);
		} else {
			memcpy(copy + to, s.bytes + from, n);
			memcpy(copy + to + n, s.bytes + to, s.len - to);
			len += n;
		}
		wrong = vmt_sample_check(&s, copy, len);
		if (wrong)
			fail_msg("round %d: %s", i, wrong);
	}
	free(copy);
	vmt_sample_free(&s);
}

/*
 * Nothing but headers that are right and claim 16 MiB each: to check every one's payload would take
 * minutes.
 */
static void headers_without_payloads(void **state)
{
	size_t len = VMT_CHUNK_PAYLOAD_MAX + (1u << 20);
	uint8_t *bytes = malloc(len);
	struct vmt_store_reader *store;
	struct vmt_item item;
	struct vmt_ledger l;

	(void)state;
	assert_non_null(bytes);
	for (size_t at = 0; at + VMT_STORE_HEADER <= len; at += VMT_STORE_HEADER) {
		struct vmt_store_header h = { .version = VMT_STORE_VERSION,
					      .type = VMT_CHUNK_RECORDS,
					      .header_len = VMT_STORE_HEADER,
					      .sequence = at,
					      .stored_len = VMT_CHUNK_PAYLOAD_MAX,
					      .raw_len = VMT_CHUNK_PAYLOAD_MAX,
					      .payload_hash = at };

		vmt_store_header_encode(&h, bytes + at);
	}
	assert_int_equal(vmt_store_open(&store, vmt_sample_reader(bytes, len), NULL), 0);
	while (vmt_store_next(store, &item, NULL) == 1)
		assert_int_equal(item.type, VMT_ITEM_LOSS);
	l = vmt_store_ledger(store);
	assert_int_equal(l.bytes_skipped, l.bytes_total);
	vmt_store_close(store);
	free(bytes);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bit),
		cmocka_unit_test(bits_of_compressed_chunks),
		cmocka_unit_test(every_length),
		cmocka_unit_test(pieces_moved),
		cmocka_unit_test(headers_without_payloads),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
