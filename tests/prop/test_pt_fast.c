/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets in batches against packets one at a time: the engine that this CPU runs gives the bytes
 * of every packet alike, reads the same number, and stands where it stopped, on generated streams,
 * the real ones, random bytes, and streams cut off anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/pt/batch.h"
#include "tests/support/pt_engines.h"
#include "tests/support/pt_files.h"
#include "tests/support/pt_load.h"

static uint64_t state_of_random;

static uint64_t random_bits(void)
{
	uint64_t x = state_of_random += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static void check(const char *what, const uint8_t *bytes, size_t len)
{
	char where[160];

	if (!vmt_pt_engines_agree(bytes, len, where, sizeof(where)))
		fail_msg("%s: %s", what, where);
}

static void generated_streams(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2 * VMT_PTLOAD_KINDS; i++) {
		const struct vmt_ptload_options options = {
			.kind = (enum vmt_ptload_kind)(i / 2),
			.seed = 100 + i,
			.bytes = 2u << 20,
			.event_trace = i % 2,
		};
		struct vmt_ptenc stream;

		vmt_ptload_run(&stream, &options);
		check(vmt_ptload_name(options.kind), stream.bytes, stream.len);
		vmt_ptenc_free(&stream);
	}
}

/* Every cut of a stretch: the reader must stand at the packet that is cut off. */
static void streams_cut_off(void **state)
{
	const struct vmt_ptload_options options = { .seed = 7, .bytes = 4096 };
	struct vmt_ptenc stream;

	(void)state;
	vmt_ptload_run(&stream, &options);
	for (size_t len = 0; len < 1200; len++)
		check("cut off", stream.bytes + len / 2, len);
	vmt_ptenc_free(&stream);
}

/* Bytes by chance, and generated ones of which some are changed. */
static void damaged_streams(void **state)
{
	const struct vmt_ptload_options options = { .seed = 8, .bytes = 1u << 20 };
	struct vmt_ptenc stream;

	(void)state;
	vmt_ptload_run(&stream, &options);
	state_of_random = 3;
	for (unsigned int i = 0; i < 3000; i++)
		stream.bytes[random_bits() % stream.len] = (uint8_t)random_bits();
	check("damaged", stream.bytes, stream.len);
	for (size_t i = 0; i < stream.len; i++)
		stream.bytes[i] = random_bits() % 8 ? (uint8_t)random_bits() : 0x02;
	check("random", stream.bytes, stream.len);
	/* PEBS blocks: BBP now and then, its BIPs read as TNT elsewhere. */
	for (size_t i = 0; i + 3 < stream.len; i += 1 + random_bits() % 300)
		memcpy(stream.bytes + i, "\x02\x63\x84", 3);
	for (size_t i = 0; i + 16 < stream.len; i += 1 + random_bits() % 3000)
		memcpy(stream.bytes + i, "\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82", 16);
	check("blocks", stream.bytes, stream.len);
	vmt_ptenc_free(&stream);
}

static void real_streams(void **state)
{
	struct vmt_pt_files files;

	(void)state;
	if (!vmt_pt_files_load(&files)) {
		print_message("the real streams (../shared/data/pt) are not there\n");
		skip();
	}
	for (size_t i = 0; i < files.n; i++)
		check(files.names[i], files.bytes[i], files.lens[i]);
	vmt_pt_files_free(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_streams),
		cmocka_unit_test(streams_cut_off),
		cmocka_unit_test(damaged_streams),
		cmocka_unit_test(real_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
