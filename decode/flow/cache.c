// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Decoded blocks. Invariant: a block's links lead to blocks of the same view; all of them are
 * dropped together, and then nothing points to any. A view is what code looks like from a context:
 * contexts with equal code share their blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow_private.h"

#define INSN_BYTES 15

bool flow_cache_init(struct flow_cache *c)
{
	const size_t line = sizeof(struct flow_block);
	char *at;

	c->memory = malloc((FLOW_CACHE_MAX + 1) * line);
	c->buckets = calloc(FLOW_CACHE_MAX, sizeof(*c->buckets));
	if (!c->memory || !c->buckets)
		return false;
	at = c->memory;
	at += (line - (uintptr_t)at % line) % line;
	c->blocks = (void *)at;
	return true;
}

void flow_cache_fini(struct flow_cache *c)
{
	free(c->memory);
	free(c->buckets);
}

static void flush(struct vmt_flow *f)
{
	struct flow_cache *c = &f->cache;

	c->nr = 0;
	memset(c->buckets, 0, FLOW_CACHE_MAX * sizeof(*c->buckets));
	f->at = NULL;
	f->link = NULL;
	f->loop = NULL;
	for (unsigned int i = 0; i < FLOW_STACK_MAX; i++)
		f->stack[i].by = NULL;
	f->counts.flushes++;
}

/* ---- views ---- */

void flow_view_changed(struct vmt_flow *f)
{
	f->cache.view = NULL;
	f->at = NULL;
	f->link = NULL;
}

static bool same_context(const struct vmt_image_context *a, const struct vmt_image_context *b)
{
	return a->nonroot == b->nonroot && a->has_cr3 == b->has_cr3 && a->has_vmcs == b->has_vmcs &&
	       (!a->has_cr3 || a->cr3 == b->cr3) && (!a->has_vmcs || a->vmcs == b->vmcs);
}

static bool same_view(const struct vmt_image_view *a, const struct vmt_image_view *b)
{
	return a->nr == b->nr && !memcmp(a->scopes, b->scopes, a->nr * sizeof(a->scopes[0]));
}

static void find_view(struct vmt_flow *f)
{
	struct flow_cache *c = &f->cache;
	struct flow_view *v;
	uint16_t id = 0;

	for (unsigned int i = 0; i < c->nr_views; i++) {
		v = &c->views[i];
		if (v->mode == f->state.mode && same_context(&v->where, &f->state.where)) {
			c->view = v;
			return;
		}
	}
	if (c->nr_views == FLOW_VIEWS_MAX) {
		flush(f);
		c->nr_views = 0;
	}
	v = &c->views[c->nr_views];
	v->where = f->state.where;
	v->mode = f->state.mode;
	v->view = vmt_image_view_of(f->options.image, &v->where);
	while (id < c->nr_views &&
	       !(c->views[id].mode == v->mode && same_view(&c->views[id].view, &v->view)))
		id++;
	v->id = id < c->nr_views ? c->views[id].id : id;
	c->nr_views++;
	c->view = v;
}

/* ---- decoding ---- */

/* Goes over the code one instruction at a time. */
struct scan {
	const struct vmt_image *image;
	const struct vmt_image_view *view;
	uint64_t time, ip;
	uint64_t step, passed; /* time that an instruction takes, and that all so far took */
	uint8_t mode;
	uint64_t from, until; /* of all bytes so far, as times of the first instruction */
	const uint8_t *bytes; /* of the instruction */
	struct vmt_insn insn;
	uint8_t buf[INSN_BYTES];
	struct vmt_image_span span; /* around span_ip */
	uint64_t span_ip;
};

/* NULL, or why there is no instruction at scan->ip; on success scan->ip is behind it. */
static const char *scan_next(struct scan *s)
{
	uint64_t into = s->ip - s->span_ip, from, until;
	size_t n;
	int status;

	if (into >= s->span.len || s->span.len - into < INSN_BYTES || s->span.until <= s->time) {
		if (vmt_image_find(s->image, s->view, s->ip, s->time, &s->span)) {
			s->span_ip = s->ip;
			into = 0;
		} else {
			s->span.len = 0;
		}
	}
	if (s->span.len > into && s->span.len - into >= INSN_BYTES) {
		s->bytes = s->span.bytes + into;
		n = INSN_BYTES;
		from = s->span.from;
		until = s->span.until;
	} else {
		n = vmt_image_read(s->image, s->view, s->ip, s->time, s->buf, INSN_BYTES, &s->bytes,
				   &from, &until);
	}
	if (!n || (s->mode != VMT_INSN_64 && s->ip > UINT32_MAX))
		return "no code is known at this address";
	status = vmt_insn_decode(s->bytes, n, s->mode, &s->insn);
	if (!status)
		return "the code that is known ends inside an instruction";
	if (status < 0)
		return "no instruction at this address";
	if (from > s->passed && from - s->passed > s->from)
		s->from = from - s->passed;
	if (until != UINT64_MAX && until - s->passed < s->until)
		s->until = until - s->passed;
	s->ip += s->insn.len;
	s->time += s->step;
	s->passed += s->step;
	return NULL;
}

