// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/store/layout.h"

#include <string.h>

#include "decode/base/cursor.h"
#include "decode/store/hash.h"

#define HEADER_HASHED (VMT_STORE_HEADER - 8u)

const uint8_t vmt_store_magic[VMT_STORE_MAGIC_LEN] = {
	0x8b, 'V', 'M', 'T', '\r', '\n', 0x1a, '\n'
};

static uint8_t *put_u16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

void vmt_store_header_encode(const struct vmt_store_header *h, uint8_t out[VMT_STORE_HEADER])
{
	uint8_t *p = out;

	memcpy(p, vmt_store_magic, VMT_STORE_MAGIC_LEN);
	p = put_u16(p + VMT_STORE_MAGIC_LEN, h->version);
	p = put_u16(p, h->type);
	p = put_u16(p, h->flags);
	p = put_u16(p, h->header_len);
	p = put_u64(p, h->sequence);
	p = put_u32(p, h->stream);
	p = put_u32(p, (uint32_t)h->cpu);
	p = put_u64(p, h->time_first_ns);
	p = put_u64(p, h->time_last_ns);
	p = put_u32(p, h->stored_len);
	p = put_u32(p, h->raw_len);
	p = put_u64(p, h->file_id);
	p = put_u64(p, h->payload_hash);
	put_u64(p, vmt_store_hash(out, HEADER_HASHED));
}

static bool lengths_fit(const struct vmt_store_header *h)
{
	if (h->header_len < VMT_STORE_HEADER || h->header_len > VMT_STORE_HEADER_MAX ||
	    h->header_len % 8)
		return false;
	if (h->raw_len > VMT_CHUNK_PAYLOAD_MAX || h->stored_len > VMT_CHUNK_PAYLOAD_MAX)
		return false;
	if (h->flags & VMT_STORE_FLAG_ZSTD)
		return h->stored_len && h->raw_len / h->stored_len <= VMT_STORE_RATIO_MAX;
	return h->stored_len == h->raw_len;
}

bool vmt_store_header_decode(const uint8_t *bytes, struct vmt_store_header *h)
{
	struct vmt_cursor c = vmt_cursor_of(bytes, VMT_STORE_HEADER);
	const uint8_t *magic = vmt_cursor_take(&c, VMT_STORE_MAGIC_LEN);

	if (memcmp(magic, vmt_store_magic, VMT_STORE_MAGIC_LEN) != 0)
		return false;
	h->version = vmt_cursor_u16(&c);
	h->type = vmt_cursor_u16(&c);
	h->flags = vmt_cursor_u16(&c);
	h->header_len = vmt_cursor_u16(&c);
	h->sequence = vmt_cursor_u64(&c);
	h->stream = vmt_cursor_u32(&c);
	h->cpu = (int32_t)vmt_cursor_u32(&c);
	h->time_first_ns = vmt_cursor_u64(&c);
	h->time_last_ns = vmt_cursor_u64(&c);
	h->stored_len = vmt_cursor_u32(&c);
	h->raw_len = vmt_cursor_u32(&c);
	h->file_id = vmt_cursor_u64(&c);
	h->payload_hash = vmt_cursor_u64(&c);
	return vmt_cursor_u64(&c) == vmt_store_hash(bytes, HEADER_HASHED) && lengths_fit(h);
}

void vmt_store_file_encode(const struct vmt_store_file_info *info, uint8_t out[VMT_STORE_FILE_LEN])
{
	uint8_t *p = put_u32(out, info->keep ? 1 : 0);

	p = put_u32(p, 0);
	p = put_u64(p, info->keep_ns);
	memcpy(p, info->writer, sizeof(info->writer));
}

bool vmt_store_file_decode(const uint8_t *bytes, size_t len, struct vmt_store_file_info *info)
{
	struct vmt_cursor c = vmt_cursor_of(bytes, len);
	const uint8_t *writer;

	info->keep = vmt_cursor_u32(&c) & 1;
	vmt_cursor_u32(&c);
	info->keep_ns = vmt_cursor_u64(&c);
	writer = vmt_cursor_take(&c, sizeof(info->writer));
	if (!writer)
		return false;
	memcpy(info->writer, writer, sizeof(info->writer));
	info->writer[sizeof(info->writer) - 1] = '\0';
	return true;
}

