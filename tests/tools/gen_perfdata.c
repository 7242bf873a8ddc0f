// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gen_perfdata OUT|- --events N [--pipe] [--zstd] [--no-rounds] [--cpus N] [--isa vmx|svm]
 *              [--kernel K] [--seed S]
 * Writes a perf.data with N kvm records of a busy host, in bounded memory. "-" is standard output
 * and needs --pipe. Prints the exits a reason to standard error with -v.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/kvm_load.h"

struct arguments {
	const char *out;
	uint64_t events, seed;
	int no_rounds, verbose;
	struct vmt_perfdata_file_options file;
};

static int usage(const char *what)
{
	fprintf(stderr,
		"gen_perfdata: %s\nusage: gen_perfdata OUT|- --events N [--pipe] [--zstd] "
		"[--no-rounds] [--cpus N] [--isa vmx|svm] [--kernel K] [--seed S] [-v]\n",
		what);
	return 2;
}

static int parse_value(struct arguments *a, const char *name, const char *value)
{
	if (!strcmp(name, "--events"))
		a->events = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--seed"))
		a->seed = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--cpus"))
		a->file.cpus = (unsigned int)strtoul(value, NULL, 0);
	else if (!strcmp(name, "--kernel"))
		a->file.kernel = value;
	else if (!strcmp(name, "--isa"))
		a->file.isa = !strcmp(value, "svm") ? VMT_ISA_SVM : VMT_ISA_VMX;
	else
		return usage(name);
	return 0;
}

static int parse(struct arguments *a, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *s = argv[i];
		int status = 0;

		if (!strcmp(s, "--pipe"))
			a->file.pipe = true;
		else if (!strcmp(s, "--zstd"))
			a->file.zstd = true;
		else if (!strcmp(s, "--no-rounds"))
			a->no_rounds = 1;
		else if (!strcmp(s, "-v"))
			a->verbose = 1;
		else if (s[0] != '-' || !s[1])
			a->out = s;
		else if (i + 1 < argc)
			status = parse_value(a, s, argv[++i]);
		else
			status = usage(s);
		if (status)
			return status;
	}
	if (!a->out || !a->events)
		return usage("OUT and --events are needed");
	if (!strcmp(a->out, "-") && !a->file.pipe)
		return usage("standard output needs --pipe");
	if (a->file.cpus < 1 || a->file.cpus > 1024)
		return usage("--cpus is 1 to 1024");
	return 0;
}

int main(int argc, char **argv)
{
	struct arguments a = { .seed = 1,
			       .file = { .kernel = "6.1",
					 .events = vmt_kvm_load_events,
					 .isa = VMT_ISA_VMX,
					 .cpus = 4 } };
	struct vmt_perfdata_file *file;
	struct vmt_kvm_load *load;
	int status = parse(&a, argc, argv);

	if (status)
		return status;
	a.file.fd = strcmp(a.out, "-") ? open(a.out, O_WRONLY | O_CREAT | O_TRUNC, 0600) : 1;
	if (a.file.fd < 0) {
		fprintf(stderr, "gen_perfdata: %s: %s\n", a.out, strerror(errno));
		return 1;
	}
	file = vmt_perfdata_file_new(&a.file);
	load = vmt_kvm_load_new(file, a.file.isa, a.file.cpus, a.seed);
	vmt_kvm_load_fill(load, file, a.events, !a.no_rounds);
	vmt_perfdata_file_finish(file);
	for (uint32_t reason = 0; a.verbose && reason < 4096; reason++) {
		if (vmt_kvm_load_exits(load, reason))
			fprintf(stderr, "0x%x %llu\n", reason,
				(unsigned long long)vmt_kvm_load_exits(load, reason));
	}
	vmt_kvm_load_free(load);
	vmt_perfdata_file_free(file);
	return close(a.file.fd) ? 1 : 0;
}
