// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Real PT streams, outside the project, counted packet by packet and compared with the totals on
 * which independent decoders agree. Skipped where the captures are absent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/cursor.h"
#include "decode/pt/packet.h"

struct totals {
	uint64_t packets, tnt_packets, tnt_bits, ip_packets, ip_sum, last_ip, cyc, cyc_sum, tsc,
		tsc_sum, mtc, pad, pip, pip_sum, vmcs, vmcs_sum, cfe, evd, errors;
};

static void count(struct totals *t, const struct vmt_pt_packet *p)
{
	t->packets++;
	switch (p->type) {
	case VMT_PT_TNT:
	case VMT_PT_TNT_LONG:
		t->tnt_packets++;
		t->tnt_bits += p->count;
		break;
	case VMT_PT_TIP:
	case VMT_PT_TIP_PGE:
	case VMT_PT_TIP_PGD:
	case VMT_PT_FUP:
		/* A suppressed IP adds the last one again. */
		t->ip_packets++;
		if (p->has_ip)
			t->last_ip = p->ip;
		t->ip_sum += t->last_ip;
		break;
	case VMT_PT_PSB:
		t->last_ip = 0;
		break;
	case VMT_PT_CYC:
		t->cyc++;
		t->cyc_sum += p->payload;
		break;
	case VMT_PT_TSC:
		t->tsc++;
		t->tsc_sum += p->payload;
		break;
	case VMT_PT_MTC:
		t->mtc++;
		break;
	case VMT_PT_PAD:
		t->pad++;
		break;
	case VMT_PT_PIP:
		t->pip++;
		t->pip_sum += p->address | p->nr;
		break;
	case VMT_PT_VMCS:
		t->vmcs++;
		t->vmcs_sum += p->address;
		break;
	case VMT_PT_CFE:
		t->cfe++;
		break;
	case VMT_PT_EVD:
		t->evd++;
		break;
	default:
		break;
	}
}

static struct totals count_all(const uint8_t *bytes, size_t len)
{
	struct vmt_pt_reader r = vmt_pt_reader_of(bytes, len);
	struct totals t = { 0 };
	struct vmt_pt_packet p;
	int status;

	while ((status = vmt_pt_next(&r, &p, NULL)) == 1)
		count(&t, &p);
	t.errors = status != 0;
	return t;
}

static uint8_t *load(const char *name, size_t *len)
{
	const char *top = getenv("VMT_TOP");
	char path[1024];
	uint8_t *bytes;
	FILE *f;

	snprintf(path, sizeof(path), "%s/../shared/data/pt/%s", top ? top : ".", name);
	f = fopen(path, "rb");
	if (!f) {
		print_message("# no real captures at ../shared/data/pt\n");
		return NULL;
	}
	bytes = malloc(1u << 20);
	assert_non_null(bytes);
	*len = fread(bytes, 1, 1u << 20, f);
	fclose(f);
	return bytes;
}

static void check(const struct totals *got, const struct totals *want)
{
	assert_memory_equal(got, want, sizeof(*got));
}

static void test_perf_file(void **state)
{
	static const struct totals want[2] = {
		{ 9980, 8242, 47456, 517, 0x2a34f2e9479d02, 0xffffffffb960d300, 0, 0, 1,
		  0xbc4cd2cfe8, 325, 874, 15, 0x397168b800, 0, 0, 0, 0, 0 },
		{ 95129, 61274, 329792, 11691, 0xd1b268dcd55bf6e, 0xffffffffb960d300, 0, 0, 23,
		  0x10eae5ffcc44, 2477, 19142, 426, 0x6a371fc4800, 0, 0, 0, 0, 0 },
	};
	size_t len = 0, seen = 0;
	uint8_t *bytes = load("perf.data.intel_pt-4.14", &len);

	(void)state;
	if (!bytes)
		skip();
	for (uint64_t at = vmt_load_u64(bytes + 40); at + 16 <= len;) {
		uint16_t size = vmt_load_u16(bytes + at + 6);

		if (vmt_load_u32(bytes + at) == 71) { /* PERF_RECORD_AUXTRACE: the trace follows */
			uint64_t aux = vmt_load_u64(bytes + at + 8);
			struct totals got = count_all(bytes + at + size, aux);

			assert_true(seen < 2);
			check(&got, &want[seen++]);
			at += aux;
		}
		at += size;
		if (!size)
			break;
	}
	assert_int_equal(seen, 2);
	free(bytes);
}

static void test_raw_file(void **state)
{
	static const struct totals want = { 1141,     0,   0,	    7, 0x1c07036,
					    0x40101b, 545, 0x34635, 1, 0x2fa1088fac05e2,
					    538,      45,  0,	    0, 0,
					    0,	      0,   0,	    0 };
	size_t len = 0;
	uint8_t *bytes = load("dynamorio-pt.bin", &len);
	struct totals got;

	(void)state;
	if (!bytes)
		skip();
	got = count_all(bytes, len);
	check(&got, &want);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf_file),
		cmocka_unit_test(test_raw_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