void vmt_store_attr_encode(const struct vmt_ring_attr *attr, size_t nr_ids,
			   uint8_t out[VMT_STORE_ATTR_LEN])
{
	uint8_t *p = put_u32(out, attr->type);

	p = put_u32(p, (uint32_t)nr_ids);
	p = put_u64(p, attr->config);
	p = put_u64(p, attr->sample_type);
	p = put_u64(p, attr->read_format);
	p = put_u64(p, attr->flags);
	put_u64(p, attr->branch_sample_type);
}

bool vmt_store_attr_decode(const uint8_t *bytes, size_t len, struct vmt_ring_attr *attr,
			   size_t *nr_ids)
{
	struct vmt_cursor c = vmt_cursor_of(bytes, len);

	attr->type = vmt_cursor_u32(&c);
	*nr_ids = vmt_cursor_u32(&c);
	attr->config = vmt_cursor_u64(&c);
	attr->sample_type = vmt_cursor_u64(&c);
	attr->read_format = vmt_cursor_u64(&c);
	attr->flags = vmt_cursor_u64(&c);
	attr->branch_sample_type = vmt_cursor_u64(&c);
	return !c.short_read && vmt_cursor_left(&c) == *nr_ids * 8;
}

void vmt_store_kind_copy(char out[VMT_STORE_KIND_MAX], const void *text, size_t len)
{
	const char *from = text;

	if (len >= VMT_STORE_KIND_MAX)
		len = VMT_STORE_KIND_MAX - 1;
	for (size_t i = 0; i < len; i++) {
		char c = from[i];

		out[i] = '-';
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			out[i] = c;
	}
	out[len] = '\0';
}

size_t vmt_store_loss_encode(const struct vmt_store_loss_info *loss,
			     uint8_t out[VMT_STORE_LOSS_LEN + VMT_STORE_KIND_MAX])
{
	size_t len = strnlen(loss->kind, sizeof(loss->kind) - 1);
	uint8_t *p = put_u64(out, loss->bytes);

	p = put_u64(p, loss->records);
	p = put_u64(p, loss->chunks);
	p = put_u32(p, loss->has_records ? 1 : 0);
	p = put_u32(p, 0);
	memcpy(p, loss->kind, len);
	return VMT_STORE_LOSS_LEN + len;
}

bool vmt_store_loss_decode(const uint8_t *bytes, size_t len, struct vmt_store_loss_info *loss)
{
	struct vmt_cursor c = vmt_cursor_of(bytes, len);

	loss->bytes = vmt_cursor_u64(&c);
	loss->records = vmt_cursor_u64(&c);
	loss->chunks = vmt_cursor_u64(&c);
	loss->has_records = vmt_cursor_u32(&c) & 1;
	vmt_cursor_u32(&c);
	vmt_store_kind_copy(loss->kind, c.pos, vmt_cursor_left(&c));
	return !c.short_read;
}

/* Flags of AUX_INFO. */
enum {
	INFO_TIME_CONV = 1u << 0,
	INFO_MTC_FREQ = 1u << 1,
	INFO_PER_CPU = 1u << 2,
	INFO_SNAPSHOT = 1u << 3,
	INFO_EVENT_TRACE = 1u << 4,
	INFO_CPU_ID = 1u << 5,
};

void vmt_store_aux_info_encode(const struct vmt_pt_info *info, uint8_t out[VMT_STORE_AUX_INFO_LEN])
{
	uint32_t flags =
		(info->has_time_conv ? INFO_TIME_CONV : 0u) |
		(info->has_mtc_freq ? INFO_MTC_FREQ : 0u) | (info->per_cpu ? INFO_PER_CPU : 0u) |
		(info->snapshot ? INFO_SNAPSHOT : 0u) |
		(info->event_trace ? INFO_EVENT_TRACE : 0u) | (info->has_cpu_id ? INFO_CPU_ID : 0u);
	uint8_t *p = put_u32(out, info->pmu_type);

	p = put_u32(p, flags);
	p = put_u64(p, info->config);
	p = put_u64(p, info->time_zero);
	p = put_u32(p, info->time_mult);
	p = put_u16(p, info->time_shift);
	p = put_u16(p, info->mtc_freq);
	p = put_u32(p, info->tsc_num);
	p = put_u32(p, info->art_den);
	p = put_u32(p, info->nom_ratio);
	p = put_u16(p, info->family);
	p = put_u16(p, info->model);
	p = put_u16(p, info->stepping);
	p = put_u16(p, 0);
	put_u32(p, 0);
}

void vmt_store_aux_info_decode(const uint8_t bytes[VMT_STORE_AUX_INFO_LEN],
			       struct vmt_pt_info *info)
{
	struct vmt_cursor c = vmt_cursor_of(bytes, VMT_STORE_AUX_INFO_LEN);
	uint32_t flags;

