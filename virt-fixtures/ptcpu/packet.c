// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Single packets. Invariants: TNT bits that wait are sent before any other packet, so the stream is
 * in execution order; last_ip changes only with packets that were really sent, so a decoder that
 * starts at any PSB can follow it; nothing is sent while TriggerEn is 0 or during an overflow.
 */
#include "virt-fixtures/ptcpu/ptcpu.h"
#include "virt-fixtures/ptcpu/truth_log.h"

enum { SHORT_TNT = 6 };

static uint64_t now(const struct ptcpu *p)
{
	return bochs.get_tsc(p->cpu);
}

static void put(struct ptcpu *p, const uint8_t *bytes, size_t count)
{
	if (!ptcpu_trigger_en(p) || p->overflow_left)
		return;
	p->bytes_since_psb += count;
	topa_write(p, bytes, count);
}

/* Core clocks since the last CYC packet: the emulated core runs at the TSC's rate. */
static void put_cyc(struct ptcpu *p, uint64_t tsc)
{
	uint64_t cycles = tsc - p->cyc_tsc;
	unsigned int threshold = RTIT_CYC_THRESH(p->ctl);
	uint8_t bytes[10];
	size_t count = 1;

	if (!(p->ctl & RTIT_CYC_EN) || p->overflow_left || !cycles ||
	    (threshold && cycles < 1ULL << (threshold - 1)))
		return;
	p->cyc_tsc = tsc;
	bytes[0] = (uint8_t)(3 | (cycles & 31) << 3);
	for (cycles >>= 5; cycles; cycles >>= 7) {
		bytes[count - 1] |= count == 1 ? 4 : 1;
		bytes[count++] = (uint8_t)((cycles & 127) << 1);
	}
	put(p, bytes, count);
}

void packet_flush_tnt(struct ptcpu *p)
{
	uint8_t byte;

	if (!p->tnt_count)
		return;
	byte = (uint8_t)((1U << p->tnt_count | (unsigned int)p->tnt) << 1);
	p->tnt_count = 0;
	p->tnt = 0;
	if (p->ctl & RTIT_DIS_TNT)
		return;
	put_cyc(p, p->tnt_tsc);
	put(p, &byte, 1);
}

void packet_tnt(struct ptcpu *p, bool taken)
{
	if (!p->tnt_count)
		p->tnt_tsc = now(p);
	p->tnt = p->tnt << 1 | taken;
	if (++p->tnt_count == SHORT_TNT)
		packet_flush_tnt(p);
}

/* A packet that no CYC goes with. */
static void send(struct ptcpu *p, const uint8_t *bytes, size_t count)
{
	packet_flush_tnt(p);
	put(p, bytes, count);
}

static void send_timed(struct ptcpu *p, const uint8_t *bytes, size_t count)
{
	packet_flush_tnt(p);
	put_cyc(p, now(p));
	put(p, bytes, count);
}

