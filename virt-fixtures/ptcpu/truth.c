// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The truth log. Invariant: records appear in the order in which the processor did things; a block
 * that is being collected is written before any other record.
 */
#include "virt-fixtures/ptcpu/code_pages.h"
#include "virt-fixtures/ptcpu/truth_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BLOCK = 127, MAX_BODY = 160, HASH_EVERY = 1 << 20 };

struct state {
	uint64_t cr3;
	unsigned int bits, cpl;
	bool nr, packet_en;
};

struct log {
	FILE *truth, *stream;
	struct code_pages *pages;
	struct state state;
	bool state_known;
	uint64_t stream_bytes;

	/* the block being collected, and the instruction that has not retired yet */
	uint64_t block_start, block_end, last_end;
	unsigned int block_count;
	uint64_t ip;
	unsigned int len;
	uint64_t instructions, hash, hash_logged;

	/* of the code page in execution */
	uint64_t page;
	bool page_known, decoded;
};

static struct log logs[PTCPU_MAX_CPUS];

static struct log *log_of(const struct ptcpu *p)
{
	struct log *l = &logs[p->id];

	return l->truth ? l : NULL;
}

/* ---- encoding ---- */
struct body {
	uint8_t bytes[MAX_BODY];
	size_t count;
};

static void put_u(struct body *b, uint64_t value)
{
	do {
		b->bytes[b->count++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
		value >>= 7;
	} while (value);
}

static void put_s(struct body *b, int64_t value)
{
	put_u(b, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void flush_block(struct log *l)
{
	struct body b = { .count = 0 };

	if (!l->block_count)
		return;
	b.bytes[b.count++] = (uint8_t)l->block_count;
	put_s(&b, (int64_t)(l->block_start - l->last_end));
	put_u(&b, l->block_end - l->block_start);
	fwrite(b.bytes, 1, b.count, l->truth);
	l->last_end = l->block_end;
	l->block_count = 0;
}

static void write_record(struct log *l, enum truth_type type, const void *bytes, size_t count)
{
	struct body head = { .count = 0 };

	flush_block(l);
	head.bytes[head.count++] = (uint8_t)(128 + (unsigned int)type);
	put_u(&head, count);
	fwrite(head.bytes, 1, head.count, l->truth);
	fwrite(bytes, 1, count, l->truth);
}

static void write_numbers(struct log *l, enum truth_type type, const uint64_t *values, size_t count)
{
	struct body b = { .count = 0 };

	for (size_t i = 0; i < count; i++)
		put_u(&b, values[i]);
	write_record(l, type, b.bytes, b.count);
}

#define RECORD(log, type, ...)                                                                     \
	do {                                                                                       \
		const uint64_t values_[] = { __VA_ARGS__ };                                        \
		write_numbers(log, type, values_, sizeof(values_) / 8);                            \
	} while (0)

static void write_hash(struct log *l)
{
	if (l->hash_logged == l->instructions)
		return;
	l->hash_logged = l->instructions;
	RECORD(l, TRUTH_HASH, l->instructions, l->hash);
}

static uint64_t tsc_of(const struct ptcpu *p)
{
	return bochs.get_tsc(p->cpu);
}

/* Where the next packet byte will stand: those that wait for an EPT mapping come first. */
static uint64_t offset_of(const struct log *l, const struct ptcpu *p)
{
	return l->stream_bytes + p->held_count;
}

/* ---- files ---- */
static FILE *create(const char *folder, const char *name, unsigned int id, const char *suffix)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.cpu%u.%s", folder, name, id, suffix);
	file = fopen(path, "wb");
	if (!file)
		perror(path);
	return file;
}

bool truth_open(const char *folder, const char *name)
{
	truth_close();
	for (unsigned int i = 0; i < bochs_cpu_count() && i < PTCPU_MAX_CPUS; i++) {
		struct log *l = &logs[i];

		*l = (struct log){ .hash = 0xcbf29ce484222325 };
		l->pages = code_pages_new();
		l->truth = create(folder, name, i, "truth");
		l->stream = create(folder, name, i, "pt");
		if (!l->pages || !l->truth || !l->stream)
			return false;
		fwrite(TRUTH_MAGIC, 1, 8, l->truth);
		truth_control(ptcpu_get(i));
	}
	return true;
}

void truth_close(void)
{
	for (unsigned int i = 0; i < PTCPU_MAX_CPUS; i++) {
		struct log *l = &logs[i];

		if (!l->truth)
			continue;
		write_hash(l);
		RECORD(l, TRUTH_END, l->instructions, l->stream_bytes);
		fclose(l->truth);
		fclose(l->stream);
		code_pages_free(l->pages);
		*l = (struct log){ .truth = NULL };
	}
}

void truth_stream(struct ptcpu *p, const uint8_t *bytes, size_t count)
{
	struct log *l = log_of(p);

	if (!l)
		return;
	fwrite(bytes, 1, count, l->stream);
	l->stream_bytes += count;
}

/* ---- instructions ---- */
static void check_state(struct log *l, struct ptcpu *p)
{
	const uint32_t fetch = bochs_u32(p->cpu, BOCHS_FETCH_MODE);
	const struct state s = {
		.cr3 = bochs_u64(p->cpu, BOCHS_CR3),
		.bits = fetch & 2 ? 64 : (fetch & 1 ? 32 : 16),
		.cpl = bochs_u8(p->cpu, BOCHS_CPL),
		.nr = ptcpu_in_guest(p),
		.packet_en = ptcpu_packet_en(p),
	};
	const struct state *o = &l->state;

	if (l->state_known && o->cr3 == s.cr3 && o->bits == s.bits && o->cpl == s.cpl &&
	    o->nr == s.nr && o->packet_en == s.packet_en)
		return;
	l->page_known &= o->cr3 == s.cr3 && o->nr == s.nr;
	l->state = s;
	l->state_known = true;
	RECORD(l, TRUTH_STATE, s.bits, s.nr, s.cpl, s.packet_en, s.cr3, tsc_of(p), offset_of(l, p));
}

/* The page at linear address page << 12 is executed and lies at pa. */
static void check_page(struct log *l, uint64_t page, uint64_t pa)
{
	const uint8_t *image;
	uint64_t number;
	bool is_new;

	image = code_pages_look(l->pages, pa, &number, &is_new);
	if (!image)
		return;
	if (is_new)
		write_record(l, TRUTH_IMAGE, image, CODE_PAGE_BYTES);
	if (code_pages_map(l->pages, l->state.cr3 << 1 | l->state.nr, page, number))
		RECORD(l, TRUTH_MAP, page, number, pa >> 12);
}

static void check_page_at(struct log *l, struct ptcpu *p, uint64_t page)
{
	uint64_t pa, mask;

	if (bochs.translate(p->cpu, page << 12, &pa, &mask, false))
		check_page(l, page, pa & ~0xfffULL);
}

/* Bochs's fetch page is that of the instruction's last byte where it has just been decoded. */
static void check_code(struct log *l, struct ptcpu *p, uint64_t ip, unsigned int len)
{
	const uint64_t page = ip >> 12;

	if ((ip & 0xfff) + len > 0x1000) {
		check_page_at(l, p, page);
		check_page_at(l, p, page + 1);
		l->page_known = false;
		return;
	}
	if (l->page_known && l->page == page && !l->decoded)
		return;
	check_page(l, page, bochs_u64(p->cpu, BOCHS_FETCH_PAGE));
	l->page = page;
	l->page_known = true;
	l->decoded = false;
}

void truth_begin(struct ptcpu *p, uint64_t ip, unsigned int len)
{
	struct log *l = log_of(p);

	if (!l || !(p->ctl & RTIT_BRANCH_EN))
		return;
	check_state(l, p);
	if (l->state.packet_en)
		check_code(l, p, ip, len);
	l->ip = ip;
	l->len = len;
	p->logged = true;
}

void truth_retire(struct ptcpu *p)
{
	struct log *l = log_of(p);

	if (!l || !p->logged)
		return;
	p->logged = false;
	if (l->block_count == MAX_BLOCK || (l->block_count && l->ip != l->block_end))
		flush_block(l);
	if (!l->block_count)
		l->block_start = l->block_end = l->ip;
	l->block_count++;
	l->block_end += l->len;
	l->instructions++;
	l->hash = (l->hash ^ l->ip) * 0x100000001b3;
	if (l->instructions - l->hash_logged >= HASH_EVERY)
		write_hash(l);
}

void truth_decoded(struct ptcpu *p)
{
	logs[p->id].decoded = true;
}

/* ---- events ---- */
void truth_entry(struct ptcpu *p)
{
	struct log *l = log_of(p);
	const bool scaled = bochs_u32(p->cpu, BOCHS_SECONDARY) & VMX2_TSC_SCALING;

	if (!l)
		return;
	RECORD(l, TRUTH_ENTRY_CONTROLS, bochs_u32(p->cpu, BOCHS_SECONDARY), vmx_exit_controls(p),
	       vmx_entry_controls(p), p->ctl, p->old_ctl);
	RECORD(l, TRUTH_ENTRY, p->host_tsc, p->guest_tsc, p->vmcs, p->transition_ip, p->guest_rip,
	       p->guest_cr3, offset_of(l, p), bochs_u64(p->cpu, BOCHS_TSC_OFFSET),
	       scaled ? bochs_u64(p->cpu, BOCHS_TSC_MULTIPLIER) : 1ULL << 48);
}

void truth_exit(struct ptcpu *p)
{
	struct log *l = log_of(p);

	if (!l)
		return;
	write_hash(l);
	RECORD(l, TRUTH_EXIT, p->host_tsc, p->guest_tsc, p->vmcs, p->exit_reason,
	       p->exit_qualification, p->exit_interruption, p->guest_rip, p->guest_cr3,
	       bochs_u64(p->cpu, BOCHS_RIP), offset_of(l, p));
}

void truth_event(struct ptcpu *p, unsigned int vector, uint64_t from, uint64_t to)
{
	struct log *l = log_of(p);

	if (l)
		RECORD(l, TRUTH_EVENT, vector, from, to, bochs_u64(p->cpu, BOCHS_CR2), tsc_of(p),
		       ptcpu_in_guest(p));
}

void truth_trace(struct ptcpu *p, bool on, uint64_t ip)
{
	struct log *l = log_of(p);

	if (l)
		RECORD(l, TRUTH_TRACE, on, ip, tsc_of(p), offset_of(l, p));
}

void truth_lost(struct ptcpu *p, enum truth_lost what)
{
	struct log *l = log_of(p);

	if (l)
		RECORD(l, TRUTH_LOST, what, tsc_of(p), offset_of(l, p), l->instructions);
}

void truth_tsc(struct ptcpu *p, uint64_t tsc, uint64_t seen)
{
	struct log *l = log_of(p);

	if (l)
		RECORD(l, TRUTH_TSC, offset_of(l, p), tsc, seen, ptcpu_in_guest(p));
}

void truth_vmptrld(struct ptcpu *p)
{
	struct log *l = log_of(p);

	if (l)
		RECORD(l, TRUTH_VMPTRLD, bochs_u64(p->cpu, BOCHS_VMCS), tsc_of(p));
}

void truth_control(struct ptcpu *p)
{
	struct log *l = log_of(p);

	if (l)
		RECORD(l, TRUTH_CONTROL, p->ctl, p->status, tsc_of(p), offset_of(l, p));
}
