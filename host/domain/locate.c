// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/locate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/domain/process.h"
#include "host/domain/threads.h"

#define CMDLINE_MAX 131072
#define STATUS_MAX  (1u << 20)

bool vmt_uri_is_local(const char *uri)
{
	const char *host = strstr(uri, "://"), *end;
	char name[256];
	size_t len;

	if (!host)
		return true;
	host += 3;
	end = host + strcspn(host, "/?");
	for (const char *at = host; at < end; at++) {
		if (*at == '@')
			host = at + 1;
	}
	if (*host == '[')
		len = strcspn(host, "]") + 1;
	else
		len = strcspn(host, ":/?");
	if (!len)
		return true;
	if ((len == 9 && !strncmp(host, "localhost", 9)) ||
	    (len == 9 && !strncmp(host, "127.0.0.1", 9)) ||
	    (len == 5 && !strncmp(host, "[::1]", 5)))
		return true;
	return gethostname(name, sizeof(name)) == 0 && strnlen(name, sizeof(name)) == len &&
	       !strncmp(host, name, len);
}

/* Folder of libvirt's run-time files about QEMU domains. */
static bool state_folder(const struct vmt_domain *domain, char *buf, size_t size)
{
	const char *run = vmt_hostfs_run(domain->fs), *user = getenv("XDG_RUNTIME_DIR");
	int n;

	if (!strstr(domain->uri, "/session"))
		n = snprintf(buf, size, "%s/libvirt/qemu", run);
	else if (domain->fs || !user)
		n = snprintf(buf, size, "%s/user/%u/libvirt/qemu/run", run, getuid());
	else
		n = snprintf(buf, size, "%s/libvirt/qemu/run", user);
	return n > 0 && (size_t)n < size;
}

static bool names_file(const struct vmt_domain *domain)
{
	return domain->name && domain->name[0] && !strchr(domain->name, '/');
}

bool vmt_locate_status(const struct vmt_domain *domain, struct vmt_status_xml *status)
{
	char folder[300], *text;
	int len;

	memset(status, 0, sizeof(*status));
	text = names_file(domain) && state_folder(domain, folder, sizeof(folder))
		       ? malloc(STATUS_MAX)
		       : NULL;
	if (!text)
		return false;
	len = vmt_hostfs_read(text, STATUS_MAX, "%s/%s.xml", folder, domain->name);
	if (len <= 0 || vmt_status_xml_read(text, (size_t)len, status, NULL) ||
	    strcasecmp(status->uuid, domain->uuid) != 0)
		memset(status, 0, sizeof(*status));
	free(text);
	return status->pid != 0;
}

static pid_t read_pid_file(const struct vmt_domain *domain)
{
	char folder[300];
	uint64_t pid;

	if (!names_file(domain) || !state_folder(domain, folder, sizeof(folder)) ||
	    vmt_hostfs_u64(&pid, "%s/%s.pid", folder, domain->name) || pid > INT32_MAX)
		return 0;
	return (pid_t)pid;
}

static bool is_vmm(const struct vmt_domain *domain, pid_t pid)
{
	char *cmdline = pid > 0 ? malloc(CMDLINE_MAX) : NULL;
	int len = cmdline ? vmt_process_cmdline(domain->fs, pid, cmdline, CMDLINE_MAX) : -1;
	bool yes =
		len > 0 && vmt_cmdline_is_domain(cmdline, (size_t)len, domain->uuid, domain->name);

	free(cmdline);
	return yes;
}

void vmt_locate_process(struct vmt_domain *domain, struct vmt_status_xml *status)
{
	pid_t pid = read_pid_file(domain);

	if (status)
		vmt_locate_status(domain, status);
	if (is_vmm(domain, pid)) {
		domain->pid = pid;
		domain->pid_source = "pid file";
	} else if (status && is_vmm(domain, status->pid)) {
		domain->pid = status->pid;
		domain->pid_source = "status file";
	} else {
		domain->pid = vmt_process_find(domain->fs, domain->uuid, domain->name);
		domain->pid_source = domain->pid ? "command line" : NULL;
	}
	if (!domain->pid)
		vmt_domain_note(domain, "no process of this host names the domain by -uuid or "
					"-name");
}
