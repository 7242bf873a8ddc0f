// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From block to block. Invariant between calls: what ran up to flow.ip has been told, flow.ip has
 * not run, and flow.at is its block or NULL. Every path that spends no packet is bounded: coming
 * twice to the same block without a packet between is a loop that no packet would ever leave.
 */
#include "decode/flow/flow_private.h"

enum stop {
	STOP_ERROR, /* told */
	STOP_SPENT, /* no results are left */
	STOP_TNT,   /* the block at ip ends in a branch that wants a result */
	STOP_TIP,   /* ... in one that wants a TIP */
	STOP_THERE, /* at the address */
	STOP_CLASS, /* the block at ip ends in one of the classes */
};

void flow_lose(struct vmt_flow *f, const char *why)
{
	const struct vmt_flow_event event = {
		.type = VMT_FLOW_ERROR, .has_ip = true, .ip = f->ip, .name = why
	};
	const uint32_t pending = f->pending;

	f->counts.errors++;
	f->phase = FLOW_LOST;
	f->nr_tnt = 0;
	f->stack_nr = 0;
	f->at = NULL;
	f->link = NULL;
	f->unconfirmed = false;
	f->nr_waiting = 0;
	f->pending = 0;
	flow_tell(f, &event);
	if (pending & FLOW_PIP)
		flow_set_pip(f, &f->pip);
	if (pending & FLOW_MODE)
		flow_set_mode(f, f->mode);
}

void flow_lose_sight(struct vmt_flow *f, const char *why)
{
	flow_lose(f, why);
	f->phase = FLOW_BLIND;
	f->blind_tnt = true;
}

void flow_jump(struct vmt_flow *f, uint64_t ip)
{
	f->ip = ip;
	f->at = NULL;
	f->link = NULL;
	f->loop = NULL;
	f->hops = 0;
}

/* ---- the call stack of RET compression ---- */

static inline void push(struct vmt_flow *f, struct flow_block *b)
{
	f->stack_top = (f->stack_top + 1) % FLOW_STACK_MAX;
	f->stack[f->stack_top] = (struct flow_call){ flow_behind(b), b };
	if (f->stack_nr < FLOW_STACK_MAX)
		f->stack_nr++;
}

void flow_pop(struct vmt_flow *f)
{
	if (!f->stack_nr)
		return;
	f->stack_nr--;
	f->stack_top = (f->stack_top + FLOW_STACK_MAX - 1) % FLOW_STACK_MAX;
}

/* ---- telling ---- */

static inline void tell_block(struct vmt_flow *f, const struct vmt_flow_block *block)
{
	f->state.instructions = f->counts.instructions;
	f->options.block(f->options.context, &f->state, block);
}

static inline void tell(struct vmt_flow *f, const struct flow_block *b, bool has_next,
			uint64_t next)
{
	if (f->options.block)
		tell_block(f, &(struct vmt_flow_block){ .ip = b->ip,
							.last_ip = flow_last_ip(b),
							.next_ip = next,
							.count = b->count,
							.class = b->class,
							.has_next = has_next });
	f->counts.instructions += b->count;
	f->counts.blocks++;
}

void flow_run(struct vmt_flow *f, struct flow_block *b, bool has_next, uint64_t next)
{
	if (b->pushes)
		push(f, b);
	tell(f, b, has_next, next);
	flow_jump(f, next);
}

/* Runs the instructions before stop, which lies in the block; false: it lies inside one of them. */
static bool run_part(struct vmt_flow *f, const struct flow_block *b, uint64_t stop)
{
	struct vmt_flow_block part = {
		.ip = b->ip, .next_ip = stop, .class = VMT_INSN_OTHER, .has_next = true
	};

	part.count = flow_block_count(f, b, stop, &part.last_ip);
	if (!part.count)
		return false;
	if (f->options.block)
		tell_block(f, &part);
	f->counts.instructions += part.count;
	f->counts.blocks++;
	flow_jump(f, stop);
	return true;
}

/* ---- walking ---- */

/* The block at flow.ip by the cache; NULL: told. */
static __attribute__((noinline)) struct flow_block *look_up(struct vmt_flow *f)
{
	const char *why;

	f->at = flow_block_at(f, f->ip, &why);
	if (!f->at)
		flow_lose_sight(f, why);
	else if (f->link)
		*f->link = f->at;
	f->link = NULL;
	return f->at;
}

static inline struct flow_block *here(struct vmt_flow *f)
{
	if (f->at && flow_block_valid(f->at, flow_now(f)))
		return f->at;
	return look_up(f);
}

