// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The packet layer against perf's, packet by packet: streams go through `vmtrace export --pt-raw`
 * into a perf.data, and what `perf script -D` prints of it is compared with the lines of
 * `vmtrace decode pt --format json`: offset, type, length and payload. perf adds PADs that follow
 * to a packet's bytes. Skipped where perf is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/pt_encode.h"
#include "tests/support/pt_generate.h"
#include "tests/support/pt_random.h"

#define ROUNDS	       700
#define RANDOM_PACKETS 60000
#define LINE_LEN       512

/*
 * Rows of ../shared/data/pt/decoder-differences.tsv that perf 6.1 reads otherwise, and what is
 * therefore not in the streams.
 */
static const struct {
	const char *row, *left_out;
} excluded[] = {
	{ "TRIG", "TRIG packets" },
	{ "MODE.Exec CS.D=1 and CS.L=1", "MODE.Exec of mode 3" },
	{ "CYC value over 64 bits (10 bytes, last 0e)", "CYC above 63 bits" },
	{ "SKZ84: TMA corrupt plus one bogus byte", "streams with SKZ84" },
	{ "OVF", "CYC that an OVF cuts short (SKD007)" },
};

static char folder[] = "/tmp/vmtrace-pt-perf-XXXXXX";

static const char *vmtrace(void)
{
	const char *path = getenv("VMTRACE");

	return path ? path : "build/vmtrace";
}

/* ---- what perf prints of a packet, from the members of a JSON line ---- */

static uint64_t number_of(const json_t *line, const char *name)
{
	const json_t *value = json_object_get(line, name);

	if (json_is_string(value))
		return strtoull(json_string_value(value), NULL, 0);
	return (uint64_t)json_integer_value(value);
}

static int flag(const json_t *line, const char *name)
{
	return number_of(line, name) != 0;
}

typedef void text_fn(char *buf, size_t size, const json_t *line, const char *name);

static void name_alone(char *buf, size_t size, const json_t *line, const char *name)
{
	(void)line;
	snprintf(buf, size, "%s", name);
}

static void name_ip_bit(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s IP:%d", name, flag(line, "ip_bit"));
}

static void payload(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s 0x%" PRIx64, name, number_of(line, "payload"));
}

static void address(char *buf, size_t size, const json_t *line, const char *name)
{
	if (number_of(line, "ip_bytes"))
		payload(buf, size, line, name);
	else
		snprintf(buf, size, "%s no ip", name);
}

static void tnt(char *buf, size_t size, const json_t *line, const char *name)
{
	const char *results = json_string_value(json_object_get(line, "tnt"));

	snprintf(buf, size, "%s %s (%zu)", name, results, strlen(results));
}

static void pip(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s 0x%" PRIx64 " (NR=%d)", name, number_of(line, "cr3") >> 5,
		 flag(line, "nr"));
}

static void vmcs(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s 0x%" PRIx64, name, number_of(line, "vmcs") >> 12);
}

static void mode_exec(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s IF:%d %" PRIu64, name, flag(line, "if"),
		 (uint64_t)strtoull(json_string_value(json_object_get(line, "mode")), NULL, 10));
}

static void mode_tsx(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s TXAbort:%d InTX:%d", name, flag(line, "abort"),
		 flag(line, "in_tx"));
}

static void tma(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s CTC 0x%" PRIx64 " FC 0x%" PRIx64, name, number_of(line, "ctc"),
		 number_of(line, "fc"));
}

static void ptw(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s 0x%" PRIx64 " IP:%d", name, number_of(line, "payload"),
		 flag(line, "ip_bit"));
}

static void mwait(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s 0x%" PRIx64 " Hints 0x%" PRIx64 " Extensions 0x%" PRIx64, name,
		 number_of(line, "payload"), number_of(line, "hints"), number_of(line, "ext"));
}

static void pwre(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s 0x%" PRIx64 " HW:%d CState:%" PRIu64 " Sub-CState:%" PRIu64, name,
		 number_of(line, "payload"), flag(line, "hw"), number_of(line, "state"),
		 number_of(line, "sub_state"));
}

