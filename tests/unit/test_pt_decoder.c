/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Times of events, durations, the ledger, resynchronisation, errata of the byte stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_events.h"
#include "tests/support/pt_text.h"

#define VMCS UINT64_C(0x1bff6a000)

static const struct vmt_pt_vm vm_row = {
	.vmcs = VMCS,
	.map = { .multiplier = UINT64_C(1) << 48,
		 .offset = (uint64_t)-INT64_C(0x100000),
		 .frac_bits = 48 },
	.has_map = true,
	.has_domain = true,
	.has_vcpu = true,
	.domain = 2,
	.vcpu = 1,
};

static struct vmt_pt_decoder_options options_of(void)
{
	return (struct vmt_pt_decoder_options){
		.host_cpu = UINT32_MAX,
		.clock = { .mtc_freq = 3, .tsc_num = 88, .art_den = 1, .nom_ratio = 21 },
		.vms = &vm_row,
		.nr_vms = 1,
	};
}

static void expect(const char *stream, const struct vmt_pt_decoder_options *options,
		   const char *events)
{
	for (size_t piece = 0; piece < 20; piece++) {
		struct vmt_pt_result r = vmt_pt_events(stream, options, piece);

		if (strcmp(r.events, events) != 0)
			fail_msg("pieces of %zu:\n%s--- wanted\n%s", piece, r.events, events);
		free(r.events);
	}
}

#define PSB(tsc) "psb tsc:" tsc " vmcs:1bff6a000 pip:0:5000 cbr:15 fup:1000 psbend "
#define WHO	 " vmcs=0x1bff6a000 domain=2 vcpu=1"

static void host_and_guest_tsc(void **state)
{
	const struct vmt_pt_decoder_options options = options_of();

	(void)state;
	/* 0x100000 of the host is 0 of the guest; each TSC packet bounds what is before it. */
	expect(PSB("200000") "tsc:200100 pip:1:7000 tip:2000 tsc:100180 tnt:T tsc:100200 fup:2004 "
			     "pip:0:5000 tip:1004 tsc:200210",
	       &options,
	       "entry tsc=2097408+-128" WHO " rip=0x2000 cr3=0x7000\n"
	       "exit tsc=2097664+-16" WHO " rip=0x2004 cr3=0x7000\n");
}

static void durations(void **state)
{
	const struct vmt_pt_decoder_options options = options_of();

	(void)state;
	expect(PSB("200000") "tsc:200100 pip:1:7000 tip:2000 tsc:100200 fup:2004 pip:0:5000 "
			     "tip:1004 "
			     "tsc:200300 pip:1:7000 tip:2004 tsc:100400",
	       &options,
	       "entry tsc=2097408+-256" WHO " rip=0x2000 cr3=0x7000\n"
	       "exit tsc=2097664+-256" WHO " rip=0x2004 cr3=0x7000 duration-tsc=256\n"
	       "entry tsc=2097920+-256" WHO " rip=0x2004 cr3=0x7000\n");
	/* The exit of one VM lasts until that VM is entered again. */
	expect(PSB("200000") "pip:1:7000 tip:2000 fup:2004 pip:0:5000 tip:1004 tsc:200100 "
			     "vmcs:9000 "
			     "pip:1:8000 tip:3000 fup:3004 pip:0:5000 tip:1004 vmcs:1bff6a000 "
			     "tsc:200200 pip:1:7000 tip:2004 tsc:100300",
	       &options,
	       "entry tsc=2097152+-256" WHO " rip=0x2000 cr3=0x7000\n"
	       "exit tsc=2097152+-256" WHO " rip=0x2004 cr3=0x7000 duration-tsc=512\n"
	       "entry tsc=2097408+-256 vmcs=0x9000 rip=0x3000 cr3=0x8000\n"
	       "exit tsc=2097408+-256 vmcs=0x9000 rip=0x3004 cr3=0x8000\n"
	       "entry tsc=2097664+-256" WHO " rip=0x2004 cr3=0x7000\n");
	/* None across a loss. */
	expect(PSB("200000") "pip:1:7000 tip:2000 fup:2004 pip:0:5000 tip:1004 tsc:200100 ovf "
			     "fup:1000 " PSB("200200") "pip:1:7000 tip:2004 tsc:100300",
	       &options,
	       "entry tsc=2097152+-256" WHO " rip=0x2000 cr3=0x7000\n"
	       "exit tsc=2097152+-256" WHO " rip=0x2004 cr3=0x7000\n"
	       "loss tsc=2097408+-256 name=overflow\n"
	       "entry tsc=2097664+-256" WHO " rip=0x2004 cr3=0x7000\n");
}

