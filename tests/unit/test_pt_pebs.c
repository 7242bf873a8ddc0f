/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PEBS records out of the blocks of a PT stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "decode/pt/pebs.h"
#include "tests/support/pt_text.h"

#define MAX_RECORDS 8

struct result {
	struct vmt_pt_pebs pebs;
	struct vmt_pt_pebs_record records[MAX_RECORDS];
	size_t n;
};

static struct result assemble(const char *text)
{
	uint8_t bytes[2048];
	struct vmt_pt_reader r = vmt_pt_reader_of(bytes, vmt_pt_text(text, bytes, sizeof(bytes)));
	struct vmt_pt_packet p;
	static struct result out;

	memset(&out, 0, sizeof(out));
	while (vmt_pt_next(&r, &p, NULL) == 1) {
		if (!vmt_pt_pebs_packet(&out.pebs, &p))
			continue;
		assert_true(out.n < MAX_RECORDS);
		out.records[out.n++] = out.pebs.record;
	}
	assert_ptr_equal(r.pos, r.end);
	assert_int_equal(out.n, out.pebs.records);
	return out;
}

static void all_kinds_of_blocks(void **state)
{
	/* Basic: ip, counters, TSC; registers in 4-byte items; memory; LBR; XMM. */
	struct result r = assemble("raw:026304 raw:040011223344556677 raw:0c0100000000000000 "
				   "raw:140000200000000000 tsc:200000 "
				   "raw:026381 raw:1402000000 raw:8c0f000000 raw:0446020000 "
				   "raw:026305 raw:04efbeadde00000000 raw:140500070000000000 "
				   "raw:026308 raw:040100000000000000 raw:0c0200000000000000 "
				   "raw:140300000000000000 raw:fc0400000000000000 "
				   "raw:026309 raw:040500000000000000 "
				   "raw:02630a raw:fc0600000000000000 "
				   "raw:026310 raw:0c0700000000000000 raw:fc0800000000000000 "
				   "raw:02b3 fup:401000");
	const struct vmt_pt_pebs_record *p = &r.records[0];

	(void)state;
	assert_int_equal(r.n, 1);
	assert_true(p->has_ip && p->ip == 0x401000);
	assert_true(p->has_basic == 7 && p->basic[VMT_PT_BASIC_IP] == 0x7766554433221100 &&
		    p->basic[VMT_PT_BASIC_COUNTERS] == 1 && p->basic[VMT_PT_BASIC_TSC] == 0x200000);
	assert_true(p->has_gpr ==
		    (1u << VMT_PT_GPR_RAX | 1u << VMT_PT_GPR_R15 | 1u << VMT_PT_GPR_RFLAGS));
	assert_true(p->gpr[VMT_PT_GPR_RAX] == 2 && p->gpr[VMT_PT_GPR_R15] == 15 &&
		    p->gpr[VMT_PT_GPR_RFLAGS] == 0x246);
	assert_true(p->has_memory == 5 && p->memory[VMT_PT_MEMORY_ADDRESS] == 0xdeadbeef &&
		    p->memory[VMT_PT_MEMORY_LATENCY] == 0x70005);
	assert_true(p->lbr[0].from == 1 && p->lbr[0].to == 2 && p->lbr[0].info == 3);
	assert_true(p->lbr[10].to == 4 && p->lbr[10].info == 5 && p->lbr[31].info == 6);
	assert_true(p->has_lbr[0] == 1 && p->has_lbr[1] == (1u | 1u << 10) &&
		    p->has_lbr[2] == (1u | 1u << 10 | 1u << 31));
	assert_true(p->has_xmm == (1u << 1 | 1u << 31) && p->xmm[1] == 7 && p->xmm[31] == 8);
	assert_int_equal(p->unknown, 0);
}

static void records_follow_each_other(void **state)
{
	struct result r =
		assemble("raw:026384 raw:0c01000000 raw:0233 tnt:T raw:026384 raw:0c02000000 "
			 "raw:0c03000000 raw:0233 fup:5 tip:6");

	(void)state;
	assert_true(r.n == 2 && r.pebs.dropped == 0);
	assert_true(r.records[0].basic[VMT_PT_BASIC_COUNTERS] == 1 && !r.records[0].has_ip);
	assert_true(r.records[1].basic[VMT_PT_BASIC_COUNTERS] == 3 && !r.records[1].has_ip);
}

static void reserved_types_and_ids_are_left_out(void **state)
{
	struct result r =
		assemble("raw:026382 raw:0401000000 raw:026381 raw:9401000000 raw:fc02000000 "
			 "raw:026385 raw:2401000000 raw:026384 raw:1c01000000 "
			 "raw:0c09000000 raw:0233");

	(void)state;
	assert_true(r.n == 1 && r.records[0].unknown == 5);
	assert_true(!r.records[0].has_gpr && !r.records[0].has_memory &&
		    r.records[0].has_basic == 1u << VMT_PT_BASIC_COUNTERS);
}

static void what_is_not_closed_by_bep_is_dropped(void **state)
{
	static const char *const enders[] = { "tnt:T",	"tip:1",  "pip:0:1000", "ovf",	    "psb",
					      "psbend", "mode:1", "cfe:IRET",	"vmcs:1000" };

	(void)state;
	for (size_t i = 0; i < sizeof(enders) / sizeof(enders[0]); i++) {
		char text[200];
		struct result r;

		snprintf(text, sizeof(text),
			 "raw:026384 raw:0c01000000 %s raw:026384 raw:0c02000000 cyc:5 mtc:1 "
			 "raw:02b3 cyc:1 fup:7",
			 enders[i]);
		r = assemble(text);

		assert_true(r.n == 1 && r.pebs.dropped == 1);
		assert_true(r.records[0].basic[VMT_PT_BASIC_COUNTERS] == 2 && r.records[0].ip == 7);
	}
	/* A BEP whose FUP does not come, and one without a block. */
	assert_int_equal(assemble("raw:026384 raw:02b3 tip:1").pebs.dropped, 1);
	assert_int_equal(assemble("raw:026384 raw:02b3 raw:026384 raw:0233").pebs.records, 1);
	assert_int_equal(assemble("raw:0233 raw:02b3 fup:1").n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds_of_blocks),
		cmocka_unit_test(records_follow_each_other),
		cmocka_unit_test(reserved_types_and_ids_are_left_out),
		cmocka_unit_test(what_is_not_closed_by_bep_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
