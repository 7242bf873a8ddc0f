/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Code images: what covers an address in a context and at a time, beside a plain search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "decode/flow/image.h"

static const struct vmt_image_space any = { .world = VMT_IMAGE_ANY };

static struct vmt_image *new_image(void)
{
	struct vmt_image *image = vmt_image_new();

	assert_non_null(image);
	return image;
}

static void add(struct vmt_image *image, struct vmt_image_space space, uint64_t addr,
		const char *bytes, uint64_t from)
{
	assert_int_equal(vmt_image_add(image, &space, addr, (const uint8_t *)bytes, strlen(bytes),
				       from, NULL),
			 0);
}

static void seal(struct vmt_image *image)
{
	assert_int_equal(vmt_image_seal(image, NULL), 0);
}

/* As text, '.' where there is none. */
static void read_text(const struct vmt_image *image, struct vmt_image_context where, uint64_t addr,
		      uint64_t time, char *text, size_t len)
{
	const struct vmt_image_view view = vmt_image_view_of(image, &where);
	struct vmt_image_span span;

	for (size_t i = 0; i < len; i++)
		text[i] = vmt_image_find(image, &view, addr + i, time, &span) ? (char)span.bytes[0]
									      : '.';
	text[len] = '\0';
}

static void expect(const struct vmt_image *image, struct vmt_image_context where, uint64_t addr,
		   uint64_t time, const char *expected)
{
	char text[64];

	read_text(image, where, addr, time, text, strlen(expected));
	assert_string_equal(text, expected);
}

static void sections_side_by_side_and_over_each_other(void **state)
{
	const struct vmt_image_context host = { .nonroot = false };
	struct vmt_image *image = new_image();

	(void)state;
	add(image, any, 0x1000, "aaaaaaaa", 0);
	add(image, any, 0x1002, "bb", 0); /* added later, at the same time: it counts */
	add(image, any, 0x1008, "cc", 0);
	add(image, any, 0x100c, "dd", 0);
	seal(image);
	expect(image, host, 0xfff, 0, ".aabbaaaacc..dd.");
	vmt_image_free(image);
}

static void later_versions_hold_from_their_time_on(void **state)
{
	const struct vmt_image_context host = { .nonroot = false };
	struct vmt_image *image = new_image();
	struct vmt_image_view view;
	struct vmt_image_span span;

	(void)state;
	add(image, any, 0x1000, "aaaaaa", 0);
	add(image, any, 0x1003, "C", 20);
	add(image, any, 0x1002, "bbb", 10);
	add(image, any, 0x1006, "dd", 30);
	seal(image);
	expect(image, host, 0x1000, 0, "aaaaaa..");
	expect(image, host, 0x1000, 9, "aaaaaa..");
	expect(image, host, 0x1000, 10, "aabbba..");
	expect(image, host, 0x1000, 25, "aabCba..");
	expect(image, host, 0x1000, UINT64_MAX, "aabCbadd");
	view = vmt_image_view_of(image, &host);
	assert_true(vmt_image_find(image, &view, 0x1003, 12, &span));
	assert_int_equal(span.from, 10);
	assert_int_equal(span.until, 20);
	assert_int_equal(span.len, 1);
	assert_true(vmt_image_find(image, &view, 0x1000, 12, &span));
	assert_int_equal(span.until, UINT64_MAX);
	assert_int_equal(span.len, 2);
	vmt_image_free(image);
}

static void a_narrow_space_hides_a_wide_one(void **state)
{
	const struct vmt_image_space guest = { .world = VMT_IMAGE_GUEST };
	const struct vmt_image_space process = { VMT_IMAGE_GUEST, true, false, 0x5000, 0 };
	const struct vmt_image_context in_host = { .has_cr3 = true, .cr3 = 0x5000 };
	const struct vmt_image_context in_guest = { .nonroot = true };
	const struct vmt_image_context in_process = { .nonroot = true,
						      .has_cr3 = true,
						      .cr3 = 0x5000 };
	struct vmt_image *image = new_image();
	struct vmt_image_view view;
	struct vmt_image_span span;

	(void)state;
	add(image, any, 0x1000, "aaaaaaaa", 0);
	add(image, guest, 0x1002, "ggg", 0);
	add(image, process, 0x1003, "p", 7);
	seal(image);
	expect(image, in_host, 0x1000, 9, "aaaaaaaa");
	expect(image, in_guest, 0x1000, 9, "aagggaaa");
	expect(image, in_process, 0x1000, 9, "aagpgaaa");
	expect(image, in_process, 0x1000, 6, "aagggaaa");
	/* The wide one reaches to where the narrow one begins, and as long as that is not there. */
	view = vmt_image_view_of(image, &in_process);
	assert_true(vmt_image_find(image, &view, 0x1000, 6, &span));
	assert_int_equal(span.len, 2);
	assert_true(vmt_image_find(image, &view, 0x1003, 6, &span));
	assert_int_equal(span.until, 7);
	vmt_image_free(image);
}

