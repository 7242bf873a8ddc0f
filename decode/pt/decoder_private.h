/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_DECODER_PRIVATE_H
#define VMT_PT_DECODER_PRIVATE_H

#include "decode/pt/batch.h"
#include "decode/pt/decoder.h"

/* More than the longest packet with another one behind it, at which an erratum makes one look. */
#define PT_CARRY_MAX 64
#define PT_QUEUE_MAX 1024 /* a power of two */
#define PT_BATCH_MAX 512  /* their packets fit into the first-level cache */
#define PT_OPEN_MAX  64
#define PT_NOTES_MAX 4
#define PT_TIMES_MAX 32

/* What waits for a packet to come. */
enum pt_pending {
	PT_PEND_FUP = 1u << 0,	      /* source of an asynchronous branch waits for its TIP */
	PT_PEND_EXIT = 1u << 1,	      /* decoder.exit */
	PT_PEND_ENTRY = 1u << 2,      /* decoder.entry */
	PT_PEND_NOTES = 1u << 3,      /* decoder.notes */
	PT_PEND_EVD = 1u << 4,	      /* decoder.evd */
	PT_PEND_CFE = 1u << 5,	      /* a CFE waits for a FUP of its own (IP=1) */
	PT_PEND_CFE_SHARED = 1u << 6, /* a CFE waits for the branch's FUP (IP=0) */
	PT_PEND_BOUND = 1u << 7,      /* PTW, EXSTOP, BEP, TRIG or MODE.TSX waits for its FUP */
	PT_PEND_ABORT = 1u << 8,      /* MODE.TSX with TXAbort: a FUP, then a TIP */
	PT_PEND_MODE = 1u << 9,	      /* MODE.Exec directly before */
	PT_PEND_RESUME = 1u << 10,    /* OVF: a FUP says where tracing goes on */
	PT_PEND_ENABLE = 1u << 11,    /* a first PSB+ in a guest: TIP.PGE is its entry */
	PT_PEND_VMCS = 1u << 13,      /* VMCS behind the FUP or CFE of what may be an exit */
	PT_PEND_OFF = 1u << 14,	      /* TIP.PGD behind LEARNT: the guest may run untraced */
	PT_PEND_RSM = 1u << 15,	      /* CFE.RSM: an entry behind it may return to root operation */
	PT_PEND_LEARNT = 1u << 12,    /* a PIP behind a loss: it may be an entry's */
};

struct pt_address {
	bool known;
	uint64_t value;
};

/* Payloads of EVD packets that wait for their CFE. */
struct pt_evd {
	bool has_reason, has_qualification, has_fault;
	uint32_t reason;
	uint64_t qualification, fault;
	struct vmt_pt_stamp stamp; /* of the first */
};

/* A VM exit or entry under way: from its first packet to its TIP, or to one that must follow it. */
struct pt_transition {
	bool cfe;      /* a CFE says so */
	bool pip;      /* NR changed */
	bool returns;  /* entry: from SMM, and it is not known to where */
	bool fup;      /* exit: a FUP stands before it */
	bool wants_ip; /* the next FUP that binds to a CFE is the guest's RIP */
	bool failed;   /* an entry that failed, by its reason */
	bool has_vector;
	uint8_t vector;
	struct pt_evd evd;
	struct pt_address rip;
	struct vmt_pt_stamp stamp;
};

struct pt_note { /* an event that a CFE names, other than VM entry and exit */
	uint8_t kind, vector;
	struct pt_evd evd;
	struct vmt_pt_stamp stamp;
};

struct pt_slot {
	struct vmt_event event;
	struct vmt_pt_stamp stamp;
	bool told;     /* the event has its time, or will have none */
	bool open;     /* an exit that waits for its entry */
	uint64_t exit; /* entry: number of its exit, 0 none */
};

/*
 * Events in the order of the stream, numbered from 1: those in [head, tail) wait for a bound of
 * their time, or for the entry that gives an exit its duration.
 */
struct pt_queue {
	uint64_t head, untold, tail;
	struct pt_slot slots[PT_QUEUE_MAX];
};

struct pt_open_exit {
	uint64_t number; /* in the queue, 0: free */
	struct pt_address vmcs;
};

struct vmt_pt_decoder {
	struct vmt_pt_decoder_options options;
	uint32_t errata;
	struct vmt_pt_clock clock;
	uint64_t bounds; /* of the clock, as far as stamps were closed */
	struct vmt_pt_counts counts;
	struct vmt_ledger ledger;

	/* ---- bytes ---- */
	struct vmt_pt_reader reader;
	uint64_t offset; /* of carry[0], or of the next byte when nothing is carried */
	uint8_t carry[PT_CARRY_MAX];
	size_t carry_len;
	bool syncing;
	uint64_t skip_offset, skip_len;
	const char *skip_why;
	const struct vmt_pt_engine *engine;
	struct vmt_pt_batch batch;
	struct vmt_pt_packet packets[PT_BATCH_MAX];

	/* ---- state of the CPU ---- */
	enum vmt_pt_mode mode;
	enum vmt_pt_mode before_loss; /* mode at the last loss, if mode is unknown since */
	bool root_ran;		      /* something ran in root operation in this stream */
	bool event_trace;	      /* there was a CFE */
	bool packet_en;		      /* PacketEn is 1, as far as it shows */
	bool outside;		      /* an exit switched tracing off */
	bool untraced;		      /* an entry did: what comes next may be the exit */
	struct pt_address vmcs;	      /* current VMCS */
	struct pt_address guest_vmcs; /* VMCS of the guest that runs, or ran last */
	struct pt_address guest_cr3;

