/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Speed of Intel PT decoding on one thread, each peer in the same round, medians of the rounds:
 *   full   every packet with type, length, payload and rebuilt IP through the public call, summed;
 *          libipt and perf's decoder do the same, and the sums must be equal
 *   skim   VM events, time and losses
 *   text   a line a packet, against a printf a packet of libipt
 * with memcpy and reading each byte beside it. Fails when sums differ.
 * usage: bench_pt [--mib N] [--rounds N] [--only NAME]; VMT_BENCH_PERF_PT: perf's decoder as a
 * shared object (see run-bench.sh); VMT_TOP: where ../shared/data/pt is looked for.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/base/cursor.h"
#include "decode/export/pt_packet.h"
#include "decode/pt/batch.h"
#include "decode/pt/decoder.h"
#include "tests/support/pt_load.h"
#include "tests/support/pt_peers.h"

#define ROUNDS_MAX 32
#define BATCH	   256
#define REAL_MAX   (1u << 20)
#define TEXT_MAX   (16u << 20) /* of a stream, for listings */

enum column { READ, COPY, SCALAR, FAST, EVENTS, LIBIPT, PERF, TEXT, JSON, PRINTF, COLUMNS };

static const char *const column_names[COLUMNS] = {
	"read-scan", "memcpy", "scalar", "full", "skim", "libipt", "perf", "text", "JSON", "printf",
};

struct input {
	const char *name;
	uint8_t *bytes;
	size_t len;
	unsigned int repeat; /* a short stream is decoded so often in a round */
	bool event_trace;
};

static size_t rounds = 5;
static const struct vmt_pt_engine *best;
static vmt_pt_sum_perf_fn *sum_perf;
static const char *only;
static int failed;
static int null_fd;
static FILE *null_file;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- what is measured ---- */

static bool sum_engine(const struct vmt_pt_engine *engine, const uint8_t *bytes, size_t len,
		       struct vmt_pt_sums *sums)
{
	static struct vmt_pt_packet packets[BATCH];
	struct vmt_pt_batch batch = { .packets = packets, .max = BATCH };
	struct vmt_pt_reader r = vmt_pt_reader_of(bytes, len);
	/* Counters in turn: one would wait for itself. */
	uint64_t counts[4][VMT_PT_TYPE_COUNT] = { 0 };
	uint64_t payloads = 0, ips = 0, total = 0;
	int status;

	memset(sums, 0, sizeof(*sums));
	do {
		status = engine->read(&r, &batch);
		for (size_t i = 0; i < batch.len; i++) {
			const struct vmt_pt_packet *p = &packets[i];

			counts[i % 4][p->type]++;
			total += p->len;
			payloads += p->payload;
			ips += p->ip & (0 - (uint64_t)p->has_ip);
		}
	} while (status == 1);
	for (unsigned int i = 0; i < VMT_PT_TYPE_COUNT; i++)
		sums->counts[i] = counts[0][i] + counts[1][i] + counts[2][i] + counts[3][i];
	sums->bytes = total;
	sums->payloads = payloads;
	sums->ips = ips;
	return status == 0;
}

struct events {
	uint64_t n, hash;
};

static void on_event(void *context, const struct vmt_event *e)
{
	struct events *events = context;

	events->n++;
	events->hash = events->hash * 31 + e->host_tsc.host_tsc + e->guest_rip + e->type;
}

static struct events run_events(const struct input *in)
{
	struct events events = { 0 };
	const struct vmt_pt_decoder_options options = {
		.host_cpu = UINT32_MAX,
		.clock = { .mtc_freq = 3, .tsc_num = 88, .art_den = 1, .nom_ratio = 21 },
		.emit = on_event,
		.context = &events
	};
	struct vmt_pt_decoder *d = vmt_pt_decoder_new(&options);

	if (!d)
		abort();
	vmt_pt_decoder_feed(d, in->bytes, in->len);
	vmt_pt_decoder_end(d);
	vmt_pt_decoder_free(d);
	return events;
}

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *packet)
{
	vmt_pt_lines_packet(context, offset, bytes, packet);
}

/* As `decode pt` does it. */
static bool list(const uint8_t *bytes, size_t len, enum vmt_script_format format)
{
	static struct vmt_out out;
	struct vmt_pt_lines lines = { .out = &out, .format = format };
	const struct vmt_pt_decoder_options options = { .host_cpu = UINT32_MAX,
							.packet = on_packet,
							.context = &lines };
	struct vmt_pt_decoder *d = vmt_pt_decoder_new(&options);

	if (!d)
		abort();
	vmt_out_init(&out, null_fd, NULL);
	vmt_pt_lines_begin(&lines);
	vmt_pt_decoder_feed(d, bytes, len);
	vmt_pt_decoder_end(d);
	vmt_pt_decoder_free(d);
	return !vmt_out_finish(&out, NULL);
}

