/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_HOSTFS_H
#define VMT_DOMAIN_HOSTFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where the kernel's and libvirt's files are: NULL members mean the usual place, so that trees of
 * fixtures can stand in for a host. The texts must outlive every user of the struct.
 */
struct vmt_hostfs {
	const char *proc;    /* /proc */
	const char *sys;     /* /sys */
	const char *run;     /* /run, and $XDG_RUNTIME_DIR for libvirt's user sessions */
	const char *dev;     /* /dev */
	const char *etc;     /* /etc */
	const char *debugfs; /* where debugfs is mounted; NULL: looked up in PROC/mounts */
	const char *tracefs; /* the same for tracefs (host/capture/tracefs.h) */
};

#define VMT_PATH_MAX 512

const char *vmt_hostfs_proc(const struct vmt_hostfs *fs);
const char *vmt_hostfs_sys(const struct vmt_hostfs *fs);
const char *vmt_hostfs_run(const struct vmt_hostfs *fs);
const char *vmt_hostfs_dev(const struct vmt_hostfs *fs);
const char *vmt_hostfs_etc(const struct vmt_hostfs *fs);

/* First mount point of a file system type by PROC/mounts; false when it is mounted nowhere. */
bool vmt_hostfs_mount(const struct vmt_hostfs *fs, const char *type, char *path, size_t size);
/* Mount point of debugfs, as given or by PROC/mounts. */
bool vmt_hostfs_debugfs(const struct vmt_hostfs *fs, char *path, size_t size);

/*
 * Reads a file from its start, without seeking (debugfs attributes refuse lseek), at most size - 1
 * bytes, and ends the text with NUL. Returns the length, or -errno: -EPERM (lockdown) and -ENOENT
 * stay apart. -ENAMETOOLONG when the formatted path does not fit.
 */
__attribute__((format(printf, 3, 4))) int vmt_hostfs_read(char *buf, size_t size,
							  const char *format, ...);

/* The same, without the line end, as a number. Returns 0 or -errno; -EINVAL: not a number. */
__attribute__((format(printf, 2, 3))) int vmt_hostfs_u64(uint64_t *value, const char *format, ...);
__attribute__((format(printf, 2, 3))) int vmt_hostfs_i64(int64_t *value, const char *format, ...);

/* Calls fn for each name of a folder that is a decimal number below 2^31. Returns 0 or -errno. */
typedef void vmt_hostfs_number_fn(void *context, int number);
int vmt_hostfs_numbers(const char *folder, vmt_hostfs_number_fn *fn, void *context);

/* A decimal number and nothing else, at most `max`. */
bool vmt_parse_uint(const char *text, uint64_t max, uint64_t *value);

#endif