static void pwrx(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size,
		 "%s 0x%" PRIx64 " Last CState:%" PRIu64 " Deepest CState:%" PRIu64
		 " Wake Reason 0x%" PRIx64,
		 name, number_of(line, "payload"), number_of(line, "last"),
		 number_of(line, "deepest"), number_of(line, "wake"));
}

static void bbp(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s SZ %" PRIu64 "-byte Type 0x%" PRIx64, name,
		 number_of(line, "item_bytes"), number_of(line, "type"));
}

static void bip(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s ID 0x%02" PRIx64 " Value 0x%" PRIx64, name, number_of(line, "id"),
		 number_of(line, "payload"));
}

static void cfe(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s IP:%d Type 0x%02" PRIx64 " Vector 0x%" PRIx64, name,
		 flag(line, "ip_bit"), number_of(line, "type"), number_of(line, "payload") >> 8);
}

static void evd(char *buf, size_t size, const json_t *line, const char *name)
{
	snprintf(buf, size, "%s Type 0x%02" PRIx64 " Payload 0x%" PRIx64, name,
		 number_of(line, "type"), number_of(line, "payload"));
}

static const struct {
	const char *ours, *theirs;
	text_fn *text;
} rows[] = {
	{ "PAD", "PAD", name_alone },
	{ "TNT", "TNT", tnt },
	{ "TIP", "TIP", address },
	{ "TIP.PGE", "TIP.PGE", address },
	{ "TIP.PGD", "TIP.PGD", address },
	{ "FUP", "FUP", address },
	{ "PIP", "PIP", pip },
	{ "MODE.Exec", "MODE.Exec", mode_exec },
	{ "MODE.TSX", "MODE.TSX", mode_tsx },
	{ "TraceStop", "TraceSTOP", name_alone },
	{ "CBR", "CBR", payload },
	{ "TSC", "TSC", payload },
	{ "MTC", "MTC", payload },
	{ "TMA", "TMA", tma },
	{ "CYC", "CYC", payload },
	{ "VMCS", "VMCS", vmcs },
	{ "OVF", "OVF", name_alone },
	{ "PSB", "PSB", name_alone },
	{ "PSBEND", "PSBEND", name_alone },
	{ "MNT", "MNT", payload },
	{ "PTW", "PTWRITE", ptw },
	{ "EXSTOP", "EXSTOP", name_ip_bit },
	{ "MWAIT", "MWAIT", mwait },
	{ "PWRE", "PWRE", pwre },
	{ "PWRX", "PWRX", pwrx },
	{ "BBP", "BBP", bbp },
	{ "BIP", "BIP", bip },
	{ "BEP", "BEP", name_ip_bit },
	{ "CFE", "CFE", cfe },
	{ "EVD", "EVD", evd },
};

static void expected_text(char *buf, size_t size, const json_t *line)
{
	const char *packet = json_string_value(json_object_get(line, "packet"));

	for (size_t i = 0; packet && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strcmp(rows[i].ours, packet)) {
			rows[i].text(buf, size, line, rows[i].theirs);
			return;
		}
	}
	snprintf(buf, size, "no packet that perf knows: %s", packet ? packet : "skipped");
}

/* ---- the two streams of packets ---- */

struct ours {
	FILE *lines;
	uint64_t offset, len; /* of the packet; len 0: the end */
	char text[LINE_LEN];
};

static void next_ours(struct ours *o)
{
	char line[LINE_LEN * 2];
	json_t *root;

	o->len = 0;
	while (!o->len && fgets(line, sizeof(line), o->lines)) {
		root = json_loads(line, 0, NULL);
		assert_non_null(root);
		if (json_object_get(root, "offset")) {
			o->offset = number_of(root, "offset");
			o->len = number_of(root, "len");
			expected_text(o->text, sizeof(o->text), root);
			if (!o->len)
				fail_msg("not decoded: %s", line);
		}
		json_decref(root);
	}
}

