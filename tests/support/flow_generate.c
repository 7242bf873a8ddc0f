/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/flow_generate.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/flow_program.h"

#define STACK_MAX  64
#define SHADOW_MAX 512
#define HELD_MAX   4
#define HOST_CR3   UINT64_C(0x10a2b000)
#define FIRST_TSC  UINT64_C(0x100000)

struct world { /* 0: the host; others: guests */
	struct vmt_prog prog;
	uint32_t at;
	uint64_t cr3, vmcs;
	uint32_t shadow[SHADOW_MAX]; /* where its calls return to */
	unsigned int nr_shadow;
};

struct cpu {
	const struct vmt_flowgen_options *o;
	struct vmt_flowgen *out;
	struct vmt_ptenc *e;
	uint64_t random, tsc;
	struct world worlds[3];
	unsigned int world, guest, vmcs_of; /* that runs; that VMPTRLD chose */
	unsigned int mode;		    /* that the trace was told */
	uint64_t stack[STACK_MAX];
	unsigned int top, nr_stack;
	uint64_t tnt;
	unsigned int nr_tnt, nr_held;
	uint64_t held[HELD_MAX];
	size_t cap_truth, confirmed, pending; /* instructions that packets out, or held, confirm */
};

static uint64_t below(struct cpu *c, uint64_t n)
{
	return vmt_prog_random(&c->random, n);
}

static bool chance(struct cpu *c, unsigned int of_100000)
{
	return of_100000 && below(c, 100000) < of_100000;
}

static struct world *now(struct cpu *c)
{
	return &c->worlds[c->world];
}

static uint64_t ip_of(const struct world *w)
{
	return w->prog.insns[w->at].ip;
}

static uint32_t some_function(struct cpu *c, const struct world *w)
{
	return w->prog.functions[below(c, w->prog.nr_functions)];
}

/* What an address always gives, of `n`. */
static uint64_t habit(uint64_t ip, uint64_t n)
{
	return vmt_prog_random(&ip, n);
}

static bool is_taken(struct cpu *c, uint64_t ip)
{
	if (c->o->habits && habit(ip, 8))
		return (below(c, 50) == 0) != (habit(ip + 1, 3) == 0);
	return below(c, 3) == 0;
}

static uint32_t indirect_target(struct cpu *c, const struct world *w)
{
	if (c->o->habits && below(c, 20))
		return w->prog.functions[habit(ip_of(w), w->prog.nr_functions)];
	return some_function(c, w);
}

/* ---- packets ---- */

static void ip_packet(struct cpu *c, enum vmt_ptenc_ip kind, uint64_t ip)
{
	vmt_ptenc_ip(c->e, kind, VMT_PTENC_AUTO, ip);
}

static void flush(struct cpu *c)
{
	if (c->nr_tnt > 6)
		vmt_ptenc_tnt_long(c->e, c->tnt, c->nr_tnt);
	else if (c->nr_tnt)
		vmt_ptenc_tnt(c->e, c->tnt, c->nr_tnt);
	for (unsigned int i = 0; i < c->nr_held; i++)
		ip_packet(c, VMT_PTENC_TIP, c->held[i]);
	if (c->nr_tnt)
		c->confirmed = c->pending;
	c->tnt = c->nr_tnt = c->nr_held = 0;
}

static void send_bit(struct cpu *c, bool taken)
{
	c->tnt = c->tnt << 1 | taken;
	c->nr_tnt++;
	c->pending = c->out->nr_truth;
	if (c->nr_tnt == (c->o->long_tnt ? 47 : 6))
		flush(c);
}

static void send_tip(struct cpu *c, uint64_t ip, bool is_return)
{
	if (c->o->deferred_tips && !is_return && c->nr_tnt && c->nr_held < HELD_MAX) {
		c->held[c->nr_held++] = ip;
		c->pending = c->out->nr_truth;
		return;
	}
	flush(c);
	ip_packet(c, VMT_PTENC_TIP, ip);
	c->confirmed = c->out->nr_truth;
}

static uint8_t mode_bits(unsigned int mode)
{
	return mode == 64 ? 1 : mode == 32 ? 2 : 0;
}

static void send_mode(struct cpu *c)
{
	if (c->mode == now(c)->prog.mode)
		return;
	c->mode = now(c)->prog.mode;
	vmt_ptenc_mode_exec(c->e, mode_bits(c->mode));
}

static void fup(struct cpu *c)
{
	ip_packet(c, VMT_PTENC_FUP, ip_of(now(c)));
	c->confirmed = c->out->nr_truth;
}

