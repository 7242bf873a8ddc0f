// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Speed of the whole way from a capture's bytes to a report, in one process: best of several runs
 * over FILE, or over a perf.data of its own in memory. Prints ns and bytes a record, the totals and
 * a plain read of the same bytes. Usage: bench_input [FILE [RUNS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "decode/analyze/report.h"
#include "tests/support/kvm_load.h"

#define EVENTS 1000000
#define CPUS   4

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_input: %s\n", what);
	exit(1);
}

static FILE *own_file(void)
{
	struct vmt_perfdata_file_options options = { .kernel = "6.1",
						     .events = vmt_kvm_load_events,
						     .isa = VMT_ISA_VMX,
						     .cpus = CPUS,
						     .fd = memfd_create("bench_input", 0) };
	struct vmt_perfdata_file *file = vmt_perfdata_file_new(&options);
	struct vmt_kvm_load *load = vmt_kvm_load_new(file, options.isa, CPUS, 1);

	vmt_kvm_load_fill(load, file, EVENTS, 1);
	vmt_perfdata_file_finish(file);
	vmt_kvm_load_free(load);
	vmt_perfdata_file_free(file);
	return fdopen(options.fd, "r");
}

static void on_event(void *context, const struct vmt_event *event)
{
	vmt_report_event(context, event);
}

static double run(FILE *f, uint64_t *bytes, uint64_t *exits, uint64_t *entries)
{
	struct vmt_input_options input_options = { 0 };
	struct vmt_report_options report_options = { 0 };
	struct vmt_report_builder *builder = vmt_report_new(&report_options);
	struct vmt_diag diag = { 0 };
	struct vmt_reader *reader;
	struct vmt_input *input;
	const struct vmt_report *report;
	double start;
	int fd = dup(fileno(f));

	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
		die("cannot seek");
	start = now_s();
	if (vmt_reader_from_fd(&reader, fd, NULL, &diag) ||
	    vmt_input_open(&input, reader, &input_options, &diag) ||
	    vmt_input_run(input, on_event, builder, &diag))
		die(diag.what);
	report = vmt_report_finish(builder, vmt_input_facts(input), vmt_input_ledger(input), NULL,
				   NULL);
	start = now_s() - start;
	*bytes = vmt_input_ledger(input).bytes_total;
	*exits = report->exits;
	*entries = report->entries;
	vmt_report_free(builder);
	vmt_input_close(input);
	return start;
}

static double plain_read(FILE *f)
{
	static char buffer[1 << 20];
	double start = now_s();

	if (lseek(fileno(f), 0, SEEK_SET) < 0)
		die("cannot seek");
	while (read(fileno(f), buffer, sizeof(buffer)) > 0)
		;
	return now_s() - start;
}

int main(int argc, char **argv)
{
	FILE *f = argc > 1 ? fopen(argv[1], "r") : own_file();
	int runs = argc > 2 ? atoi(argv[2]) : 5;
	double best = 1e9, peer = 1e9;
	uint64_t bytes, exits, entries;

	if (!f)
		die("cannot open the file");
	for (int i = 0; i < runs; i++) {
		double s = run(f, &bytes, &exits, &entries), p = plain_read(f);

		best = s < best ? s : best;
		peer = p < peer ? p : peer;
	}
	printf("input to report: %.1f ms, %.1f ns an exit, %.0f MB/s (plain read: %.1f ms); "
	       "%llu bytes, %llu exits, %llu entries\n",
	       best * 1e3, best * 1e9 / (double)exits, (double)bytes / best / 1e6, peer * 1e3,
	       (unsigned long long)bytes, (unsigned long long)exits, (unsigned long long)entries);
	fclose(f);
	return 0;
}
