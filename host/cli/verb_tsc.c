// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace tsc: conversion between host and guest TSC, and the maps that a capture recorded. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/text.h"
#include "host/cli/tsc_maps.h"
#include "vmx/text.h"
#include "vmx/tsc.h"

#define SCHEMA "vmtrace-tsc/1"

static json_t *hex_json(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static void print_json(json_t *doc)
{
	vmt_text_put_json(stdout, doc, JSON_INDENT(2));
}

/* ---- which map ---- */

static bool wanted_domain(const struct vmt_cli *cli, const struct vmt_tsc_maps *maps,
			  uint32_t domain)
{
	const struct vmt_tsc_domain *d = domain < maps->nr_domains ? &maps->domains[domain] : NULL;

	if (!cli->nr_domains && !cli->nr_pids)
		return true;
	for (size_t i = 0; d && i < cli->nr_domains; i++) {
		if (!strcmp(cli->domains[i], d->name) || !strcmp(cli->domains[i], d->uuid))
			return true;
	}
	for (size_t i = 0; d && i < cli->nr_pids; i++) {
		if (cli->pids[i] > 0 && (uint32_t)cli->pids[i] == d->pid)
			return true;
	}
	return false;
}

static bool wanted_vcpu(const struct vmt_cli *cli, const struct vmt_tsc_maps *maps,
			const struct vmt_tsc_vcpu *v)
{
	return vmt_cli_wants_vcpu(cli, v->id) && wanted_domain(cli, maps, v->domain);
}

/* The one vCPU that the options name, or NULL with the exit status in *status. */
static const struct vmt_tsc_vcpu *one_vcpu(const struct vmt_cli *cli,
					   const struct vmt_tsc_maps *maps, int *status)
{
	const struct vmt_tsc_vcpu *found = NULL;
	struct vmt_diag diag = { 0 };

	for (size_t i = 0; i < maps->nr_vcpus; i++) {
		const struct vmt_tsc_vcpu *v = &maps->vcpus[i];

		if (!wanted_vcpu(cli, maps, v))
			continue;
		if (found) {
			*status = vmt_cli_usage(cli, "the capture has TSC maps of several vCPUs",
						found->domain == v->domain
							? "name one with --vcpu N"
							: "name the domain with --domain and the "
							  "vCPU with --vcpu N");
			return NULL;
		}
		found = v;
	}
	if (!found) {
		vmt_diag_set(&diag, VMT_E_CAPABILITY,
			     "the capture holds no TSC offset of that vCPU",
			     "vmtrace tsc show -i FILE lists the vCPUs that it has");
		*status = vmt_cli_fail(&diag);
	}
	return found;
}

static void say_which(const struct vmt_cli *cli, const struct vmt_tsc_maps *maps,
		      const struct vmt_tsc_vcpu *v)
{
	char name[96], text[200];

	vmt_tsc_domain_name(maps, v->domain, name, sizeof(name));
	if (v->changes) {
		snprintf(text, sizeof(text),
			 "the TSC map of vCPU %u of %s changed %" PRIu64
			 " times: the last one is used (tsc show lists them)",
			 v->id, name, v->changes);
		vmt_cli_warn(cli, text);
	}
	if (cli->verbose)
		fprintf(stderr,
			"vmtrace: vCPU %u of %s: offset %" PRId64 ", multiplier %" PRIu64
			", frac %u, from %s at %" PRIu64 " ns\n",
			v->id, name, (int64_t)v->last.map.offset, v->last.map.multiplier,
			v->last.map.frac_bits, vmt_tsc_source_name(v->last.source), v->last.to_ns);
}

static int map_from_capture(const struct vmt_cli *cli, struct vmx_tsc_map *map)
{
	struct vmt_tsc_maps maps;
	struct vmt_diag diag = { 0 };
	const struct vmt_tsc_vcpu *v;
	int status = VMT_STATUS_OK;

	if (vmt_tsc_maps_read(&maps, cli->input, &diag)) {
		status = vmt_cli_fail(&diag);
	} else {
		v = one_vcpu(cli, &maps, &status);
		if (v) {
			*map = v->last.map;
			say_which(cli, &maps, v);
		}
	}
	vmt_tsc_maps_free(&maps);
	return status;
}

static int map_from_options(const struct vmt_cli *cli, struct vmx_tsc_map *map)
{
	unsigned int frac = cli->has_frac ? cli->frac : VMX_TSC_FRAC_BITS_VMX;

	if (!cli->has_offset && !cli->has_mult)
		return vmt_cli_usage(cli, "tsc convert needs a TSC map",
				     "give --offset N and --mult N, or -i CAPTURE --vcpu N");
	if (frac < 1 || frac > 63)
		return vmt_cli_usage(cli, "--frac is a number from 1 to 63",
				     "48 on Intel (VMX), 32 on AMD (SVM)");
	map->frac_bits = (uint8_t)frac;
	map->multiplier = cli->has_mult ? cli->mult : UINT64_C(1) << frac;
	map->offset = cli->has_offset ? (uint64_t)cli->offset : 0;
	return VMT_STATUS_OK;
}

/* ---- convert ---- */

struct conversion {
	struct vmx_tsc_map map;
	bool to_guest;
	json_t *values; /* NULL unless JSON is wanted */
	bool csv;
	bool missing; /* a value had no host TSC */
};

static void convert_to_guest(struct conversion *c, uint64_t host)
{
	uint64_t guest = vmx_tsc_to_guest(&c->map, host);

	if (c->values)
		json_array_append_new(c->values, json_pack("{s:o,s:o}", "input", hex_json(host),
							   "guest_tsc", hex_json(guest)));
	else if (c->csv)
		printf("%" PRIu64 ",%" PRIu64 "\n", host, guest);
	else
		printf("%" PRIu64 "\n", guest);
}

static void convert_to_host(struct conversion *c, uint64_t guest)
{
	uint64_t first = 0, last = 0;
	bool maps = vmx_tsc_to_host(&c->map, guest, &first, &last);

	c->missing |= !maps;
	if (c->values)
		json_array_append_new(c->values,
				      json_pack("{s:o,s:o,s:o}", "input", hex_json(guest), "first",
						maps ? hex_json(first) : json_null(), "last",
						maps ? hex_json(last) : json_null()));
	else if (c->csv && maps)
		printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", guest, first, last);
	else if (c->csv)
		printf("%" PRIu64 ",,\n", guest);
	else if (maps)
		printf("%" PRIu64 " %" PRIu64 "\n", first, last);
	else
		puts("-");
}

/* A TSC value in C syntax; a guest TSC may be written as the negative number that it also is. */
static bool read_value(const char *text, bool may_be_negative, uint64_t *value)
{
	bool negative = may_be_negative && *text == '-';
	const char *end = vmx_text_number(text + negative, value);

	if (!end || *end)
		return false;
	if (negative) {
		if (*value > UINT64_C(1) << 63)
			return false;
		*value = -*value;
	}
	return true;
}

static int check_values(const struct vmt_cli *cli, bool to_guest)
{
	char what[200];
	uint64_t value;

	if (cli->nr_args < 2)
		return vmt_cli_usage(cli, "tsc convert needs a VALUE",
				     "vmtrace tsc convert --to guest|host ... VALUE...");
	for (size_t i = 1; i < cli->nr_args; i++) {
		if (read_value(cli->args[i], !to_guest, &value))
			continue;
		snprintf(what, sizeof(what), "'%.100s' is no TSC value", cli->args[i]);
		return vmt_cli_usage(cli, what, "a number in C syntax, 0 to 2^64-1");
	}
	return VMT_STATUS_OK;
}

static int convert(const struct vmt_cli *cli)
{
	struct conversion c = { .csv = cli->format == VMT_FORMAT_CSV };
	int status;

	if (!cli->to || (strcmp(cli->to, "guest") != 0 && strcmp(cli->to, "host") != 0))
		return vmt_cli_usage(cli, "tsc convert needs --to guest or --to host",
				     "guest: from host TSC to guest TSC; host: the other way");
	c.to_guest = !strcmp(cli->to, "guest");
	status = check_values(cli, c.to_guest);
	if (status)
		return status;
	if (cli->input && (cli->has_offset || cli->has_mult || cli->has_frac))
		return vmt_cli_usage(cli, "two TSC maps: --input and --offset, --mult or --frac",
				     "give one of them");
	status = cli->input ? map_from_capture(cli, &c.map) : map_from_options(cli, &c.map);
	if (status)
		return status;
	if (cli->format == VMT_FORMAT_JSON)
		c.values = json_array();
	else if (c.csv)
		puts(c.to_guest ? "input,guest_tsc" : "input,first,last");
	for (size_t i = 1; i < cli->nr_args; i++) {
		uint64_t value = 0;

		read_value(cli->args[i], !c.to_guest, &value);
		if (c.to_guest)
			convert_to_guest(&c, value);
		else
			convert_to_host(&c, value);
	}
	if (c.values)
		print_json(json_pack("{s:s,s:o}", "schema", SCHEMA, "values", c.values));
	return c.missing ? VMT_STATUS_FAILURE : VMT_STATUS_OK;
}

/* ---- show ---- */

static double ratio_of(const struct vmx_tsc_map *map)
{
	return (double)map->multiplier / (double)(UINT64_C(1) << map->frac_bits);
}

static double seconds_of(const struct vmt_tsc_maps *maps, uint64_t ns)
{
	return (double)(int64_t)(ns - maps->start_ns) / 1e9;
}

static void show_text(const struct vmt_tsc_maps *maps, const struct vmt_tsc_interval *i)
{
	const struct vmt_tsc_vcpu *v = &maps->vcpus[i->vcpu];
	bool first = i == maps->intervals || i[-1].vcpu != i->vcpu;
	bool last = i + 1 == maps->intervals + maps->nr_intervals || i[1].vcpu != i->vcpu;
	char name[96], from[24] = "start", to[24] = "end";

	/* Before the first and after the last snapshot the nearest map holds, as in convert. */
	if (!first)
		snprintf(from, sizeof(from), "%.3f", seconds_of(maps, i->from_ns));
	if (!last)
		snprintf(to, sizeof(to), "%.3f", seconds_of(maps, i->to_ns));
	printf("%-10s %4u %9s %9s %20" PRId64 " %11.9f %s\n",
	       vmt_tsc_domain_name(maps, v->domain, name, sizeof(name)), v->id, from, to,
	       (int64_t)i->map.offset, ratio_of(&i->map), vmt_tsc_source_name(i->source));
}

/* A name in quotes, as CSV wants it when it holds a comma or a quote. */
static void put_csv(const char *text)
{
	if (!strpbrk(text, ",\"")) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

static void show_csv(const struct vmt_tsc_maps *maps, const struct vmt_tsc_interval *i)
{
	const struct vmt_tsc_vcpu *v = &maps->vcpus[i->vcpu];
	char name[96];

	put_csv(vmt_tsc_domain_name(maps, v->domain, name, sizeof(name)));
	printf(",%u,%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRIu64 ",%u,%" PRIu64 ",%s\n", v->id,
	       i->from_ns, i->to_ns, (int64_t)i->map.offset, i->map.multiplier, i->map.frac_bits,
	       i->snapshots, vmt_tsc_source_name(i->source));
}

static json_t *show_json(const struct vmt_tsc_maps *maps, const struct vmt_tsc_interval *i)
{
	const struct vmt_tsc_vcpu *v = &maps->vcpus[i->vcpu];
	const struct vmt_tsc_domain *d =
		v->domain < maps->nr_domains ? &maps->domains[v->domain] : NULL;
	const char *name = d && d->name[0] ? d->name : NULL;

	return json_pack("{s:s?,s:I,s:I,s:I,s:I,s:o,s:o,s:i,s:f,s:b,s:I,s:s}", "domain", name,
			 "domain_index", (json_int_t)v->domain, "vcpu", (json_int_t)v->id,
			 "from_ns", (json_int_t)i->from_ns, "to_ns", (json_int_t)i->to_ns, "offset",
			 hex_json(i->map.offset), "multiplier", hex_json(i->map.multiplier), "frac",
			 (int)i->map.frac_bits, "ratio", ratio_of(&i->map), "scaling_hardware",
			 (int)i->scaling, "snapshots", (json_int_t)i->snapshots, "source",
			 vmt_tsc_source_name(i->source));
}

static void show_maps(const struct vmt_cli *cli, const struct vmt_tsc_maps *maps)
{
	json_t *list = cli->format == VMT_FORMAT_JSON ? json_array() : NULL;

	if (cli->format == VMT_FORMAT_TEXT)
		printf("%-10s %4s %9s %9s %20s %11s %s\n", "DOMAIN", "VCPU", "FROM s", "TO s",
		       "OFFSET", "RATIO", "SOURCE");
	if (cli->format == VMT_FORMAT_CSV)
		puts("domain,vcpu,from_ns,to_ns,offset,multiplier,frac,snapshots,source");
	for (size_t n = 0; n < maps->nr_intervals; n++) {
		const struct vmt_tsc_interval *i = &maps->intervals[n];

		if (!wanted_vcpu(cli, maps, &maps->vcpus[i->vcpu]))
			continue;
		if (list)
			json_array_append_new(list, show_json(maps, i));
		else if (cli->format == VMT_FORMAT_CSV)
			show_csv(maps, i);
		else
			show_text(maps, i);
	}
	if (list)
		print_json(json_pack("{s:s,s:o}", "schema", SCHEMA, "maps", list));
}

static int show(const struct vmt_cli *cli)
{
	const char *path = cli->input;
	struct vmt_tsc_maps maps;
	struct vmt_diag diag = { 0 };
	char text[120];
	int status = VMT_STATUS_OK;

	if (cli->nr_args > (path ? 1 : 2))
		return vmt_cli_usage(cli, "tsc show takes one capture", "-i FILE");
	if (!path && cli->nr_args == 2)
		path = cli->args[1];
	if (!path)
		return vmt_cli_usage(cli, "tsc show needs a capture", "-i FILE");
	if (vmt_tsc_maps_read(&maps, path, &diag)) {
		status = vmt_cli_fail(&diag);
	} else {
		show_maps(cli, &maps);
		if (maps.left_out) {
			snprintf(text, sizeof(text),
				 "%" PRIu64 " intervals or readings were left out", maps.left_out);
			vmt_cli_warn(cli, text);
		}
	}
	vmt_tsc_maps_free(&maps);
	return status;
}

int vmt_verb_tsc(struct vmt_cli *cli)
{
	const char *what = cli->nr_args ? cli->args[0] : "";

	if (!strcmp(what, "convert"))
		return convert(cli);
	if (!strcmp(what, "show"))
		return show(cli);
	return vmt_cli_usage(cli, "tsc takes convert or show", NULL);
}