static void times_by_cycles_and_crystal(void **state)
{
	const struct vmt_pt_decoder_options options = options_of();

	(void)state;
	expect("cyc:0 psb cyc:0 tsc:200000 tma:1000:0 vmcs:1bff6a000 pip:0:5000 cbr:15 psbend "
	       "cyc:100 pip:1:7000 tip:2000 cyc:40 fup:2004 pip:0:5000 tip:1004",
	       &options,
	       "entry tsc=2097408+-7" WHO " rip=0x2000 cr3=0x7000\n"
	       "exit tsc=2097472+-8" WHO " rip=0x2004 cr3=0x7000\n");
	/* MTC edges are 704 apart; the last event is before the edge that is due. */
	expect("psb tsc:200000 tma:1000:0 vmcs:1bff6a000 pip:0:5000 cbr:15 psbend mtc:1 "
	       "pip:1:7000 tip:2000 mtc:2 fup:2004 pip:0:5000 tip:1004",
	       &options,
	       "entry tsc=2097856+-707" WHO " rip=0x2000 cr3=0x7000\n"
	       "exit tsc=2098560+-707" WHO " rip=0x2004 cr3=0x7000\n");
}

static void no_time_that_is_not_known(void **state)
{
	struct vmt_pt_decoder_options options = options_of();

	(void)state;
	/* Before the first TSC there is none; behind the last one no bound. */
	expect("pip:0:5000 pip:1:7000 tip:2000 fup:2004 pip:0:5000 tip:1004 tsc:200000 pip:1:7000",
	       &options,
	       "entry rip=0x2000 cr3=0x7000\nexit rip=0x2004 cr3=0x7000\n"
	       "entry tsc=2097152+-? cr3=0x7000\n");
	/* A guest's TSC without its map is nobody's time. */
	options.nr_vms = 0;
	expect(PSB("200000") "pip:1:7000 tip:2000 tsc:9999999 fup:2004 pip:0:5000 tip:1004 "
			     "tsc:200100",
	       &options,
	       "entry tsc=2097152+-256 vmcs=0x1bff6a000 rip=0x2000 cr3=0x7000\n"
	       "exit tsc=2097152+-256 vmcs=0x1bff6a000 rip=0x2004 cr3=0x7000\n");
}

/* PSB+ in the guest: the TSC packet stands before the PIP that says whose it is. */
static void psb_in_the_guest(void **state)
{
	const struct vmt_pt_decoder_options options = options_of();

	(void)state;
	expect("psb tsc:100000 tma:1:ff pip:1:7000 vmcs:1bff6a000 cbr:15 fup:2000 psbend tnt:T "
	       "fup:2004 pip:0:5000 tip:1004 tsc:200010",
	       &options, "exit tsc=2097152+-16" WHO " rip=0x2004 cr3=0x7000\n");
}

/* Guest-only: the TSC packet before TIP.PGE is the guest's, and told so by its value. */
static void guest_only(void **state)
{
	const struct vmt_pt_decoder_options options = options_of();

	(void)state;
	expect("psb tsc:100000 pip:1:7000 vmcs:1bff6a000 cbr:15 psbend pge:2000 tnt:T fup:2004 "
	       "pgd:- "
	       "tsc:100200 cbr:15 mode:1 pge:2004 tnt:T tsc:100300",
	       &options,
	       "entry tsc=2097152+-512" WHO " rip=0x2000 cr3=0x7000\n"
	       "exit tsc=2097152+-512" WHO " rip=0x2004 cr3=0x7000 duration-tsc=512\n"
	       "entry tsc=2097664+-256" WHO " rip=0x2004 cr3=0x7000\n");
}

static void who(void **state)
{
	struct vmt_pt_decoder_options options = options_of();
	struct vmt_pt_vm any = vm_row;

	(void)state;
	any.vmcs = VMT_PT_ANY_VMCS;
	options.vms = &any;
	options.host_cpu = 5;
	options.pid = 4000;
	options.tid = 4001;
	expect("pip:0:5000 pip:1:7000 tip:2000", &options,
	       "entry cpu=5 tid=4000/4001 domain=2 vcpu=1 rip=0x2000 cr3=0x7000\n");
}

static void check_bytes(const char *stream, const struct vmt_pt_decoder_options *options,
			const char *skipped, uint64_t decoded, bool truncated, uint64_t resyncs)
{
	for (size_t piece = 0; piece < 40; piece++) {
		struct vmt_pt_result r = vmt_pt_events(stream, options, piece);

		assert_string_equal(r.skipped, skipped);
		assert_int_equal(r.ledger.bytes_decoded, decoded);
		assert_int_equal(r.ledger.truncated, truncated);
		assert_int_equal(r.counts.resyncs, resyncs);
		free(r.events);
	}
}

