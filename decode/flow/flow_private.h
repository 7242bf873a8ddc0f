/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_FLOW_PRIVATE_H
#define VMT_FLOW_PRIVATE_H

#include "decode/flow/flow.h"

#define FLOW_CACHE_BITS	 16
#define FLOW_CACHE_MAX	 (1u << FLOW_CACHE_BITS) /* blocks */
#define FLOW_BLOCK_MAX	 512			 /* instructions */
#define FLOW_VIEWS_MAX	 64
#define FLOW_STACK_MAX	 64	    /* SDM vol. 3 33.4.2.2 */
#define FLOW_HOPS_MAX	 (1u << 16) /* blocks that no packet confirms */
#define FLOW_ABORT_MAX	 256	    /* instructions between a branch and an abort (BDM64) */
#define FLOW_TRY_MAX	 4096	    /* instructions that are looked at before a start is believed */
#define FLOW_WAITING_MAX 8

/*
 * Instructions up to the first one that ends a straight run, decoded once. Valid for the bytes that
 * the image has at times in [from, from + span). One cache line.
 */
struct flow_block {
	uint64_t ip;
	uint64_t target; /* direct branches: where they go; indirect ones: where they went last */
	struct flow_block *next[2]; /* behind and target, once they were needed; same view */
	uint64_t from, span;
	uint32_t hash_next; /* index + 1 in the same bucket, 0: none */
	uint16_t view;
	uint16_t count;
	uint16_t last; /* from ip to the last instruction */
	uint16_t len;  /* bytes */
	uint8_t class; /* enum vmt_insn_class of the last instruction */
	bool pushes;   /* a call that RET compression knows: not to the next instruction */
};

_Static_assert(sizeof(struct flow_block) == 64, "a block is one cache line");

static inline uint64_t flow_last_ip(const struct flow_block *b)
{
	return b->ip + b->last;
}

static inline uint64_t flow_behind(const struct flow_block *b)
{
	return b->ip + b->len;
}

struct flow_view {
	struct vmt_image_context where;
	struct vmt_image_view view;
	uint8_t mode;
	uint16_t id; /* views with equal code share one */
};

/* Blocks by view and address. When the array is full all are dropped. */
struct flow_cache {
	void *memory;
	struct flow_block *blocks; /* in memory, in line with cache lines */
	uint32_t nr;
	uint32_t *buckets; /* index + 1 */
	struct flow_view views[FLOW_VIEWS_MAX];
	unsigned int nr_views;
	struct flow_view *view; /* of the state; NULL: to be found */
};

/* What FUP, TIP and the packets between them wait for. */
enum flow_pending {
	FLOW_FUP = 1u << 0,   /* source of an asynchronous event; the flow stands there */
	FLOW_PIP = 1u << 1,   /* flow.pip, to be applied at the TIP */
	FLOW_ENTRY = 1u << 2, /* one of the PIPs had NR=1 */
	FLOW_MODE = 1u << 3,  /* flow.mode */
	FLOW_OWN = 1u << 5,   /* the next FUP belongs to flow.waiting */
	FLOW_ABORT = 1u << 6, /* the next FUP is a transaction's abort */
	FLOW_EXIT = 1u << 7,  /* a CFE says VM exit: flow.exit */
	FLOW_EVD = 1u << 8,   /* flow.evd */
	FLOW_OPENS = 1u << 9, /* with OWN: its FUP may be the source of the event as well */
};

enum flow_phase {
	FLOW_LOST,   /* waits for a PSB+ or TIP.PGE */
	FLOW_BLIND,  /* in code that is not known: a TIP into known code ends it, too */
	FLOW_RESUME, /* behind an overflow: a FUP, TIP or TIP.PGE says where */
	FLOW_OFF,    /* PacketEn = 0 */
	FLOW_ON,
};

struct flow_pip {
	bool nr;
	uint64_t cr3;
};

struct flow_psb {
	bool inside, has_ip, has_pip, has_mode, has_vmcs;
	uint64_t ip, vmcs;
	struct flow_pip pip;
	uint8_t mode;
};

struct flow_evd {
	bool has_reason, has_qualification, has_fault;
	uint32_t reason;
	uint64_t qualification, fault;
};

struct flow_call {
	uint64_t back;	       /* where it returns to */
	struct flow_block *by; /* the block that called, NULL: dropped */
};

struct vmt_flow {
	struct vmt_flow_options options;
	struct vmt_pt_decoder *decoder;
	const struct vmt_pt_clock *clock;
	uint32_t errata;
	struct vmt_flow_state state;
	struct vmt_flow_counts counts;
	struct flow_cache cache;

	enum flow_phase phase;
	bool unconfirmed; /* phase is ON by a PSB+ that nothing has confirmed: RESUMED waits */
	bool skipped;	  /* bytes were skipped before this packet */
	bool blind_tnt;	  /* FLOW_BLIND: a TNT came that no packet but TIPs has followed */
	bool root_ran;	  /* something in root operation was traced */
	bool outside;	  /* a VM exit switched tracing off, and nothing of the host was traced */
	struct vmt_image_context left; /* outside: the guest's */
	uint64_t ip;
	struct flow_block *at;	  /* the block at ip, or NULL */
	struct flow_block **link; /* where the block at ip will be linked, or NULL */

	uint64_t tnt; /* results, the youngest at bit 0 */
	unsigned int nr_tnt;
	unsigned int hops;	 /* blocks since the last packet was spent */
	struct flow_block *loop; /* one of these: to come here again is a loop */

