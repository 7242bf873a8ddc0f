// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/vmt_counts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/store/store.h"

#define FORMATS_MAX 512

struct pass {
	struct vmt_counts *counts;
	struct vmt_ring_set *attrs;
	struct {
		uint16_t id;
		char name[48];
	} formats[FORMATS_MAX];
	size_t nr_formats;
	const char *name; /* to count, with tid */
	uint32_t tid;
	uint64_t found;
	uint64_t newest, newest_of_round, newest_before; /* times */
};

static void take_format(struct pass *p, const struct vmt_item *item)
{
	static const char head[] = "name: ", tail[] = "\nID: ";
	char text[256] = "", *id;

	memcpy(text, item->data, item->len < sizeof(text) - 1 ? item->len : sizeof(text) - 1);
	id = strstr(text, tail);
	if (p->nr_formats < FORMATS_MAX && id && !strncmp(text, head, sizeof(head) - 1)) {
		*id = '\0';
		p->formats[p->nr_formats].id = (uint16_t)strtoul(id + sizeof(tail) - 1, NULL, 10);
		snprintf(p->formats[p->nr_formats].name, sizeof(p->formats[0].name), "%.47s",
			 text + sizeof(head) - 1);
		p->nr_formats++;
	}
	p->counts->formats++;
}

static bool is_named(const struct pass *p, uint16_t id)
{
	for (size_t i = 0; p->name && i < p->nr_formats; i++) {
		if (p->formats[i].id == id && !strcmp(p->formats[i].name, p->name))
			return true;
	}
	return false;
}

static void take_record(struct pass *p, const struct vmt_ring_record *r, int attr)
{
	struct vmt_counts *c = p->counts;

	c->records++;
	c->unknown_ids += attr < 0;
	if (r->type == VMT_RING_SWITCH)
		*(r->misc & VMT_RING_MISC_SWITCH_OUT ? &c->switches_out : &c->switches_in) += 1;
	if (r->type == VMT_RING_SAMPLE && r->raw_len >= 2) {
		c->samples++;
		if (is_named(p, vmt_load_u16(r->raw)) && (!p->tid || r->tid == p->tid))
			p->found++;
	}
	if (!r->has_time)
		return;
	c->disordered += r->time_ns < p->newest_before;
	if (r->time_ns > p->newest)
		p->newest = r->time_ns;
}

static void take_records(struct pass *p, const struct vmt_item *item)
{
	for (size_t at = 0; at < item->len;) {
		struct vmt_ring_record record;
		int attr = -1;
		int size =
			vmt_ring_parse(p->attrs, item->data + at, item->len - at, &record, &attr);

		if (size <= 0) {
			p->counts->bad_records++;
			return;
		}
		take_record(p, &record, attr);
		at += (size_t)size;
	}
}

static void take_mark(struct vmt_counts *c, const struct vmt_item *item)
{
	static const char key[] = "\"name\":\"";
	const char *at = memmem(item->data, item->len, key, sizeof(key) - 1);
	size_t used = strlen(c->mark_names);

	c->marks++;
	if (!at)
		return;
	at += sizeof(key) - 1;
	for (; (const uint8_t *)at < item->data + item->len && *at != '"' &&
	       used + 2 < sizeof(c->mark_names);
	     at++)
		c->mark_names[used++] = *at;
	c->mark_names[used] = ' ';
}

static void take(struct pass *p, const struct vmt_item *item)
{
	struct vmt_counts *c = p->counts;

	switch (item->type) {
	case VMT_ITEM_SESSION:
		c->sessions++;
		snprintf(c->last_session, sizeof(c->last_session), "%.*s", (int)item->len,
			 (const char *)item->data);
		break;
	case VMT_ITEM_ATTR:
		c->attrs++;
		vmt_ring_set_add(p->attrs, item->attr, item->ids, item->nr_ids);
		break;
	case VMT_ITEM_FORMAT:
		take_format(p, item);
		break;
	case VMT_ITEM_RECORDS:
		take_records(p, item);
		break;
	case VMT_ITEM_ROUND:
		c->rounds++;
		p->newest_before = p->newest_of_round;
		p->newest_of_round = p->newest;
		break;
	case VMT_ITEM_ANCHOR:
		c->anchors++;
		break;
	case VMT_ITEM_AUX:
	case VMT_ITEM_VCPU_LINK:
	case VMT_ITEM_USER:
	case VMT_ITEM_VCPU_TSC:
		break;
	case VMT_ITEM_MARK:
		take_mark(c, item);
		break;
	case VMT_ITEM_LOSS:
		if (!strcmp(item->loss_kind, "truncated"))
			c->truncated = true;
		else
			c->losses++;
		break;
	case VMT_ITEM_END:
		c->closed = true;
		break;
	}
}

static void read_file(struct pass *p, const char *path)
{
	struct vmt_store_reader *store;
	struct vmt_reader *reader;
	struct vmt_item item;
	int got;

	if (vmt_reader_open(&reader, path, NULL, NULL))
		return;
	if (vmt_store_open(&store, reader, NULL)) {
		vmt_reader_close(reader);
		return;
	}
	while ((got = vmt_store_next(store, &item, NULL)) == 1)
		take(p, &item);
	p->counts->readable = got == 0;
	vmt_store_close(store);
}

static uint64_t run(const char *path, const char *name, uint32_t tid, struct vmt_counts *counts)
{
	struct pass *p = calloc(1, sizeof(*p));
	uint64_t found;

	if (!p)
		abort();
	p->counts = counts;
	p->attrs = vmt_ring_set_new();
	p->name = name;
	p->tid = tid;
	read_file(p, path);
	found = p->found;
	vmt_ring_set_free(p->attrs);
	free(p);
	return found;
}

struct vmt_counts vmt_counts_of(const char *path)
{
	struct vmt_counts counts = { 0 };

	run(path, NULL, 0, &counts);
	return counts;
}

uint64_t vmt_count_samples(const char *path, const char *name, uint32_t tid)
{
	struct vmt_counts counts = { 0 };

	return run(path, name, tid, &counts);
}