	*info = (struct vmt_pt_info){ .pmu_type = vmt_cursor_u32(&c) };
	flags = vmt_cursor_u32(&c);
	info->config = vmt_cursor_u64(&c);
	info->time_zero = vmt_cursor_u64(&c);
	info->time_mult = vmt_cursor_u32(&c);
	info->time_shift = vmt_cursor_u16(&c);
	info->mtc_freq = vmt_cursor_u16(&c) & 15;
	info->tsc_num = vmt_cursor_u32(&c);
	info->art_den = vmt_cursor_u32(&c);
	info->nom_ratio = vmt_cursor_u32(&c);
	info->family = vmt_cursor_u16(&c);
	info->model = vmt_cursor_u16(&c);
	info->stepping = vmt_cursor_u16(&c);
	info->has_time_conv = flags & INFO_TIME_CONV && info->time_mult && info->time_shift < 64;
	info->has_mtc_freq = flags & INFO_MTC_FREQ;
	info->per_cpu = flags & INFO_PER_CPU;
	info->snapshot = flags & INFO_SNAPSHOT;
	info->event_trace = flags & INFO_EVENT_TRACE;
	info->has_cpu_id = flags & INFO_CPU_ID;
}

void vmt_store_aux_encode(const struct vmt_store_aux_head *head, uint8_t out[VMT_STORE_AUX_HEAD])
{
	uint8_t *p = put_u64(out, head->aux_offset);

	p = put_u64(p, head->reference);
	p = put_u32(p, head->pid);
	p = put_u32(p, head->tid);
	p = put_u32(p, head->restart ? 1 : 0);
	put_u32(p, 0);
}

void vmt_store_aux_decode(const uint8_t bytes[VMT_STORE_AUX_HEAD], struct vmt_store_aux_head *head)
{
	head->aux_offset = vmt_load_u64(bytes);
	head->reference = vmt_load_u64(bytes + 8);
	head->pid = vmt_load_u32(bytes + 16);
	head->tid = vmt_load_u32(bytes + 20);
	head->restart = vmt_load_u32(bytes + 24) & 1;
}

bool vmt_store_is_appendable(unsigned int type)
{
	return (type >= VMT_CHUNK_SESSION && type <= VMT_CHUNK_LOSS) ||
	       type == VMT_CHUNK_AUX_INFO || type == VMT_CHUNK_AUX;
}

void vmt_store_segment_encode(const struct vmt_store_segment *s,
			      uint8_t out[VMT_STORE_INDEX_ROW_LEN])
{
	uint8_t *p = put_u64(out, s->offset);

	p = put_u64(p, s->sequence);
	p = put_u64(p, s->time_first_ns);
	put_u64(p, s->time_last_ns);
}

void vmt_store_segment_decode(const uint8_t bytes[VMT_STORE_INDEX_ROW_LEN],
			      struct vmt_store_segment *s)
{
	s->offset = vmt_load_u64(bytes);
	s->sequence = vmt_load_u64(bytes + 8);
	s->time_first_ns = vmt_load_u64(bytes + 16);
	s->time_last_ns = vmt_load_u64(bytes + 24);
}

void vmt_store_end_encode(const struct vmt_store_end_info *end, uint8_t out[VMT_STORE_END_LEN])
{
	uint8_t *p = put_u64(out, end->chunks);

	p = put_u64(p, end->records_bytes);
	p = put_u64(p, end->time_first_ns);
	p = put_u64(p, end->time_last_ns);
	p = put_u64(p, end->lost_chunks);
	p = put_u64(p, end->lost_bytes);
	p = put_u64(p, end->lost_records);
	put_u64(p, end->index_offset);
}

bool vmt_store_end_decode(const uint8_t *bytes, size_t len, struct vmt_store_end_info *end)
{
	struct vmt_cursor c = vmt_cursor_of(bytes, len);

	end->chunks = vmt_cursor_u64(&c);
	end->records_bytes = vmt_cursor_u64(&c);
	end->time_first_ns = vmt_cursor_u64(&c);
	end->time_last_ns = vmt_cursor_u64(&c);
	end->lost_chunks = vmt_cursor_u64(&c);
	end->lost_bytes = vmt_cursor_u64(&c);
	end->lost_records = vmt_cursor_u64(&c);
	end->index_offset = vmt_cursor_u64(&c);
	return !c.short_read;
}
