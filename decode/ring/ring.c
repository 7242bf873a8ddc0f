// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: attrs[] never shrinks, and every id in the hash names one of them. The hash is open
 * addressing over a power of two, at most half full.
 */
#include "decode/ring/ring.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/base/zero.h"

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
/* Up to WEIGHT_STRUCT (bit 24); members behind RAW are not read, those of later bits not known. */
#define SAMPLE_KNOWN ((1u << 25) - 1)

/* Where the members of an attr's records stand; NOWHERE: not asked for. Byte offsets. */
#define NOWHERE 0xff
struct layout {
	uint8_t fixed_len;		/* of a SAMPLE's members in front of READ */
	uint8_t id, ip, tid, time, cpu; /* in a SAMPLE */
	uint8_t trailer_len;		/* 0 without sample_id_all */
	uint8_t trailer_id, trailer_tid, trailer_time, trailer_cpu;
	bool has_read, has_callchain, has_raw;
	bool is_plain; /* of a tracepoint, and what struct vmt_ring_sample holds is there */
};

#define TYPE_TRACEPOINT 2

struct id_slot {
	uint64_t id;
	uint32_t attr_plus_one; /* 0: free */
};

struct vmt_ring_set {
	struct vmt_ring_attr *attrs;
	struct layout *layouts; /* one an attr */
	size_t nr_attrs, cap_attrs;
	struct id_slot *slots;
	size_t nr_ids, nr_slots;
	bool same_layout;    /* every attr has the same sample_type and read_format */
	bool all_plain;	     /* every layout is plain */
	int id_word;	     /* where all attrs have the id: 8-byte word of a SAMPLE's body, … */
	int trailer_id_word; /* … and of a trailer from its end (1 = last); -1: they differ */
};

struct vmt_ring_set *vmt_ring_set_new(void)
{
	struct vmt_ring_set *set = calloc(1, sizeof(*set));

	if (set)
		set->same_layout = set->all_plain = true;
	return set;
}