static struct scan scan_of(const struct vmt_flow *f, uint64_t ip)
{
	return (struct scan){
		.image = f->options.image,
		.view = &f->cache.view->view,
		.time = flow_now(f),
		.step = f->options.count_is_time,
		.ip = ip,
		.mode = f->state.mode,
		.until = UINT64_MAX,
	};
}

/* Classes behind which a block goes on. */
static bool goes_on(const struct vmt_insn *insn)
{
	return insn->class == VMT_INSN_OTHER || insn->class == VMT_INSN_VMCALL;
}

static const char *decode(struct vmt_flow *f, uint64_t ip, struct flow_block *b)
{
	struct scan s = scan_of(f, ip);
	const char *why = scan_next(&s);

	if (why)
		return why;
	*b = (struct flow_block){ .ip = ip, .view = f->cache.view->id };
	for (;;) {
		b->class = s.insn.class;
		b->last = (uint16_t)(s.ip - s.insn.len - ip);
		b->len = (uint16_t)(s.ip - ip);
		b->count++;
		b->from = s.from;
		b->span = s.until - s.from;
		if (!goes_on(&s.insn) || b->count == FLOW_BLOCK_MAX)
			break;
		if (scan_next(&s)) /* told when the flow really goes there */
			break;
	}
	if (b->class == VMT_INSN_JCC || b->class == VMT_INSN_JMP || b->class == VMT_INSN_CALL)
		b->target = vmt_insn_target(&s.insn, flow_last_ip(b), s.mode);
	b->pushes = b->class == VMT_INSN_CALL_INDIRECT ||
		    (b->class == VMT_INSN_CALL && b->target != flow_behind(b));
	return NULL;
}

static uint32_t bucket_of(uint64_t ip, uint16_t view)
{
	return (uint32_t)((ip ^ (uint64_t)view << 40) * UINT64_C(0x9e3779b97f4a7c15) >>
			  (64 - FLOW_CACHE_BITS));
}

struct flow_block *flow_block_at(struct vmt_flow *f, uint64_t ip, const char **why)
{
	struct flow_cache *c = &f->cache;
	const uint64_t now = flow_now(f);
	struct flow_block fresh, *b;
	uint32_t *bucket;

	if (!c->view)
		find_view(f);
	bucket = &c->buckets[bucket_of(ip, c->view->id)];
	for (uint32_t i = *bucket; i; i = c->blocks[i - 1].hash_next) {
		b = &c->blocks[i - 1];
		if (b->ip == ip && b->view == c->view->id && flow_block_valid(b, now))
			return b;
	}
	*why = decode(f, ip, &fresh);
	if (*why)
		return NULL;
	f->counts.decoded_blocks++;
	if (c->nr == FLOW_CACHE_MAX)
		flush(f);
	fresh.hash_next = *bucket;
	b = &c->blocks[c->nr++];
	*b = fresh;
	*bucket = c->nr;
	return b;
}

uint32_t flow_block_count(struct vmt_flow *f, const struct flow_block *b, uint64_t stop,
			  uint64_t *last)
{
	struct scan s = scan_of(f, b->ip);

	for (uint32_t n = 0; n < b->count; n++) {
		if (s.ip == stop)
			return n;
		*last = s.ip;
		if (scan_next(&s))
			break;
	}
	return 0;
}

void vmt_flow_instructions(const struct vmt_flow *f, const struct vmt_flow_block *block,
			   vmt_flow_insn_fn *fn, void *context)
{
	struct scan s = scan_of(f, block->ip);

	for (uint32_t n = 0; n < block->count; n++) {
		const uint64_t ip = s.ip;

		if (scan_next(&s))
			break;
		fn(context, ip, s.bytes, &s.insn);
	}
}
