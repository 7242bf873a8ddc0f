/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tests/golden/pt/NAME.vtt: an Intel PT stream as text (tests/support/pt_vtt.h). The packet layer
 * must give back every packet that was assembled, and what "--- packets" says where the file has
 * it; the decoder must give the events of "--- events". VMT_TEST_REGENERATE=1 writes what comes out
 * in place of what is expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decode/pt/decoder.h"
#include "tests/support/pt_event_text.h"
#include "tests/support/pt_vtt.h"
#include "tests/support/pt_vtt_file.h"

#define MAX_FIXTURES 1024

struct listing {
	char text[65536];
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) add(struct listing *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->text + l->len, sizeof(l->text) - l->len, format, args);
	va_end(args);
	assert_true(n >= 0 && (size_t)n < sizeof(l->text) - l->len);
	l->len += (size_t)n;
}

/* Every packet and every stretch that is none, with offsets. */
static void list_packets(const struct vmt_vtt *vtt, struct listing *l)
{
	struct vmt_pt_reader r = vmt_pt_reader_of(vtt->stream.bytes, vtt->stream.len);
	struct vmt_pt_packet packet;
	const char *why;
	char text[96];
	int status;

	for (;;) {
		const size_t offset = (size_t)(r.pos - r.begin);

		status = vmt_pt_next(&r, &packet, &why);
		if (status == 1) {
			add(l, "0x%zx %s%s%s\n", offset,
			    vmt_pt_packet_text(text, sizeof(text), &packet),
			    packet.ip_unsure ? " unsure" : "", packet.reserved ? " reserved" : "");
		} else if (status == VMT_E_DAMAGED) {
			add(l, "0x%zx bad, %zu bytes\n", offset, vmt_pt_sync(&r));
		} else {
			if (status == VMT_E_TRUNCATED)
				add(l, "0x%zx truncated\n", offset);
			return;
		}
	}
}

/* The packets as the assembler wrote them. */
static void check_assembled(const struct vmt_vtt *vtt)
{
	struct vmt_pt_reader r = vmt_pt_reader_of(vtt->stream.bytes, vtt->stream.len);
	struct vmt_pt_packet packet;
	char text[96];

	for (size_t i = 0; i < vtt->nr_packets; i++) {
		const size_t offset = (size_t)(r.pos - r.begin);
		const int status = vmt_pt_next(&r, &packet, NULL);

		if (vtt->is_cut && status != 1) {
			assert_int_equal(status, offset < vtt->stream.len ? VMT_E_TRUNCATED : 0);
			return;
		}
		assert_int_equal(status, 1);
		assert_int_equal(offset, vtt->packets[i].offset);
		assert_string_equal(vmt_pt_packet_text(text, sizeof(text), &packet),
				    vtt->packets[i].text);
	}
	assert_ptr_equal(r.pos, r.end);
}

static void on_event(void *context, const struct vmt_event *event)
{
	char text[512];

	add(context, "%s\n", vmt_pt_event_text(text, sizeof(text), event));
}

/* The events of the stream, fed in its pieces. */
static void list_events(const struct vmt_vtt *vtt, struct listing *l)
{
	const struct vmt_pt_decoder_options options = {
		.cpu = vtt->cpu,
		.clock = vtt->clock,
		.vms = vtt->vms,
		.nr_vms = vtt->nr_vms,
		.host_cpu = vtt->host_cpu,
		.pid = vtt->pid,
		.tid = vtt->tid,
		.emit = on_event,
		.context = l,
	};
	struct vmt_pt_decoder *decoder = vmt_pt_decoder_new(&options);
	size_t at = 0;

	assert_non_null(decoder);
	for (size_t i = 0; i < vtt->nr_pieces; i++) {
		vmt_pt_decoder_feed(decoder, vtt->stream.bytes + at, vtt->pieces[i] - at);
		at = vtt->pieces[i];
		if (vtt->gaps[i])
			vmt_pt_decoder_gap(decoder);
	}
	vmt_pt_decoder_feed(decoder, vtt->stream.bytes + at, vtt->stream.len - at);
	vmt_pt_decoder_end(decoder);
	vmt_pt_decoder_free(decoder);
}

