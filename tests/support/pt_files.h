/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_FILES_H
#define VMT_SUPPORT_PT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The streams of processors in ../shared/data/pt, seen from VMT_TOP or the working directory. */
#define VMT_PT_FILES_MAX 4

struct vmt_pt_files {
	size_t n;
	const char *names[VMT_PT_FILES_MAX];
	uint8_t *bytes[VMT_PT_FILES_MAX];
	size_t lens[VMT_PT_FILES_MAX];
};

/* False when the folder is not there. */
bool vmt_pt_files_load(struct vmt_pt_files *files);
void vmt_pt_files_free(struct vmt_pt_files *files);

#endif
