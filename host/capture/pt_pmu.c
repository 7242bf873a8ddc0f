// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: a value that sysfs does not show is 0, which allows nothing. */
#include "host/capture/pt_pmu.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/io/diagf.h"

#define FOLDER "bus/event_source/devices/intel_pt"

static const char *const cap_names[VMT_PT_CAPS] = {
	[VMT_PT_CAP_CR3_FILTERING] = "cr3_filtering",
	[VMT_PT_CAP_PSB_CYC] = "psb_cyc",
	[VMT_PT_CAP_IP_FILTERING] = "ip_filtering",
	[VMT_PT_CAP_MTC] = "mtc",
	[VMT_PT_CAP_PTWRITE] = "ptwrite",
	[VMT_PT_CAP_POWER_EVENT_TRACE] = "power_event_trace",
	[VMT_PT_CAP_EVENT_TRACE] = "event_trace",
	[VMT_PT_CAP_TNT_DISABLE] = "tnt_disable",
	[VMT_PT_CAP_TOPA_OUTPUT] = "topa_output",
	[VMT_PT_CAP_TOPA_MULTIPLE_ENTRIES] = "topa_multiple_entries",
	[VMT_PT_CAP_NUM_ADDRESS_RANGES] = "num_address_ranges",
	[VMT_PT_CAP_MTC_PERIODS] = "mtc_periods",
	[VMT_PT_CAP_CYCLE_THRESHOLDS] = "cycle_thresholds",
	[VMT_PT_CAP_PSB_PERIODS] = "psb_periods",
};

const char *vmt_pt_cap_name(enum vmt_pt_cap cap)
{
	return cap_names[cap];
}

static uint32_t read_cap(const struct vmt_hostfs *fs, const char *name)
{
	char text[32];

	if (vmt_hostfs_read(text, sizeof(text), "%s/" FOLDER "/caps/%s", vmt_hostfs_sys(fs),
			    name) <= 0)
		return 0;
	return (uint32_t)strtoul(text, NULL, 16); /* written with %x */
}

/* A decimal number of at most 32 bits; what is behind it, or NULL. */
static const char *number(const char *text, uint32_t *value)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || n > UINT32_MAX)
		return NULL;
	*value = (uint32_t)n;
	return end;
}

/* "config:10" or "config:14-17". */
static bool parse_bits(const char *text, struct vmt_pt_format *format)
{
	static const char head[] = "config:";
	uint32_t first = 0, last;
	const char *end;

	if (strncmp(text, head, strlen(head)) != 0)
		return false;
	end = number(text + strlen(head), &first);
	last = first;
	if (end && *end == '-')
		end = number(end + 1, &last);
	if (!end || last < first || last > 63)
		return false;
	format->first = (uint8_t)first;
	format->last = (uint8_t)last;
	return true;
}

static int by_name(const void *a, const void *b)
{
	const struct vmt_pt_format *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int read_formats(struct vmt_pt_pmu *pmu, const struct vmt_hostfs *fs)
{
	char path[VMT_PATH_MAX], text[64];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/" FOLDER "/format", vmt_hostfs_sys(fs));
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) && pmu->nr_formats < VMT_PT_FORMATS_MAX) {
		struct vmt_pt_format *format = &pmu->formats[pmu->nr_formats];

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(format->name) ||
		    vmt_hostfs_read(text, sizeof(text), "%s/%s", path, entry->d_name) <= 0 ||
		    !parse_bits(text, format))
			continue;
		memcpy(format->name, entry->d_name, strlen(entry->d_name) + 1);
		pmu->nr_formats++;
	}
	closedir(dir);
	qsort(pmu->formats, pmu->nr_formats, sizeof(pmu->formats[0]), by_name);
	return 0;
}

/* The number behind "name : " of the first CPU. */
static bool cpuinfo_number(const char *text, const char *name, unsigned long *value)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at;

		line += *line == '\n';
		if (strncmp(line, name, len) != 0)
			continue;
		at = line + len + strspn(line + len, "\t ");
		if (*at != ':')
			continue;
		*value = strtoul(at + 1, NULL, 10);
		return true;
	}
	return false;
}

static void read_cpu(struct vmt_pt_pmu *pmu, const struct vmt_hostfs *fs)
{
	unsigned long family, model, stepping;
	char text[4096];

	if (vmt_hostfs_read(text, sizeof(text), "%s/cpuinfo", vmt_hostfs_proc(fs)) <= 0 ||
	    !cpuinfo_number(text, "cpu family", &family) ||
	    !cpuinfo_number(text, "model", &model) || !cpuinfo_number(text, "stepping", &stepping))
		return;
	pmu->cpu = (struct vmt_pt_cpu){ .known = true,
					.family = (uint16_t)family,
					.model = (uint8_t)model,
					.stepping = (uint8_t)stepping };
}

/* "TSC:ART", as CPUID 15H EBX and EAX. */
static void read_ratio(struct vmt_pt_pmu *pmu, const char *text)
{
	uint32_t tsc, art;
	const char *end = number(text, &tsc);

	if (!end || *end != ':' || !number(end + 1, &art))
		return;
	pmu->tsc_num = tsc;
	pmu->art_den = art;
}

int vmt_pt_pmu_read(struct vmt_pt_pmu *pmu, const struct vmt_hostfs *fs, struct vmt_diag *diag)
{
	const char *sys = vmt_hostfs_sys(fs);
	uint64_t value;
	char text[64];
	int err;

	memset(pmu, 0, sizeof(*pmu));
	err = vmt_hostfs_u64(&value, "%s/" FOLDER "/type", sys);
	if (err == -ENOENT)
		return vmt_diag_set(diag, VMT_E_CAPABILITY,
				    "this machine has no Intel PT (no PMU intel_pt)",
				    "the CPU has none (AMD, a virtual machine), or the kernel "
				    "found it in use at boot (dmesg | grep -i 'PT is enabled')");
	if (!err)
		err = read_formats(pmu, fs);
	if (err)
		return vmt_diag_printf(diag, VMT_E_IO, -err, NULL, "cannot read %s/" FOLDER, sys);
	pmu->type = (uint32_t)value;
	for (unsigned int i = 0; i < VMT_PT_CAPS; i++)
		pmu->caps[i] = read_cap(fs, cap_names[i]);
	if (!vmt_hostfs_u64(&value, "%s/" FOLDER "/nr_addr_filters", sys))
		pmu->nr_addr_filters = (uint32_t)value;
	if (!vmt_hostfs_u64(&value, "%s/" FOLDER "/max_nonturbo_ratio", sys))
		pmu->nom_ratio = (uint32_t)value;
	if (vmt_hostfs_read(text, sizeof(text), "%s/" FOLDER "/tsc_art_ratio", sys) > 0)
		read_ratio(pmu, text);
	read_cpu(pmu, fs);
	return 0;
}

const struct vmt_pt_format *vmt_pt_pmu_format(const struct vmt_pt_pmu *pmu, const char *name,
					      size_t len)
{
	for (size_t i = 0; i < pmu->nr_formats; i++) {
		if (strlen(pmu->formats[i].name) == len && !memcmp(pmu->formats[i].name, name, len))
			return &pmu->formats[i];
	}
	return NULL;
}