struct theirs {
	FILE *lines;
	uint64_t base; /* of the AUXTRACE record in the stream */
	uint64_t offset, len;
	char text[LINE_LEN];
};

/* ".  0000001e:  02 23 00 00        PSBEND" */
static int take_line(struct theirs *t, const char *line)
{
	unsigned long long at, more;
	const char *p;
	char *end;

	if (strstr(line, "PERF_RECORD_AUXTRACE size") &&
	    sscanf(strstr(line, "offset: "), "offset: %llx", &more) == 1)
		t->base = more;
	if (strncmp(line, ".  ", 3) != 0 || line[11] != ':')
		return 0;
	at = strtoull(line + 3, &end, 16);
	if (*end != ':')
		return 0;
	t->offset = t->base + at;
	t->len = 0;
	for (p = end + 3; p[0] != ' ' && p[1] != ' ' && p[2] == ' '; p += 3)
		t->len++;
	while (*p == ' ')
		p++;
	snprintf(t->text, sizeof(t->text), "%s", p);
	t->text[strcspn(t->text, "\n")] = '\0';
	/* The dump of a record's bytes has its text in one column behind 16 bytes. */
	return t->len != 0;
}

static void next_theirs(struct theirs *t)
{
	char line[LINE_LEN];

	t->len = 0;
	while (!t->len && fgets(line, sizeof(line), t->lines))
		take_line(t, line);
}

static FILE *run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static FILE *run(const char *format, ...)
{
	char command[LINE_LEN * 2];
	va_list args;
	FILE *f;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	f = popen(command, "r");
	assert_non_null(f);
	return f;
}

/* The packet of perf's line, then the PADs that perf put to it. */
static void compare(struct ours *o, const struct theirs *t, uint64_t stream_len)
{
	uint64_t end = t->offset + t->len;

	if (o->len && (o->offset != t->offset || strcmp(o->text, t->text) != 0))
		fail_msg("0x%" PRIx64 ": %s, perf at 0x%" PRIx64 ": %s", o->offset, o->text,
			 t->offset, t->text);
	if (!o->len && strcmp(t->text, "PAD") != 0)
		fail_msg("behind the end, perf at 0x%" PRIx64 ": %s", t->offset, t->text);
	if (!o->len)
		return;
	next_ours(o);
	while (o->len && o->offset < end) {
		if (strcmp(o->text, "PAD") != 0)
			fail_msg("0x%" PRIx64 ": %s, perf has it in a packet before", o->offset,
				 o->text);
		next_ours(o);
	}
	if (o->len ? o->offset != end : end < stream_len)
		fail_msg("perf at 0x%" PRIx64 ": %s of %" PRIu64 " bytes", t->offset, t->text,
			 t->len);
}

static void write_stream(const char *path, const struct vmt_ptenc *stream)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(stream->bytes, 1, stream->len, f), stream->len);
	assert_int_equal(fclose(f), 0);
}

static uint64_t check_stream(const struct vmt_ptenc *stream)
{
	struct ours o = { 0 };
	struct theirs t = { 0 };
	char raw[64], perf_data[64], command[LINE_LEN];
	uint64_t packets = 0;

	snprintf(raw, sizeof(raw), "%s/cpu0.pt", folder);
	snprintf(perf_data, sizeof(perf_data), "%s/cpu0.data", folder);
	unlink(perf_data);
	write_stream(raw, stream);
	snprintf(command, sizeof(command), "'%s' export --to perfdata --pt-raw '%s' -o '%s'",
		 vmtrace(), raw, perf_data);
	assert_int_equal(system(command), 0);
	o.lines = run("'%s' decode pt --pt-raw --format json '%s'", vmtrace(), raw);
	t.lines = run("perf script -D -i '%s' 2>/dev/null", perf_data);
	/* Up to the trace there are dumps of other records, which look alike. */
	while (fgets(t.text, sizeof(t.text), t.lines) &&
	       !strstr(t.text, "Intel Processor Trace data"))
		;
	next_ours(&o);
	for (next_theirs(&t); t.len; next_theirs(&t)) {
		compare(&o, &t, stream->len);
		packets++;
	}
	assert_int_equal(o.len, 0);
	assert_int_equal(pclose(o.lines), 0);
	assert_int_equal(pclose(t.lines), 0);
	return packets;
}

