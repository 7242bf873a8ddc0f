// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/perfdata_seen.h"

#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/perfdata.h"

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void take_trace(struct vmt_perfdata_seen *seen, const struct vmt_aux_index *index,
		       const struct vmt_item *item)
{
	uint8_t *bytes = malloc((size_t)item->aux->len + 1);
	size_t done;

	require(item->aux_idx < VMT_PERFDATA_SEEN_AREAS);
	require(bytes != NULL);
	require(item->aux->len % 8 == 0);
	require(index->read(index->source, item->aux, 0, bytes, (size_t)item->aux->len, &done,
			    NULL) == 0);
	/* Padding stands at the end of an area alone. */
	require(item->aux->aux_offset == seen->trace[item->aux_idx].len);
	vmt_stream_append(&seen->trace[item->aux_idx], bytes, done);
	free(bytes);
}

static void take(struct vmt_perfdata_seen *seen, struct vmt_perfdata *perf,
		 const struct vmt_item *item)
{
	switch (item->type) {
	case VMT_ITEM_ATTR:
		vmt_stream_append(&seen->attrs, item->attr_bytes, item->attr_len);
		if (item->nr_ids)
			vmt_stream_append(&seen->ids, item->ids, 8 * item->nr_ids);
		break;
	case VMT_ITEM_FORMAT:
		vmt_stream_append(&seen->formats, item->system, strlen(item->system));
		vmt_stream_append(&seen->formats, item->data, item->len);
		break;
	case VMT_ITEM_RECORDS:
		vmt_stream_append(&seen->records, item->data, item->len);
		break;
	case VMT_ITEM_ROUND:
		seen->rounds++;
		break;
	case VMT_ITEM_AUX:
		take_trace(seen, vmt_perfdata_aux(perf), item);
		break;
	case VMT_ITEM_VCPU_LINK:
		vmt_stream_append(&seen->links, item->data, item->len);
		break;
	case VMT_ITEM_LOSS:
		seen->losses++;
		break;
	case VMT_ITEM_END:
		seen->ends++;
		break;
	default:
		break;
	}
}

int vmt_perfdata_see(struct vmt_perfdata_seen *seen, struct vmt_reader *reader)
{
	struct vmt_perfdata *perf;
	struct vmt_item item;
	const char *text;
	int more, err;

	memset(seen, 0, sizeof(*seen));
	err = vmt_perfdata_open(&perf, reader, NULL);
	if (err) {
		vmt_reader_close(reader);
		return err;
	}
	while ((more = vmt_perfdata_next(perf, &item, NULL)) == 1)
		take(seen, perf, &item);
	require(more == 0);
	seen->info = vmt_perfdata_aux(perf)->info;
	seen->info.filter = NULL;
	seen->ledger = vmt_perfdata_ledger(perf);
	text = vmt_perfdata_feature(perf, "CPUID");
	strncpy(seen->cpuid, text ? text : "", sizeof(seen->cpuid) - 1);
	text = vmt_perfdata_feature(perf, "HOSTNAME");
	strncpy(seen->host, text ? text : "", sizeof(seen->host) - 1);
	vmt_perfdata_close(perf);
	return 0;
}

void vmt_perfdata_forget(struct vmt_perfdata_seen *seen)
{
	vmt_stream_free(&seen->attrs);
	vmt_stream_free(&seen->ids);
	vmt_stream_free(&seen->formats);
	vmt_stream_free(&seen->records);
	vmt_stream_free(&seen->links);
	for (size_t i = 0; i < VMT_PERFDATA_SEEN_AREAS; i++)
		vmt_stream_free(&seen->trace[i]);
}
