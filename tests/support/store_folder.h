/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_STORE_FOLDER_H
#define VMT_SUPPORT_STORE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/store/store.h"

/* A folder of a test's own with names for two .vmt files, and the plainest contents for them. */
struct vmt_store_folder {
	char folder[32], path[64], copy_path[64];
};

bool vmt_store_folder_make(struct vmt_store_folder *files);
/* Removes the files, if they are there; and the folder. */
void vmt_store_folder_clear(const struct vmt_store_folder *files);
bool vmt_store_folder_remove(const struct vmt_store_folder *files);

/* A payload of n whole ring records of 32 bytes, each with this number. */
void vmt_store_fill_records(uint8_t *bytes, size_t n, uint32_t number);
/* Appends RECORDS in two parts; as vmt_store_append returns. */
int vmt_store_append_records(struct vmt_store_writer *w, const uint8_t *bytes, size_t len,
			     uint64_t time_ns, struct vmt_diag *diag);
/* Every byte is decoded or skipped. */
bool vmt_store_is_balanced(const struct vmt_store_reader *store);

#endif
