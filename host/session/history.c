// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: what `report` finds without a file name is the newest capture that is still there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "host/session/info.h"
#include "host/session/registry.h"

#define HISTORY_MAX 200

static int open_history(struct vmt_diag *diag)
{
	char data[VMT_SESSION_PATH_MAX - 16], path[VMT_SESSION_PATH_MAX];
	int dir, err = vmt_path_data(data, sizeof(data), diag);

	if (err)
		return err;
	snprintf(path, sizeof(path), "%s/.sessions", data);
	if (mkdir(path, 0700) && errno != EEXIST)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot make %s",
				       path);
	dir = open(path, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return dir >= 0 ? dir
			: vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL,
					  "cannot open %s", path);
}

/* Names are s-TIME-PID: the order of names is the order of time. */
static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Names of the entries, oldest first. The caller frees. */
static char (*list_names(int dir, size_t *count))[64]
{
	char(*names)[64] = NULL;
	size_t cap = 0;
	int copy = dup(dir);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *entry;

	*count = 0;
	if (!d && copy >= 0)
		close(copy);
	if (d)
		rewinddir(d);
	while (d && (entry = readdir(d)) && *count < 100000) {
		if (entry->d_name[0] != 's' || strlen(entry->d_name) >= 64)
			continue;
		if (*count == cap) {
			void *more = realloc(names, (cap + 256) * sizeof(*names));

			if (!more)
				break;
			names = more;
			cap += 256;
		}
		snprintf(names[(*count)++], 64, "%.63s", entry->d_name);
	}
	if (d)
		closedir(d);
	if (names)
		qsort(names, *count, sizeof(*names), by_name);
	return names;
}

static void drop_old(int dir)
{
	size_t count;
	char(*names)[64] = list_names(dir, &count);

	for (size_t i = 0; i + HISTORY_MAX < count; i++)
		unlinkat(dir, names[i], 0);
	free(names);
}

int vmt_history_write(const struct vmt_session_info *info, struct vmt_diag *diag)
{
	int dir = open_history(diag), fd, err = 0;
	char name[64], *text = vmt_info_to_json(info);

	if (dir < 0) {
		free(text);
		return dir;
	}
	snprintf(name, sizeof(name), "%s.json", info->id);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || !text || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = vmt_diag_printf(diag, VMT_E_IO, errno, NULL,
				      "cannot note the session in the "
				      "history of captures");
	if (fd >= 0)
		close(fd);
	free(text);
	drop_old(dir);
	close(dir);
	return err;
}

static bool read_entry(int dir, const char *name, struct vmt_session_info *out)
{
	char text[VMT_INFO_TEXT_MAX];
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return n > 0 && vmt_info_from_json(text, (size_t)n, out);
}

int vmt_history_newest(const char *domain, struct vmt_session_info *out, struct vmt_diag *diag)
{
	int dir = open_history(diag);
	char(*names)[64];
	size_t count;
	bool found = false;

	if (dir < 0)
		return dir;
	names = list_names(dir, &count);
	for (size_t i = count; i > 0 && !found; i--)
		found = read_entry(dir, names[i - 1], out) &&
			(!domain || vmt_info_has_domain(out, domain)) && !access(out->file, F_OK);
	free(names);
	close(dir);
	if (found)
		return 0;
	return domain ? vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0,
					"vmtrace start --domain NAME makes one",
					"no capture of %s is known", domain)
		      : vmt_diag_set(diag, VMT_E_NOT_FOUND, "no capture is known",
				     "vmtrace start --domain NAME makes one, or name a file");
}