/* Takes a block's exit: 1 its target, 0 the instruction behind. */
static inline void follow(struct vmt_flow *f, struct flow_block *b, unsigned int exit)
{
	const uint64_t next = exit ? b->target : flow_behind(b);

	tell(f, b, true, next);
	f->ip = next;
	f->at = b->next[exit];
	f->link = &b->next[exit];
}

/* One more block that no packet confirms; false: it is a loop, told. */
static inline bool hop(struct vmt_flow *f, struct flow_block *b)
{
	if (b == f->loop) {
		flow_lose(f, "the code loops where the trace goes on");
		return false;
	}
	if (!(f->hops & (f->hops - 1)))
		f->loop = b;
	if (++f->hops < FLOW_HOPS_MAX)
		return true;
	flow_lose(f, "too much code without a packet");
	return false;
}

static inline void spent(struct vmt_flow *f)
{
	f->counts.branches++;
	f->hops = 0;
	f->loop = NULL;
}

void flow_run_indirect(struct vmt_flow *f, struct flow_block *b, uint64_t to)
{
	if (b->pushes)
		push(f, b);
	else if (b->class == VMT_INSN_RET)
		flow_pop(f);
	if (b->target != to) {
		b->target = to;
		b->next[1] = NULL;
	}
	follow(f, b, 1);
	spent(f);
}

static bool compressed_return(struct vmt_flow *f, const struct flow_block *b)
{
	struct flow_call *call = &f->stack[f->stack_top];
	uint64_t to = call->back;

	if (!(f->tnt >> --f->nr_tnt & 1)) {
		flow_lose(f, "a branch was not taken, but a return comes");
		return false;
	}
	if (!f->stack_nr) {
		flow_lose_sight(f, "a compressed return without its call");
		return false;
	}
	flow_pop(f);
	if (f->state.mode != VMT_INSN_64)
		to &= UINT32_MAX;
	tell(f, b, true, to);
	f->ip = to;
	f->at = NULL;
	f->link = NULL;
	if (call->by && call->by->view == b->view && call->back == to) {
		f->at = call->by->next[0];
		f->link = &call->by->next[0];
	}
	spent(f);
	return true;
}

bool flow_pass(struct vmt_flow *f, struct flow_block *b)
{
	if (!hop(f, b))
		return false;
	if (b->pushes)
		push(f, b);
	follow(f, b, 1);
	return true;
}

static inline bool spends_tnt(unsigned int class, bool compression)
{
	return class == VMT_INSN_JCC || (class == VMT_INSN_RET && compression);
}

/* Goes on until something stops it; to_ip, classes and drain say what, beside branches that want
 * packets. All callers pass constants. */
static inline __attribute__((always_inline)) enum stop
walk(struct vmt_flow *f, bool to_ip, uint64_t ip, uint32_t classes, bool drain)
{
	const bool compression = !f->options.no_ret_compression;
	struct flow_block *b;
	unsigned int taken;

	for (;;) {
		if (to_ip && ip == f->ip) /* its code need not be known */
			return STOP_THERE;
		b = here(f);
		if (!b)
			return STOP_ERROR;
		if (to_ip && ip - b->ip <= b->last && run_part(f, b, ip))
			return STOP_THERE;
		if (classes >> b->class & 1 && !(f->nr_tnt && spends_tnt(b->class, compression)))
			return STOP_CLASS;
		if (b->class == VMT_INSN_JCC) {
			if (!f->nr_tnt)
				return STOP_TNT;
			taken = f->tnt >> --f->nr_tnt & 1;
			follow(f, b, taken);
			spent(f);
		} else if (b->class == VMT_INSN_RET) {
			if (!f->nr_tnt || !compression)
				return STOP_TIP;
			if (!compressed_return(f, b))
				return STOP_ERROR;
		} else if (b->class == VMT_INSN_JMP || b->class == VMT_INSN_CALL) {
			if (!flow_pass(f, b))
				return STOP_ERROR;
			continue;
		} else if (FLOW_TIPS >> b->class & 1) {
			return STOP_TIP;
		} else {
			if (!hop(f, b))
				return STOP_ERROR;
			follow(f, b, 0);
			continue;
		}
		if (drain && !f->nr_tnt)
			return STOP_SPENT;
	}
}

/* Blocks without a packet that the short way below takes before it leaves them to walk(). */
#define SHORT_HOPS 32

/* The state of the walk while it is on the short way. */
struct short_way {
	struct flow_block *b, **link;
	uint64_t ip, tnt, instructions;
	unsigned int nr_tnt;
};

