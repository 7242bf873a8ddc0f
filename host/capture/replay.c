// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: items go out in the order of the file; one item is held back until its records are
 * due, and nothing behind it is read meanwhile.
 */
#include "host/capture/replay.h"

#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "decode/base/cursor.h"
#include "decode/io/diagf.h"
#include "decode/io/reader.h"
#include "decode/io/sys.h"
#include "decode/ring/ring.h"
#include "host/capture/document.h"

#define EXIT_IDS_MAX 16
#define WAIT_MAX_NS  UINT64_C(60000000000) /* a longer pause of the recording is cut short */
#define START_MAX_NS UINT64_C(1000000000)

struct span {
	uint64_t first_ns, last_ns;
};

struct vmt_replay {
	struct vmt_replay_setup setup;
	struct vmt_reader *input; /* until the store reader takes it over */
	struct vmt_store_reader *reader;
	struct vmt_ring_set *attrs;
	uint64_t exit_ids[EXIT_IDS_MAX];
	size_t nr_exit_ids;
	struct vmt_item item; /* the one that waits */
	struct span span;     /* of the waiting item */
	bool holds, ended;
	uint64_t recorded_start_ns, base_ns; /* recording's clock */
	uint64_t base_monotonic_ns;	     /* ours at base_ns */
	uint64_t round_ns, stop_ns;
	int timer;
};

int vmt_replay_open(struct vmt_replay **out, const struct vmt_replay_setup *setup,
		    struct vmt_diag *diag)
{
	struct vmt_replay *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot replay", "memory is short");
	r->setup = *setup;
	r->attrs = vmt_ring_set_new();
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	err = r->attrs && r->timer >= 0 ? vmt_reader_open(&r->input, setup->path, NULL, diag)
					: vmt_diag_set(diag, VMT_E_NOMEM, "cannot replay",
						       "memory or descriptors are short");
	if (err) {
		vmt_replay_close(r);
		return err;
	}
	*out = r;
	return 0;
}

void vmt_replay_close(struct vmt_replay *r)
{
	if (!r)
		return;
	if (r->reader)
		vmt_store_close(r->reader);
	else if (r->input)
		vmt_reader_close(r->input);
	vmt_ring_set_free(r->attrs);
	if (r->timer >= 0)
		close(r->timer);
	free(r);
}

int vmt_replay_fd(const struct vmt_replay *r)
{
	return r->timer;
}

/* ---- time ---- */

static uint64_t elapsed_ns(const struct vmt_replay *r)
{
	return vmt_io_monotonic_ns() - r->base_monotonic_ns;
}

uint64_t vmt_replay_now_ns(const struct vmt_replay *r)
{
	if (r->ended)
		return r->stop_ns > r->round_ns ? r->stop_ns : r->round_ns;
	return r->base_ns ? r->base_ns + elapsed_ns(r) : r->recorded_start_ns;
}

uint64_t vmt_replay_seen_ns(const struct vmt_replay *r)
{
	return r->ended ? UINT64_MAX : r->round_ns;
}

static void begin_clock(struct vmt_replay *r, uint64_t first_ns)
{
	bool near = r->recorded_start_ns && r->recorded_start_ns <= first_ns &&
		    first_ns - r->recorded_start_ns < START_MAX_NS;

	r->base_ns = near ? r->recorded_start_ns : first_ns;
	r->base_monotonic_ns = vmt_io_monotonic_ns();
}

/* True when the waiting records are due; else the timer is set. */
static bool is_due(struct vmt_replay *r)
{
	struct itimerspec at = { { 0, 0 }, { 0, 0 } };
	uint64_t wait;

	if (!r->span.last_ns)
		return true;
	if (!r->base_ns)
		begin_clock(r, r->span.first_ns);
	if (r->span.last_ns <= r->base_ns + elapsed_ns(r))
		return true;
	wait = r->span.last_ns - r->base_ns - elapsed_ns(r);
	if (wait > WAIT_MAX_NS) {
		r->base_ns += wait - 1;
		return true;
	}
	at.it_value.tv_sec = (time_t)(wait / 1000000000u);
	at.it_value.tv_nsec = (long)(wait % 1000000000u) + 1;
	if (at.it_value.tv_nsec > 999999999)
		at.it_value.tv_nsec = 999999999;
	timerfd_settime(r->timer, 0, &at, NULL);
	return false;
}

/* ---- items ---- */

