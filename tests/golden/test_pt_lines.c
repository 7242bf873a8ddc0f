/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of PT packets: every packet once, as text, JSON and CSV, against files in
 * tests/golden/export (VMT_TEST_REGENERATE=1 writes them anew); and real streams, outside the
 * project, counted from their JSON alone against the totals on which independent decoders agree
 * (skipped where the captures are absent).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/export/pt_packet.h"
#include "decode/export/pt_pebs.h"
#include "decode/pt/decoder.h"
#include "tests/support/pt_encode.h"

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *packet)
{
	vmt_pt_lines_packet(context, offset, bytes, packet);
}

static void on_skipped(void *context, uint64_t offset, uint64_t len, const char *why)
{
	vmt_pt_lines_skipped(context, offset, len, why);
}

static void on_pebs(void *context, const struct vmt_pt_pebs_record *record, enum vmt_pt_mode mode)
{
	vmt_pt_lines_pebs(context, record, mode);
}

/* The lines as a file, at its beginning. */
static FILE *lines_of(const uint8_t *bytes, size_t len, enum vmt_script_format format)
{
	FILE *f = tmpfile();
	struct vmt_out *out = malloc(sizeof(*out));
	struct vmt_pt_lines lines = { .out = out, .format = format };
	const struct vmt_pt_decoder_options options = { .host_cpu = UINT32_MAX,
							.packet = on_packet,
							.skipped = on_skipped,
							.pebs = on_pebs,
							.context = &lines };
	struct vmt_pt_decoder *d = vmt_pt_decoder_new(&options);
	struct vmt_ledger ledger;
	struct vmt_diag diag;

	assert_true(f && out && d);
	vmt_out_init(out, fileno(f), NULL);
	vmt_pt_lines_begin(&lines);
	vmt_pt_decoder_feed(d, bytes, len);
	vmt_pt_decoder_end(d);
	ledger = vmt_pt_decoder_ledger(d);
	vmt_pt_lines_ledger(&lines, &ledger);
	assert_int_equal(vmt_out_finish(out, &diag), 0);
	vmt_pt_decoder_free(d);
	free(out);
	rewind(f);
	return f;
}

static const char *top(void)
{
	const char *path = getenv("VMT_TOP");

	return path ? path : ".";
}

static size_t load(const char *name, uint8_t *bytes, size_t size)
{
	char path[1024];
	FILE *f;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", top(), name);
	f = fopen(path, "rb");
	if (!f)
		return 0;
	len = fread(bytes, 1, size, f);
	fclose(f);
	return len;
}

static void compare(FILE *got, const char *name)
{
	static char want[65536], have[65536];
	size_t want_len, have_len = fread(have, 1, sizeof(have), got);
	char path[1024];

	fclose(got);
	if (getenv("VMT_TEST_REGENERATE")) {
		snprintf(path, sizeof(path), "%s/tests/golden/export/%s", top(), name);
		got = fopen(path, "wb");
		assert_non_null(got);
		fwrite(have, 1, have_len, got);
		fclose(got);
		return;
	}
	snprintf(path, sizeof(path), "tests/golden/export/%s", name);
	want_len = load(path, (uint8_t *)want, sizeof(want));
	assert_int_equal(have_len, want_len);
	assert_memory_equal(have, want, want_len);
}

static void every_packet_once(void **state)
{
	uint8_t bytes[1024];
	size_t len = load("tests/fuzz/corpus/pt_packet/all", bytes, sizeof(bytes));

	(void)state;
	assert_true(len > 300);
	/* The first byte is the fuzz target's own; then damage and a packet that is cut off. */
	bytes[0] = 0;
	memcpy(bytes + len,
	       "\xad\x00\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02"
	       "\x82\x19\x01",
	       20);
	len += 20;
	compare(lines_of(bytes, len, VMT_SCRIPT_TEXT), "pt-packets.txt");
	compare(lines_of(bytes, len, VMT_SCRIPT_JSON), "pt-packets.jsonl");
	compare(lines_of(bytes, len, VMT_SCRIPT_CSV), "pt-packets.csv");
}

static void put_group(struct vmt_ptenc *e, uint8_t type, uint8_t first, uint8_t last,
		      uint64_t value)
{
	vmt_ptenc_bbp(e, type, 8);
	for (uint8_t id = first; id <= last; id++)
		vmt_ptenc_bip(e, id, 8, value + id);
}

/* Records of a guest with every group, of the host with little, without a world; one that another
 * packet cuts off has no line. */
static void pebs_records(void **state)
{
	struct vmt_ptenc e = { 0 };

	(void)state;
	put_group(&e, 4, 0, 0, 0x401000);
	vmt_ptenc_bep(&e, false);
	vmt_ptenc_pip(&e, 0x1234000, true);
	put_group(&e, 4, 0, 2, 0xffffffff81000100);
	put_group(&e, 1, 0, 17, 0x1000);
	put_group(&e, 5, 0, 3, 0x7f0012340000);
	put_group(&e, 8, 0, 6, 0xffffffff81000200);
	put_group(&e, 10, 29, 31, 0xffffffff81000300);
	put_group(&e, 16, 0, 4, 0x1122334455667700);
	put_group(&e, 3, 0, 1, 0);
	vmt_ptenc_bep(&e, true);
	vmt_ptenc_ip(&e, VMT_PTENC_FUP, VMT_PTENC_AUTO, 0xffffffff81000107);
	vmt_ptenc_pip(&e, 0x5000, false);
	vmt_ptenc_bbp(&e, 1, 4);
	vmt_ptenc_bip(&e, 1, 4, 0x8048000);
	vmt_ptenc_bep(&e, false);
	put_group(&e, 4, 0, 0, 0x402000);
	vmt_ptenc_pip(&e, 0x6000, false);
	compare(lines_of(e.bytes, e.len, VMT_SCRIPT_TEXT), "pt-pebs.txt");
	compare(lines_of(e.bytes, e.len, VMT_SCRIPT_JSON), "pt-pebs.jsonl");
	vmt_ptenc_free(&e);
}

