// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: every system call of perf goes through the table, is retried a bounded number of times
 * where the kernel asks for it, and a refusal is told with the limit, capability or sysctl that
 * caused it.
 */
#include "host/capture/perf_event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decode/io/diagf.h"

#define RETRIES_MAX 100

#define READ_FORMAT_LOST (UINT64_C(1) << 4) /* PERF_FORMAT_LOST, in headers since 6.0 */

#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |           \
	 PERF_SAMPLE_RAW)

/* Makes a permitted CAP_SYS_ADMIN effective, or ineffective again. False: nothing changed. */
static bool set_admin(bool effective)
{
	const uint32_t bit = UINT32_C(1) << CAP_SYS_ADMIN;
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) || !(data[0].permitted & bit) ||
	    !(data[0].effective & bit) != effective)
		return false;
	data[0].effective ^= bit;
	return syscall(SYS_capset, &header, data) == 0;
}

/*
 * A recorder that gave up its rights keeps CAP_SYS_ADMIN permitted where this call needs it
 * (kernel.perf_event_paranoid above 2, kernels before 5.8).
 */
static int system_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		       unsigned long flags)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
	int error;

	if (fd >= 0 || (errno != EACCES && errno != EPERM) || !set_admin(true))
		return fd;
	fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
	error = errno;
	set_admin(false);
	errno = error;
	return fd;
}

static void *system_map(size_t len, int prot, int fd, size_t offset)
{
	return mmap(NULL, len, prot, MAP_SHARED, fd, (off_t)offset);
}

static int system_control(int fd, unsigned long request, uintptr_t argument)
{
	return ioctl(fd, request, argument);
}

static int system_open_device(const char *path)
{
	return open(path, O_RDWR | O_CLOEXEC);
}

const struct vmt_perf_ops vmt_perf_system = {
	.open = system_open,
	.map = system_map,
	.unmap = munmap,
	.control = system_control,
	.read = read,
	.close = close,
	.open_device = system_open_device,
};

static void fill_attr(const struct vmt_perf_want *want, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = PERF_ATTR_SIZE_VER5; /* 112 bytes: known to every kernel since 4.1 */
	attr->type = want->pmu_type ? want->pmu_type
		     : want->dummy  ? PERF_TYPE_SOFTWARE
				    : PERF_TYPE_TRACEPOINT;
	attr->config = want->dummy ? PERF_COUNT_SW_DUMMY : want->config;
	attr->sample_period = want->dummy ? 0 : 1;
	attr->sample_type = SAMPLE_TYPE;
	attr->disabled = 1;
	attr->sample_id_all = 1;
	attr->context_switch = want->switches;
	attr->comm = want->comm || want->mappings;
	attr->mmap = attr->mmap2 = want->mappings;
	attr->text_poke = want->text_poke;
	attr->exclude_kernel = want->user_only || want->no_host;
	attr->exclude_user = want->no_host;
	attr->watermark = 1;
	attr->wakeup_watermark = want->watermark;
	attr->aux_watermark = want->aux_watermark;
}

struct vmt_ring_attr vmt_perf_ring_attr(const struct vmt_perf_want *want)
{
	struct perf_event_attr attr;
	struct vmt_ring_attr out = { 0 };

	fill_attr(want, &attr);
	out.type = attr.type;
	out.config = attr.config;
	out.sample_type = attr.sample_type;
	memcpy(&out.flags, (const char *)&attr + 40, sizeof(out.flags));
	return out;
}

/* First line of a small file of /proc or /sys, "" when it cannot be read. */
static void read_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static bool kernel_is_locked_down(void)
{
	char text[80];

	read_line("/sys/kernel/security/lockdown", text, sizeof(text));
	return strstr(text, "[confidentiality]") != NULL;
}