	/* ---- PSB+ ---- */
	bool in_psb, psb_fup, psb_pip, psb_nr, psb_whole;
	bool away; /* its time packets are those of the world that is not traced */
	struct pt_address psb_cr3, psb_vmcs;
	unsigned int nr_times;
	struct vmt_pt_packet times[PT_TIMES_MAX];

	/* ---- compound events ---- */
	uint32_t pending; /* enum pt_pending */
	struct pt_address fup;
	struct vmt_pt_stamp fup_stamp;
	struct pt_evd evd;
	struct pt_transition exit, entry;
	unsigned int nr_notes;
	struct pt_note notes[PT_NOTES_MAX];

	struct vmt_pt_pebs pebs;
	struct pt_open_exit open[PT_OPEN_MAX];
	unsigned int next_open;
	struct pt_queue queue;
};

/* ---- bind.c: one packet ---- */
void pt_take(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet);
/* Whether TNT and TIP packets mean nothing but that the CPU runs. */
bool pt_branches_are_plain(const struct vmt_pt_decoder *d);
/* Some of them were taken elsewhere. */
void pt_take_branches(struct vmt_pt_decoder *d, size_t packets);
/* Feeds the clock and closes what waited for a bound. */
void pt_time(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet);
/* Closes whatever is under way; tip: the TIP, TIP.PGE or TIP.PGD that does it, or NULL. */
void pt_settle(struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip);
/* Packets are missing here; name is the kind of the loss, bytes its size or 0. */
void pt_lost(struct vmt_pt_decoder *d, const char *name, uint64_t bytes);

/* ---- psb.c ---- */
void pt_psb_begin(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet);
/* Takes a packet inside PSB+; false when it does not belong there and PSB+ is over. */
bool pt_psb_take(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet);
void pt_psb_end(struct vmt_pt_decoder *d);

/* Where the CPU is, with a transition under way whose PIP has come: that one is over when BranchEn
 * is 0, and time packets behind it are the new world's. */
enum vmt_pt_mode pt_vm_mode(const struct vmt_pt_decoder *d);

/* ---- vm.c: entries and exits ---- */
void pt_vm_pip(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet);
void pt_vm_vmcs(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet);
void pt_vm_exit_cfe(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet, bool wants_ip);
void pt_vm_entry_cfe(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet, bool wants_ip);
/* FUP and TIP.PGD without an IP, or TIP.PGE, in a stream of the guest alone. */
void pt_vm_disabled(struct vmt_pt_decoder *d);
void pt_vm_enabled(struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip);
/* A guest that has just been entered is not traced: it may load another CR3. */
void pt_vm_out_of_sight(struct vmt_pt_decoder *d);
/* A branch without a TIP comes: where packets were on, a PIP with NR=1 was no entry but a MOV to
 * CR3 in a guest whose entry was concealed. */
void pt_vm_no_tip(struct vmt_pt_decoder *d);
void pt_vm_settle(struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip);
/* The mode is learnt from a status, not from a change: a gap when it was another one. */
void pt_vm_learn(struct vmt_pt_decoder *d, enum vmt_pt_mode mode);
/* The row of the VM that runs, or ran last; NULL when none was named. */
const struct vmt_pt_vm *pt_vm_row(const struct vmt_pt_decoder *d);
/* What a TSC packet holds; *map is the guest's or NULL. */
enum vmt_pt_mode pt_vm_tsc_mode(const struct vmt_pt_decoder *d, uint64_t payload,
				const struct vmx_tsc_map **map);

/* ---- note.c ---- */
void pt_note_cfe(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet, bool waits);
/* Emits the events that waited for a FUP; ip NULL: none came. */
void pt_note_flush(struct vmt_pt_decoder *d, const struct pt_address *ip);
void pt_note_loss(struct vmt_pt_decoder *d, const char *name, uint64_t bytes);
void pt_note_named(struct vmt_pt_decoder *d, const char *name, const struct vmt_pt_stamp *stamp);

/* ---- queue.c ---- */
struct vmt_event pt_event_of(const struct vmt_pt_decoder *d, enum vmt_event_type type);
/* Adds who ran: VMCS, domain, vCPU, CR3, as far as they are known. */
void pt_event_guest(const struct vmt_pt_decoder *d, struct vmt_event *event);
/* Returns the number of the event. */
uint64_t pt_queue_put(struct vmt_pt_decoder *d, const struct vmt_event *event,
		      const struct vmt_pt_stamp *stamp);
/* An exit that waits for an entry of its VMCS, and the entry. */
void pt_queue_put_exit(struct vmt_pt_decoder *d, const struct vmt_event *event,
		       const struct vmt_pt_stamp *stamp);
void pt_queue_put_entry(struct vmt_pt_decoder *d, const struct vmt_event *event,
			const struct vmt_pt_stamp *stamp);
/* No exit that is open gets a duration any more; unknown: only those without a VMCS. */
void pt_queue_close_exits(struct vmt_pt_decoder *d, bool unknown_only);
/* An exit without a VMCS is one of this VMCS. */
void pt_queue_name_exits(struct vmt_pt_decoder *d, uint64_t vmcs);
void pt_queue_bound(struct vmt_pt_decoder *d);
void pt_queue_end(struct vmt_pt_decoder *d);

#endif