void vmt_ring_set_free(struct vmt_ring_set *set)
{
	if (!set)
		return;
	free(set->attrs);
	free(set->layouts);
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

/* The next 8 bytes when the member is asked for. */
static uint8_t place(uint64_t sample_type, uint64_t member, uint8_t *end)
{
	uint8_t at = *end;

	if (!(sample_type & member))
		return NOWHERE;
	*end = (uint8_t)(at + 8);
	return at;
}

static struct layout layout_of(const struct vmt_ring_attr *attr)
{
	uint64_t t = attr->sample_type;
	struct layout l = { .has_read = t & SAMPLE_READ,
			    .has_callchain = t & SAMPLE_CALLCHAIN,
			    .has_raw = t & SAMPLE_RAW };
	uint8_t identifier, id;

	identifier = place(t, SAMPLE_IDENTIFIER, &l.fixed_len);
	l.ip = place(t, SAMPLE_IP, &l.fixed_len);
	l.tid = place(t, SAMPLE_TID, &l.fixed_len);
	l.time = place(t, SAMPLE_TIME, &l.fixed_len);
	place(t, SAMPLE_ADDR, &l.fixed_len);
	id = place(t, SAMPLE_ID, &l.fixed_len);
	l.id = identifier == NOWHERE ? id : identifier;
	place(t, SAMPLE_STREAM_ID, &l.fixed_len);
	l.cpu = place(t, SAMPLE_CPU, &l.fixed_len);
	place(t, SAMPLE_PERIOD, &l.fixed_len);

	if (!(attr->flags & VMT_RING_FLAG_SAMPLE_ID_ALL))
		t = 0;
	l.trailer_tid = place(t, SAMPLE_TID, &l.trailer_len);
	l.trailer_time = place(t, SAMPLE_TIME, &l.trailer_len);
	id = place(t, SAMPLE_ID, &l.trailer_len);
	place(t, SAMPLE_STREAM_ID, &l.trailer_len);
	l.trailer_cpu = place(t, SAMPLE_CPU, &l.trailer_len);
	identifier = place(t, SAMPLE_IDENTIFIER, &l.trailer_len);
	l.trailer_id = identifier == NOWHERE ? id : identifier;
	l.is_plain = attr->type == TYPE_TRACEPOINT && l.has_raw && !l.has_read &&
		     !l.has_callchain && l.tid != NOWHERE && l.time != NOWHERE && l.cpu != NOWHERE;
	return l;
}

/* Keeps track of whether the id stands at one place in the records of all attrs. */
static void note_id_place(struct vmt_ring_set *set, const struct layout *l)
{
	int word = l->id == NOWHERE ? -1 : l->id / 8;
	int from_end = l->trailer_id == NOWHERE ? -1 : (l->trailer_len - l->trailer_id) / 8;

	if (!set->nr_attrs) {
		set->id_word = word;
		set->trailer_id_word = from_end;
		return;
	}
	if (set->id_word != word)
		set->id_word = -1;
	if (set->trailer_id_word != from_end)
		set->trailer_id_word = -1;
}

static int grow_attrs(struct vmt_ring_set *set)
{
	size_t cap = set->cap_attrs ? 2 * set->cap_attrs : 16;
	struct vmt_ring_attr *attrs;
	struct layout *layouts;

	if (set->nr_attrs < set->cap_attrs)
		return 0;
	attrs = realloc(set->attrs, cap * sizeof(*attrs));
	if (!attrs)
		return VMT_E_NOMEM;
	set->attrs = attrs;
	layouts = realloc(set->layouts, cap * sizeof(*layouts));
	if (!layouts)
		return VMT_E_NOMEM;
	set->layouts = layouts;
	set->cap_attrs = cap;
	return 0;
}

int vmt_ring_set_add(struct vmt_ring_set *set, const struct vmt_ring_attr *attr,
		     const uint64_t *ids, size_t nr_ids)
{
	int status;

	if (attr->sample_type & ~(uint64_t)SAMPLE_KNOWN)
		return VMT_E_UNSUPPORTED;
	if (set->nr_attrs == ATTRS_MAX || nr_ids > IDS_MAX - set->nr_ids)
		return VMT_E_LIMIT;
	status = grow_attrs(set);
	if (!status)
		status = grow_slots(set, set->nr_ids + nr_ids);
	if (status)
		return status;
	for (size_t i = 0; i < nr_ids; i++) {
		struct id_slot *slot = &set->slots[slot_of(set, ids[i])];

		if (slot->attr_plus_one) /* two attrs claim one id: the first one keeps it */
			continue;
		set->nr_ids++;
		slot->id = ids[i];
		slot->attr_plus_one = (uint32_t)set->nr_attrs + 1;
	}
	if (set->nr_attrs)
		set->same_layout = set->same_layout && layout_equal(attr, &set->attrs[0]);
	set->attrs[set->nr_attrs] = *attr;
	set->layouts[set->nr_attrs] = layout_of(attr);
	set->all_plain = set->all_plain && set->layouts[set->nr_attrs].is_plain;
	note_id_place(set, &set->layouts[set->nr_attrs]);
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

static void load_tid(struct vmt_ring_record *out, const uint8_t *p)
{
	out->pid = vmt_load_u32(p);
	out->tid = vmt_load_u32(p + 4);
	out->has_tid = true;
}

static void load_time(struct vmt_ring_record *out, const uint8_t *p)
{
	out->time_ns = vmt_load_u64(p);
	out->has_time = true;
}

static void load_id(struct vmt_ring_record *out, const uint8_t *p)
{
	out->id = vmt_load_u64(p);
	out->has_id = true;
}

static void load_cpu(struct vmt_ring_record *out, const uint8_t *p)
{
	out->cpu = vmt_load_u32(p);
	out->has_cpu = true;
}

/* READ, CALLCHAIN and RAW: their lengths stand in the record. Nothing behind RAW is read. */
static int parse_variable(const struct layout *l, uint64_t read_format, struct vmt_ring_record *out)
{
	struct vmt_cursor c =
		vmt_cursor_of(out->body + l->fixed_len, (size_t)(out->body_len - l->fixed_len));

	if (l->has_read && !skip_read(&c, read_format))
		return VMT_E_DAMAGED;
	if (l->has_callchain && !skip_callchain(&c))
		return VMT_E_DAMAGED;
	if (l->has_raw) {
		out->raw_len = vmt_cursor_u32(&c);
		out->raw = vmt_cursor_take(&c, out->raw_len);
	}
	return c.short_read ? VMT_E_DAMAGED : 0;
}

static int parse_sample(const struct layout *l, uint64_t read_format, struct vmt_ring_record *out)
{
	const uint8_t *body = out->body;

	if (out->body_len < l->fixed_len)
		return VMT_E_DAMAGED;
	if (l->id != NOWHERE)
		load_id(out, body + l->id);
	if (l->ip != NOWHERE) {
		out->ip = vmt_load_u64(body + l->ip);
		out->has_ip = true;
	}
	if (l->tid != NOWHERE)
		load_tid(out, body + l->tid);
	if (l->time != NOWHERE)
		load_time(out, body + l->time);
	if (l->cpu != NOWHERE)
		load_cpu(out, body + l->cpu);
	return parse_variable(l, read_format, out);
}

/* What sample_id_all puts at the end of every other record. */
static int parse_trailer(const struct layout *l, struct vmt_ring_record *out)
{
	const uint8_t *trailer;

	if (l->trailer_len > out->body_len)
		return VMT_E_DAMAGED;
	out->body_len = (uint16_t)(out->body_len - l->trailer_len);
	trailer = out->body + out->body_len;
	if (l->trailer_tid != NOWHERE)
		load_tid(out, trailer + l->trailer_tid);
	if (l->trailer_time != NOWHERE)
		load_time(out, trailer + l->trailer_time);
	if (l->trailer_cpu != NOWHERE)
		load_cpu(out, trailer + l->trailer_cpu);
	if (l->trailer_id != NOWHERE)
		load_id(out, trailer + l->trailer_id);
	return 0;
}

/*
 * Which attr's layout a record has. With equal layouts any will do, and the id, once read, names
 * the right attr. Otherwise the id must stand at one place in all of them.
 */
static int find_attr(const struct vmt_ring_set *set, const struct vmt_ring_record *r)
{
	int word = r->type == VMT_RING_SAMPLE ? set->id_word : set->trailer_id_word;
	size_t need;

	if (!set->nr_attrs)
		return -1;
	if (set->same_layout)
		return 0;
	if (word < 0)
		return -1;
	need = 8 * (size_t)(r->type == VMT_RING_SAMPLE ? word + 1 : word);
	if (r->body_len < need)
		return -1;
	return attr_of_id(set,
			  vmt_load_u64(r->type == VMT_RING_SAMPLE ? r->body + need - 8
								  : r->body + r->body_len - need));
}

/* LOST and LOST_SAMPLES say how many records the kernel could not write. */
static void read_lost(struct vmt_ring_record *r)
{
	if (r->type == VMT_RING_LOST && r->body_len >= 16)
		r->lost = vmt_load_u64(r->body + 8);
	else if (r->type == VMT_RING_LOST_SAMPLES && r->body_len >= 8)
		r->lost = vmt_load_u64(r->body);
}

/* The members of a record of the kernel; a record whose attr is not known keeps its body alone. */
static int parse_members(const struct vmt_ring_set *set, struct vmt_ring_record *out,
			 int *attr_index)
{
	int index = find_attr(set, out), status;
	const struct layout *l;

	if (index < 0)
		return 0;
	l = &set->layouts[index];
	if (out->type == VMT_RING_SAMPLE) {
		status = parse_sample(l, set->attrs[index].read_format, out);
	} else {
		status = parse_trailer(l, out);
		read_lost(out);
	}
	if (attr_index) {
		int by_id = out->has_id ? attr_of_id(set, out->id) : -1;

		*attr_index = by_id >= 0 ? by_id : set->nr_attrs == 1 ? 0 : -1;
	}
	return status;
}

int vmt_ring_parse(const struct vmt_ring_set *set, const uint8_t *bytes, size_t len,
		   struct vmt_ring_record *out, int *attr_index)
{
	int status;

	vmt_zero(out, sizeof(*out));
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
	status = parse_members(set, out, attr_index);
	return status ? status : out->size;
}

/* The layout of a SAMPLE if it is plain, else NULL. */
static const struct layout *plain_layout(const struct vmt_ring_set *set, const uint8_t *body,
					 size_t body_len)
{
	int index = 0;

	if (!set->nr_attrs)
		return NULL;
	if (!set->same_layout || !set->all_plain) {
		if (set->id_word < 0 || body_len < 8 * (size_t)(set->id_word + 1))
			return NULL;
		index = attr_of_id(set, vmt_load_u64(body + 8 * set->id_word));
		if (index < 0)
			return NULL;
	}
	return set->layouts[index].is_plain ? &set->layouts[index] : NULL;
}

int vmt_ring_sample(const struct vmt_ring_set *set, const uint8_t *bytes, size_t len,
		    struct vmt_ring_sample *out)
{
	const uint8_t *body = bytes + HEADER_BYTES;
	const struct layout *l;
	size_t size, body_len;

	if (len < HEADER_BYTES || vmt_load_u32(bytes) != VMT_RING_SAMPLE)
		return 0;
	size = vmt_load_u16(bytes + 6);
	if (size < HEADER_BYTES || size % 8 || size > len)
		return 0;
	body_len = size - HEADER_BYTES;
	l = plain_layout(set, body, body_len);
	if (!l || body_len < l->fixed_len + 4u)
		return 0;
	out->raw_len = vmt_load_u32(body + l->fixed_len);
	if (out->raw_len > body_len - l->fixed_len - 4u)
		return 0;
	out->raw = body + l->fixed_len + 4;
	out->pid = vmt_load_u32(body + l->tid);
	out->tid = vmt_load_u32(body + l->tid + 4);
	out->time_ns = vmt_load_u64(body + l->time);
	out->cpu = vmt_load_u32(body + l->cpu);
	return (int)size;
}
