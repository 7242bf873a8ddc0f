// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: slots holds index + 1 of every vCPU at the first free place from its hash on, and half
 * of the slots are always free; memory is bounded by VMT_TSC_VCPUS_MAX and VMT_TSC_INTERVALS_MAX
 * whatever the file says.
 */
#include "host/cli/tsc_maps.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/json_bound.h"
#include "decode/export/utf8.h"
#include "decode/store/store.h"

#define NR_SLOTS	((size_t)VMT_TSC_VCPUS_MAX * 2)
#define DOMAINS_MAX	1024
#define FRAC_UNSCALED	VMX_TSC_FRAC_BITS_VMX
#define PERF_DATA_MAGIC "PERFILE2"

static int no_memory(struct vmt_diag *diag)
{
	return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for the TSC maps", "");
}

static void copy_safe(char *dst, size_t size, const char *src)
{
	vmt_utf8_clean(dst, size, src ? src : "", 0);
}

/* ---- session documents ---- */

static int take_domains(struct vmt_tsc_maps *maps, const json_t *domains, struct vmt_diag *diag)
{
	size_t count = json_array_size(domains);
	struct vmt_tsc_domain *d;

	if (!count)
		return 0;
	if (count > DOMAINS_MAX)
		count = DOMAINS_MAX;
	d = calloc(count, sizeof(*d));
	if (!d)
		return no_memory(diag);
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(domains, i);
		json_int_t pid = json_integer_value(json_object_get(one, "pid"));

		copy_safe(d[i].name, sizeof(d[i].name),
			  json_string_value(json_object_get(one, "name")));
		copy_safe(d[i].uuid, sizeof(d[i].uuid),
			  json_string_value(json_object_get(one, "uuid")));
		d[i].pid = pid > 0 && pid <= UINT32_MAX ? (uint32_t)pid : 0;
	}
	free(maps->domains);
	maps->domains = d;
	maps->nr_domains = count;
	return 0;
}

static int take_session(struct vmt_tsc_maps *maps, const struct vmt_item *item,
			struct vmt_diag *diag)
{
	json_t *doc = vmt_json_is_bounded(item->data, item->len)
			      ? json_loadb((const char *)item->data, item->len, 0, NULL)
			      : NULL;
	const json_t *start = json_object_get(doc, "start_ns");
	int err;

	if (json_is_integer(start) && json_integer_value(start) >= 0 && !maps->has_start) {
		maps->has_start = true;
		maps->start_ns = (uint64_t)json_integer_value(start);
	}
	err = take_domains(maps, json_object_get(doc, "domains"), diag);
	json_decref(doc);
	return err;
}

/* ---- snapshots ---- */

static struct vmt_tsc_vcpu *find_vcpu(struct vmt_tsc_maps *maps, uint32_t domain, uint32_t id)
{
	size_t slot = (domain * 2654435761u ^ id * 2246822519u) % NR_SLOTS;
	struct vmt_tsc_vcpu *v;

	for (; maps->slots[slot]; slot = (slot + 1) % NR_SLOTS) {
		v = &maps->vcpus[maps->slots[slot] - 1];
		if (v->domain == domain && v->id == id)
			return v;
	}
	if (maps->nr_vcpus == VMT_TSC_VCPUS_MAX)
		return NULL;
	v = &maps->vcpus[maps->nr_vcpus++];
	maps->slots[slot] = (uint16_t)maps->nr_vcpus;
	v->domain = domain;
	v->id = id;
	return v;
}

static bool add_interval(struct vmt_tsc_maps *maps, const struct vmt_tsc_interval *interval)
{
	struct vmt_tsc_interval *p = maps->intervals;
	size_t n = maps->intervals_capacity;

	if (maps->nr_intervals == n) {
		n = n ? n * 2 : 64;
		p = realloc(p, n * sizeof(*p));
		if (!p)
			return false;
		maps->intervals = p;
		maps->intervals_capacity = n;
	}
	p[maps->nr_intervals++] = *interval;
	return true;
}

static bool same_map(const struct vmx_tsc_map *a, const struct vmx_tsc_map *b)
{
	return a->multiplier == b->multiplier && a->offset == b->offset &&
	       a->frac_bits == b->frac_bits;
}

/* Ends the present interval of a vCPU: it goes to the list. */
static int close_interval(struct vmt_tsc_maps *maps, struct vmt_tsc_vcpu *v, struct vmt_diag *diag)
{
	if (!v->last.snapshots)
		return 0;
	if (maps->nr_intervals == VMT_TSC_INTERVALS_MAX) {
		maps->left_out++;
		return 0;
	}
	return add_interval(maps, &v->last) ? 0 : no_memory(diag);
}

static int take_snapshot(struct vmt_tsc_maps *maps, const struct vmt_vcpu_tsc *s,
			 struct vmt_diag *diag)
{
	struct vmx_tsc_map map = { .multiplier = s->frac ? s->ratio : UINT64_C(1) << FRAC_UNSCALED,
				   .offset = (uint64_t)s->offset,
				   .frac_bits = s->frac ? s->frac : FRAC_UNSCALED };
	struct vmt_tsc_vcpu *v = s->frac < 64 ? find_vcpu(maps, s->domain, s->vcpu) : NULL;
	int err;