static void store(uint8_t *bytes, uint64_t value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

static bool sign_extends(uint64_t ip)
{
	return (uint64_t)((int64_t)(ip << 16) >> 16) == ip;
}

/* IPBytes and payload size of the shortest form against last_ip. */
static void compress(uint64_t last, uint64_t ip, unsigned int *form, size_t *count)
{
	if (last >> 16 == ip >> 16) {
		*form = 1;
		*count = 2;
	} else if (last >> 32 == ip >> 32) {
		*form = 2;
		*count = 4;
	} else if (last >> 48 == ip >> 48) {
		*form = 4;
		*count = 6;
	} else if (sign_extends(ip)) {
		*form = 3;
		*count = 6;
	} else {
		*form = 6;
		*count = 8;
	}
}

void packet_ip(struct ptcpu *p, enum ptcpu_ip_packet kind, uint64_t ip)
{
	uint8_t bytes[9];
	unsigned int form;
	size_t count;

	compress(p->last_ip, ip, &form, &count);
	bytes[0] = (uint8_t)((unsigned int)kind | form << 5);
	store(bytes + 1, ip, count);
	if (kind == PACKET_FUP)
		send(p, bytes, count + 1);
	else
		send_timed(p, bytes, count + 1);
	if (ptcpu_trigger_en(p) && !p->overflow_left)
		p->last_ip = ip;
}

void packet_ip_suppressed(struct ptcpu *p, enum ptcpu_ip_packet kind)
{
	const uint8_t byte = (uint8_t)kind;

	send_timed(p, &byte, 1);
}

void packet_mode(struct ptcpu *p)
{
	const uint8_t bytes[2] = { 0x99, (uint8_t)ptcpu_mode(p) };

	send_timed(p, bytes, sizeof(bytes));
	p->mode = p->overflow_left ? ~0U : bytes[1];
}

void packet_pip(struct ptcpu *p, uint64_t cr3, bool nr)
{
	/* bits 11:5 of CR3 count with PAE paging only: not in IA-32e mode */
	const bool pae = (bochs_u32(p->cpu, BOCHS_CR4) & 1U << 5) &&
			 !(bochs_u32(p->cpu, BOCHS_EFER) & 1U << 10);
	uint8_t bytes[8] = { 0x02, 0x43 };

	cr3 &= pae ? 0xfffffffffffe0ULL : 0xffffffffff000ULL;
	store(bytes + 2, cr3 >> 4 | nr, 6);
	send_timed(p, bytes, sizeof(bytes));
}

void packet_vmcs(struct ptcpu *p, uint64_t vmcs)
{
	uint8_t bytes[7] = { 0x02, 0xc8 };

	store(bytes + 2, vmcs >> 12, 5);
	send_timed(p, bytes, sizeof(bytes));
}

void packet_cfe(struct ptcpu *p, unsigned int type, bool ip, unsigned int vector)
{
	const uint8_t bytes[4] = { 0x02, 0x13, (uint8_t)(type | (ip ? 0x80U : 0)),
				   (uint8_t)vector };

	send(p, bytes, sizeof(bytes));
}

void packet_evd(struct ptcpu *p, unsigned int type, uint64_t payload)
{
	uint8_t bytes[11] = { 0x02, 0x53, (uint8_t)type };

	store(bytes + 3, payload, 8);
	send(p, bytes, sizeof(bytes));
}

void packet_trace_stop(struct ptcpu *p)
{
	const uint8_t bytes[2] = { 0x02, 0x83 };

	send(p, bytes, sizeof(bytes));
}

void packet_overflow(struct ptcpu *p)
{
	const uint8_t bytes[2] = { 0x02, 0xf3 };

	p->tnt_count = 0;
	p->tnt = 0;
	p->ret_count = 0;
	p->mode = ~0U;
	send_timed(p, bytes, sizeof(bytes));
}

static void schedule_mtc(struct ptcpu *p, uint64_t tsc)
{
	const unsigned int shift = RTIT_MTC_FREQ(p->ctl);
	const uint64_t count = tsc / PTCPU_TSC_PER_CRYSTAL >> shift;

	p->next_mtc_tsc =
		p->ctl & RTIT_MTC_EN ? ((count + 1) << shift) * PTCPU_TSC_PER_CRYSTAL : UINT64_MAX;
}

void packet_mtc(struct ptcpu *p, uint64_t tsc)
{
	const uint8_t bytes[2] = { 0x59, (uint8_t)(tsc / PTCPU_TSC_PER_CRYSTAL >>
						   RTIT_MTC_FREQ(p->ctl)) };

	send_timed(p, bytes, sizeof(bytes));
	schedule_mtc(p, tsc);
}

void packet_time(struct ptcpu *p)
{
	const uint64_t tsc = now(p), crystal = tsc / PTCPU_TSC_PER_CRYSTAL;
	const uint64_t seen = bochs.adjust_tsc(p->cpu, tsc);
	const uint8_t cbr[4] = { 0x02, 0x03, PTCPU_BUS_RATIO, 0 };
	uint8_t bytes[8] = { 0x19 };

	if (p->ctl & RTIT_TSC_EN) {
		packet_flush_tnt(p);
		put_cyc(p, tsc);
		if (ptcpu_trigger_en(p) && !p->overflow_left)
			truth_tsc(p, tsc, seen);
		store(bytes + 1, seen, 7);
		put(p, bytes, sizeof(bytes));
		if (p->ctl & RTIT_MTC_EN) {
			uint8_t tma[7] = { 0x02, 0x73 };

			store(tma + 2, crystal, 2);
			store(tma + 5, tsc - crystal * PTCPU_TSC_PER_CRYSTAL, 2);
			put(p, tma, sizeof(tma));
		}
	}
	send(p, cbr, sizeof(cbr));
	schedule_mtc(p, tsc);
}

void packet_psb(struct ptcpu *p, uint64_t ip)
{
	static const uint8_t psb[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	static const uint8_t end[2] = { 2, 0x23 };

	send(p, psb, sizeof(psb));
	if (p->overflow_left)
		return;
	p->bytes_since_psb = sizeof(psb);
	p->last_ip = 0;
	p->ret_count = 0;
	packet_time(p);
	if (bochs_u8(p->cpu, BOCHS_IN_VMX) && !vmx_concealed(p))
		packet_vmcs(p, bochs_u64(p->cpu, BOCHS_VMCS));
	if (p->context_en && (p->ctl & RTIT_OS))
		packet_pip(p, bochs_u64(p->cpu, BOCHS_CR3), vmx_nr(p));
	if (ptcpu_packet_en(p)) {
		packet_mode(p);
		packet_ip(p, PACKET_FUP, ip);
	}
	send(p, end, sizeof(end));
}