	struct flow_call stack[FLOW_STACK_MAX];
	unsigned int stack_top, stack_nr;

	uint32_t pending; /* enum flow_pending */
	struct flow_pip pip;
	uint8_t mode;
	bool mode_if;
	uint64_t vmcs; /* as of VMPTRLD: the next guest's */
	bool vmcs_known;
	struct flow_psb psb;
	struct flow_evd evd, exit;
	bool exit_has_vector;
	uint8_t exit_vector;
	uint64_t mwait;
	bool has_mwait;
	struct vmt_flow_event waiting[FLOW_WAITING_MAX];
	unsigned int nr_waiting;
};

/* ---- cache.c ---- */
bool flow_cache_init(struct flow_cache *cache);
void flow_cache_fini(struct flow_cache *cache);
/* The block at an address in the state's view; NULL: *why. */
struct flow_block *flow_block_at(struct vmt_flow *f, uint64_t ip, const char **why);
/* The state has changed: another view may hold. */
void flow_view_changed(struct vmt_flow *f);
/* Instructions of a block before stop; *last is the last of them. 0: stop is not in the block. */
uint32_t flow_block_count(struct vmt_flow *f, const struct flow_block *b, uint64_t stop,
			  uint64_t *last);

static inline uint64_t flow_now(const struct vmt_flow *f)
{
	if (f->options.count_is_time)
		return f->counts.instructions;
	return f->clock->known ? f->clock->tsc : 0;
}

static inline bool flow_block_valid(const struct flow_block *b, uint64_t now)
{
	return now - b->from < b->span;
}

/* ---- walk.c: each false return has told the error, and the flow is lost ---- */
void flow_lose(struct vmt_flow *f, const char *why);
/* The same where nothing but code, or a call before the flow began, is missing. */
void flow_lose_sight(struct vmt_flow *f, const char *why);
void flow_jump(struct vmt_flow *f, uint64_t ip);
/* Runs the block at ip, whose last instruction branches indirectly to `to`. */
void flow_run_indirect(struct vmt_flow *f, struct flow_block *b, uint64_t to);
/* Spends the results that are there, as far as no TIP must come first. */
bool flow_spend_tnt(struct vmt_flow *f);
/* Goes to the instruction at ip, which is not run. */
bool flow_go_to(struct vmt_flow *f, uint64_t ip);
/* Goes to the first block that ends in one of these classes (1 << enum vmt_insn_class), which is
 * not run. NULL: told. */
struct flow_block *flow_go_to_class(struct vmt_flow *f, uint32_t classes);
/* Runs the block at ip; has_next false: tracing ends with it. */
void flow_run(struct vmt_flow *f, struct flow_block *b, bool has_next, uint64_t next);
/* Passes a direct jump or call; false: it is a loop, told. */
bool flow_pass(struct vmt_flow *f, struct flow_block *b);
/* Whether ip (unless NULL), or a block that ends in one of the classes, is reached without a branch
 * that needs a packet, within `max` instructions. Tells nothing. */
bool flow_reaches(struct vmt_flow *f, const uint64_t *ip, uint32_t classes, unsigned int max);
void flow_pop(struct vmt_flow *f);

/* ---- state.c ---- */
void flow_tell(struct vmt_flow *f, const struct vmt_flow_event *event);
void flow_set_world(struct vmt_flow *f, bool nonroot);
void flow_set_pip(struct vmt_flow *f, const struct flow_pip *pip);
void flow_set_mode(struct vmt_flow *f, uint8_t mode);
/* Tells the events that wait for a FUP; fup NULL: none came. */
void flow_deliver(struct vmt_flow *f, const struct vmt_pt_packet *fup);
/* PacketEn is 1 for certain: a start that a PSB+ or FUP gave was one. */
void flow_confirm(struct vmt_flow *f);
/* Goes on at ip with nothing known of what came before. */
void flow_start(struct vmt_flow *f, uint64_t ip);
/* Whether a TNT or IP packet has no place. */
bool flow_is_lost(struct vmt_flow *f);

/* ---- branch.c ---- */
void flow_take_tnt(struct vmt_flow *f, const struct vmt_pt_packet *p);
void flow_take_tip(struct vmt_flow *f, const struct vmt_pt_packet *p);
void flow_take_pge(struct vmt_flow *f, const struct vmt_pt_packet *p);
void flow_take_pgd(struct vmt_flow *f, const struct vmt_pt_packet *p);
size_t flow_branches(void *context, uint64_t offset, struct vmt_pt_reader *reader,
		     const uint8_t *limit);

/* ---- bind.c ---- */
void flow_abandon(struct vmt_flow *f);
void flow_packet(void *context, uint64_t offset, const uint8_t *bytes,
		 const struct vmt_pt_packet *packet);
void flow_skipped(void *context, uint64_t offset, uint64_t len, const char *why);

#define FLOW_CLASS(name) (1u << VMT_INSN_##name)
#define FLOW_FAR	 (FLOW_CLASS(FAR_CALL) | FLOW_CLASS(FAR_RET) | FLOW_CLASS(FAR_JMP))
#define FLOW_TIPS                                                                                  \
	(FLOW_FAR | FLOW_CLASS(JMP_INDIRECT) | FLOW_CLASS(CALL_INDIRECT) | FLOW_CLASS(RET) |       \
	 FLOW_CLASS(VMENTRY))

#endif