static uint64_t read_scan(const uint8_t *bytes, size_t len)
{
	uint64_t sum = 0, word;

	for (size_t i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		sum += word;
	}
	return sum;
}

/* ---- rounds ---- */

static uint8_t *copy;
static volatile uint64_t sink;

static size_t text_len(const struct input *in)
{
	return in->len < TEXT_MAX ? in->len : TEXT_MAX;
}

/* False: this column has no peer for the input. */
static bool run_column(enum column c, const struct input *in, struct vmt_pt_sums *sums,
		       struct events *events)
{
	bool ok = true;

	for (unsigned int i = 0; i < in->repeat && ok; i++)
		switch (c) {
		case READ:
			sink = read_scan(in->bytes, in->len);
			break;
		case COPY:
			memcpy(copy, in->bytes, in->len);
			break;
		case SCALAR:
			ok = sum_engine(&vmt_pt_engine_scalar, in->bytes, in->len, sums);
			break;
		case FAST:
			ok = sum_engine(best, in->bytes, in->len, sums);
			break;
		case EVENTS:
			*events = run_events(in);
			break;
		case LIBIPT:
			ok = !in->event_trace && vmt_pt_sum_libipt(in->bytes, in->len, sums);
			break;
		case PERF:
			ok = sum_perf && sum_perf(in->bytes, in->len, sums);
			break;
		case TEXT:
		case JSON:
			ok = list(in->bytes, text_len(in),
				  c == TEXT ? VMT_SCRIPT_TEXT : VMT_SCRIPT_JSON);
			break;
		case PRINTF:
			ok = !in->event_trace &&
			     vmt_pt_print_libipt(in->bytes, text_len(in), null_file);
			break;
		case COLUMNS:
			break;
		}
	return ok;
}

static bool equal(struct vmt_pt_sums a, struct vmt_pt_sums b, bool pads)
{
	if (!pads)
		a.counts[VMT_PT_PAD] = b.counts[VMT_PT_PAD] = 0;
	/* perf has one type for both lengths of TNT. */
	a.counts[VMT_PT_TNT] += a.counts[VMT_PT_TNT_LONG];
	b.counts[VMT_PT_TNT] += b.counts[VMT_PT_TNT_LONG];
	a.counts[VMT_PT_TNT_LONG] = b.counts[VMT_PT_TNT_LONG] = 0;
	return !memcmp(&a, &b, sizeof(a));
}

static int by_time(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t packets_of(const struct vmt_pt_sums *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < VMT_PT_TYPE_COUNT; i++)
		n += s->counts[i];
	return n;
}

static void print_sums(const char *who, const struct vmt_pt_sums *s)
{
	printf("  totals %-8s %llu bytes, %llu packets (", who, (unsigned long long)s->bytes,
	       (unsigned long long)packets_of(s));
	for (unsigned int i = 0; i < VMT_PT_TYPE_COUNT; i++)
		if (s->counts[i])
			printf("%s%s%s %llu", i == VMT_PT_PAD ? "" : " ",
			       vmt_pt_type_name((enum vmt_pt_type)i),
			       i == VMT_PT_TNT_LONG ? ".long" : "",
			       (unsigned long long)s->counts[i]);
	printf("), payloads 0x%llx, IPs 0x%llx\n", (unsigned long long)s->payloads,
	       (unsigned long long)s->ips);
}

/* For run-bench.sh's table. */
static void print_row(const struct input *in, const char *what, double mb, double own, double peer)
{
	printf("  row PT, %s%s: %s | %.0f MB/s | %.0f MB/s | %.1f |\n", in->name,
	       in->event_trace ? " with Event Trace" : "", what, mb / own, mb / peer, peer / own);
}

