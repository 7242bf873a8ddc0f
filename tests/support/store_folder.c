/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/store_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool vmt_store_folder_make(struct vmt_store_folder *files)
{
	*files = (struct vmt_store_folder){ .folder = "/tmp/vmt-store-XXXXXX" };
	if (!mkdtemp(files->folder))
		return false;
	snprintf(files->path, sizeof(files->path), "%s/a.vmt", files->folder);
	snprintf(files->copy_path, sizeof(files->copy_path), "%s/b.vmt", files->folder);
	return true;
}

void vmt_store_folder_clear(const struct vmt_store_folder *files)
{
	unlink(files->path);
	unlink(files->copy_path);
}

bool vmt_store_folder_remove(const struct vmt_store_folder *files)
{
	return rmdir(files->folder) == 0;
}

void vmt_store_fill_records(uint8_t *bytes, size_t n, uint32_t number)
{
	memset(bytes, 0, n * 32);
	for (size_t i = 0; i < n; i++) {
		bytes[i * 32] = 9;
		bytes[i * 32 + 6] = 32;
		memcpy(bytes + i * 32 + 8, &number, sizeof(number));
	}
}

int vmt_store_append_records(struct vmt_store_writer *w, const uint8_t *bytes, size_t len,
			     uint64_t time_ns, struct vmt_diag *diag)
{
	const struct vmt_store_chunk chunk = { .type = VMT_CHUNK_RECORDS,
					       .stream = 3,
					       .cpu = 1,
					       .time_first_ns = time_ns,
					       .time_last_ns = time_ns,
					       .nr_parts = 2,
					       .parts = { { bytes, len / 3 },
							  { bytes + len / 3, len - len / 3 } } };

	return vmt_store_append(w, &chunk, diag);
}

bool vmt_store_is_balanced(const struct vmt_store_reader *store)
{
	const struct vmt_ledger l = vmt_store_ledger(store);

	return l.bytes_total == l.bytes_decoded + l.bytes_skipped;
}