static void note_format(struct vmt_replay *r, const struct vmt_item *item)
{
	static const char name[] = "name: kvm_exit\n", id[] = "ID: ";
	const char *text = (const char *)item->data, *at;
	char number[24] = "";
	size_t len;

	if (r->setup.watch)
		vmt_trigger_watch_format(r->setup.watch, text, item->len);
	if (item->len < sizeof(name) || memcmp(text, name, sizeof(name) - 1) != 0 ||
	    r->nr_exit_ids == EXIT_IDS_MAX)
		return;
	at = memmem(text, item->len, id, sizeof(id) - 1);
	if (!at)
		return;
	at += sizeof(id) - 1;
	len = item->len - (size_t)(at - text);
	memcpy(number, at, len < sizeof(number) - 1 ? len : sizeof(number) - 1);
	r->exit_ids[r->nr_exit_ids++] = strtoull(number, NULL, 10);
}

static bool is_exit(const struct vmt_replay *r, const struct vmt_ring_record *record)
{
	if (record->type != VMT_RING_SAMPLE || !record->raw || record->raw_len < 2)
		return false;
	for (size_t i = 0; i < r->nr_exit_ids; i++) {
		if (r->exit_ids[i] == vmt_load_u16(record->raw))
			return true;
	}
	return false;
}

static void show(struct vmt_trigger_watch *watch, const struct vmt_ring_record *record)
{
	if (!record->has_time || !record->has_tid)
		return;
	if (record->type == VMT_RING_SAMPLE && record->raw)
		vmt_trigger_watch_sample(watch, record->tid, record->time_ns, record->raw,
					 record->raw_len);
	if (record->type == VMT_RING_SWITCH || record->type == VMT_RING_SWITCH_CPU_WIDE)
		vmt_trigger_watch_switch(watch, record->tid, record->time_ns,
					 record->misc & VMT_RING_MISC_SWITCH_OUT,
					 record->misc & VMT_RING_MISC_SWITCH_OUT_PREEMPT);
}

/* Times and counts of the records of an item; what cannot be read is copied all the same. */
static struct span scan_records(const struct vmt_replay *r, const struct vmt_item *item,
				struct vmt_capture_counts *counts)
{
	struct span span = { 0, 0 };
	size_t at = 0;

	while (at < item->len) {
		struct vmt_ring_record record;
		int size = vmt_ring_parse(r->attrs, item->data + at, item->len - at, &record, NULL);

		if (size <= 0)
			break;
		at += (size_t)size;
		if (counts) {
			counts->records++;
			counts->lost += record.lost;
			counts->overflows += record.lost != 0;
			counts->throttles += record.type == VMT_RING_THROTTLE;
			counts->exits += is_exit(r, &record);
			if (r->setup.watch)
				show(r->setup.watch, &record);
		}
		if (!record.has_time || !record.time_ns)
			continue;
		if (!span.first_ns || record.time_ns < span.first_ns)
			span.first_ns = record.time_ns;
		if (record.time_ns > span.last_ns)
			span.last_ns = record.time_ns;
	}
	return span;
}

static struct vmt_store_chunk chunk_of(const struct vmt_replay *r, const struct vmt_item *item,
				       enum vmt_chunk_type type)
{
	return (struct vmt_store_chunk){ .type = type,
					 .stream = item->stream,
					 .cpu = -1,
					 .time_first_ns = r->span.first_ns,
					 .time_last_ns = r->span.last_ns,
					 .nr_parts = 1,
					 .parts = { { item->data, item->len } } };
}

static int put(struct vmt_replay *r, const struct vmt_item *item, enum vmt_chunk_type type,
	       struct vmt_diag *diag)
{
	struct vmt_store_chunk chunk = chunk_of(r, item, type);

	return vmt_store_append(r->setup.store, &chunk, diag);
}

static int put_session(struct vmt_replay *r, const struct vmt_item *item, struct vmt_diag *diag)
{
	char *json = vmt_document_replay(r->setup.base_json, (const char *)item->data, item->len,
					 r->setup.domains);
	int err = json ? vmt_store_session(r->setup.store, json, diag) : 0;

	if (!r->recorded_start_ns)
		r->recorded_start_ns = vmt_document_start_ns(item->data, item->len);
	free(json);
	return err;
}

static int put_mark(struct vmt_replay *r, const struct vmt_item *item, struct vmt_diag *diag)
{
	char name[32];

	if (!vmt_document_mark_name(item->data, item->len, name, sizeof(name)))
		return 0;
	/* This session writes its own start and stop. */
	if (!strcmp(name, "capture-start"))
		return 0;
	if (!strcmp(name, "capture-stop")) {
		r->stop_ns = vmt_document_mark_time_ns(item->data, item->len);
		return 0;
	}
	return put(r, item, VMT_CHUNK_MARK, diag);
}