static int permission_error(const char *what, const char *name, int error, struct vmt_diag *diag)
{
	char paranoid[16];

	vmt_diag_printf(diag, VMT_E_PERMISSION, error, "", "%s of %s", what, name);
	read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
	if (kernel_is_locked_down())
		vmt_diag_cure(diag, "the kernel is locked down (confidentiality, "
				    "/sys/kernel/security/lockdown): it gives no tracepoints to "
				    "anyone");
	else
		vmt_diag_cure(diag,
			      "needs root or the capability CAP_PERFMON (CAP_SYS_ADMIN before "
			      "Linux 5.8, and where the sysctl kernel.perf_event_paranoid is above "
			      "2); without one of them that sysctl must be -1 (it is %s)",
			      paranoid[0] ? paranoid : "not readable");
	return VMT_E_PERMISSION;
}

static int limit_error(const char *what, const char *name, int error, struct vmt_diag *diag)
{
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	vmt_diag_printf(diag, VMT_E_LIMIT, error, "", "%s of %s", what, name);
	if (error == ENFILE)
		vmt_diag_cure(diag,
			      "the system's file table is full: raise the sysctl fs.file-max");
	else
		vmt_diag_cure(
			diag,
			"the limit of open files (RLIMIT_NOFILE) is %llu, and each event needs "
			"one on each CPU: raise it with ulimit -Hn or LimitNOFILE=",
			(unsigned long long)limit.rlim_cur);
	return VMT_E_LIMIT;
}

static int perf_error(const char *what, const char *name, int error, struct vmt_diag *diag)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return permission_error(what, name, error, diag);
	case EMFILE:
	case ENFILE:
		return limit_error(what, name, error, diag);
	case ESRCH:
		return vmt_diag_printf(diag, VMT_E_NOT_FOUND, error, "the thread has ended",
				       "%s of %s", what, name);
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return vmt_diag_printf(diag, VMT_E_CAPABILITY, error,
				       "this kernel does not have the event, or is built without "
				       "CONFIG_PERF_EVENTS",
				       "%s of %s", what, name);
	case EBUSY:
		return vmt_diag_printf(diag, VMT_E_CAPABILITY, error,
				       "another program uses Intel PT here (perf record -e "
				       "intel_pt), or one uses BTS or LBR on a CPU that cannot do "
				       "both: end it first",
				       "%s of %s", what, name);
	case EINVAL:
		return vmt_diag_printf(diag, VMT_E_CAPABILITY, error,
				       "this kernel refuses the event's setting", "%s of %s", what,
				       name);
	case ENOSYS:
		return vmt_diag_printf(diag, VMT_E_CAPABILITY, error,
				       "the kernel is built without CONFIG_PERF_EVENTS, or a "
				       "container's seccomp profile forbids the call",
				       "%s of %s", what, name);
	default:
		return vmt_diag_printf(diag, vmt_err_of_errno(error), error, NULL, "%s of %s", what,
				       name);
	}
}

int vmt_perf_open(const struct vmt_perf_ops *ops, const struct vmt_perf_want *want,
		  struct vmt_diag *diag)
{
	struct perf_event_attr attr;
	bool counts_lost = true, pokes = want->text_poke;

	for (int tries = 0;; tries++) {
		int fd;

		fill_attr(want, &attr);
		attr.read_format = counts_lost ? READ_FORMAT_LOST : 0;
		attr.text_poke = pokes;
		fd = ops->open(&attr, want->pid, want->cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno == EINVAL && (counts_lost || pokes)) { /* before 6.0, before 5.9 */
			pokes = pokes && counts_lost;
			counts_lost = false;
			continue;
		}
		if ((errno != EINTR && errno != EAGAIN) || tries == RETRIES_MAX)
			return perf_error("perf_event_open", want->name, errno, diag);
	}
}

/* Maps, retried; MAP_FAILED with *error. */
static void *map_retried(const struct vmt_perf_ops *ops, size_t len, int prot, int fd,
			 size_t offset, int *error)
{
	for (int tries = 0;; tries++) {
		void *map = ops->map(len, prot, fd, offset);

		if (map != MAP_FAILED)
			return map;
		*error = errno;
		if ((*error != EINTR && *error != EAGAIN) || tries == RETRIES_MAX)
			return map;
	}
}

