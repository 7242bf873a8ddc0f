// SPDX-License-Identifier: LGPL-2.1-or-later
/* The session document (docs/FORMAT.md): the host, as perf's features tell it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/json_bound.h"
#include "decode/export/perfdata_private.h"

#define TEXT_MAX 200u

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
	const struct vmt_pt_info *info = e->index ? &e->index->info : NULL;
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
	if (err || !vendor)
		return err;
	if (info && info->has_cpu_id)
		return export_cpuid(e->w, vendor, info->family, info->model, info->stepping,
				    e->diag);
	return export_cpuid(e->w, vendor, 0, 0, 0, e->diag);
}

int export_session(struct vmt_perfdata_export *e, const uint8_t *json, size_t len)
{
	json_t *root = NULL;
	int err = 0;

	if (vmt_json_is_bounded(json, len))
		root = json_loadb((const char *)json, len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(json_object_get(root, "host")))
		err = take_host(e, json_object_get(root, "host"));
	json_decref(root);
	return err;
}