static void ledger(void **state)
{
	const struct vmt_pt_decoder_options options = options_of();

	(void)state;
	check_bytes("psb psbend tnt:T", &options, "", 19, false, 0);
	check_bytes("psb psbend raw:ad0102030405 psb psbend", &options,
		    "18+6 IP packet with reserved IPBytes;", 36, false, 1);
	check_bytes("psb psbend raw:02820282", &options, "18+4 cut off;", 18, true, 0);
	check_bytes("psb psbend raw:190102", &options, "18+3 cut off;", 18, true, 0);
	check_bytes("psb psbend raw:ad0282028202820282", &options,
		    "18+9 IP packet with reserved IPBytes;", 18, true, 0);
	check_bytes("psb psbend raw:ad028202820200 psb psbend", &options,
		    "18+7 IP packet with reserved IPBytes;", 36, false, 1);
	check_bytes("raw:3939393939393939393939393939393939393939393939", &options,
		    "0+23 no packet has this first byte;", 0, false, 0);
	check_bytes("raw:ffffffffffffffffffffff00 psb raw:0252 psb", &options,
		    "0+12 CYC of more than 10 bytes;28+2 PTW with a reserved payload size;", 32,
		    false, 2);
	check_bytes("psb psbend raw:1901 gap tnt:T", &options, "18+2 cut off;", 19, true, 0);
	check_bytes(" seek tnt:TTTTT raw:0200 psb psbend tnt:T", &options,
		    "0+3 before the first PSB;", 19, false, 1);
}

static void errata_of_the_byte_stream(void **state)
{
	struct vmt_pt_decoder_options options = options_of();

	(void)state;
	/* SKD007: one byte of a CYC, then OVF. */
	options.cpu = (struct vmt_pt_cpu){ .known = true, .family = 6, .model = 0x5e };
	check_bytes("psb psbend raw:1702f3 tnt:T", &options, "18+1 CYC cut short by OVF (SKD007);",
		    21, false, 0);
	check_bytes("psb psbend raw:170200 tnt:T", &options, "", 22, false, 0);
	check_bytes("psb psbend raw:1702", &options, "", 20, false, 0);
	/* SKZ84: a corrupt TMA of eight bytes where a guest may run. */
	options.cpu = (struct vmt_pt_cpu){ .known = true, .family = 6, .model = 0x55 };
	check_bytes("pip:1:7000 raw:0273ff02ff030102 tnt:T", &options, "8+8 corrupt TMA (SKZ84);",
		    9, false, 0);
	check_bytes("pip:0:7000 raw:0273ff02ff0301 tnt:T", &options, "", 16, false, 0);
	/* Where the world is not known, the packet behind it decides, and then the CPU. */
	check_bytes("raw:0273ff02ff030102 psbend", &options, "0+8 corrupt TMA (SKZ84);", 2, false,
		    0);
	check_bytes("raw:02730102ff0301 psbend", &options, "0+8 corrupt TMA (SKZ84);", 1, false, 0);
	check_bytes("raw:02730102ff0301", &options, "", 7, false, 0);
	check_bytes("raw:02730102ff030119", &options, "0+8 corrupt TMA (SKZ84);", 0, false, 0);
	options.cpu.known = false;
	check_bytes("raw:02730102ff030119", &options, "7+1 cut off;", 7, true, 0);
	check_bytes("raw:02730102ff0301 psbend", &options, "", 9, false, 0);
	check_bytes("raw:0273ff02ff030102 psbend", &options, "0+8 corrupt TMA (SKZ84);", 2, false,
		    0);
	check_bytes("pip:1:7000 raw:0273ff02ff030102 tnt:T", &options, "8+8 corrupt TMA (SKZ84);",
		    9, false, 0);
	options.cpu = (struct vmt_pt_cpu){ .known = true, .family = 6, .model = 0x5e };
	check_bytes("pip:1:7000 raw:0273ff02ff0301 tnt:T", &options, "", 16, false, 0);
}

/* More events than the queue holds, without a bound or an entry: the first ones go. */
static void many_events(void **state)
{
	const struct vmt_pt_decoder_options options = { .host_cpu = UINT32_MAX };
	struct vmt_pt_decoder *d = vmt_pt_decoder_new(&options);
	uint8_t bytes[64];
	size_t len;

	(void)state;
	assert_non_null(d);
	len = vmt_pt_text("psb tsc:200000 pip:0:5000 psbend", bytes, sizeof(bytes));
	vmt_pt_decoder_feed(d, bytes, len);
	len = vmt_pt_text("pip:1:7000 pip:0:5000", bytes, sizeof(bytes));
	for (int i = 0; i < 10000; i++)
		vmt_pt_decoder_feed(d, bytes, len);
	vmt_pt_decoder_end(d);
	assert_int_equal(vmt_pt_decoder_counts(d).exits, 10000);
	assert_int_equal(vmt_pt_decoder_counts(d).entries, 10000);
	vmt_pt_decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_and_guest_tsc),
		cmocka_unit_test(durations),
		cmocka_unit_test(times_by_cycles_and_crystal),
		cmocka_unit_test(no_time_that_is_not_known),
		cmocka_unit_test(psb_in_the_guest),
		cmocka_unit_test(guest_only),
		cmocka_unit_test(who),
		cmocka_unit_test(ledger),
		cmocka_unit_test(errata_of_the_byte_stream),
		cmocka_unit_test(many_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
