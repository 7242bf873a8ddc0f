// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: what the host does not say stays empty. */
#include "host/capture/host_facts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CPUS_MAX       8192
#define PARAMETERS_MAX 128

/* "key\t: value" of /proc/cpuinfo. */
static const char *value_of(const char *line, const char *key)
{
	size_t len = strlen(key);
	const char *at;

	if (strncmp(line, key, len) != 0)
		return NULL;
	at = line + len + strspn(line + len, " \t");
	return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

static enum vmt_isa isa_of_flags(const char *flags)
{
	if (strstr(flags, " vmx ") || strstr(flags, " vmx\n"))
		return VMT_ISA_VMX;
	if (strstr(flags, " svm ") || strstr(flags, " svm\n"))
		return VMT_ISA_SVM;
	return VMT_ISA_UNKNOWN;
}

static void take_line(const char *value, char *text, size_t size)
{
	snprintf(text, size, "%.*s", (int)strcspn(value, "\n"), value);
}

void vmt_host_facts_read(struct vmt_host_facts *out)
{
	struct utsname name;
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[8192];

	memset(out, 0, sizeof(*out));
	if (!uname(&name)) {
		snprintf(out->hostname, sizeof(out->hostname), "%.79s", name.nodename);
		snprintf(out->kernel, sizeof(out->kernel), "%.79s", name.release);
	}
	while (f && fgets(line, sizeof(line), f) && line[0] != '\n') { /* the first CPU */
		const char *value;

		if ((value = value_of(line, "vendor_id")))
			take_line(value, out->vendor, sizeof(out->vendor));
		else if ((value = value_of(line, "model name")))
			take_line(value, out->cpu, sizeof(out->cpu));
		else if ((value = value_of(line, "flags")))
			out->isa = isa_of_flags(value - 1);
	}
	if (f)
		fclose(f);
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	out->nr_cpus = n > 0 ? (unsigned int)n : 0;
}

size_t vmt_cpu_list_parse(const char *text, int *cpus, size_t max)
{
	size_t nr = 0;

	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long cpu = first; cpu <= last && nr < max && cpu < CPUS_MAX; cpu++)
			cpus[nr++] = (int)cpu;
		text = *end == ',' ? end + 1 : end;
	}
	return nr;
}

size_t vmt_cpus_online(int **cpus)
{
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	char text[4096] = "0";
	size_t nr = 0;

	*cpus = calloc(CPUS_MAX, sizeof(**cpus));
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (*cpus)
		nr = vmt_cpu_list_parse(text, *cpus, CPUS_MAX);
	if (f)
		fclose(f);
	return nr;
}

void vmt_kvm_parameters(const struct vmt_hostfs *fs, vmt_kvm_parameter_fn *fn, void *context)
{
	static const char *const modules[] = { "kvm", "kvm_intel", "kvm_amd" };

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		char path[VMT_PATH_MAX], value[80];
		const struct dirent *entry;
		int left = PARAMETERS_MAX;
		DIR *dir;

		snprintf(path, sizeof(path), "%s/module/%s/parameters", vmt_hostfs_sys(fs),
			 modules[i]);
		dir = opendir(path);
		while (dir && left > 0 && (entry = readdir(dir))) {
			if (entry->d_name[0] == '.' ||
			    vmt_hostfs_read(value, sizeof(value), "%s/%s", path, entry->d_name) < 0)
				continue;
			value[strcspn(value, "\n")] = '\0';
			fn(context, modules[i], entry->d_name, value);
			left--;
		}
		if (dir)
			closedir(dir);
	}
}
