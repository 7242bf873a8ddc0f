/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streams of the emulated CPU with Intel PT (virt-fixtures/ptcpu): the flow must give every
 * instruction that the emulator logged while packets were on, in order, and nothing else, and the
 * VM entries and exits that its packets show. Code comes from the logged pages, as of their time.
 * The packs of tests/golden/ptcpu, or those that are named as arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow.h"
#include "tests/support/ptcpu_pack.h"
#include "tests/support/ptcpu_truth.h"

enum { MAX_TESTS = 64, MAX_IMAGES = 1 << 18, MAX_TRANSITIONS = 8192 };

/* Instructions between the last packet and a loss, which are in the truth alone: sections that come
 * later are taken for that much older. */
#define LOSS_SLACK 64

#define CTL_TRACE_EN (1ULL << 0)
#define CTL_OS	     (1ULL << 2)
#define CTL_BRANCH   (1ULL << 13)
#define CR3_BITS     0xfffffffffffe0u

/* Instructions are logged a little longer than TraceEn is 1. */
static bool is_traced(const struct ptcpu_record *r, const struct ptcpu_truth *t, bool *trace_en)
{
	if (r->type == TRUTH_CONTROL)
		*trace_en = r->values[0] & CTL_TRACE_EN;
	return r->type == PTCPU_BLOCK && ptcpu_truth_state(t)[3] && *trace_en;
}

/* A VM entry or exit; what of it the stream does not tell is compared with itself. */
struct transition {
	uint64_t from, to, cr3, vmcs, reason, qualification;
};

struct transitions {
	struct transition list[MAX_TRANSITIONS];
	size_t nr;
};

struct follower {
	struct transitions entries, exits; /* of the flow */
	struct ptcpu_truth *truth;
	bool trace_en;
	struct vmt_flow *flow;
	uint64_t left, ip; /* of the block of the truth */
	uint64_t same, lost, errors;
	bool differs;
};

struct sight { /* what a stream can tell */
	bool os, branch;
	struct transitions entries, exits;
};

/* ---- code ---- */

static void add_page(struct vmt_image *image, const struct sight *sight, const uint64_t *state,
		     uint64_t page, const uint8_t *bytes, uint64_t from)
{
	struct vmt_image_space space = { .world = state[1] ? VMT_IMAGE_GUEST : VMT_IMAGE_HOST,
					 .has_cr3 = sight->os,
					 .cr3 = state[4] & CR3_BITS };

	assert_int_equal(vmt_image_add(image, &space, page << 12, bytes, PTCPU_PAGE, from, NULL),
			 0);
	/* Where guests are concealed their code runs in what looks like root operation, and no PIP
	 * tells the host's CR3 behind them. */
	space = (struct vmt_image_space){ .world = VMT_IMAGE_ANY };
	assert_int_equal(vmt_image_add(image, &space, page << 12, bytes, PTCPU_PAGE, from, NULL),
			 0);
}

static void add_transition(struct transitions *t, struct transition one)
{
	assert_true(t->nr < MAX_TRANSITIONS);
	t->list[t->nr++] = one;
}

static void see(struct sight *sight, const struct ptcpu_record *r, bool traced)
{
	const uint64_t *v = r->values;

	if (r->type == TRUTH_ENTRY && traced)
		add_transition(&sight->entries, (struct transition){ .from = v[3],
								     .to = v[4],
								     .cr3 = v[5] & CR3_BITS,
								     .vmcs = v[2] });
	if (r->type == TRUTH_EXIT && traced)
		add_transition(&sight->exits, (struct transition){ .from = v[6],
								   .to = v[8],
								   .cr3 = v[7] & CR3_BITS,
								   .vmcs = v[2],
								   .reason = v[3],
								   .qualification = v[4] });
	if (r->type == TRUTH_CONTROL && r->values[0] & CTL_TRACE_EN) {
		sight->os = r->values[0] & CTL_OS;
		sight->branch = r->values[0] & CTL_BRANCH;
	}
}

/* All pages with the number of traced instructions before them. */
static struct vmt_image *read_code(const struct ptcpu_member *m, struct sight *sight)
{
	struct ptcpu_truth *t = ptcpu_truth_open(m->bytes, m->size);
	const uint8_t **images = calloc(MAX_IMAGES, sizeof(*images));
	struct vmt_image *image = vmt_image_new();
	struct ptcpu_record r;
	uint64_t count = 0, nr_images = 0;
	bool lost = false, trace_en = false;

	assert_non_null(t);
	assert_non_null(images);
	assert_non_null(image);
	while (ptcpu_truth_next(t, &r) > 0) {
		const uint64_t *state = ptcpu_truth_state(t);

		if (is_traced(&r, t, &trace_en) && !lost)
			count += r.values[0];
		else if (r.type == TRUTH_LOST)
			lost = r.values[0] != TRUTH_LOST_OVERFLOW_END;
		see(sight, &r, trace_en && !lost);
		if (r.type == TRUTH_LOST && lost)
			count = count > LOSS_SLACK ? count - LOSS_SLACK : 0;
		if (r.type == TRUTH_IMAGE) {
			assert_true(nr_images < MAX_IMAGES);
			images[nr_images++] = r.image;
		} else if (r.type == TRUTH_MAP) {
			add_page(image, sight, state, r.values[0], images[r.values[1]], count);
		}
	}
	assert_int_equal(vmt_image_seal(image, NULL), 0);
	ptcpu_truth_close(t);
	free(images);
	return image;
}

/* ---- instructions ---- */