struct perf_event_mmap_page *vmt_perf_map(const struct vmt_perf_ops *ops, int fd, size_t data_bytes,
					  struct vmt_diag *diag)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int error;
	void *map = map_retried(ops, page + data_bytes, PROT_READ | PROT_WRITE, fd, 0, &error);

	if (map != MAP_FAILED)
		return map;
	if (error == EPERM || error == ENOMEM)
		vmt_diag_printf(diag, VMT_E_LIMIT, error,
				"use a smaller --buffer; without CAP_IPC_LOCK rings are bounded by "
				"RLIMIT_MEMLOCK and the sysctl kernel.perf_event_mlock_kb",
				"cannot map a ring of %zu KiB", data_bytes / 1024);
	else
		perf_error("mmap", "a perf ring", error, diag);
	return NULL;
}

void *vmt_perf_map_aux(const struct vmt_perf_ops *ops, int fd, struct perf_event_mmap_page *page,
		       size_t data_bytes, size_t aux_bytes, bool overwrite, struct vmt_diag *diag)
{
	int error;
	void *map;

	page->aux_offset = (size_t)sysconf(_SC_PAGESIZE) + data_bytes;
	page->aux_size = aux_bytes;
	map = map_retried(ops, aux_bytes, overwrite ? PROT_READ : PROT_READ | PROT_WRITE, fd,
			  page->aux_offset, &error);
	if (map != MAP_FAILED)
		return map;
	if (error == EPERM || error == ENOMEM)
		vmt_diag_printf(diag, VMT_E_LIMIT, error,
				"use a smaller --pt-buffer; without CAP_IPC_LOCK it is bounded by "
				"RLIMIT_MEMLOCK and the sysctl kernel.perf_event_mlock_kb",
				"cannot map an Intel PT buffer of %zu KiB", aux_bytes / 1024);
	else
		perf_error("mmap", "an Intel PT buffer", error, diag);
	return NULL;
}

static int control(const struct vmt_perf_ops *ops, int fd, unsigned long request,
		   uintptr_t argument, const char *what, struct vmt_diag *diag)
{
	for (int tries = 0;; tries++) {
		if (ops->control(fd, request, argument) >= 0)
			return 0;
		if ((errno != EINTR && errno != EAGAIN) || tries == RETRIES_MAX)
			return perf_error(what, "a perf event", errno, diag);
	}
}

int vmt_perf_filter(const struct vmt_perf_ops *ops, int fd, const char *filter,
		    struct vmt_diag *diag)
{
	return control(ops, fd, PERF_EVENT_IOC_SET_FILTER, (uintptr_t)filter, "setting the filter",
		       diag);
}

int vmt_perf_redirect(const struct vmt_perf_ops *ops, int fd, int leader, struct vmt_diag *diag)
{
	return control(ops, fd, PERF_EVENT_IOC_SET_OUTPUT, (uintptr_t)leader,
		       "redirecting the ring", diag);
}

int vmt_perf_enable(const struct vmt_perf_ops *ops, int fd, struct vmt_diag *diag)
{
	return control(ops, fd, PERF_EVENT_IOC_ENABLE, 0, "enabling", diag);
}

void vmt_perf_disable(const struct vmt_perf_ops *ops, int fd)
{
	control(ops, fd, PERF_EVENT_IOC_DISABLE, 0, "disabling", NULL);
}

int vmt_perf_id(const struct vmt_perf_ops *ops, int fd, uint64_t *id, struct vmt_diag *diag)
{
	return control(ops, fd, PERF_EVENT_IOC_ID, (uintptr_t)id, "reading the id", diag);
}

bool vmt_perf_lost(const struct vmt_perf_ops *ops, int fd, uint64_t *lost)
{
	uint64_t words[2]; /* value, lost */

	for (int tries = 0; tries <= RETRIES_MAX; tries++) {
		ssize_t n = ops->read(fd, words, sizeof(words));

		if (n == (ssize_t)sizeof(words)) {
			*lost = words[1];
			return true;
		}
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			break;
	}
	return false;
}

void vmt_perf_raise_limits(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) && !getrlimit(RLIMIT_MEMLOCK, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
}