static void reading_goes_across_sections_and_to_the_end_of_addresses(void **state)
{
	const struct vmt_image_context host = { .nonroot = false };
	struct vmt_image *image = new_image();
	struct vmt_image_view view;
	uint64_t from, until;
	const uint8_t *at;
	uint8_t buf[15];

	(void)state;
	add(image, any, 0x1000, "abc", 3);
	add(image, any, 0x1003, "def", 5);
	add(image, any, UINT64_MAX - 1, "yz", 0);
	add(image, any, 0, "0", 0);
	seal(image);
	view = vmt_image_view_of(image, &host);
	assert_int_equal(vmt_image_read(image, &view, 0x1001, 8, buf, 15, &at, &from, &until), 5);
	assert_memory_equal(at, "bcdef", 5);
	assert_int_equal(from, 5);
	assert_int_equal(until, UINT64_MAX);
	assert_int_equal(vmt_image_read(image, &view, 0x1001, 4, buf, 15, &at, &from, &until), 2);
	assert_int_equal(vmt_image_read(image, &view, UINT64_MAX - 1, 4, buf, 15, &at, &from,
					&until),
			 2);
	assert_int_equal(vmt_image_read(image, &view, 0x2000, 4, buf, 15, &at, &from, &until), 0);
	vmt_image_free(image);
}

static void what_is_no_section_is_refused(void **state)
{
	struct vmt_diag diag = { 0 };
	struct vmt_image *image = new_image();
	const uint8_t bytes[4] = { 0 };

	(void)state;
	assert_int_equal(vmt_image_add(image, &any, 0x1000, bytes, 0, 0, &diag), VMT_E_USAGE);
	assert_int_equal(vmt_image_add(image, &any, UINT64_MAX - 2, bytes, 4, 0, NULL),
			 VMT_E_USAGE);
	assert_int_equal(vmt_image_add(image, &any, UINT64_MAX - 3, bytes, 4, 0, NULL), 0);
	for (uint64_t i = 0; i < VMT_IMAGE_SPACES_MAX - 1; i++) {
		const struct vmt_image_space space = { VMT_IMAGE_HOST, true, false, i << 12, 0 };

		assert_int_equal(vmt_image_add(image, &space, 0, bytes, 4, 0, NULL), 0);
	}
	assert_int_equal(vmt_image_add(image, &(struct vmt_image_space){ .world = VMT_IMAGE_GUEST },
				       0, bytes, 4, 0, NULL),
			 VMT_E_LIMIT);
	vmt_image_free(image);
}

/* Every byte and time of random sections against a search from the last one added. */
static void random_sections_against_a_search(void **state)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const struct vmt_image_context host = { .nonroot = false };
	uint64_t random = 1;

	(void)state;
	for (unsigned int round = 0; round < 300; round++) {
		struct vmt_image *image = new_image();
		struct {
			uint64_t addr, len, from;
		} s[20];
		char bytes[20][40];

		for (unsigned int i = 0; i < 20; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			s[i].addr = random >> 40 & 63;
			s[i].len = 1 + (random >> 50 & 31);
			s[i].from = random >> 58 & 7;
			memset(bytes[i], letters[i], s[i].len);
			bytes[i][s[i].len] = '\0';
			add(image, any, s[i].addr, bytes[i], s[i].from);
		}
		seal(image);
		for (uint64_t time = 0; time < 9; time++) {
			char expected[101], text[101];

			for (uint64_t at = 0; at < 100; at++) {
				int best = -1;

				for (int i = 0; i < 20; i++)
					if (at >= s[i].addr && at - s[i].addr < s[i].len &&
					    s[i].from <= time &&
					    (best < 0 || s[i].from >= s[best].from))
						best = i;
				expected[at] = best < 0 ? '.' : letters[best];
			}
			expected[100] = '\0';
			read_text(image, host, 0, time, text, 100);
			assert_string_equal(text, expected);
		}
		vmt_image_free(image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_side_by_side_and_over_each_other),
		cmocka_unit_test(later_versions_hold_from_their_time_on),
		cmocka_unit_test(a_narrow_space_hides_a_wide_one),
		cmocka_unit_test(reading_goes_across_sections_and_to_the_end_of_addresses),
		cmocka_unit_test(what_is_no_section_is_refused),
		cmocka_unit_test(random_sections_against_a_search),
	};

	return cmocka_run_group_tests_name("flow image", tests, NULL, NULL);
}