static void psb(struct cpu *c)
{
	const struct world *w = now(c);

	flush(c);
	vmt_ptenc_psb(c->e);
	if (!c->world) /* what a guest's TSC packet means is not said */
		vmt_ptenc_tsc(c->e, c->tsc);
	vmt_ptenc_pip(c->e, w->cr3, c->world != 0);
	vmt_ptenc_vmcs(c->e, c->worlds[c->vmcs_of].vmcs);
	vmt_ptenc_mode_exec(c->e, mode_bits(w->prog.mode));
	c->mode = w->prog.mode;
	fup(c);
	vmt_ptenc_psbend(c->e);
	c->nr_stack = 0;
}

/* ---- sections ---- */

static void add_section(struct cpu *c, struct vmt_image_space space, uint64_t addr, uint64_t from,
			const uint8_t *bytes, size_t len)
{
	struct vmt_flowgen *out = c->out;
	struct vmt_flowgen_section *s;

	out->sections = realloc(out->sections, (out->nr_sections + 1) * sizeof(*out->sections));
	if (!out->sections)
		abort();
	s = &out->sections[out->nr_sections++];
	*s = (struct vmt_flowgen_section){ space, addr, from, malloc(len), len };
	if (!s->bytes)
		abort();
	memcpy(s->bytes, bytes, len);
}

/* A jump label of the host changes. */
static void patch(struct cpu *c)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	struct vmt_prog *p = &c->worlds[0].prog;
	const uint32_t first = (uint32_t)below(c, p->nr);

	for (uint32_t n = first; n < p->nr; n++) {
		struct vmt_prog_insn *i = &p->insns[n];
		const int32_t displacement = (int32_t)(p->insns[i->target].ip - (i->ip + i->len));
		const bool label = i->class == VMT_PROG_LABEL;

		if (!label && !(i->class == VMT_PROG_JMP && i->bytes[0] == 0xff))
			continue;
		i->class = label ? VMT_PROG_JMP : VMT_PROG_LABEL;
		i->bytes[0] = label ? 0xff : 0x0f; /* marks what was a label */
		if (label) {
			uint8_t jmp[5] = { 0xe9 };

			memcpy(jmp + 1, &displacement, 4);
			add_section(c, (struct vmt_image_space){ .world = VMT_IMAGE_HOST }, i->ip,
				    c->tsc, jmp, 5);
		} else {
			add_section(c, (struct vmt_image_space){ .world = VMT_IMAGE_HOST }, i->ip,
				    c->tsc, nop, 5);
		}
		return;
	}
}

/* ---- events ---- */

static void vm_exit(struct cpu *c)
{
	flush(c);
	if (c->o->event_trace) {
		vmt_ptenc_evd(c->e, 1, 0x3f80008);
		vmt_ptenc_evd(c->e, 2, 30);
		vmt_ptenc_cfe(c->e, 8, 0, false);
	}
	fup(c);
	c->world = 0;
	c->worlds[0].at = some_function(c, &c->worlds[0]);
	vmt_ptenc_pip(c->e, c->worlds[0].cr3, false);
	send_mode(c);
	ip_packet(c, VMT_PTENC_TIP, ip_of(now(c)));
	c->out->exits++;
}

static void interrupt(struct cpu *c)
{
	const bool abort = below(c, 4) == 0;

	flush(c);
	if (abort)
		vmt_ptenc_mode_tsx(c->e, 2);
	else if (c->o->event_trace)
		vmt_ptenc_cfe(c->e, 1, 0xec, false);
	fup(c);
	now(c)->at = some_function(c, now(c));
	ip_packet(c, VMT_PTENC_TIP, ip_of(now(c)));
	c->out->asyncs++;
}

static void overflow(struct cpu *c)
{
	c->tnt = c->nr_tnt = c->nr_held = 0;
	c->out->nr_truth = c->pending = c->confirmed;
	vmt_ptenc_ovf(c->e);
	vmt_ptenc_ip(c->e, VMT_PTENC_FUP, VMT_PTENC_SIGN_48, ip_of(now(c)));
	c->nr_stack = 0;
	c->out->overflows++;
}

static void enable(struct cpu *c)
{
	now(c)->at = some_function(c, now(c));
	ip_packet(c, VMT_PTENC_TIP_PGE, ip_of(now(c)));
	c->nr_stack = 0;
}

static void disable_async(struct cpu *c)
{
	flush(c);
	fup(c);
	vmt_ptenc_ip(c->e, VMT_PTENC_TIP_PGD, VMT_PTENC_SUPPRESSED, 0);
	enable(c);
}

/* Whether an instruction ran that no packet has confirmed: then its address is in the filter. */
static bool ran_lately(const struct cpu *c, uint64_t ip)
{
	for (size_t n = c->confirmed; n < c->out->nr_truth; n++)
		if (c->out->truth[n].ip == ip)
			return true;
	return false;
}

