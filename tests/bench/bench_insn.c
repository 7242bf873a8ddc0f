// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vmt_insn_decode against Zydis in its minimal mode, over the executable sections of the large
 * programs and libraries of this machine: the two take turns on the same bytes, from one
 * instruction to the next, and must find as many bytes in as many instructions of each class.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/insn/insn.h"
#include "tests/support/code_files.h"
#include "tests/support/zydis_peer.h"

#define BYTES_MAX   (64u << 20)
#define BYTES_MIN   (256u << 10)
#define SECTION_MAX (16u << 20)
#define TURNS	    5
#define LEN_MAX	    15
#define NR_CLASSES  16

#if defined(__has_include) && __has_include(<Zydis/Zydis.h>)
#define HAS_PEER 1
#else
#define HAS_PEER 0
#endif

struct totals {
	uint64_t instructions, bytes, skipped, classes[NR_CLASSES];
};

static uint8_t *code;
static size_t code_len;

static bool add(void *ctx, const char *path, const uint8_t *bytes, size_t len,
		enum vmt_insn_mode mode)
{
	(void)ctx;
	(void)path;
	if (mode != VMT_INSN_64)
		return true;
	memcpy(code + code_len, bytes, len);
	code_len += len;
	return true;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void count(struct totals *t, int status, const struct vmt_insn *insn, size_t *at)
{
	if (status != 1) {
		t->skipped++;
		(*at)++;
		return;
	}
	t->instructions++;
	t->bytes += insn->len;
	t->classes[insn->class % NR_CLASSES]++;
	*at += insn->len;
}

static double run_own(struct totals *t)
{
	const double start = seconds();
	struct vmt_insn insn;

	for (size_t at = 0; at + LEN_MAX <= code_len;)
		count(t, vmt_insn_decode(code + at, code_len - at, VMT_INSN_64, &insn), &insn, &at);
	return seconds() - start;
}

#if HAS_PEER
static double run_peer(struct totals *t)
{
	struct zydis_peer *peer = zydis_peer_new(VMT_INSN_64, true);
	const double start = seconds();
	struct vmt_insn insn;

	for (size_t at = 0; at + LEN_MAX <= code_len;)
		count(t, zydis_peer_decode(peer, code + at, LEN_MAX, &insn), &insn, &at);
	zydis_peer_free(peer);
	return seconds() - start;
}
#endif

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, TURNS, sizeof(*values), by_value);
	return values[TURNS / 2];
}

static void print_totals(const char *name, const struct totals *t)
{
	printf("  %-6s %" PRIu64 " instructions, %" PRIu64 " bytes, %" PRIu64
	       " bytes skipped, by class",
	       name, t->instructions, t->bytes, t->skipped);
	for (size_t i = 0; i < NR_CLASSES; i++)
		printf(" %" PRIu64, t->classes[i]);
	printf("\n");
}

int main(void)
{
	struct code_files files = { .bytes_max = BYTES_MAX,
				    .section_bytes_min = BYTES_MIN,
				    .section_bytes_max = SECTION_MAX,
				    .take = add };
	struct totals own, peer;
	double own_s[TURNS], peer_s[TURNS] = { 0 };

	code = malloc(BYTES_MAX);
	if (!code)
		return 1;
	code_files_elf(&files);
	for (size_t i = 0; i < TURNS; i++) {
		memset(&own, 0, sizeof(own));
		own_s[i] = run_own(&own);
#if HAS_PEER
		memset(&peer, 0, sizeof(peer));
		peer_s[i] = run_peer(&peer);
#else
		peer = own;
#endif
	}
	free(code);
	printf("insn: %zu bytes of 64-bit code, median of %d turns of CPU time\n", code_len, TURNS);
	print_totals("own", &own);
	print_totals("peer", &peer);
	const double own_rate = (double)own.instructions / median(own_s) / 1e6;

	if (!HAS_PEER) {
		printf("insn: own %.1f M/s (no Zydis at build time)\n", own_rate);
		return 0;
	}
	const double peer_rate = (double)peer.instructions / median(peer_s) / 1e6;

	printf("insn: own %.1f M/s Zydis %.1f M/s ratio %.1f\n", own_rate, peer_rate,
	       own_rate / peer_rate);
	return memcmp(&own, &peer, sizeof(own)) == 0 ? 0 : 1;
}
