// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/pt_read_trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/store/store.h"

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "trace that is read back: %s\n", what);
	abort();
}

uint8_t *vmt_read_trace(const char *path, uint32_t tid, size_t *len, uint8_t **marks,
			struct vmt_pt_info *info)
{
	const struct vmt_aux_index *index;
	struct vmt_store_reader *store;
	struct vmt_reader *reader;
	struct vmt_item item;
	uint8_t *bytes;

	need(vmt_reader_open(&reader, path, NULL, NULL) == 0, "no file");
	need(vmt_store_open(&store, reader, NULL) == 0, "no capture");
	while (vmt_store_next(store, &item, NULL) == 1) {
		need(item.type != VMT_ITEM_LOSS, "a loss in the file");
	}
	index = vmt_store_aux_index(store);
	need(index->has_info, "no AUX_INFO");
	need(index->nr_areas == 1, "not one area");
	*info = index->info;
	*len = 0;
	for (size_t i = 0; i < index->areas[0].nr_extents; i++) {
		need(index->areas[0].extents[i].aux_offset == *len, "a gap");
		*len += index->areas[0].extents[i].len;
	}
	bytes = malloc(*len + 1);
	*marks = calloc(1, *len + 1);
	for (size_t i = 0; i < index->areas[0].nr_extents; i++) {
		const struct vmt_aux_extent *e = &index->areas[0].extents[i];
		size_t done;

		need(index->read(index->source, e, 0, bytes + e->aux_offset, e->len, &done, NULL) ==
			     0,
		     "not readable");
		(*marks)[e->aux_offset] = e->handle & VMT_AUX_RESTART;
		need(index->areas[0].tid == tid, "another thread");
		need(index->areas[0].cpu == VMT_AUX_NO_CPU, "a CPU");
	}
	vmt_store_close(store);
	return bytes;
}
