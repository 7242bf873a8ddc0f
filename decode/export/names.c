// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/names.h"

#include <stdio.h>
#include <string.h>

#include "decode/analyze/verdicts.h"

static const char *const type_names[VMT_EVENT_TYPE_COUNT] = {
	[VMT_EVENT_ENTRY] = "entry",   [VMT_EVENT_EXIT] = "exit",
	[VMT_EVENT_SWITCH] = "switch", [VMT_EVENT_USERSPACE] = "userspace",
	[VMT_EVENT_WAKEUP] = "wakeup", [VMT_EVENT_INJECT] = "inject",
	[VMT_EVENT_NOTE] = "note",     [VMT_EVENT_TSC_WRITE] = "tsc_write",
	[VMT_EVENT_MARK] = "mark",     [VMT_EVENT_LOSS] = "loss",
	[VMT_EVENT_GAP] = "gap",
};

const char *vmt_event_type_name(enum vmt_event_type type)
{
	return (unsigned int)type < VMT_EVENT_TYPE_COUNT ? type_names[type] : "unknown";
}

const char *vmt_source_name(enum vmt_source source)
{
	static const char *const names[] = { "kvm", "pt", "sched", "session" };

	return (unsigned int)source < 4 ? names[source] : "unknown";
}

const char *vmt_isa_name(enum vmt_isa isa)
{
	return isa == VMT_ISA_VMX ? "vmx" : isa == VMT_ISA_SVM ? "svm" : NULL;
}

const char *vmt_severity_name(enum vmt_severity severity)
{
	static const char *const names[] = { "note", "warn", "critical" };

	return (unsigned int)severity < 3 ? names[severity] : "unknown";
}

const char *vmt_domain_label(const struct vmt_input_facts *facts, uint32_t domain)
{
	if (!facts || domain >= facts->nr_domains)
		return NULL;
	return facts->domains[domain].name ? facts->domains[domain].name
					   : facts->domains[domain].uuid;
}

uint32_t vmt_event_types_parse(const char *list, const char **bad)
{
	uint32_t types = 0;

	for (;;) {
		size_t len = strcspn(list, ",");
		unsigned int i = 0;

		while (i < VMT_EVENT_TYPE_COUNT &&
		       (strlen(type_names[i]) != len || memcmp(type_names[i], list, len) != 0))
			i++;
		if (i == VMT_EVENT_TYPE_COUNT) {
			*bad = list;
			return 0;
		}
		types |= 1u << i;
		if (list[len] == '\0')
			return types;
		list += len + 1;
	}
}

char *vmt_count_text(char *buf, size_t size, uint64_t n)
{
	return vmt_verdict_number(buf, size, n);
}

char *vmt_time_text(char *buf, size_t size, uint64_t ns)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" } };
	unsigned int i = ns >= 999950000 ? 0 : ns >= 999950 ? 1 : 2;
	double value = (double)ns / units[i].ns;

	if (ns < 1000)
		snprintf(buf, size, "%u ns", (unsigned int)ns);
	else
		snprintf(buf, size, "%.*f %s",
			 value < 9.995	 ? 2
			 : value < 99995 ? 1
					 : 0,
			 value, units[i].name);
	return buf;
}

void vmt_apportion(const uint64_t *parts, unsigned int n, uint64_t whole, uint64_t units,
		   uint64_t *out)
{
	unsigned __int128 rest[16] = { 0 };
	uint64_t given = 0;

	for (unsigned int i = 0; i < n; i++) {
		unsigned __int128 product = (unsigned __int128)parts[i] * units;

		out[i] = whole ? (uint64_t)(product / whole) : 0;
		rest[i] = whole ? product % whole : 0;
		given += out[i];
	}
	for (; whole && given < units; given++) {
		unsigned int most = 0;

		for (unsigned int i = 1; i < n; i++) {
			if (rest[i] > rest[most])
				most = i;
		}
		if (rest[most] == 0)
			break; /* the parts are less than the whole */
		out[most]++;
		rest[most] = 0;
	}
}