static int put_loss(struct vmt_replay *r, const struct vmt_item *item, struct vmt_diag *diag)
{
	uint64_t records = item->has_lost_records ? item->lost_records : UINT64_MAX;

	return vmt_store_loss(r->setup.store, item->stream,
			      item->loss_kind ? item->loss_kind : "damaged", item->lost_bytes,
			      records, r->round_ns, diag);
}

static int put_records(struct vmt_replay *r, const struct vmt_item *item,
		       struct vmt_capture_counts *counts, struct vmt_diag *diag)
{
	struct vmt_capture_counts before = *counts;
	struct vmt_store_chunk chunk = chunk_of(r, item, VMT_CHUNK_RECORDS);
	int err;

	scan_records(r, item, counts);
	chunk.records = (uint32_t)(counts->records - before.records);
	chunk.exits = (uint32_t)(counts->exits - before.exits);
	err = vmt_store_append(r->setup.store, &chunk, diag);
	if (err)
		counts->unstored += item->len;
	else
		counts->bytes += item->len;
	if (r->span.last_ns > r->round_ns)
		r->round_ns = r->span.last_ns;
	if (!counts->first_ns)
		counts->first_ns = r->span.first_ns;
	counts->last_ns = r->round_ns;
	return err;
}

static int put_item(struct vmt_replay *r, struct vmt_capture_counts *counts, struct vmt_diag *diag)
{
	const struct vmt_item *item = &r->item;

	switch (item->type) {
	case VMT_ITEM_SESSION:
		return put_session(r, item, diag);
	case VMT_ITEM_ATTR:
		vmt_ring_set_add(r->attrs, item->attr, item->ids, item->nr_ids);
		return vmt_store_attr(r->setup.store, item->attr, item->ids, item->nr_ids, diag);
	case VMT_ITEM_FORMAT:
		note_format(r, item);
		return put(r, item, VMT_CHUNK_FORMAT, diag);
	case VMT_ITEM_RECORDS:
		return put_records(r, item, counts, diag);
	case VMT_ITEM_ROUND:
		if (r->setup.watch)
			vmt_trigger_watch_check(r->setup.watch, r->round_ns);
		return vmt_store_round(r->setup.store, r->round_ns, diag);
	case VMT_ITEM_ANCHOR:
		return put(r, item, VMT_CHUNK_ANCHOR, diag);
	case VMT_ITEM_VCPU_TSC:
		return put(r, item, VMT_CHUNK_VCPU_TSC, diag);
	case VMT_ITEM_MARK:
		return put_mark(r, item, diag);
	case VMT_ITEM_LOSS:
		return put_loss(r, item, diag);
	case VMT_ITEM_AUX: /* a replay feeds the rings of tracepoints */
	case VMT_ITEM_VCPU_LINK:
	case VMT_ITEM_USER:
	case VMT_ITEM_END:
		break;
	}
	return 0;
}

/* Makes the next item the waiting one. 1, 0 at the end, or an error. */
static int hold_next(struct vmt_replay *r, struct vmt_diag *diag)
{
	int got = vmt_store_next(r->reader, &r->item, diag);

	if (got <= 0) {
		r->ended = true;
		return got;
	}
	r->span = (struct span){ 0, 0 };
	if (r->item.type == VMT_ITEM_RECORDS)
		r->span = scan_records(r, &r->item, NULL);
	r->holds = true;
	return 1;
}

int vmt_replay_drain(struct vmt_replay *r, struct vmt_capture_counts *counts, struct vmt_diag *diag)
{
	int first_err = 0;
	uint64_t ticks;

	if (read(r->timer, &ticks, sizeof(ticks)) < 0)
		ticks = 0; /* not due yet: the flush interval called */
	if (!r->reader && !r->ended) {
		int err = vmt_store_open(&r->reader, r->input, diag);

		if (err) {
			r->ended = true;
			return err;
		}
	}
	while (!r->ended) {
		int err = 0;

		if (!r->holds)
			err = hold_next(r, diag);
		if (err < 0)
			return err;
		if (r->ended || !is_due(r))
			break;
		r->holds = false;
		err = put_item(r, counts, diag);
		first_err = first_err ? first_err : err;
	}
	return first_err ? first_err : r->ended;
}