static bool next_block(struct follower *f)
{
	struct ptcpu_record r;

	while (ptcpu_truth_next(f->truth, &r) > 0) {
		if (!is_traced(&r, f->truth, &f->trace_en))
			continue;
		f->left = r.values[0];
		f->ip = r.values[1];
		return true;
	}
	f->left = 0;
	return false;
}

static void differ(struct follower *f, uint64_t ip)
{
	if (!f->differs)
		print_error("after %llu instructions %llx, truth %llx\n",
			    (unsigned long long)f->same, (unsigned long long)ip,
			    (unsigned long long)f->ip);
	f->differs = true;
}

static void on_insn(void *context, uint64_t ip, const uint8_t *bytes, const struct vmt_insn *insn)
{
	struct follower *f = context;

	(void)bytes;
	if (f->differs || (!f->left && !next_block(f)) || ip != f->ip) {
		differ(f, ip);
		return;
	}
	f->same++;
	f->left--;
	f->ip += insn->len;
}

static void on_block(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_block *block)
{
	struct follower *f = context;

	(void)state;
	vmt_flow_instructions(f->flow, block, on_insn, f);
}

/* What the truth has up to the end of the loss is in no packet. */
static void skip_loss(struct follower *f)
{
	struct ptcpu_record r;

	f->lost += f->left;
	f->left = 0;
	while (ptcpu_truth_next(f->truth, &r) > 0) {
		if (is_traced(&r, f->truth, &f->trace_en))
			f->lost += r.values[0];
		if (r.type == TRUTH_LOST && r.values[0] == TRUTH_LOST_OVERFLOW_END)
			return;
	}
}

static void on_event(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_event *event)
{
	struct follower *f = context;

	if (event->type == VMT_FLOW_OVERFLOW)
		skip_loss(f);
	if (event->type == VMT_FLOW_VM_ENTRY || event->type == VMT_FLOW_VM_EXIT)
		add_transition(event->type == VMT_FLOW_VM_ENTRY ? &f->entries : &f->exits,
			       (struct transition){ event->ip, event->to, state->where.cr3,
						    state->where.vmcs,
						    event->has_reason ? event->reason : UINT64_MAX,
						    event->qualification });
	if (event->type != VMT_FLOW_ERROR)
		return;
	if (!f->errors++)
		print_error("offset %llu, %llx: %s\n", (unsigned long long)state->offset,
			    (unsigned long long)event->ip, event->name);
}

/*
 * All that the truth has, or none at all, where a filter or a control conceals them. An exit that
 * switches tracing off has no target; one without Event Trace has no reason.
 */
static void compare(const char *what, const struct transitions *got, const struct transitions *want,
		    bool exits)
{
	print_message("# %zu of %zu VM %s\n", got->nr, want->nr, what);
	if (!got->nr)
		return;
	assert_int_equal(got->nr, want->nr);
	for (size_t i = 0; i < got->nr; i++) {
		const struct transition *g = &got->list[i], *w = &want->list[i];

		assert_int_equal(g->from, w->from);
		assert_true(g->to == w->to || (exits && !g->to));
		assert_int_equal(g->vmcs, w->vmcs);
		assert_int_equal(g->cr3, w->cr3);
		if (exits && g->reason != UINT64_MAX) {
			assert_int_equal(g->reason, w->reason);
			assert_int_equal(g->qualification, w->qualification);
		}
	}
}

struct test {
	const char *pack;
	char member[101];
};

static void test_recording(void **state)
{
	const struct test *test = *state;
	struct ptcpu_member truth = { .next = 0 }, stream;
	static struct follower f;
	static struct sight sight;
	const struct vmt_flow_options settings = {
		.count_is_time = true, .block = on_block, .event = on_event, .context = &f
	};
	struct vmt_flow_options options = settings;
	struct ptcpu_pack pack;
	struct vmt_image *image;
	uint64_t missing = 0;

	f = (struct follower){ .left = 0 };
	sight = (struct sight){ .os = false };
	assert_true(ptcpu_pack_open(&pack, test->pack));
	while (ptcpu_pack_next(&pack, &truth, ".truth") && strcmp(truth.name, test->member) != 0)
		;
	assert_true(ptcpu_pack_beside(&pack, &truth, ".pt", &stream));
	image = read_code(&truth, &sight);
	options.image = image;
	f.truth = ptcpu_truth_open(truth.bytes, truth.size);
	f.flow = vmt_flow_new(&options);
	assert_non_null(f.truth);
	assert_non_null(f.flow);
	vmt_flow_feed(f.flow, stream.bytes, stream.size);
	vmt_flow_end(f.flow);
	do
		missing += f.left;
	while (next_block(&f));
	print_message("# %s: %llu instructions, %llu lost\n", test->member,
		      (unsigned long long)f.same, (unsigned long long)f.lost);
	compare("entries", &f.entries, &sight.entries, false);
	compare("exits", &f.exits, &sight.exits, true);
	vmt_flow_free(f.flow);
	vmt_image_free(image);
	ptcpu_truth_close(f.truth);
	ptcpu_pack_close(&pack);
	assert_false(f.differs);
	assert_int_equal(f.errors, 0);
	assert_int_equal(missing, 0);
	assert_true(!sight.branch || f.same > 0);
}

static size_t list_tests(const char *path, struct test *tests, struct CMUnitTest *rows,
			 size_t count)
{
	struct ptcpu_member m = { .next = 0 };
	struct ptcpu_pack pack;

	if (!ptcpu_pack_open(&pack, path))
		exit(1);
	while (count < MAX_TESTS && ptcpu_pack_next(&pack, &m, ".truth")) {
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
	status = _cmocka_run_group_tests("ptcpu_flow", rows, count, NULL, NULL);
	globfree(&packs);
	return status;
}