	if (!v) {
		maps->left_out++;
		return 0;
	}
	if (v->last.snapshots && same_map(&v->last.map, &map) && s->host_ns <= v->last.to_ns)
		return 0; /* metadata repeats in the file */
	if (!v->last.snapshots || !same_map(&v->last.map, &map)) {
		err = close_interval(maps, v, diag);
		if (err)
			return err;
		v->changes += v->last.snapshots != 0;
		v->last = (struct vmt_tsc_interval){ .map = map,
						     .from_ns = s->host_ns,
						     .vcpu = (uint32_t)(v - maps->vcpus),
						     .scaling = s->frac != 0 };
	}
	v->last.to_ns = s->host_ns;
	v->last.source = s->source;
	v->last.snapshots++;
	return 0;
}

static int take_snapshots(struct vmt_tsc_maps *maps, const struct vmt_item *item,
			  struct vmt_diag *diag)
{
	struct vmt_vcpu_tsc s;
	int err = 0;

	for (size_t at = 0; !err && item->len - at >= sizeof(s); at += sizeof(s)) {
		memcpy(&s, item->data + at, sizeof(s));
		err = take_snapshot(maps, &s, diag);
	}
	return err;
}

static int compare_intervals(const void *a, const void *b)
{
	const struct vmt_tsc_interval *x = a, *y = b;

	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static int read_items(struct vmt_tsc_maps *maps, struct vmt_store_reader *store,
		      struct vmt_diag *diag)
{
	struct vmt_item item;
	int err = 0, more;

	while (!err && (more = vmt_store_next(store, &item, diag)) != 0) {
		if (more < 0)
			return more;
		if (item.type == VMT_ITEM_SESSION)
			err = take_session(maps, &item, diag);
		else if (item.type == VMT_ITEM_VCPU_TSC)
			err = take_snapshots(maps, &item, diag);
	}
	for (size_t i = 0; !err && i < maps->nr_vcpus; i++)
		err = close_interval(maps, &maps->vcpus[i], diag);
	if (maps->nr_intervals)
		qsort(maps->intervals, maps->nr_intervals, sizeof(*maps->intervals),
		      compare_intervals);
	return err;
}

static int no_snapshot(struct vmt_diag *diag, const char *cure)
{
	return vmt_diag_set(diag, VMT_E_CAPABILITY, "the capture holds no TSC offset of a vCPU",
			    cure);
}

static int read_store(struct vmt_tsc_maps *maps, struct vmt_reader *reader, struct vmt_diag *diag)
{
	struct vmt_store_reader *store;
	const uint8_t *magic;
	int64_t n = vmt_reader_peek(reader, 8, &magic, diag);
	int err;

	if (n >= 8 && !memcmp(magic, PERF_DATA_MAGIC, 8)) {
		vmt_reader_close(reader);
		return no_snapshot(diag,
				   "perf.data has none: record with vmtrace, or give --offset "
				   "and --mult (debugfs: kvm/*/vcpu*/tsc-offset)");
	}
	if (n < 0) {
		vmt_reader_close(reader);
		return (int)n;
	}
	err = vmt_store_open(&store, reader, diag);
	if (err) {
		vmt_reader_close(reader);
		return err;
	}
	err = read_items(maps, store, diag);
	vmt_store_close(store);
	if (!err && !maps->nr_vcpus)
		return no_snapshot(diag, "the recorder could not read debugfs (root, or "
					 "CONFIG_DEBUG_FS, is missing): give --offset and --mult");
	return err;
}

int vmt_tsc_maps_read(struct vmt_tsc_maps *maps, const char *path, struct vmt_diag *diag)
{
	struct vmt_reader *reader;
	int err;

	memset(maps, 0, sizeof(*maps));
	maps->vcpus = calloc(VMT_TSC_VCPUS_MAX, sizeof(*maps->vcpus));
	maps->slots = calloc(NR_SLOTS, sizeof(*maps->slots));
	if (!maps->vcpus || !maps->slots)
		return no_memory(diag);
	err = vmt_reader_open(&reader, path, NULL, diag);
	return err ? err : read_store(maps, reader, diag);
}

void vmt_tsc_maps_free(struct vmt_tsc_maps *maps)
{
	free(maps->vcpus);
	free(maps->slots);
	free(maps->intervals);
	free(maps->domains);
	memset(maps, 0, sizeof(*maps));
}

const char *vmt_tsc_domain_name(const struct vmt_tsc_maps *maps, uint32_t domain, char *buf,
				size_t size)
{
	const struct vmt_tsc_domain *d = domain < maps->nr_domains ? &maps->domains[domain] : NULL;

	if (d && (d->name[0] || d->uuid[0]))
		snprintf(buf, size, "%s", d->name[0] ? d->name : d->uuid);
	else if (d && d->pid)
		snprintf(buf, size, "pid %u", d->pid);
	else
		snprintf(buf, size, "domain %u", domain);
	return buf;
}

const char *vmt_tsc_source_name(uint8_t source)
{
	static const char *const names[] = { "unknown", "debugfs", "kvm_write_tsc_offset",
					     "replayed" };

	return names[source < sizeof(names) / sizeof(names[0]) ? source : 0];
}
