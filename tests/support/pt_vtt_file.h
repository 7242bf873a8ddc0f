/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_VTT_FILE_H
#define VMT_SUPPORT_PT_VTT_FILE_H

#include "tests/support/pt_vtt.h"

/* The fixtures of tests/golden/pt as files. Failures end the running test. */
struct vmt_vtt_file {
	char path[512];
	char *text;
	size_t len;
	struct vmt_vtt vtt;
};

enum vmt_vtt_section {
	VMT_VTT_PACKETS,
	VMT_VTT_EVENTS,
};

/* Reads and assembles a fixture; path from the project's top. */
void vmt_vtt_file_load(struct vmt_vtt_file *file, const char *path);
void vmt_vtt_file_free(struct vmt_vtt_file *file);

/*
 * Compares a section with what came out. With VMT_TEST_REGENERATE=1 it is written into the file
 * instead, and file->vtt's sections are then those of the old text.
 */
void vmt_vtt_file_expect(const struct vmt_vtt_file *file, enum vmt_vtt_section section,
			 const char *text, size_t len);

/* Runs a test once for each fixture, named as its file, with the path as the state. */
int vmt_vtt_file_run_all(const char *group, void (*test)(void **state));

#endif
