// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/remove_all.h"

static void fail(const char *what)
{
	perror(what);
	abort();
}

static void make_folders(const char *path)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(copy, 0755) && errno != EEXIST)
			fail(copy);
		*p = '/';
	}
}

static void put(const char *path, const char *bytes, size_t len)
{
	FILE *f;

	make_folders(path);
	f = fopen(path, "w");
	if (!f || fwrite(bytes, 1, len, f) != len || fclose(f))
		fail(path);
}

/* "\0" becomes the byte 0. Returns the new length. */
static size_t unescape(char *text, size_t len)
{
	size_t to = 0;

	for (size_t from = 0; from < len; from++) {
		bool zero = text[from] == '\\' && from + 1 < len && text[from + 1] == '0';

		text[to++] = text[from];
		if (zero)
			text[to - 1] = 0;
		from += zero;
	}
	return to;
}

struct reading {
	const struct vmt_tree *tree;
	char path[512]; /* "" before the first header */
	char text[65536];
	size_t len;
};

static void finish_file(struct reading *r)
{
	size_t len = r->len;

	if (!r->path[0])
		return;
	if (len >= 3 && !memcmp(r->text + len - 3, "\\c\n", 3))
		len -= len >= 4 ? 4 : 3;
	put(r->path, r->text, unescape(r->text, len));
	r->path[0] = '\0';
	r->len = 0;
}

static void header(struct reading *r, char *line)
{
	char path[512], *target;

	line[strcspn(line, "\n")] = '\0';
	finish_file(r);
	if (line[0] == '=' && line[1] == '=') {
		snprintf(r->path, sizeof(r->path), "%s/%.400s", r->tree->root, line + 3);
		return;
	}
	target = strchr(line + 3, ' ');
	if (!target)
		abort();
	*target++ = '\0';
	snprintf(path, sizeof(path), "%s/%.400s", r->tree->root, line + 3);
	make_folders(path);
	if (symlink(target, path))
		fail(path);
}

void vmt_tree_unpack(struct vmt_tree *tree, const char *name)
{
	const char *top = getenv("VMT_TOP");
	struct reading *r = calloc(1, sizeof(*r));
	char path[512], line[4096];
	FILE *f;

	memset(tree, 0, sizeof(*tree));
	snprintf(tree->root, sizeof(tree->root), "/tmp/vmt-tree.XXXXXX");
	snprintf(path, sizeof(path), "%s/virt-fixtures/proc-trees/%s.tree", top ? top : ".", name);
	f = fopen(path, "r");
	if (!r || !f || !mkdtemp(tree->root))
		fail(path);
	r->tree = tree;
	while (fgets(line, sizeof(line), f)) {
		size_t len = strlen(line);

		if (!strncmp(line, "== ", 3) || !strncmp(line, "=> ", 3)) {
			header(r, line);
		} else {
			if (r->len + len > sizeof(r->text))
				abort();
			for (size_t i = 0; i < len; i++)
				r->text[r->len++] = line[i];
		}
	}
	finish_file(r);
	fclose(f);
	free(r);
	snprintf(tree->proc, sizeof(tree->proc), "%s/proc", tree->root);
	snprintf(tree->sys, sizeof(tree->sys), "%s/sys", tree->root);
	snprintf(tree->run, sizeof(tree->run), "%s/run", tree->root);
	snprintf(tree->dev, sizeof(tree->dev), "%s/dev", tree->root);
	snprintf(tree->debugfs, sizeof(tree->debugfs), "%s/debug", tree->root);
	snprintf(tree->tracefs, sizeof(tree->tracefs), "%s/tracing", tree->root);
	tree->fs = (struct vmt_hostfs){ .proc = tree->proc,
					.sys = tree->sys,
					.run = tree->run,
					.dev = tree->dev,
					.debugfs = tree->debugfs,
					.tracefs = tree->tracefs };
}

void vmt_tree_remove(struct vmt_tree *tree)
{
	vmt_remove_all(tree->root);
}

void vmt_tree_write(const struct vmt_tree *tree, const char *path, const char *text)
{
	char full[512];

	snprintf(full, sizeof(full), "%s/%s", tree->root, path);
	if (text)
		put(full, text, strlen(text));
	else if (vmt_remove_all(full))
		fail(full);
}
