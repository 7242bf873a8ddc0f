// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: attrs[] never shrinks, and every id in the hash names one of them. The hash is open
 * addressing over a power of two, at most half full.
 */
#include "decode/ring/ring.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"

#define ATTRS_MAX    4096
#define IDS_MAX	     (1u << 20)
#define HEADER_BYTES 8

/* PERF_SAMPLE_* in bit order of include/uapi/linux/perf_event.h. */
#define SAMPLE_IP	  (1u << 0)
#define SAMPLE_TID	  (1u << 1)
#define SAMPLE_TIME	  (1u << 2)
#define SAMPLE_ADDR	  (1u << 3)
#define SAMPLE_READ	  (1u << 4)
#define SAMPLE_CALLCHAIN  (1u << 5)
#define SAMPLE_ID	  (1u << 6)
#define SAMPLE_CPU	  (1u << 7)
#define SAMPLE_PERIOD	  (1u << 8)
#define SAMPLE_STREAM_ID  (1u << 9)
#define SAMPLE_RAW	  (1u << 10)
#define SAMPLE_IDENTIFIER (1u << 16)

struct id_slot {
	uint64_t id;
	uint32_t attr_plus_one; /* 0: free */
};

struct vmt_ring_set {
	struct vmt_ring_attr *attrs;
	size_t nr_attrs, cap_attrs;
	struct id_slot *slots;
	size_t nr_ids, nr_slots;
	bool same_layout; /* every attr has the same sample_type and read_format */
};

struct vmt_ring_set *vmt_ring_set_new(void)
{
	struct vmt_ring_set *set = calloc(1, sizeof(*set));

	if (set)
		set->same_layout = true;
	return set;
}

void vmt_ring_set_free(struct vmt_ring_set *set)
{
	if (!set)
		return;
	free(set->attrs);
	free(set->slots);
	free(set);
}

static size_t slot_of(const struct vmt_ring_set *set, uint64_t id)
{
	size_t mask = set->nr_slots - 1;
	size_t at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;

	while (set->slots[at].attr_plus_one && set->slots[at].id != id)
		at = (at + 1) & mask;
	return at;
}

static int grow_slots(struct vmt_ring_set *set, size_t need)
{
	struct id_slot *old = set->slots;
	size_t nr_old = set->nr_slots, nr = nr_old ? nr_old : 64;

	while (nr < 2 * need)
		nr *= 2;
	if (nr == nr_old)
		return 0;
	set->slots = calloc(nr, sizeof(*set->slots));
	if (!set->slots) {
		set->slots = old;
		return VMT_E_NOMEM;
	}
	set->nr_slots = nr;
	for (size_t i = 0; i < nr_old; i++) {
		if (old[i].attr_plus_one)
			set->slots[slot_of(set, old[i].id)] = old[i];
	}
	free(old);
	return 0;
}

/* The members that decide where the fields of a record stand. */
static bool layout_equal(const struct vmt_ring_attr *a, const struct vmt_ring_attr *b)
{
	return a->sample_type == b->sample_type && a->read_format == b->read_format &&
	       (a->flags & VMT_RING_FLAG_SAMPLE_ID_ALL) == (b->flags & VMT_RING_FLAG_SAMPLE_ID_ALL);
}

int vmt_ring_set_add(struct vmt_ring_set *set, const struct vmt_ring_attr *attr,
		     const uint64_t *ids, size_t nr_ids)
{
	int status;

	if (set->nr_attrs == ATTRS_MAX || nr_ids > IDS_MAX - set->nr_ids)
		return VMT_E_LIMIT;
	if (set->nr_attrs == set->cap_attrs) {
		size_t cap = set->cap_attrs ? 2 * set->cap_attrs : 16;
		struct vmt_ring_attr *attrs = realloc(set->attrs, cap * sizeof(*attrs));

		if (!attrs)
			return VMT_E_NOMEM;
		set->attrs = attrs;
		set->cap_attrs = cap;
	}
	status = grow_slots(set, set->nr_ids + nr_ids);
	if (status)
		return status;
	for (size_t i = 0; i < nr_ids; i++) {
		struct id_slot *slot = &set->slots[slot_of(set, ids[i])];

		if (!slot->attr_plus_one)
			set->nr_ids++;
		slot->id = ids[i];
		slot->attr_plus_one = (uint32_t)set->nr_attrs + 1;
	}
	if (set->nr_attrs)
		set->same_layout = set->same_layout && layout_equal(attr, &set->attrs[0]);
	set->attrs[set->nr_attrs] = *attr;
	return (int)set->nr_attrs++;
}

