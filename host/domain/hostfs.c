// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/hostfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *vmt_hostfs_proc(const struct vmt_hostfs *fs)
{
	return fs && fs->proc ? fs->proc : "/proc";
}

const char *vmt_hostfs_sys(const struct vmt_hostfs *fs)
{
	return fs && fs->sys ? fs->sys : "/sys";
}

const char *vmt_hostfs_run(const struct vmt_hostfs *fs)
{
	return fs && fs->run ? fs->run : "/run";
}

const char *vmt_hostfs_dev(const struct vmt_hostfs *fs)
{
	return fs && fs->dev ? fs->dev : "/dev";
}

const char *vmt_hostfs_etc(const struct vmt_hostfs *fs)
{
	return fs && fs->etc ? fs->etc : "/etc";
}

static int read_path(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t used = 0;
	int error = 0;

	if (fd < 0)
		return -errno;
	while (used + 1 < size) {
		ssize_t n = read(fd, buf + used, size - 1 - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			error = -errno;
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	close(fd);
	buf[used] = '\0';
	return error ? error : (int)used;
}

static int read_format(char *buf, size_t size, const char *format, va_list args)
{
	char path[VMT_PATH_MAX];
	int n = vsnprintf(path, sizeof(path), format, args);

	buf[0] = '\0';
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return read_path(path, buf, size);
}

int vmt_hostfs_read(char *buf, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = read_format(buf, size, format, args);
	va_end(args);
	return n;
}

static void cut_line(char *text)
{
	text[strcspn(text, "\n")] = '\0';
}

int vmt_hostfs_u64(uint64_t *value, const char *format, ...)
{
	char text[64];
	va_list args;
	int n;

	va_start(args, format);
	n = read_format(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0)
		return n;
	cut_line(text);
	return vmt_parse_uint(text, UINT64_MAX, value) ? 0 : -EINVAL;
}

int vmt_hostfs_i64(int64_t *value, const char *format, ...)
{
	char text[64], *end;
	va_list args;
	long long number;
	int n;

	va_start(args, format);
	n = read_format(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0)
		return n;
	cut_line(text);
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		return -EINVAL;
	*value = number;
	return 0;
}

bool vmt_parse_uint(const char *text, uint64_t max, uint64_t *value)
{
	char *end;
	unsigned long long number;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number > max)
		return false;
	*value = number;
	return true;
}

int vmt_hostfs_numbers(const char *folder, vmt_hostfs_number_fn *fn, void *context)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	uint64_t number;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (vmt_parse_uint(entry->d_name, INT32_MAX, &number))
			fn(context, (int)number);
	}
	closedir(dir);
	return 0;
}

/* PROC/mounts writes space, tab, newline and backslash of a path as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
		    from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0');
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

/* Lines of PROC/mounts are: device, folder, type, options. */
bool vmt_hostfs_mount(const struct vmt_hostfs *fs, const char *type, char *path, size_t size)
{
	char name[VMT_PATH_MAX], *line = NULL;
	size_t capacity = 0;
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "%s/mounts", vmt_hostfs_proc(fs));
	f = fopen(name, "re");
	while (f && !found && getline(&line, &capacity, f) > 0) {
		char *save = NULL, *folder, *kind;

		strtok_r(line, " ", &save);
		folder = strtok_r(NULL, " ", &save);
		kind = strtok_r(NULL, " ", &save);
		if (!folder || !kind || strcmp(kind, type) != 0)
			continue;
		unescape(folder);
		found = (size_t)snprintf(path, size, "%s", folder) < size;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

bool vmt_hostfs_debugfs(const struct vmt_hostfs *fs, char *path, size_t size)
{
	if (fs && fs->debugfs)
		return (size_t)snprintf(path, size, "%s", fs->debugfs) < size;
	return vmt_hostfs_mount(fs, "debugfs", path, size);
}
