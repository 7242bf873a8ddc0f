/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/pt_vtt_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void full_path(char *buf, size_t size, const char *path)
{
	const char *top = getenv("VMT_TOP");

	snprintf(buf, size, "%s/%s", top ? top : ".", path);
}

static bool read_file(struct vmt_vtt_file *file)
{
	FILE *f = fopen(file->path, "rb");
	long size;

	if (!f)
		return false;
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	file->text = size < 0 ? NULL : malloc((size_t)size + 1);
	if (file->text)
		file->len = fread(file->text, 1, (size_t)size, f);
	fclose(f);
	return file->text && file->len == (size_t)size;
}

bool vmt_vtt_file_load(struct vmt_vtt_file *file, const char *path)
{
	struct vmt_vtt_error error;

	*file = (struct vmt_vtt_file){ 0 };
	full_path(file->path, sizeof(file->path), path);
	if (!read_file(file)) {
		fprintf(stderr, "%s: cannot be read\n", file->path);
		return false;
	}
	if (vmt_vtt_assemble(file->text, file->len, &file->vtt, &error))
		return true;
	fprintf(stderr, "%s:%u: %s\n", path, error.line, error.what);
	return false;
}

void vmt_vtt_file_free(struct vmt_vtt_file *file)
{
	vmt_vtt_free(&file->vtt);
	free(file->text);
}

static void write_section(FILE *f, const char *title, const char *text, size_t len)
{
	if (text)
		fprintf(f, "--- %s\n%.*s", title, (int)len, text);
}

struct expected {
	const char *title, *text;
	size_t len;
};

static void expected_of(const struct vmt_vtt *vtt, struct expected *e)
{
	e[VMT_VTT_PACKETS] =
		(struct expected){ "packets", vtt->expect_packets, vtt->expect_packets_len };
	e[VMT_VTT_EVENTS] =
		(struct expected){ "events", vtt->expect_events, vtt->expect_events_len };
	e[VMT_VTT_FLOW] = (struct expected){ "flow", vtt->expect_flow, vtt->expect_flow_len };
}

static bool regenerate(const struct vmt_vtt_file *file, const struct expected *e)
{
	FILE *f = fopen(file->path, "wb");

	if (!f)
		return false;
	fwrite(file->text, 1, file->vtt.source_len, f);
	for (unsigned int i = VMT_VTT_PACKETS; i <= VMT_VTT_FLOW; i++)
		write_section(f, e[i].title, e[i].text, e[i].len);
	return fclose(f) == 0;
}

bool vmt_vtt_file_expect(const struct vmt_vtt_file *file, enum vmt_vtt_section section,
			 const char *text, size_t len)
{
	struct expected e[VMT_VTT_FLOW + 1], *want = &e[section];

	expected_of(&file->vtt, e);
	if (len == want->len && !memcmp(text, want->text, len))
		return true;
	if (getenv("VMT_TEST_REGENERATE")) {
		want->text = text;
		want->len = len;
		return regenerate(file, e);
	}
	fprintf(stderr, "%s\nexpected:\n%.*sgot:\n%.*s", file->path, (int)want->len, want->text,
		(int)len, text);
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct vmt_vtt_path *)a)->path,
		      ((const struct vmt_vtt_path *)b)->path);
}

size_t vmt_vtt_file_list(const char *folder, struct vmt_vtt_path *paths, size_t max)
{
	size_t nr = 0;
	char path[512];
	struct dirent *entry;
	DIR *dir;

	full_path(path, sizeof(path), folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) && nr < max) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".vtt") != 0)
			continue;
		snprintf(paths[nr].path, sizeof(paths[nr].path), "%.30s/%.120s", folder,
			 entry->d_name);
		nr++;
	}
	if (dir)
		closedir(dir);
	qsort(paths, nr, sizeof(paths[0]), by_name);
	for (size_t i = 0; i < nr; i++)
		paths[i].name = strrchr(paths[i].path, '/') + 1;
	return nr;
}