/* ---- totals, from JSON ---- */

struct totals { /* in the order of the columns of packet-totals.tsv */
	uint64_t bytes, packets, tnt_packets, tnt_bits, ip_packets, ip_sum, last_ip, cyc, cyc_sum,
		tsc, tsc_sum, mtc, pad, pip, pip_sum, vmcs, vmcs_sum, cfe, evd, other, errors;
};

static uint64_t hex(const json_t *line, const char *name)
{
	const char *text = json_string_value(json_object_get(line, name));

	assert_non_null(text);
	return strtoull(text, NULL, 16);
}

static void count_ip(struct totals *t, const json_t *line)
{
	t->ip_packets++;
	if (json_is_string(json_object_get(line, "ip")))
		t->last_ip = hex(line, "ip");
	t->ip_sum += t->last_ip;
}

static void count(struct totals *t, const json_t *line)
{
	const char *name = json_string_value(json_object_get(line, "packet"));

	assert_non_null(name);
	t->packets++;
	t->bytes += (uint64_t)json_integer_value(json_object_get(line, "len"));
	if (!strcmp(name, "TNT")) {
		t->tnt_packets++;
		t->tnt_bits += json_string_length(json_object_get(line, "tnt"));
	} else if (!strncmp(name, "TIP", 3) || !strcmp(name, "FUP")) {
		count_ip(t, line);
	} else if (!strcmp(name, "CYC")) {
		t->cyc++;
		t->cyc_sum += hex(line, "payload");
	} else if (!strcmp(name, "TSC")) {
		t->tsc++;
		t->tsc_sum += hex(line, "tsc");
	} else if (!strcmp(name, "MTC")) {
		t->mtc++;
	} else if (!strcmp(name, "PAD")) {
		t->pad++;
	} else if (!strcmp(name, "PIP")) {
		t->pip++;
		t->pip_sum += hex(line, "cr3") |
			      (uint64_t)json_integer_value(json_object_get(line, "nr"));
	} else if (!strcmp(name, "VMCS")) {
		t->vmcs++;
		t->vmcs_sum += hex(line, "vmcs");
	} else if (!strcmp(name, "CFE")) {
		t->cfe++;
	} else if (!strcmp(name, "EVD")) {
		t->evd++;
	} else {
		t->other++;
		if (!strcmp(name, "PSB"))
			t->last_ip = 0;
	}
}

static struct totals count_all(const uint8_t *bytes, size_t len)
{
	FILE *f = lines_of(bytes, len, VMT_SCRIPT_JSON);
	struct totals t = { 0 };
	char text[1024];
	bool ended = false;

	while (fgets(text, sizeof(text), f)) {
		json_t *line = json_loads(text, 0, NULL);

		assert_non_null(line);
		assert_false(ended);
		if (json_object_get(line, "packet"))
			count(&t, line);
		else if (json_object_get(line, "error"))
			t.errors++;
		ended = json_object_get(line, "ledger") != NULL;
		json_decref(line);
	}
	assert_true(ended);
	fclose(f);
	return t;
}

static struct totals wanted(const char *name)
{
	static char text[8192];
	const size_t len =
		load("../shared/data/pt/packet-totals.tsv", (uint8_t *)text, sizeof(text) - 1);
	uint64_t values[21];
	struct totals t;
	char *p;

	text[len] = '\0';
	p = strstr(text, name);
	assert_non_null(p);
	p = strchr(p, '\t');
	for (size_t i = 0; i < 21; i++)
		values[i] = strtoull(p, &p, 0);
	memcpy(&t, values, sizeof(t));
	return t;
}

static void check(const uint8_t *bytes, size_t len, const char *name)
{
	const struct totals want = wanted(name), got = count_all(bytes, len);

	assert_memory_equal(&got, &want, sizeof(got));
}

static void check_perf_file(uint8_t *bytes)
{
	size_t len = load("../shared/data/pt/perf.data.intel_pt-4.14", bytes, 1u << 20);
	unsigned int seen = 0;

	for (uint64_t at = vmt_load_u64(bytes + 40); at + 16 <= len;) {
		uint16_t size = vmt_load_u16(bytes + at + 6);

		if (vmt_load_u32(bytes + at) == 71) { /* PERF_RECORD_AUXTRACE: the trace follows */
			uint64_t aux = vmt_load_u64(bytes + at + 8);

			check(bytes + at + size, aux, seen ? "AUXTRACE idx 3" : "AUXTRACE idx 0");
			seen++;
			at += aux;
		}
		at += size;
		if (!size)
			break;
	}
	assert_int_equal(seen, 2);
}

static void totals_of_real_streams(void **state)
{
	uint8_t *bytes = malloc(1u << 20);
	size_t len = load("../shared/data/pt/dynamorio-pt.bin", bytes, 1u << 20);

	(void)state;
	assert_non_null(bytes);
	if (len) {
		check(bytes, len, "dynamorio-pt.bin");
		check_perf_file(bytes);
	}
	free(bytes);
	if (!len) {
		print_message("# no real captures at ../shared/data/pt\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_once),
		cmocka_unit_test(pebs_records),
		cmocka_unit_test(totals_of_real_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
