// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: a session lives exactly as long as its recorder holds the lock on `alive`; process ids
 * decide nothing, since they are used again.
 */
#include "host/session/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "host/session/info.h"

#define SESSIONS_MAX   1024
#define UNBORN_SECONDS 60

static bool is_session_name(const char *name)
{
	return name[0] == 's' && name[1] == '-' && !strchr(name, '/') && strlen(name) < 40;
}

/* ---- the recorder's side ---- */

int vmt_folder_make(struct vmt_session_folder *out, const char *id, struct vmt_diag *diag)
{
	char runtime[VMT_SESSION_PATH_MAX - 48], path[VMT_SESSION_PATH_MAX];
	int err = vmt_path_runtime(runtime, sizeof(runtime), diag);

	*out = (struct vmt_session_folder){ .dir = -1, .alive = -1 };
	if (err)
		return err;
	/* Made under a hidden name: nobody sees it before it is locked. */
	snprintf(out->path, sizeof(out->path), "%s/.%s", runtime, id);
	snprintf(path, sizeof(path), "%s/%s", runtime, id);
	if (mkdir(out->path, 0700))
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL,
				       "cannot make the session's folder %s", out->path);
	out->dir = open(out->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (out->dir >= 0)
		out->alive = openat(out->dir, "alive", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out->alive < 0 || flock(out->alive, LOCK_EX | LOCK_NB) || rename(out->path, path)) {
		vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot lock the session's folder %s",
				out->path);
		vmt_folder_remove(out);
		return VMT_E_IO;
	}
	memcpy(out->path, path, sizeof(path));
	return 0;
}

/* Writes a file of a folder by rename. */
static int write_whole(int dir, const char *name, const char *text)
{
	char temporary[80];
	size_t len = strlen(text), done = 0;
	int fd;

	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	while (done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	close(fd);
	if (done == len && !renameat(dir, temporary, dir, name))
		return 0;
	unlinkat(dir, temporary, 0);
	return -1;
}

int vmt_folder_write(const struct vmt_session_folder *folder, const struct vmt_session_info *info,
		     struct vmt_diag *diag)
{
	char *text = vmt_info_to_json(info);
	int err = text ? write_whole(folder->dir, "state.json", text) : -1;

	free(text);
	return err ? vmt_diag_printf(diag, VMT_E_IO, errno, NULL,
				     "cannot write the session's state in %s", folder->path)
		   : 0;
}

static void remove_files(int dir)
{
	static const char *const names[] = { "control", "state.json", ".state.json.new", "log",
					     "alive" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(dir, names[i], 0);
}

void vmt_folder_remove(struct vmt_session_folder *folder)
{
	if (folder->dir >= 0) {
		remove_files(folder->dir);
		close(folder->dir);
	}
	rmdir(folder->path);
	if (folder->alive >= 0)
		close(folder->alive);
	folder->dir = folder->alive = -1;
}

int vmt_domain_lock(const char *key, const char *session_id, struct vmt_diag *diag)
{
	char runtime[VMT_SESSION_PATH_MAX - 128], path[VMT_SESSION_PATH_MAX], safe[101];
	char holder[64] = "";
	int fd, err = vmt_path_runtime(runtime, sizeof(runtime), diag);

	if (err)
		return err;
	vmt_path_safe_name(key, safe, sizeof(safe));
	snprintf(path, sizeof(path), "%s/domain-%s.lock", runtime, safe);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot open %s",
				       path);
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		ssize_t n = read(fd, holder, sizeof(holder) - 1);

		close(fd);
		if (n <= 0) /* it is being written */
			return vmt_diag_set(diag, VMT_E_EXISTS, "the domain already has a session",
					    "vmtrace status shows it");
		vmt_diag_printf(diag, VMT_E_EXISTS, 0, "", "the domain already has a session: %s",
				holder);
		vmt_diag_cure(diag, "vmtrace status shows it; vmtrace stop %s ends it", holder);
		return VMT_E_EXISTS;
	}
	if (ftruncate(fd, 0) || write(fd, session_id, strlen(session_id)) < 0) {
		close(fd);
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot write %s", path);
	}
	return fd;
}

/* ---- everybody's side ---- */

/* Reads a small file of a folder; length or -1. */
static ssize_t read_small(int dir, const char *name, char *text, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size);

	if (fd >= 0)
		close(fd);
	return n;
}