size_t vmt_ring_set_count(const struct vmt_ring_set *set)
{
	return set->nr_attrs;
}

const struct vmt_ring_attr *vmt_ring_set_attr(const struct vmt_ring_set *set, size_t index)
{
	return index < set->nr_attrs ? &set->attrs[index] : NULL;
}

static int attr_of_id(const struct vmt_ring_set *set, uint64_t id)
{
	if (!set->nr_slots)
		return -1;
	return (int)set->slots[slot_of(set, id)].attr_plus_one - 1;
}

/* Steps over read_format values; false when they do not fit. */
static bool skip_read(struct vmt_cursor *c, uint64_t format)
{
	uint64_t nr = 1, each = 1 + (format >> 2 & 1) + (format >> 4 & 1);
	uint64_t head = (format & 1) + (format >> 1 & 1);

	if (format & 8)
		nr = vmt_cursor_u64(c);
	if (nr > 8192)
		return false;
	return vmt_cursor_take(c, 8 * (size_t)(head + nr * each)) != NULL;
}

static bool skip_callchain(struct vmt_cursor *c)
{
	uint64_t nr = vmt_cursor_u64(c);

	return nr <= 8192 && vmt_cursor_take(c, 8 * (size_t)nr);
}

/* Fields of a SAMPLE in the order in which the kernel writes them, up to RAW. */
static int parse_sample(const struct vmt_ring_attr *attr, struct vmt_cursor *c,
			struct vmt_ring_record *out)
{
	uint64_t t = attr->sample_type;

	if (t & SAMPLE_IDENTIFIER)
		out->id = vmt_cursor_u64(c);
	if (t & SAMPLE_IP) {
		out->ip = vmt_cursor_u64(c);
		out->has_ip = true;
	}
	if (t & SAMPLE_TID) {
		out->pid = vmt_cursor_u32(c);
		out->tid = vmt_cursor_u32(c);
		out->has_tid = true;
	}
	if (t & SAMPLE_TIME) {
		out->time_ns = vmt_cursor_u64(c);
		out->has_time = true;
	}
	if (t & SAMPLE_ADDR)
		vmt_cursor_u64(c);
	if (t & SAMPLE_ID)
		out->id = vmt_cursor_u64(c);
	out->has_id = t & (SAMPLE_ID | SAMPLE_IDENTIFIER);
	if (t & SAMPLE_STREAM_ID)
		vmt_cursor_u64(c);
	if (t & SAMPLE_CPU) {
		out->cpu = vmt_cursor_u32(c);
		vmt_cursor_u32(c);
		out->has_cpu = true;
	}
	if (t & SAMPLE_PERIOD)
		vmt_cursor_u64(c);
	if (t & SAMPLE_READ && !skip_read(c, attr->read_format))
		return VMT_E_DAMAGED;
	if (t & SAMPLE_CALLCHAIN && !skip_callchain(c))
		return VMT_E_DAMAGED;
	if (t & SAMPLE_RAW) {
		out->raw_len = vmt_cursor_u32(c);
		out->raw = vmt_cursor_take(c, out->raw_len);
	}
	return c->short_read ? VMT_E_DAMAGED : 0;
}

/* Bytes of the trailer that sample_id_all puts behind every other record. */
static size_t trailer_bytes(uint64_t t)
{
	return 8 *
	       (size_t)(!!(t & SAMPLE_TID) + !!(t & SAMPLE_TIME) + !!(t & SAMPLE_ID) +
			!!(t & SAMPLE_STREAM_ID) + !!(t & SAMPLE_CPU) + !!(t & SAMPLE_IDENTIFIER));
}