static void a_fixture_gives_what_it_says(void **state)
{
	const char *path = *state;
	static struct listing listing;
	struct vmt_vtt_file file;

	assert_true(vmt_vtt_file_load(&file, path));
	if (!file.vtt.has_raw)
		check_assembled(&file.vtt);
	if (file.vtt.expect_packets) {
		listing.len = 0;
		list_packets(&file.vtt, &listing);
		assert_true(vmt_vtt_file_expect(&file, VMT_VTT_PACKETS, listing.text, listing.len));
	}
	if (file.vtt.expect_events) {
		listing.len = 0;
		list_events(&file.vtt, &listing);
		assert_true(vmt_vtt_file_expect(&file, VMT_VTT_EVENTS, listing.text, listing.len));
	}
	vmt_vtt_file_free(&file);
}

/* ---- the assembler's complaints ---- */

static void an_error_names_its_line(void **state)
{
	static const struct {
		const char *text;
		unsigned int line;
		const char *what;
	} cases[] = {
		{ "psb\n\nfoo\n", 3, "no such statement: foo" },
		{ "tip\n", 1, "tip: an address or - is missing" },
		{ "psb\ntip 0x1000000000000 update16\n", 2,
		  "tip: this form does not give 0x1000000000000 here" },
		{ "tip x\n", 1, "no number and no name: x" },
		{ "mtc 256\n", 1, "256 is above 0xff" },
		{ "pip cr3=0\n", 1, "pip: nr= is missing" },
		{ "psb now\n", 1, "psb: not understood: now" },
		{ "tnt TXN\n", 1, "tnt: not 1 to 6 times T or N" },
		{ "bip 1 2\n", 1, "bip: no block is open" },
		{ "bbp 1 4\ntnt N\n", 2, "tnt: in an open block this is a BIP's first byte" },
		{ "let a 1\nlet a 2\n", 2, "a second time: a" },
		{ "raw 1\n", 1, "raw: no byte of two hex digits: 1" },
		{ "psb\ncut 17\n", 2, "17 is above 0x10" },
		{ "psb\ncut 1\npad\n", 3, "nothing can follow a cut" },
		{ "psb\n--- notes\n", 2, "no section of expected text, or a second time" },
		{ "cpu 6/55\n", 1, "cpu: not FAMILY/0xMODEL/STEPPING" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vmt_vtt_error error;
		struct vmt_vtt vtt;

		assert_false(vmt_vtt_assemble(cases[i].text, strlen(cases[i].text), &vtt, &error));
		assert_string_equal(error.what, cases[i].what);
		assert_int_equal(error.line, cases[i].line);
		vmt_vtt_free(&vtt);
	}
}

static void names_and_labels_stand_for_numbers(void **state)
{
	static const char text[] = "let host 0xffffffff81000000\npsb\nafter:\ntip host+0x10\n"
				   "tip host-1\nmtc after\n";
	static const char *const expected[] = { "psb", "tip 0xffffffff81000010",
						"tip 0xffffffff80ffffff", "mtc 0x10" };
	struct vmt_vtt_error error;
	struct vmt_vtt vtt;

	(void)state;
	assert_true(vmt_vtt_assemble(text, sizeof(text) - 1, &vtt, &error));
	assert_int_equal(vtt.nr_packets, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(vtt.packets[i].text, expected[i]);
	check_assembled(&vtt);
	vmt_vtt_free(&vtt);
}

static int run_fixtures(void)
{
	static struct vmt_vtt_path paths[MAX_FIXTURES];
	static struct CMUnitTest tests[MAX_FIXTURES];
	const size_t nr = vmt_vtt_file_list("tests/golden/pt", paths, MAX_FIXTURES);

	for (size_t i = 0; i < nr; i++)
		tests[i] = (struct CMUnitTest){ .name = paths[i].name,
						.test_func = a_fixture_gives_what_it_says,
						.initial_state = paths[i].path };
	return nr ? _cmocka_run_group_tests("fixtures", tests, nr, NULL, NULL) : 1;
}

int main(void)
{
	const struct CMUnitTest assembler[] = {
		cmocka_unit_test(an_error_names_its_line),
		cmocka_unit_test(names_and_labels_stand_for_numbers),
	};
	int failed = cmocka_run_group_tests_name("the assembler", assembler, NULL, NULL);

	return failed + run_fixtures();
}