/* ---- streams ---- */

static int no_perf(void)
{
	if (system("command -v perf >/dev/null 2>&1") == 0)
		return 0;
	print_message("perf is not installed\n");
	return 1;
}

/* VMT_TEST_LONG=1: a hundred machines of ten times the length. */
static void generated_streams_are_read_alike(void **state)
{
	const char *is_long = getenv("VMT_TEST_LONG");
	const uint64_t seeds = is_long ? 100 : 8;
	uint64_t packets = 0;

	(void)state;
	if (no_perf())
		skip();
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		const struct vmt_ptgen_options options = {
			.seed = seed,
			.rounds = is_long ? 10 * ROUNDS : ROUNDS,
			.nr_vms = 1 + (unsigned int)seed % VMT_PTGEN_VMS_MAX,
			.event_trace = seed & 1,
			.branch = seed & 2 || seed < 4,
			.tsc = true,
			.mtc = seed % 3 != 0,
			.cyc = seed & 4,
			.mtc_freq = 3,
			.tracing = (enum vmt_ptgen_tracing)(seed % 3),
			.conceal = { [1] = (uint8_t)(seed % 8) },
			.events = 20,
			.smm = 5,
			.abort = 1,
			.offset = true,
			.scaling = seed & 1,
			.psb = 20,
			.overflow = 5,
			.cbr_change = 2,
			.late_failure = 2,
		};
		struct vmt_ptgen gen;

		vmt_ptgen_run(&gen, &options);
		packets += check_stream(&gen.stream);
		vmt_ptgen_free(&gen);
	}
	print_message("%" PRIu64 " packets of %" PRIu64 " machines\n", packets, seeds);
	assert_true(packets > 100000);
}

/* VMT_TEST_LONG=1: ten million packets. */
static void random_packets_are_read_alike(void **state)
{
	const struct vmt_pt_random_kinds kinds = { .events = true, .blocks = true, .modes = 3 };
	const uint64_t streams = getenv("VMT_TEST_LONG") ? 100 : 2;
	uint64_t packets = 0;

	(void)state;
	if (no_perf())
		skip();
	for (uint64_t seed = 1; seed <= streams; seed++) {
		struct vmt_ptenc stream = { 0 };

		vmt_pt_random(&stream, &kinds, seed, RANDOM_PACKETS);
		packets += check_stream(&stream);
		vmt_ptenc_free(&stream);
	}
	print_message("%" PRIu64 " random packets\n", packets);
}

/* What is left out above is left out because of a row of the table. */
static void exclusions_are_known(void **state)
{
	FILE *f = fopen("../shared/data/pt/decoder-differences.tsv", "r");
	char line[LINE_LEN * 2];
	size_t seen = 0;

	(void)state;
	if (!f) {
		print_message("../shared/data/pt/decoder-differences.tsv is absent\n");
		skip();
	}
	while (fgets(line, sizeof(line), f)) {
		for (size_t i = 0; i < sizeof(excluded) / sizeof(excluded[0]); i++)
			seen += !strncmp(line, excluded[i].row, strlen(excluded[i].row)) &&
				line[strlen(excluded[i].row)] == '\t';
	}
	fclose(f);
	assert_int_equal(seen, sizeof(excluded) / sizeof(excluded[0]));
	for (size_t i = 0; i < seen; i++)
		print_message("left out: %s\n", excluded[i].left_out);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/cpu0.pt", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/cpu0.data", folder);
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exclusions_are_known),
		cmocka_unit_test(generated_streams_are_read_alike),
		cmocka_unit_test(random_packets_are_read_alike),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
