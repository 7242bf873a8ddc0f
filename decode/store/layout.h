/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_LAYOUT_H
#define VMT_STORE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/ring/ring.h"
#include "decode/store/store.h"

/* The bytes of a .vmt (docs/FORMAT.md), little endian. */

#define VMT_STORE_MAGIC_LEN	8u
#define VMT_STORE_VERSION	1u
#define VMT_STORE_HEADER	80u   /* bytes of this version's header */
#define VMT_STORE_HEADER_MAX	4096u /* a later version's header is at most this long */
#define VMT_STORE_FLAG_ZSTD	1u
#define VMT_STORE_RATIO_MAX	256u /* raw length : stored length of a compressed payload */
#define VMT_STORE_CHUNK_MAX	(VMT_STORE_HEADER_MAX + VMT_CHUNK_PAYLOAD_MAX)
#define VMT_STORE_KIND_MAX	32u /* text of a LOSS chunk's kind, with its NUL */
#define VMT_STORE_ATTR_LEN	48u /* an ATTR payload before the ids */
#define VMT_STORE_LOSS_LEN	32u /* a LOSS payload before the kind */
#define VMT_STORE_FILE_LEN	48u
#define VMT_STORE_END_LEN	64u
#define VMT_STORE_INDEX_ROW_LEN 32u
#define VMT_STORE_AUX_INFO_LEN	56u /* an AUX_INFO payload before the filter */
#define VMT_STORE_AUX_HEAD	32u /* an AUX payload before the trace */

/* What each chunk, and so a file, begins with. */
extern const uint8_t vmt_store_magic[VMT_STORE_MAGIC_LEN];

struct vmt_store_header {
	uint16_t version, type, flags, header_len;
	uint64_t sequence;
	uint32_t stream;
	int32_t cpu;
	uint64_t time_first_ns, time_last_ns;
	uint32_t stored_len, raw_len;
	uint64_t file_id;
	uint64_t payload_hash; /* of all bytes behind the first 80, padding included */
};

static inline size_t vmt_store_padded(size_t len)
{
	return (len + 7u) & ~(size_t)7u;
}

/* Length of a whole chunk in the file. */
static inline size_t vmt_store_chunk_len(const struct vmt_store_header *h)
{
	return (size_t)h->header_len + vmt_store_padded(h->stored_len);
}

void vmt_store_header_encode(const struct vmt_store_header *h, uint8_t out[VMT_STORE_HEADER]);

/* False unless magic, checksum and lengths are right. bytes holds VMT_STORE_HEADER bytes. */
bool vmt_store_header_decode(const uint8_t *bytes, struct vmt_store_header *h);

/* FILE */
struct vmt_store_file_info {
	bool keep; /* the front of the file may be a hole */
	uint64_t keep_ns;
	char writer[32]; /* program and version, ends in NUL */
};
void vmt_store_file_encode(const struct vmt_store_file_info *info, uint8_t out[VMT_STORE_FILE_LEN]);
bool vmt_store_file_decode(const uint8_t *bytes, size_t len, struct vmt_store_file_info *info);

/* ATTR: the fixed part; nr_ids u64 follow. */
void vmt_store_attr_encode(const struct vmt_ring_attr *attr, size_t nr_ids,
			   uint8_t out[VMT_STORE_ATTR_LEN]);
bool vmt_store_attr_decode(const uint8_t *bytes, size_t len, struct vmt_ring_attr *attr,
			   size_t *nr_ids);

/* LOSS: the fixed part; the kind's text follows. */
struct vmt_store_loss_info {
	uint64_t bytes, records, chunks;
	bool has_records;
	char kind[VMT_STORE_KIND_MAX]; /* a-z, 0-9 and '-' */
};
/* Returns the length. */
size_t vmt_store_loss_encode(const struct vmt_store_loss_info *loss,
			     uint8_t out[VMT_STORE_LOSS_LEN + VMT_STORE_KIND_MAX]);
bool vmt_store_loss_decode(const uint8_t *bytes, size_t len, struct vmt_store_loss_info *loss);

/* INDEX: rows of segments, in file order. */
struct vmt_store_segment {
	uint64_t offset, sequence;
	uint64_t time_first_ns, time_last_ns; /* of its RECORDS; 0 when it has none */
	uint64_t records, exits;	      /* the writer's count, not in the file */
};
void vmt_store_segment_encode(const struct vmt_store_segment *s,
			      uint8_t out[VMT_STORE_INDEX_ROW_LEN]);
void vmt_store_segment_decode(const uint8_t bytes[VMT_STORE_INDEX_ROW_LEN],
			      struct vmt_store_segment *s);

/* END: the account of the whole file. */
struct vmt_store_end_info {
	uint64_t chunks, records_bytes, time_first_ns, time_last_ns;
	uint64_t lost_chunks, lost_bytes, lost_records;
	uint64_t index_offset; /* 0: no INDEX */
};
void vmt_store_end_encode(const struct vmt_store_end_info *end, uint8_t out[VMT_STORE_END_LEN]);
bool vmt_store_end_decode(const uint8_t *bytes, size_t len, struct vmt_store_end_info *end);

/* AUX_INFO: the fixed part; the filter's text follows. */
void vmt_store_aux_info_encode(const struct vmt_pt_info *info, uint8_t out[VMT_STORE_AUX_INFO_LEN]);
void vmt_store_aux_info_decode(const uint8_t bytes[VMT_STORE_AUX_INFO_LEN],
			       struct vmt_pt_info *info);

/* AUX: what stands before the trace. */
struct vmt_store_aux_head {
	uint64_t aux_offset, reference;
	uint32_t pid, tid;
	bool restart;
};
void vmt_store_aux_encode(const struct vmt_store_aux_head *head, uint8_t out[VMT_STORE_AUX_HEAD]);
void vmt_store_aux_decode(const uint8_t bytes[VMT_STORE_AUX_HEAD], struct vmt_store_aux_head *head);

/* Whether a writer's caller may append a chunk of this type. */
bool vmt_store_is_appendable(unsigned int type);

/* Copies a kind, anything else than a-z, 0-9 and '-' becoming '-'. out ends in NUL. */
void vmt_store_kind_copy(char out[VMT_STORE_KIND_MAX], const void *text, size_t len);

#endif
