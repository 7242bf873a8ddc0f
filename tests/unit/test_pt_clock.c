/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Host time of single timing packets: wraps, the guest's TSC, corrupt TMA, wide MTC, lost packets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/pt/clock.h"

#define MASK56 UINT64_C(0xffffffffffffff)

static void feed(struct vmt_pt_clock *clock, uint8_t type, uint64_t payload)
{
	const struct vmt_pt_packet p = { .type = type, .payload = payload };

	vmt_pt_clock_packet(clock, &p, VMT_PT_MODE_ROOT, NULL);
}

static void feed_guest(struct vmt_pt_clock *clock, uint64_t guest_tsc,
		       const struct vmx_tsc_map *map)
{
	const struct vmt_pt_packet p = { .type = VMT_PT_TSC, .payload = guest_tsc & MASK56 };

	vmt_pt_clock_packet(clock, &p, VMT_PT_MODE_NONROOT, map);
}

static void feed_tma(struct vmt_pt_clock *clock, uint16_t ctc, uint16_t fc, bool reserved)
{
	const struct vmt_pt_packet p = {
		.type = VMT_PT_TMA, .payload = ctc, .fc = fc, .reserved = reserved
	};

	vmt_pt_clock_packet(clock, &p, VMT_PT_MODE_ROOT, NULL);
}

static struct vmt_pt_clock clock_of(uint8_t mtc_freq, uint64_t reference)
{
	const struct vmt_pt_clock_params params = { .mtc_freq = mtc_freq,
						    .tsc_num = 88,
						    .art_den = 1,
						    .nom_ratio = 21,
						    .reference = reference };
	struct vmt_pt_clock clock;

	vmt_pt_clock_init(&clock, &params);
	return clock;
}

static void top_byte(void **state)
{
	const uint64_t near = UINT64_C(0x12ffffffffffff00);
	struct vmt_pt_clock c = clock_of(3, near);

	(void)state;
	feed(&c, VMT_PT_TSC, 0x10); /* the 56 bits have wrapped since the reference */
	assert_true(c.known && c.tsc == UINT64_C(0x1300000000000010));
	feed(&c, VMT_PT_TSC, 0x20);
	assert_true(c.tsc == UINT64_C(0x1300000000000020));
	c = clock_of(3, near);
	feed(&c, VMT_PT_TSC, 0xfffffffffffef0);
	assert_true(c.tsc == near - 0x10);
	feed(&c, VMT_PT_TSC, 5);
	assert_true(c.tsc == UINT64_C(0x1300000000000005));
	/* Without a reference the top byte is 0, also where the nearest value would be below 0. */
	c = clock_of(3, 0);
	feed(&c, VMT_PT_TSC, MASK56);
	assert_true(c.tsc == MASK56);
	c = clock_of(3, 100);
	feed(&c, VMT_PT_TSC, MASK56);
	assert_true(c.tsc == MASK56);
}

static void guest_tsc_with_a_negative_offset(void **state)
{
	const struct vmx_tsc_map map = { .multiplier = UINT64_C(1) << 47,
					 .offset = (uint64_t)-INT64_C(2995683791),
					 .frac_bits = 48 };
	struct vmt_pt_clock c = clock_of(3, 0);

	(void)state;
	feed(&c, VMT_PT_TSC, 2995838000);
	feed_guest(&c, UINT64_C(18446744072211787208), &map);
	assert_true(c.low == 2995838766 && c.tsc == 2995838766 && c.high == 2995838767);
	/* Without a map it is not used. */
	feed_guest(&c, UINT64_C(18446744072211787308), NULL);
	assert_true(c.ignored == 1 && c.tsc == 2995838766);
	/* A map without values behind it either. */
	feed_guest(&c, 5, &(struct vmx_tsc_map){ .frac_bits = 48 });
	assert_int_equal(c.ignored, 2);
}

/* The host has been up for 300 days, the guest for a second. */
static void guest_tsc_beyond_56_bits(void **state)
{
	const uint64_t host = UINT64_C(0x0145678901234567);
	struct vmx_tsc_map map = { .multiplier = (UINT64_C(1) << 48) / 3 * 4, .frac_bits = 48 };
	struct vmt_pt_clock c = clock_of(3, host - 123456);
	uint64_t guest;

	(void)state;
	map.offset = 3000000000u - vmx_tsc_to_guest(&map, host);
	guest = vmx_tsc_to_guest(&map, host);
	assert_true(guest == 3000000000u);
	feed_guest(&c, guest, &map);
	assert_true(c.known && c.low <= host && host <= c.high && c.high - c.low <= 1);
}

static void going_back(void **state)
{
	const struct vmx_tsc_map map = { .multiplier = UINT64_C(1) << 48, .frac_bits = 48 };
	struct vmt_pt_clock c = clock_of(3, 0);
	struct vmt_pt_stamp s;

	(void)state;
	feed(&c, VMT_PT_TSC, 10000000);
	s = vmt_pt_clock_stamp(&c);
	assert_true(s.known && !s.closed);
	feed(&c, VMT_PT_TSC, 10000000 - 10); /* a slip */
	vmt_pt_stamp_close(&s, &c);
	assert_true(vmt_pt_clock_tell(&c, &s).tsc.host_tsc == 10000000 - 10);
	feed(&c, VMT_PT_TSC, 5000000); /* alone it is taken for damage */
	assert_true(c.ignored == 1 && c.tsc == 10000000 - 10);
	feed(&c, VMT_PT_TSC, 10000100);
	assert_true(c.tsc == 10000100);
	feed(&c, VMT_PT_TSC, 5000000);
	feed(&c, VMT_PT_TSC, 5000500);
	assert_true(c.tsc == 5000500 && c.drops == 1);
	/* A guest's packet that jumped ahead is corrected by the first one of the host. */
	feed_guest(&c, 900000000, &map);
	assert_true(c.tsc == 900000000);
	feed(&c, VMT_PT_TSC, 5001000);
	assert_true(c.tsc == 5001000 && c.drops == 2);
	/* A guest's alone never goes back. */
	feed_guest(&c, 1000, &map);
	feed_guest(&c, 1001, &map);
	assert_true(c.tsc == 5001000);
}

