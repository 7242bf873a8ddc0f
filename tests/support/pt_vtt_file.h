/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_VTT_FILE_H
#define VMT_SUPPORT_PT_VTT_FILE_H

#include "tests/support/pt_vtt.h"

/* The fixtures of tests/golden/pt and tests/golden/flow as files. Each failure goes to stderr with
 * its place. */
struct vmt_vtt_file {
	char path[512];
	char *text;
	size_t len;
	struct vmt_vtt vtt;
};

enum vmt_vtt_section {
	VMT_VTT_PACKETS,
	VMT_VTT_EVENTS,
	VMT_VTT_FLOW,
};

/* Reads and assembles a fixture; path from the project's top. Needs vmt_vtt_file_free always. */
bool vmt_vtt_file_load(struct vmt_vtt_file *file, const char *path);
void vmt_vtt_file_free(struct vmt_vtt_file *file);

/*
 * Compares a section with what came out. With VMT_TEST_REGENERATE=1 it is written into the file
 * instead; file->vtt's sections stay those of the old text.
 */
bool vmt_vtt_file_expect(const struct vmt_vtt_file *file, enum vmt_vtt_section section,
			 const char *text, size_t len);

struct vmt_vtt_path {
	char path[160];	  /* from the project's top */
	const char *name; /* of the file, into path */
};

/* The fixtures of a folder (from the project's top) by name; how many. */
size_t vmt_vtt_file_list(const char *folder, struct vmt_vtt_path *paths, size_t max);

#endif
