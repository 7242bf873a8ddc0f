// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/input_private.h"

static enum vmt_isa isa_of_cpuid(const char *cpuid)
{
	if (!strncmp(cpuid, "GenuineIntel", 12))
		return VMT_ISA_VMX;
	if (!strncmp(cpuid, "AuthenticAMD", 12) || !strncmp(cpuid, "HygonGenuine", 12))
		return VMT_ISA_SVM;
	return VMT_ISA_UNKNOWN;
}

void input_perf_facts(struct vmt_input *in)
{
	const char *cpuid, *version;

	in->facts.host = vmt_perfdata_feature(in->perf, "HOSTNAME");
	in->facts.kernel = vmt_perfdata_feature(in->perf, "OSRELEASE");
	cpuid = vmt_perfdata_feature(in->perf, "CPUID");
	if (cpuid && in->facts.isa == VMT_ISA_UNKNOWN)
		in->facts.isa = isa_of_cpuid(cpuid);
	version = vmt_perfdata_feature(in->perf, "VERSION");
	if (version && !in->tool) {
		char text[80];

		snprintf(text, sizeof(text), "perf %.64s", version);
		in->tool = strdup(text);
		in->facts.tool = in->tool;
	}
}
