/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/pt_vtt_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "tests/golden/pt"

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

static bool regenerate(const struct vmt_vtt_file *file, enum vmt_vtt_section section,
		       const char *text, size_t len)
{
	const struct vmt_vtt *vtt = &file->vtt;
	const bool packets = section == VMT_VTT_PACKETS;
	FILE *f = fopen(file->path, "wb");

	if (!f)
		return false;
	fwrite(file->text, 1, vtt->source_len, f);
	write_section(f, "packets", packets ? text : vtt->expect_packets,
		      packets ? len : vtt->expect_packets_len);
	write_section(f, "events", packets ? vtt->expect_events : text,
		      packets ? vtt->expect_events_len : len);
	return fclose(f) == 0;
}

bool vmt_vtt_file_expect(const struct vmt_vtt_file *file, enum vmt_vtt_section section,
			 const char *text, size_t len)
{
	const char *expected =
		section == VMT_VTT_PACKETS ? file->vtt.expect_packets : file->vtt.expect_events;
	const size_t expected_len = section == VMT_VTT_PACKETS ? file->vtt.expect_packets_len
							       : file->vtt.expect_events_len;

	if (len == expected_len && !memcmp(text, expected, len))
		return true;
	if (getenv("VMT_TEST_REGENERATE"))
		return regenerate(file, section, text, len);
	fprintf(stderr, "%s\nexpected:\n%.*sgot:\n%.*s", file->path, (int)expected_len, expected,
		(int)len, text);
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct vmt_vtt_path *)a)->path,
		      ((const struct vmt_vtt_path *)b)->path);
}

size_t vmt_vtt_file_list(struct vmt_vtt_path *paths, size_t max)
{
	size_t nr = 0;
	char folder[512];
	struct dirent *entry;
	DIR *dir;

	full_path(folder, sizeof(folder), FOLDER);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir)) && nr < max) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".vtt") != 0)
			continue;
		snprintf(paths[nr].path, sizeof(paths[nr].path), FOLDER "/%.130s", entry->d_name);
		nr++;
	}
	if (dir)
		closedir(dir);
	qsort(paths, nr, sizeof(paths[0]), by_name);
	for (size_t i = 0; i < nr; i++)
		paths[i].name = paths[i].path + sizeof(FOLDER);
	return nr;
}