static void measure(const struct input *in)
{
	static double times[COLUMNS][ROUNDS_MAX];
	struct vmt_pt_sums sums[COLUMNS] = { 0 };
	bool there[COLUMNS];
	struct events events = { 0 };
	double seconds[COLUMNS];
	const double mb = (double)in->len * in->repeat / 1e6;
	const double text_mb = (double)text_len(in) * in->repeat / 1e6;

	if (only && !strstr(in->name, only))
		return;
	for (size_t round = 0; round < rounds; round++)
		for (unsigned int c = 0; c < COLUMNS; c++) {
			const double start = now_s();

			there[c] = run_column((enum column)c, in, &sums[c], &events);
			times[c][round] = now_s() - start;
		}
	printf("pt: %s%s: %zu bytes%s, %.2f bytes a packet, %llu events\n", in->name,
	       in->event_trace ? " with Event Trace" : "", in->len,
	       in->repeat > 1 ? " again and again" : "",
	       (double)in->len / (double)packets_of(&sums[FAST]), (unsigned long long)events.n);
	print_sums("ours", &sums[FAST]);
	for (unsigned int c = 0; c < COLUMNS; c++) {
		qsort(times[c], rounds, sizeof(times[c][0]), by_time);
		seconds[c] = times[c][rounds / 2];
		if (there[c])
			printf("  %-10s %8.0f MB/s\n", column_names[c],
			       (c < TEXT ? mb : text_mb) / seconds[c]);
		if (there[c] && (c == SCALAR || c == LIBIPT || c == PERF) &&
		    !equal(sums[FAST], sums[c], c != PERF)) {
			print_sums(column_names[c], &sums[c]);
			printf("  FAILED: the totals differ\n");
			failed = 1;
		}
	}
	if (!there[FAST] || !there[SCALAR])
		failed = 1;
	if (there[LIBIPT]) {
		print_row(in, "every packet, against libipt", mb, seconds[FAST], seconds[LIBIPT]);
		print_row(in, "VM events, against libipt's packets", mb, seconds[EVENTS],
			  seconds[LIBIPT]);
	}
	if (there[PERF])
		print_row(in, "every packet, against perf's decoder", mb, seconds[FAST],
			  seconds[PERF]);
	if (there[PRINTF]) {
		print_row(in, "text, against printf of libipt's packets", text_mb, seconds[TEXT],
			  seconds[PRINTF]);
		print_row(in, "JSON, against printf of libipt's packets", text_mb, seconds[JSON],
			  seconds[PRINTF]);
	}
	fflush(stdout);
}

static void measure_real(const char *name, uint8_t *bytes, size_t len)
{
	const struct input in = { .name = name,
				  .bytes = bytes,
				  .len = len,
				  .repeat = (unsigned int)((16u << 20) / len) };

	measure(&in);
}

static uint8_t *load(const char *name, size_t *len)
{
	uint8_t *bytes = malloc(REAL_MAX);
	const char *top = getenv("VMT_TOP");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/../shared/data/pt/%s", top ? top : ".", name);
	file = fopen(path, "rb");
	if (!bytes)
		abort();
	*len = file ? fread(bytes, 1, REAL_MAX, file) : 0;
	if (file)
		fclose(file);
	else
		printf("pt: %s: skipped, there is no such file\n", path);
	return bytes;
}

static void measure_real_streams(void)
{
	size_t len;
	uint8_t *bytes = load("dynamorio-pt.bin", &len);

	if (len)
		measure_real("dynamorio-pt.bin", bytes, len);
	free(bytes);
	bytes = load("perf.data.intel_pt-4.14", &len);
	for (uint64_t at = len > 48 ? vmt_load_u64(bytes + 40) : len; at + 16 <= len;) {
		const uint16_t size = vmt_load_u16(bytes + at + 6);
		uint64_t aux = 0;

		if (size < 8)
			break;
		if (vmt_load_u32(bytes + at) == 71) { /* AUXTRACE: the trace follows */
			aux = vmt_load_u64(bytes + at + 8);
			if (aux > 100000 && aux <= len - at - size)
				measure_real("perf.data.intel_pt-4.14", bytes + at + size, aux);
		}
		at += size + aux;
	}
	free(bytes);
}

int main(int argc, char **argv)
{
	size_t mib = 256;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--mib"))
			mib = strtoul(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--rounds"))
			rounds = strtoul(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--only"))
			only = argv[i + 1];
	}
	if (!rounds || rounds > ROUNDS_MAX)
		return 2;
	if (getenv("VMT_BENCH_PERF_PT"))
		sum_perf = vmt_pt_perf_open(getenv("VMT_BENCH_PERF_PT"));
	if (!sum_perf)
		printf("pt: perf's decoder is not there\n");
	best = vmt_pt_engine_best();
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	null_file = fopen("/dev/null", "w");
	if (null_fd < 0 || !null_file)
		return 2;
	copy = calloc(1, (mib << 20) + (64u << 10));
	if (!copy)
		abort();
	measure_real_streams();
	for (unsigned int i = 0; i < 2 * VMT_PTLOAD_KINDS; i++) {
		const struct vmt_ptload_options options = {
			.kind = (enum vmt_ptload_kind)(i / 2),
			.seed = i + 1,
			.bytes = mib << 20,
			.event_trace = i % 2,
		};
		struct input in = { .name = vmt_ptload_name(options.kind),
				    .repeat = 1,
				    .event_trace = options.event_trace };
		struct vmt_ptenc stream;

		if (only && !strstr(in.name, only))
			continue;
		vmt_ptload_run(&stream, &options);
		in.bytes = stream.bytes;
		in.len = stream.len;
		measure(&in);
		vmt_ptenc_free(&stream);
	}
	free(copy);
	return failed;
}