/* The branch that has just been recorded leaves the filter. */
static bool disable_sync(struct cpu *c, bool conditional, uint64_t to)
{
	if (!chance(c, c->o->disable) || ran_lately(c, to))
		return false;
	flush(c);
	vmt_ptenc_ip(c->e, VMT_PTENC_TIP_PGD,
		     conditional && !c->o->pgd_has_ip ? VMT_PTENC_SUPPRESSED : VMT_PTENC_AUTO, to);
	c->confirmed = c->out->nr_truth;
	enable(c);
	return true;
}

/* ---- instructions ---- */

static void push(struct cpu *c, uint32_t behind)
{
	struct world *w = now(c);

	if (w->nr_shadow == SHADOW_MAX) {
		memmove(w->shadow, w->shadow + 1, (SHADOW_MAX - 1) * sizeof(w->shadow[0]));
		w->nr_shadow--;
	}
	w->shadow[w->nr_shadow++] = behind;
	c->top = (c->top + 1) % STACK_MAX;
	c->stack[c->top] = w->prog.insns[behind].ip;
	if (c->nr_stack < STACK_MAX)
		c->nr_stack++;
}

static void do_return(struct cpu *c)
{
	struct world *w = now(c);
	const bool astray = !w->nr_shadow || chance(c, c->o->mismatch);
	const uint32_t to = astray ? some_function(c, w) : w->shadow[w->nr_shadow - 1];
	const uint64_t ip = w->prog.insns[to].ip;
	bool equal = false;

	if (w->nr_shadow)
		w->nr_shadow--;
	if (c->nr_stack) {
		equal = c->stack[c->top] == ip;
		c->top = (c->top + STACK_MAX - 1) % STACK_MAX;
		c->nr_stack--;
	}
	if (disable_sync(c, false, ip))
		return;
	w->at = to;
	if (equal && c->o->ret_compression)
		send_bit(c, true);
	else
		send_tip(c, ip, true);
}

static void vmptrld(struct cpu *c)
{
	flush(c);
	c->vmcs_of = 1 + (unsigned int)below(c, c->o->guests);
	vmt_ptenc_vmcs(c->e, c->worlds[c->vmcs_of].vmcs);
}

static void vm_entry(struct cpu *c)
{
	struct world *w = now(c);
	const uint64_t luck = below(c, 10);

	flush(c);
	if (!c->o->guests || luck == 0) { /* early failure */
		w->at++;
		ip_packet(c, VMT_PTENC_TIP, ip_of(w));
		c->confirmed = c->out->nr_truth;
		c->out->failed_entries++;
		return;
	}
	if (!c->vmcs_of)
		vmptrld(c);
	if (c->o->event_trace) {
		vmt_ptenc_cfe(c->e, 7, 0, true);
		fup(c);
	}
	vmt_ptenc_pip(c->e, c->worlds[c->vmcs_of].cr3, true);
	if (luck == 1) { /* late failure */
		vmt_ptenc_pip(c->e, w->cr3, false);
		w->at = some_function(c, w);
		c->out->failed_entries++;
	} else {
		c->world = c->vmcs_of;
		send_mode(c);
		c->out->entries++;
	}
	ip_packet(c, VMT_PTENC_TIP, ip_of(now(c)));
	c->confirmed = c->out->nr_truth;
}

static void record(struct cpu *c, const struct vmt_prog_insn *i)
{
	struct vmt_flowgen *out = c->out;

	if (out->nr_truth == c->cap_truth) {
		c->cap_truth = c->cap_truth ? c->cap_truth * 2 : 4096;
		out->truth = realloc(out->truth, c->cap_truth * sizeof(*out->truth));
		if (!out->truth)
			abort();
	}
	out->truth[out->nr_truth++] = (struct vmt_flowgen_insn){ i->ip, c->world != 0 };
}

static void mov_cr3(struct cpu *c)
{
	struct world *w = now(c);

	flush(c);
	w->cr3 ^= 0x1000;
	vmt_ptenc_pip(c->e, w->cr3, c->world != 0);
	c->confirmed = c->out->nr_truth;
	w->at++;
}

static void ptwrite(struct cpu *c, const struct vmt_prog_insn *i)
{
	const bool ip = below(c, 2);

	flush(c);
	vmt_ptenc_ptw(c->e, 8, i->ip, ip);
	if (ip)
		fup(c);
	record(c, i);
	if (!ip)
		c->confirmed = c->out->nr_truth;
	now(c)->at++;
}