static void crystal_edges(void **state)
{
	struct vmt_pt_clock c = clock_of(3, 0);
	uint64_t bounds;

	(void)state;
	feed(&c, VMT_PT_MTC, 1);
	assert_false(c.known);
	feed(&c, VMT_PT_TSC, 1000000);
	feed_tma(&c, 0x1003, 40, false); /* the edge 0x1000 was at 999696 */
	feed(&c, VMT_PT_MTC, 0x00);	 /* written late: no bound, no jump */
	assert_true(c.tsc == 1000000);
	bounds = c.bounds;
	feed(&c, VMT_PT_MTC, 0x01);
	assert_true(c.tsc == 999696 + 8 * 88 && c.bounds == bounds + 1 && c.drops == 0);
	feed(&c, VMT_PT_MTC, 0x04); /* two were lost */
	assert_true(c.tsc == 999696 + 4 * 8 * 88 && c.drops == 2);
	feed(&c, VMT_PT_MTC, 0x03); /* a wrap */
	assert_true(c.tsc == 999696 + (256 + 3) * 8 * 88);
	vmt_pt_clock_lost(&c);
	bounds = c.bounds;
	feed(&c, VMT_PT_MTC, 0x05); /* one period or 257: not before, no bound */
	assert_true(c.low <= 999696 + (256 + 5) * 8 * 88 && c.bounds == bounds);
	feed(&c, VMT_PT_TSC, 9000000);
	assert_true(c.tsc == 9000000 && c.bounds == bounds + 1);
}

/* MTCFreq 12: a TMA holds only 4 of the 8 bits that an MTC shows. */
static void wide_mtc(void **state)
{
	struct vmt_pt_clock c = clock_of(12, 0);

	(void)state;
	feed(&c, VMT_PT_TSC, 100000000);
	feed_tma(&c, 0x3000, 0, false);
	feed(&c, VMT_PT_MTC, 0xa5); /* 2 edges on, by the low 4 bits; the high ones are news */
	assert_true(c.tsc == 100000000 + 2 * 4096 * 88);
	feed(&c, VMT_PT_MTC, 0xa6);
	assert_true(c.tsc == 100000000 + 3 * 4096 * 88);
	feed(&c, VMT_PT_MTC, 0xb6); /* 16 on: a TMA alone could not tell it from none */
	assert_true(c.tsc == 100000000 + 19 * 4096 * 88);
}

static void corrupt_tma(void **state)
{
	struct vmt_pt_clock c = clock_of(3, 0);

	(void)state;
	feed(&c, VMT_PT_TSC, 1000000);
	feed_tma(&c, 0x1003, 40, true);
	assert_true(c.ignored == 1 && !c.crystal.known);
	feed(&c, VMT_PT_TSC, 1000100);
	feed_tma(&c, 0x1003, 400, false); /* there are 88 ticks between edges */
	assert_true(c.ignored == 2 && !c.crystal.known);
	feed(&c, VMT_PT_TSC, 1000200);
	vmt_pt_clock_packet(&c, &(struct vmt_pt_packet){ .type = VMT_PT_TMA, .payload = 1 },
			    VMT_PT_MODE_NONROOT, NULL);
	assert_true(c.ignored == 3 && !c.crystal.known);
	feed_tma(&c, 0x1003, 40, false); /* without its TSC */
	assert_true(c.ignored == 4 && !c.crystal.known);
}

static void cycles(void **state)
{
	struct vmt_pt_clock c = clock_of(3, 0);
	struct vmt_pt_stamp s;
	struct vmt_pt_time t;

	(void)state;
	feed(&c, VMT_PT_CYC, 0);
	feed(&c, VMT_PT_TSC, 1000000);
	feed(&c, VMT_PT_CBR, 42); /* two cycles a tick */
	feed(&c, VMT_PT_CYC, 2000);
	feed(&c, VMT_PT_TNT, 0);
	s = vmt_pt_clock_stamp(&c);
	t = vmt_pt_clock_tell(&c, &s);
	assert_true(s.closed && t.tsc.host_tsc == 1001000 && t.error < 1000 / 64 + 4);
	feed(&c, VMT_PT_TNT, 0); /* some time after it */
	s = vmt_pt_clock_stamp(&c);
	assert_false(s.closed);
	feed(&c, VMT_PT_CYC, 200);
	vmt_pt_stamp_close(&s, &c);
	t = vmt_pt_clock_tell(&c, &s);
	assert_true(t.tsc.host_tsc == 1001000 && t.error > 100 && t.error < 140);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(top_byte),
		cmocka_unit_test(guest_tsc_with_a_negative_offset),
		cmocka_unit_test(guest_tsc_beyond_56_bits),
		cmocka_unit_test(going_back),
		cmocka_unit_test(crystal_edges),
		cmocka_unit_test(wide_mtc),
		cmocka_unit_test(corrupt_tma),
		cmocka_unit_test(cycles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
