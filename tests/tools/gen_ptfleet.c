// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gen_ptfleet OUT [--seed S] [--cpus N] [--vcpus N] [--steps N] [--lose-kvm N] [--overflow N]
 *             [--wrong-rip N] [--wrong-reason N] [--no-tracepoints] [--no-switches]
 *             [--no-event-trace] [--conceal] [--pipe]
 * Writes a perf.data with Intel PT of several CPUs and tracepoints (tests/support/pt_fleet.h); N of
 * a chance is in 1000. Prints exits, those that PT and kvm_exit tell, and those that both do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_fleet.h"

#define KERNEL "6.1"

static int usage(const char *what)
{
	fprintf(stderr, "gen_ptfleet: %s\n", what);
	return 2;
}

static int parse_value(struct vmt_ptfleet_options *o, const char *name, const char *value)
{
	const struct {
		const char *name;
		unsigned int *to, most;
	} rows[] = {
		{ "--cpus", &o->cpus, VMT_PTFLEET_CPUS_MAX },
		{ "--vcpus", &o->vcpus, VMT_PTFLEET_VCPUS_MAX },
		{ "--steps", &o->steps, 1000000 },
		{ "--lose-kvm", &o->lose_kvm, 1000 },
		{ "--overflow", &o->overflow, 1000 },
		{ "--wrong-rip", &o->wrong_rip, 1000 },
		{ "--wrong-reason", &o->wrong_reason, 1000 },
	};
	const unsigned long n = strtoul(value, NULL, 0);

	if (!strcmp(name, "--seed")) {
		o->seed = n;
		return 0;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(name, rows[i].name) != 0)
			continue;
		if (n > rows[i].most)
			return usage(name);
		*rows[i].to = (unsigned int)n;
		return 0;
	}
	return usage(name);
}

static int parse(struct vmt_ptfleet_options *o, bool *pipe, const char **out, int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc && !status; i++) {
		const char *s = argv[i];

		if (!strcmp(s, "--no-tracepoints"))
			o->tracepoints = false;
		else if (!strcmp(s, "--no-switches"))
			o->switches = false;
		else if (!strcmp(s, "--no-event-trace"))
			o->event_trace = false;
		else if (!strcmp(s, "--conceal"))
			o->conceal = true;
		else if (!strcmp(s, "--pipe"))
			*pipe = true;
		else if (s[0] != '-')
			*out = s;
		else if (i + 1 < argc)
			status = parse_value(o, s, argv[++i]);
		else
			status = usage(s);
	}
	return status ? status : *out ? 0 : usage("OUT is needed");
}

static int write_file(const char *path, const uint8_t *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");
	int bad;

	if (!f)
		return 1;
	bad = fwrite(bytes, 1, len, f) != len;
	return fclose(f) || bad;
}

int main(int argc, char **argv)
{
	struct vmt_ptfleet_options o = { .seed = 1,
					 .cpus = 4,
					 .vcpus = 6,
					 .steps = 3000,
					 .tracepoints = true,
					 .switches = true,
					 .event_trace = true };
	struct vmt_stream none = { 0 };
	struct vmt_ptfleet fleet;
	struct vmt_machine *machine;
	unsigned int pt = 0, kvm = 0, both = 0;
	const char *out = NULL;
	bool pipe = false;
	uint8_t *bytes;
	size_t len;
	int status = parse(&o, &pipe, &out, argc, argv);

	if (status)
		return status;
	machine = vmt_machine_new(KERNEL, &none);
	vmt_ptfleet_run(&fleet, &o, machine);
	bytes = vmt_ptfleet_perfdata(&fleet, &o, machine, KERNEL, pipe, &len);
	for (size_t i = 0; i < fleet.nr_exits; i++) {
		pt += fleet.exits[i].has_pt;
		kvm += fleet.exits[i].has_kvm;
		both += fleet.exits[i].has_pt && fleet.exits[i].has_kvm;
	}
	printf("%zu %u %u %u\n", fleet.nr_exits, pt, kvm, both);
	status = write_file(out, bytes, len);
	free(bytes);
	vmt_ptfleet_free(&fleet);
	vmt_machine_free(machine);
	return status;
}