static bool recorder_lives(int dir)
{
	int fd = openat(dir, "alive", O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	bool lives;

	if (fd < 0)
		return false;
	lives = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return lives;
}

/* A hidden folder that a recorder was killed over, before it had its lock. */
static void remove_unborn(const char *runtime, const char *name)
{
	char path[VMT_SESSION_PATH_MAX];
	struct stat st;
	int dir;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", runtime, name) >= sizeof(path) ||
	    lstat(path, &st) || time(NULL) - st.st_mtime < UNBORN_SECONDS)
		return;
	dir = open(path, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return;
	remove_files(dir);
	close(dir);
	rmdir(path);
}

/* Reads one session of a runtime folder. False when there is nothing to tell of it. */
static bool read_session(const char *runtime, const char *id, bool is_own,
			 struct vmt_session_info *info)
{
	char path[VMT_SESSION_PATH_MAX], text[VMT_INFO_TEXT_MAX];
	int dir;
	bool known, lives;
	ssize_t n;
	struct stat st;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", runtime, id) >= sizeof(path))
		return false;
	dir = open(path, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return false;
	lives = recorder_lives(dir);
	n = read_small(dir, "state.json", text, sizeof(text));
	known = n > 0 && vmt_info_from_json(text, (size_t)n, info);
	if (!lives && is_own) {
		remove_files(dir);
		rmdir(path);
	}
	close(dir);
	if (!known)
		return false;
	snprintf(info->id, sizeof(info->id), "%s", id);
	if (!lives) {
		snprintf(info->state, sizeof(info->state), "stale");
		if (!stat(info->file, &st))
			info->file_bytes = (uint64_t)st.st_size;
	}
	return true;
}

struct list {
	struct vmt_session_info *items;
	size_t count;
};

static void list_folder(struct list *list, const char *runtime, bool is_own)
{
	DIR *dir = opendir(runtime);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) && list->count < SESSIONS_MAX) {
		if (is_session_name(entry->d_name) &&
		    read_session(runtime, entry->d_name, is_own, &list->items[list->count]))
			list->count++;
		else if (is_own && !strncmp(entry->d_name, ".s-", 3))
			remove_unborn(runtime, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

/* Calls visit for the runtime folder of each other user; root only. */
static void each_user(void (*visit)(void *context, const char *runtime), void *context)
{
	DIR *users = geteuid() || getenv("VMTRACE_RUNTIME_DIR") ? NULL : opendir("/run/user");
	const struct dirent *entry;

	while (users && (entry = readdir(users))) {
		char runtime[VMT_SESSION_PATH_MAX];

		if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
			continue;
		snprintf(runtime, sizeof(runtime), "/run/user/%.20s/vmtrace", entry->d_name);
		visit(context, runtime);
	}
	if (users)
		closedir(users);
}

static void list_user(void *context, const char *runtime)
{
	list_folder(context, runtime, false);
}

static int by_start(const void *a, const void *b)
{
	const struct vmt_session_info *x = a, *y = b;

	return (x->start_realtime_ns > y->start_realtime_ns) -
	       (x->start_realtime_ns < y->start_realtime_ns);
}

static int list_all(struct vmt_session_info **out, size_t *count, bool sweeps,
		    struct vmt_diag *diag)
{
	char runtime[VMT_SESSION_PATH_MAX];
	struct list list = { calloc(SESSIONS_MAX, sizeof(*list.items)), 0 };
	int err = vmt_path_runtime(runtime, sizeof(runtime), diag);

	if (!list.items || err) {
		free(list.items);
		return err ? err
			   : vmt_diag_set(diag, VMT_E_NOMEM, "cannot list sessions",
					  "memory is short");
	}
	list_folder(&list, runtime, sweeps);
	each_user(list_user, &list);
	qsort(list.items, list.count, sizeof(*list.items), by_start);
	*out = list.items;
	*count = list.count;
	return 0;
}

int vmt_registry_list(struct vmt_session_info **out, size_t *count, struct vmt_diag *diag)
{
	return list_all(out, count, true, diag);
}

int vmt_registry_look(struct vmt_session_info **out, size_t *count, struct vmt_diag *diag)
{
	return list_all(out, count, false, diag);
}

struct search {
	const char *id;
	char *path;
	size_t size;
	bool found;
};

static void search_folder(void *context, const char *runtime)
{
	struct search *s = context;
	struct stat st;

	if (s->found)
		return;
	snprintf(s->path, s->size, "%s/%s", runtime, s->id);
	s->found = !stat(s->path, &st) && S_ISDIR(st.st_mode);
}

int vmt_registry_folder(const char *id, char *path, size_t size, struct vmt_diag *diag)
{
	char runtime[VMT_SESSION_PATH_MAX];
	struct search s = { id, path, size, false };
	int err = vmt_path_runtime(runtime, sizeof(runtime), diag);

	if (err)
		return err;
	if (is_session_name(id)) {
		search_folder(&s, runtime);
		each_user(search_folder, &s);
	}
	return s.found ? 0
		       : vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0, "vmtrace status lists them",
					 "no session %s", id);
}