static void run(struct cpu *c)
{
	struct world *w = now(c);
	const struct vmt_prog_insn *i = &w->prog.insns[w->at];
	const struct vmt_prog_insn *target = &w->prog.insns[i->target];
	uint32_t to;
	bool taken;

	if (i->class == VMT_PROG_PTWRITE) {
		ptwrite(c, i);
		return;
	}
	if (i->class == VMT_PROG_IRET && c->o->event_trace) {
		flush(c);
		vmt_ptenc_cfe(c->e, 2, 0, true);
		fup(c);
	}
	record(c, i);
	switch (i->class) {
	case VMT_PROG_JCC:
		if (disable_sync(c, true, target->ip))
			return;
		taken = is_taken(c, i->ip);
		w->at = taken ? i->target : w->at + 1;
		send_bit(c, taken);
		return;
	case VMT_PROG_CALL:
		if (disable_sync(c, false, target->ip))
			return;
		push(c, w->at + 1);
		w->at = i->target;
		return;
	case VMT_PROG_JMP:
		if (!disable_sync(c, false, target->ip))
			w->at = i->target;
		return;
	case VMT_PROG_CALL_NEXT:
		w->at++;
		return;
	case VMT_PROG_RET:
		do_return(c);
		return;
	case VMT_PROG_CALL_INDIRECT:
	case VMT_PROG_JMP_INDIRECT:
	case VMT_PROG_SYSCALL:
	case VMT_PROG_IRET:
		to = indirect_target(c, w);
		if (disable_sync(c, false, w->prog.insns[to].ip))
			return;
		if (i->class == VMT_PROG_CALL_INDIRECT)
			push(c, w->at + 1);
		w->at = to;
		send_tip(c, ip_of(w), false);
		return;
	case VMT_PROG_VMENTRY:
		vm_entry(c);
		return;
	case VMT_PROG_MOV_CR3:
		mov_cr3(c);
		return;
	default:
		w->at++;
		return;
	}
}

static void step(struct cpu *c)
{
	c->tsc += 3;
	if (c->world && chance(c, 2000))
		vm_exit(c);
	else if (chance(c, c->o->interrupt))
		interrupt(c);
	else if (chance(c, c->o->overflow))
		overflow(c);
	else if (chance(c, c->o->disable))
		disable_async(c);
	else if (chance(c, c->o->psb)) {
		if (c->o->versions && !c->world)
			patch(c);
		psb(c);
	} else if (!c->world && c->o->guests && chance(c, 300))
		vmptrld(c);
	run(c);
}

static void make_worlds(struct cpu *c)
{
	static const unsigned int modes[] = { 64, 64, 32, 16 };

	for (unsigned int i = 0; i <= c->o->guests; i++) {
		struct world *w = &c->worlds[i];
		const struct vmt_image_space wide = { .world = VMT_IMAGE_GUEST };
		struct vmt_image_space space = { .world = VMT_IMAGE_HOST };
		const unsigned int mode = modes[i ? i + c->o->seed % 2 : 0];

		vmt_prog_build(&w->prog, c->o->seed * 8 + i, mode, c->o->functions, i == 0);
		w->cr3 = HOST_CR3 + i * 0x100000;
		w->vmcs = i ? 0x1bff6a000u + i * 0x1000u : 0xffffffffff000u;
		if (i) { /* two address spaces with this code, beside a wide one that is wrong */
			uint8_t wrong[64];

			memset(wrong, 0xc3, sizeof(wrong));
			add_section(c, wide, w->prog.base, 0, wrong, sizeof(wrong));
			space = (struct vmt_image_space){ VMT_IMAGE_GUEST, true, true, w->cr3,
							  w->vmcs };
			add_section(c, space, w->prog.base, 0, w->prog.bytes, w->prog.len);
			space.cr3 ^= 0x1000;
		}
		add_section(c, space, w->prog.base, 0, w->prog.bytes, w->prog.len);
	}
}

void vmt_flowgen_run(struct vmt_flowgen *out, const struct vmt_flowgen_options *options)
{
	struct cpu c = { .o = options, .out = out, .random = options->seed, .tsc = FIRST_TSC };

	*out = (struct vmt_flowgen){ 0 };
	c.e = &out->stream;
	make_worlds(&c);
	psb(&c);
	while (out->nr_truth < options->instructions)
		step(&c);
	disable_async(&c);
	for (unsigned int i = 0; i <= options->guests; i++)
		vmt_prog_free(&c.worlds[i].prog);
}

void vmt_flowgen_free(struct vmt_flowgen *gen)
{
	vmt_ptenc_free(&gen->stream);
	free(gen->truth);
	for (size_t i = 0; i < gen->nr_sections; i++)
		free(gen->sections[i].bytes);
	free(gen->sections);
}

struct vmt_image *vmt_flowgen_image(const struct vmt_flowgen *gen)
{
	struct vmt_image *image = vmt_image_new();

	if (!image)
		abort();
	for (size_t i = 0; i < gen->nr_sections; i++) {
		const struct vmt_flowgen_section *s = &gen->sections[i];

		if (vmt_image_add(image, &s->space, s->addr, s->bytes, s->len, s->from, NULL))
			abort();
	}
	if (vmt_image_seal(image, NULL))
		abort();
	return image;
}