static inline void short_tell(struct vmt_flow *f, struct short_way *w, uint64_t next)
{
	const struct flow_block *b = w->b;

	if (f->options.block) {
		f->counts.instructions = w->instructions;
		tell_block(f, &(struct vmt_flow_block){ .ip = b->ip,
							.last_ip = flow_last_ip(b),
							.next_ip = next,
							.count = b->count,
							.class = b->class,
							.has_next = true });
	}
	w->instructions += b->count;
	w->ip = next;
}

/* A compressed return to a call whose way back is linked; false: not so, nothing has changed. */
static inline bool short_return(struct vmt_flow *f, struct short_way *w)
{
	const struct flow_call *call = &f->stack[f->stack_top];

	if (f->options.no_ret_compression || !f->stack_nr || !call->by ||
	    call->by->view != w->b->view || !(w->tnt >> (w->nr_tnt - 1) & 1))
		return false;
	w->nr_tnt--;
	flow_pop(f);
	short_tell(f, w, call->back);
	w->link = &call->by->next[0];
	return true;
}

/*
 * What walk() does with results, as long as all blocks are linked: it changes nothing but the speed
 * that the members used most are in registers.
 */
static void spend_linked(struct vmt_flow *f)
{
	struct short_way w = { .b = f->at,
			       .link = f->link,
			       .ip = f->ip,
			       .tnt = f->tnt,
			       .instructions = f->counts.instructions,
			       .nr_tnt = f->nr_tnt };
	const bool by_count = f->options.count_is_time;
	const uint64_t tsc = flow_now(f);
	uint64_t blocks = 0;
	unsigned int hops = 0;

	while (w.nr_tnt && w.b && flow_block_valid(w.b, by_count ? w.instructions : tsc)) {
		if (w.b->class == VMT_INSN_JCC) {
			const unsigned int taken = w.tnt >> --w.nr_tnt & 1;

			short_tell(f, &w, taken ? w.b->target : flow_behind(w.b));
			w.link = &w.b->next[taken];
			hops = 0;
		} else if (w.b->class == VMT_INSN_CALL || w.b->class == VMT_INSN_JMP) {
			if (++hops == SHORT_HOPS)
				break;
			if (w.b->pushes)
				push(f, w.b);
			short_tell(f, &w, w.b->target);
			w.link = &w.b->next[1];
		} else if (w.b->class == VMT_INSN_RET && short_return(f, &w)) {
			hops = 0;
		} else {
			break;
		}
		w.b = *w.link;
		blocks++;
	}
	f->counts.branches += f->nr_tnt - w.nr_tnt;
	if (f->nr_tnt != w.nr_tnt) {
		f->hops = 0;
		f->loop = NULL;
	}
	f->at = w.b;
	f->link = w.link;
	f->ip = w.ip;
	f->nr_tnt = w.nr_tnt;
	f->counts.instructions = w.instructions;
	f->counts.blocks += blocks;
}

bool flow_spend_tnt(struct vmt_flow *f)
{
	spend_linked(f);
	return !f->nr_tnt || walk(f, false, 0, 0, true) != STOP_ERROR;
}

static void mismatch(struct vmt_flow *f, enum stop stop)
{
	if (stop == STOP_TNT)
		flow_lose(f, "a conditional branch comes, but no result of it");
	else if (stop == STOP_TIP)
		flow_lose(f, "a branch comes whose target the trace does not tell");
}

bool flow_go_to(struct vmt_flow *f, uint64_t ip)
{
	enum stop stop = walk(f, true, ip, 0, false);

	if (stop == STOP_THERE)
		return true;
	mismatch(f, stop);
	return false;
}

struct flow_block *flow_go_to_class(struct vmt_flow *f, uint32_t classes)
{
	enum stop stop;

	if (f->at && !f->nr_tnt && classes >> f->at->class & 1 &&
	    flow_block_valid(f->at, flow_now(f)))
		return f->at;
	stop = walk(f, false, 0, classes, false);

	if (stop == STOP_CLASS)
		return f->at;
	mismatch(f, stop);
	return NULL;
}

bool flow_reaches(struct vmt_flow *f, const uint64_t *ip, uint32_t classes, unsigned int max)
{
	uint64_t at = f->ip, last;
	const char *why;

	for (unsigned int n = 0; n < max;) {
		const struct flow_block *b;

		if (ip && *ip == at)
			return true;
		b = flow_block_at(f, at, &why);
		if (!b)
			return false;
		if (ip && *ip - b->ip <= b->last && flow_block_count(f, b, *ip, &last))
			return true;
		if (classes >> b->class & 1)
			return true;
		n += b->count;
		if (b->class == VMT_INSN_JMP || b->class == VMT_INSN_CALL)
			at = b->target;
		else if (b->class == VMT_INSN_JCC || FLOW_TIPS >> b->class & 1)
			return false;
		else
			at = flow_behind(b);
	}
	return false;
}
