// SPDX-License-Identifier: LGPL-2.1-or-later
/* Session documents (docs/FORMAT.md): the host as perf's features tell it, and threads. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/json_bound.h"
#include "decode/export/perfdata_private.h"

#define TEXT_MAX	    200u
#define FLAG_EXCLUDE_HOST   (UINT64_C(1) << 19)
#define FLAG_CONTEXT_SWITCH (UINT64_C(1) << 26)
#define SAMPLE_DUMMY	    UINT64_C(0x10087) /* IP|TID|TIME|CPU|IDENTIFIER */
#define SOFTWARE	    1u
#define SOFTWARE_DUMMY	    9u

int export_cpuid(struct vmt_perfdata_writer *w, const char *vendor, unsigned int family,
		 unsigned int model, unsigned int stepping, struct vmt_diag *diag)
{
	char text[64];

	snprintf(text, sizeof(text), family ? "%.16s,%u,%u,%u" : "%.16s", vendor, family, model,
		 stepping);
	return vmt_perfdata_feature_text(w, VMT_PERFDATA_CPUID, text, diag);
}

/* perf tells VMX from SVM by the vendor; a capture may know the one without the other. */
static const char *vendor_of(const json_t *host)
{
	const char *vendor = json_string_value(json_object_get(host, "vendor"));
	const char *isa = json_string_value(json_object_get(host, "isa"));

	if (vendor)
		return vendor;
	if (isa && !strcmp(isa, "vmx"))
		return "GenuineIntel";
	return isa && !strcmp(isa, "svm") ? "AuthenticAMD" : NULL;
}

static int take_host(struct vmt_perfdata_export *e, const json_t *host)
{
	static const struct {
		const char *name;
		enum vmt_perfdata_feature feature;
	} rows[] = {
		{ "hostname", VMT_PERFDATA_HOSTNAME },
		{ "kernel", VMT_PERFDATA_OSRELEASE },
		{ "cpu", VMT_PERFDATA_CPUDESC },
	};
	const char *vendor = vendor_of(host);
	int err = vmt_perfdata_feature_text(e->w, VMT_PERFDATA_ARCH, "x86_64", e->diag);

	for (size_t i = 0; !err && i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *value = json_string_value(json_object_get(host, rows[i].name));
		char text[TEXT_MAX];

		if (!value)
			continue;
		snprintf(text, sizeof(text), "%s", value);
		err = vmt_perfdata_feature_text(e->w, rows[i].feature, text, e->diag);
	}
	if (vendor)
		snprintf(e->vendor, sizeof(e->vendor), "%s", vendor);
	return err;
}

/* ---- threads ---- */

static struct export_thread *find_thread(struct vmt_perfdata_export *e, uint32_t pid, uint32_t tid)
{
	for (size_t i = 0; i < e->nr_threads; i++) {
		if (e->threads[i].tid == tid && e->threads[i].pid == pid)
			return &e->threads[i];
	}
	return NULL;
}

/* A new thread or the known one; NULL with *err, or with 0 beyond the limit. */
static struct export_thread *add_thread(struct vmt_perfdata_export *e, uint32_t pid, uint32_t tid,
					int *err)
{
	struct export_thread *t = find_thread(e, pid, tid);

	*err = 0;
	if (t || e->nr_threads == EXPORT_THREADS_MAX)
		return t;
	if (e->nr_threads == e->cap_threads) {
		const size_t cap = e->cap_threads ? e->cap_threads * 2 : 64;

		t = realloc(e->threads, cap * sizeof(*t));
		if (!t) {
			*err = vmt_diag_set(e->diag, VMT_E_NOMEM, "cannot export the capture",
					    "memory is short");
			return NULL;
		}
		e->threads = t;
		e->cap_threads = cap;
	}
	t = &e->threads[e->nr_threads++];
	*t = (struct export_thread){ .pid = pid, .tid = tid };
	e->has_new_threads = true;
	return t;
}

static uint32_t number(const json_t *object, const char *name)
{
	const json_int_t v = json_integer_value(json_object_get(object, name));

	return v > 0 && v <= INT32_MAX ? (uint32_t)v : 0;
}

static int take_domain(struct vmt_perfdata_export *e, const json_t *domain)
{
	const uint32_t pid = number(domain, "pid");
	const json_t *entry;
	int err = 0;
	size_t i;

	if (!pid)
		return 0;
	json_array_foreach(json_object_get(domain, "threads"), i, entry)
	{
		const uint32_t tid = number(entry, "tid");
		struct export_thread *t = tid ? add_thread(e, pid, tid, &err) : NULL;
		const char *name = json_string_value(json_object_get(entry, "name"));

		if (err)
			return err;
		if (t && name)
			snprintf(t->name, sizeof(t->name), "%s", name);
	}
	json_array_foreach(json_object_get(domain, "vcpus"), i, entry)
	{
		const uint32_t tid = number(entry, "tid");
		struct export_thread *t = tid ? add_thread(e, pid, tid, &err) : NULL;

		if (err)
			return err;
		if (!t)
			continue;
		t->is_vcpu = true;
		t->vcpu = number(entry, "id");
	}
	return 0;
}

int export_names(struct vmt_perfdata_export *e)
{
	int err = 0;

	for (size_t i = 0; !err && e->has_new_threads && i < e->nr_threads; i++) {
		struct export_thread *t = &e->threads[i];

		if (!t->told && t->name[0])
			err = vmt_perfdata_comm(e->w, t->pid, t->tid, t->name, e->diag);
		t->told = true;
	}
	e->has_new_threads = false;
	return err;
}

/*
 * perf knows a vCPU by an event of the guest, which has an id a vCPU: one that counts nothing, as
 * perf inject makes it.
 */
static int link_vcpu(struct vmt_perfdata_export *e, const struct export_thread *t)
{
	const struct vmt_ring_attr dummy = { .type = SOFTWARE,
					     .config = SOFTWARE_DUMMY,
					     .sample_type = SAMPLE_DUMMY,
					     .flags = VMT_RING_FLAG_SAMPLE_ID_ALL |
						      FLAG_EXCLUDE_HOST | FLAG_CONTEXT_SWITCH };
	const struct vmt_perfdata_event event = { .attr = &dummy, .ids = &e->next_id, .nr_ids = 1 };
	const struct vmt_perfdata_id id = {
		.id = e->next_id, .cpu = -1, .tid = t->tid, .machine_pid = t->pid, .vcpu = t->vcpu
	};
	int err = vmt_perfdata_attr(e->w, &event, e->diag);

	e->next_id++;
	return err ? err : vmt_perfdata_id_index(e->w, &id, 1, e->diag);
}

int export_links(struct vmt_perfdata_export *e)
{
	int err = export_names(e);

	for (size_t i = 0; !err && i < e->nr_threads; i++) {
		struct export_thread *t = &e->threads[i];

		if (t->is_vcpu && !t->linked)
			err = link_vcpu(e, t);
		t->linked = true;
	}
	return err;
}

int export_session(struct vmt_perfdata_export *e, const uint8_t *json, size_t len)
{
	json_t *root = NULL;
	const json_t *domain;
	int err = 0;
	size_t i;

	if (vmt_json_is_bounded(json, len))
		root = json_loadb((const char *)json, len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(json_object_get(root, "host")))
		err = take_host(e, json_object_get(root, "host"));
	json_array_foreach(json_object_get(root, "domains"), i, domain)
	{
		if (!err)
			err = take_domain(e, domain);
	}
	json_decref(root);
	return err;
}
