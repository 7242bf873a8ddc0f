/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Instructions a second of the flow against libipt's block decoder: the same stream and the same
 * code in the same run, alternating, medians of CPU time, and equal totals. A row for each kind of
 * stream: what counts is how many branches and packets there are to an instruction.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "decode/flow/flow.h"
#include "tests/support/flow_generate.h"

#if defined(__has_include) && __has_include(<intel-pt.h>)
#include "tests/support/flow_ipt.h"
#define HAS_PEER 1
#else
#define HAS_PEER 0
#endif

#define RUNS 7

static const struct row {
	const char *name;
	struct vmt_flowgen_options options;
} rows[] = {
	{ "short TNT, compressed returns",
	  { .seed = 1,
	    .instructions = 24000000,
	    .functions = 400,
	    .habits = true,
	    .ret_compression = true,
	    .psb = 20 } },
	{ "long TNT, compressed returns",
	  { .seed = 2,
	    .instructions = 24000000,
	    .functions = 400,
	    .habits = true,
	    .ret_compression = true,
	    .long_tnt = true,
	    .psb = 20 } },
	{ "a TIP for each return",
	  { .seed = 3, .instructions = 24000000, .functions = 400, .habits = true, .psb = 20 } },
	{ "interrupts and filters",
	  { .seed = 4,
	    .instructions = 24000000,
	    .functions = 400,
	    .habits = true,
	    .ret_compression = true,
	    .interrupt = 100,
	    .disable = 20,
	    .pgd_has_ip = true,
	    .psb = 20 } },
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values)
{
	qsort(values, RUNS, sizeof(*values), by_value);
	return values[RUNS / 2];
}

static void count_block(void *context, const struct vmt_flow_state *state,
			const struct vmt_flow_block *block)
{
	uint64_t *sum = context;

	(void)state;
	*sum += block->count;
}

/* CPU seconds of decoding, without opening and closing, as the peer's; *instructions as the blocks
 * that were told add up. */
static double run_own(const struct vmt_flowgen *gen, const struct vmt_image *image,
		      uint64_t *instructions, uint64_t *errors)
{
	const struct vmt_flow_options o = { .pt = { .host_cpu = UINT32_MAX },
					    .image = image,
					    .block = count_block,
					    .context = instructions };
	struct vmt_flow *flow = vmt_flow_new(&o);
	double seconds;

	if (!flow)
		abort();
	*instructions = 0;
	seconds = now();
	vmt_flow_feed(flow, gen->stream.bytes, gen->stream.len);
	vmt_flow_end(flow);
	seconds = now() - seconds;
	*errors = vmt_flow_counts(flow).errors;
	vmt_flow_free(flow);
	return seconds;
}

static int run_row(const struct row *row)
{
	struct vmt_flowgen gen;
	struct vmt_image *image;
	double own[RUNS], peer[RUNS];
	uint64_t instructions = 0, errors = 0;
	int64_t theirs = -1;
	int failed;

	vmt_flowgen_run(&gen, &row->options);
	image = vmt_flowgen_image(&gen);
	for (int i = 0; i < RUNS; i++) {
		own[i] = run_own(&gen, image, &instructions, &errors);
#if HAS_PEER
		struct flow_ipt ipt;

		flow_ipt_open(&ipt, &gen);
		peer[i] = now();
		theirs = flow_ipt_blocks(&ipt, NULL, NULL);
		peer[i] = now() - peer[i];
		flow_ipt_close(&ipt);
#endif
	}
	failed = errors || instructions != gen.nr_truth;
	printf("flow, %s: %" PRIu64 " instructions, %zu bytes\n", row->name, instructions,
	       gen.stream.len);
	printf("  vmtrace %.1f M instructions/s", (double)instructions / median(own) / 1e6);
	if (HAS_PEER) {
		printf(", libipt blocks %.1f M/s (%" PRId64 " instructions), ratio %.2f",
		       (double)theirs / median(peer) / 1e6, theirs, median(peer) / median(own));
		failed = failed || theirs != (int64_t)instructions;
	}
	printf("%s\n", failed ? ": TOTALS DIFFER" : "");
	vmt_image_free(image);
	vmt_flowgen_free(&gen);
	return failed;
}

int main(void)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		failed |= run_row(&rows[i]);
	return failed;
}
