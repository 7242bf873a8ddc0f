// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The emulated CPU's streams (virt-fixtures/ptcpu) through libipt's instruction flow decoder: every
 * instruction that the emulator retired while PacketEn was 1, with the code as it was at that time.
 * Streams with Event Trace are left out, libipt 2.0 does not know it. The packs of
 * tests/golden/ptcpu, or those that are named as arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if __has_include(<intel-pt.h>)

#include <glob.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/ptcpu_pack.h"
#include "tests/support/ptcpu_truth.h"

enum { MAX_TESTS = 64 };
#define CTL_TRACE_EN (1ULL << 0)
#define CTL_BRANCH   (1ULL << 13)
#define CTL_EVENTS   (1ULL << 31)

/* The truth, read as far as the block with the next instruction. */
struct follower {
	struct ptcpu_truth *truth;
	uint64_t left, ip;     /* instructions of the block, address of the next one */
	uint64_t instructions; /* that agreed */
	uint64_t missing;      /* that were passed over */
};

static bool next_block(struct follower *f)
{
	struct ptcpu_record r;
	int more;

	while ((more = ptcpu_truth_next(f->truth, &r)) > 0) {
		if (r.type != PTCPU_BLOCK || !ptcpu_truth_state(f->truth)[3])
			continue;
		f->left = r.values[0];
		f->ip = r.values[1];
		return true;
	}
	assert_int_equal(more, 0);
	return false;
}

static int read_code(uint8_t *bytes, size_t size, const struct pt_asid *asid, uint64_t ip,
		     void *context)
{
	const struct follower *f = context;
	const uint64_t *state = ptcpu_truth_state(f->truth);
	size_t n;

	(void)asid;
	n = ptcpu_truth_read(f->truth, state[4], state[1] != 0, ip, bytes, size);
	return n ? (int)n : -pte_nomap;
}

static struct pt_insn_decoder *new_decoder(const struct ptcpu_member *stream,
					   struct pt_image *image)
{
	struct pt_config config;
	struct pt_insn_decoder *d;
	uint8_t *bytes;

	pt_config_init(&config);
	memcpy(&bytes, &stream->bytes, sizeof(bytes));
	config.begin = bytes;
	config.end = bytes + stream->size;
	d = pt_insn_alloc_decoder(&config);
	assert_non_null(d);
	assert_int_equal(pt_insn_set_image(d, image), 0);
	return d;
}

static int drain_events(struct pt_insn_decoder *d, int status)
{
	struct pt_event event;

	while (status >= 0 && (status & pts_event_pending))
		status = pt_insn_event(d, &event, sizeof(event));
	return status;
}

/* Until the stream or agreement ends. */
static int follow(struct pt_insn_decoder *d, struct follower *f)
{
	int status = pt_insn_sync_forward(d);

	for (;;) {
		struct pt_insn insn = { .ip = 0 };

		status = drain_events(d, status);
		if (status < 0 || (!f->left && !next_block(f)))
			return status;
		status = pt_insn_next(d, &insn, sizeof(insn));
		if (insn.iclass == ptic_error)
			return status;
		if (insn.ip != f->ip) {
			print_error("after %llu instructions %llx, truth %llx\n",
				    (unsigned long long)f->instructions,
				    (unsigned long long)insn.ip, (unsigned long long)f->ip);
			return -pte_internal;
		}
		f->instructions++;
		f->left--;
		f->ip += insn.size;
	}
}

struct test {
	const char *pack;
	char member[101];
};

/* Whether libipt can read what was configured. */
static bool readable(const struct ptcpu_member *m)
{
	struct ptcpu_truth *t = ptcpu_truth_open(m->bytes, m->size);
	struct ptcpu_record r;
	bool good = false;

	assert_non_null(t);
	while (ptcpu_truth_next(t, &r) > 0) {
		if (r.type != TRUTH_CONTROL || !(r.values[0] & CTL_TRACE_EN))
			continue;
		good = (r.values[0] & CTL_BRANCH) && !(r.values[0] & CTL_EVENTS);
		break;
	}
	ptcpu_truth_close(t);
	return good;
}

static void test_recording(void **state)
{
	const struct test *test = *state;
	struct ptcpu_member truth = { .next = 0 }, stream;
	struct pt_image *image = pt_image_alloc("truth");
	struct follower f = { .left = 0 };
	struct pt_insn_decoder *d;
	struct ptcpu_pack pack;
	int status;

	assert_true(ptcpu_pack_open(&pack, test->pack));
	while (ptcpu_pack_next(&pack, &truth, ".truth") && strcmp(truth.name, test->member))
		;
	assert_true(ptcpu_pack_beside(&pack, &truth, ".pt", &stream));
	f.truth = ptcpu_truth_open(truth.bytes, truth.size);
	assert_non_null(f.truth);
	assert_int_equal(pt_image_set_callback(image, read_code, &f), 0);
	d = new_decoder(&stream, image);
	status = follow(d, &f);
	do
		f.missing += f.left;
	while (next_block(&f));
	pt_insn_free_decoder(d);
	pt_image_free(image);
	ptcpu_truth_close(f.truth);
	ptcpu_pack_close(&pack);
	print_message("# %s: %llu instructions\n", test->member,
		      (unsigned long long)f.instructions);
	assert_true(status >= 0 || status == -pte_eos);
	assert_int_equal(f.missing, 0);
	assert_true(f.instructions > 0);
}

static size_t list_tests(const char *path, struct test *tests, struct CMUnitTest *rows,
			 size_t count)
{
	struct ptcpu_member m = { .next = 0 };
	struct ptcpu_pack pack;

	if (!ptcpu_pack_open(&pack, path))
		exit(1);
	while (count < MAX_TESTS && ptcpu_pack_next(&pack, &m, ".truth")) {
		if (!readable(&m))
			continue;
		tests[count].pack = path;
		memcpy(tests[count].member, m.name, sizeof(m.name));
		rows[count] = (struct CMUnitTest){ .name = tests[count].member,
						   .test_func = test_recording,
						   .initial_state = &tests[count] };
		count++;
	}
	ptcpu_pack_close(&pack);
	return count;
}

int main(int argc, char **argv)
{
	static struct test tests[MAX_TESTS];
	static struct CMUnitTest rows[MAX_TESTS];
	const char *top = getenv("VMT_TOP");
	glob_t packs = { .gl_pathc = 0 };
	size_t count = 0;
	char pattern[1024];
	int status;

	snprintf(pattern, sizeof(pattern), "%s/tests/golden/ptcpu/*.tar.zst", top ? top : ".");
	if (argc < 2 && glob(pattern, 0, NULL, &packs))
		return 1;
	for (size_t i = 0; i < packs.gl_pathc; i++)
		count = list_tests(packs.gl_pathv[i], tests, rows, count);
	for (int i = 1; i < argc; i++)
		count = list_tests(argv[i], tests, rows, count);
	status = _cmocka_run_group_tests("ptcpu_libipt", rows, count, NULL, NULL);
	globfree(&packs);
	return status;
}

#else

static void test_absent(void **state)
{
	(void)state;
	skip(); /* libipt is not installed */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_absent) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