static int parse_trailer(const struct vmt_ring_attr *attr, struct vmt_ring_record *out)
{
	uint64_t t = attr->sample_type;
	size_t len = trailer_bytes(t);
	struct vmt_cursor c;

	if (len > out->body_len)
		return VMT_E_DAMAGED;
	out->body_len = (uint16_t)(out->body_len - len);
	c = vmt_cursor_of(out->body + out->body_len, len);
	if (t & SAMPLE_TID) {
		out->pid = vmt_cursor_u32(&c);
		out->tid = vmt_cursor_u32(&c);
		out->has_tid = true;
	}
	if (t & SAMPLE_TIME) {
		out->time_ns = vmt_cursor_u64(&c);
		out->has_time = true;
	}
	if (t & SAMPLE_ID)
		out->id = vmt_cursor_u64(&c);
	if (t & SAMPLE_STREAM_ID)
		vmt_cursor_u64(&c);
	if (t & SAMPLE_CPU) {
		out->cpu = vmt_cursor_u32(&c);
		vmt_cursor_u32(&c);
		out->has_cpu = true;
	}
	if (t & SAMPLE_IDENTIFIER)
		out->id = vmt_cursor_u64(&c);
	out->has_id = t & (SAMPLE_ID | SAMPLE_IDENTIFIER);
	return 0;
}

/*
 * Which attr a record belongs to. With equal layouts any will do for reading, and the id, once
 * read, names the right one. Otherwise the id must stand where no layout moves it: IDENTIFIER is
 * the first member of a SAMPLE and the last of a trailer.
 */
static int find_attr(const struct vmt_ring_set *set, const struct vmt_ring_record *r)
{
	uint64_t id;
	int found;

	if (!set->nr_attrs)
		return -1;
	if (set->same_layout)
		return 0;
	if (r->body_len < 8)
		return -1;
	id = vmt_load_u64(r->type == VMT_RING_SAMPLE ? r->body : r->body + r->body_len - 8);
	found = attr_of_id(set, id);
	if (found >= 0 && !(set->attrs[found].sample_type & SAMPLE_IDENTIFIER))
		return -1;
	return found;
}

/* LOST and LOST_SAMPLES say how many records the kernel could not write. */
static void read_lost(struct vmt_ring_record *r)
{
	if (r->type == VMT_RING_LOST && r->body_len >= 16)
		r->lost = vmt_load_u64(r->body + 8);
	else if (r->type == VMT_RING_LOST_SAMPLES && r->body_len >= 8)
		r->lost = vmt_load_u64(r->body);
}

int vmt_ring_parse(const struct vmt_ring_set *set, const uint8_t *bytes, size_t len,
		   struct vmt_ring_record *out, int *attr_index)
{
	const struct vmt_ring_attr *attr;
	struct vmt_cursor c;
	int index, status = 0;

	memset(out, 0, sizeof(*out));
	if (attr_index)
		*attr_index = -1;
	if (len < HEADER_BYTES)
		return VMT_E_TRUNCATED;
	out->type = vmt_load_u32(bytes);
	out->misc = vmt_load_u16(bytes + 4);
	out->size = vmt_load_u16(bytes + 6);
	if (out->size < HEADER_BYTES || out->size % 8)
		return VMT_E_DAMAGED;
	if (out->size > len)
		return VMT_E_TRUNCATED;
	out->body = bytes + HEADER_BYTES;
	out->body_len = (uint16_t)(out->size - HEADER_BYTES);
	if (out->type >= VMT_RING_USER_FIRST)
		return out->size;
	index = find_attr(set, out);
	if (index < 0)
		return out->type == VMT_RING_SAMPLE ? VMT_E_DAMAGED : out->size;
	attr = &set->attrs[index];
	if (out->type == VMT_RING_SAMPLE) {
		c = vmt_cursor_of(out->body, out->body_len);
		status = parse_sample(attr, &c, out);
	} else {
		if (attr->flags & VMT_RING_FLAG_SAMPLE_ID_ALL)
			status = parse_trailer(attr, out);
		read_lost(out);
	}
	if (status)
		return status;
	if (attr_index) {
		int by_id = out->has_id ? attr_of_id(set, out->id) : -1;

		*attr_index = by_id >= 0 ? by_id : set->nr_attrs == 1 ? 0 : -1;
	}
	return out->size;
}
