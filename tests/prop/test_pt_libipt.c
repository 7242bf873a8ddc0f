/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The packet layer against libipt's, packet by packet: streams of random packets, and random
 * bytes. Debian's libipt 2.0 knows neither Event Trace (CFE, EVD) nor PEBS blocks nor triggers,
 * takes the HW bit of PWRE from another place, and refuses what the manual reserves in TMA and CYC.
 * Without libipt's header at build time the tests are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/packet.h"
#include "tests/support/pt_encode.h"
#include "tests/support/pt_random.h"
#include "tests/support/pt_vtt.h"

#if defined(__has_include) && __has_include(<intel-pt.h>)

#include <intel-pt.h>

#define NR_PACKETS 300000
#define NR_BYTES   200000

static uint64_t state_of_random;

static uint64_t random_below(uint64_t below)
{
	uint64_t x = state_of_random += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

/* ---- libipt's packets as text ---- */

/* SDM table 33-12, from the raw payload that libipt gives. */
static uint64_t rebuild(uint64_t *last_ip, const struct pt_packet_ip *p)
{
	switch (p->ipc) {
	case pt_ipc_suppressed:
		break;
	case pt_ipc_update_16:
		*last_ip = (*last_ip & ~UINT64_C(0xffff)) | p->ip;
		break;
	case pt_ipc_update_32:
		*last_ip = (*last_ip & ~UINT64_C(0xffffffff)) | p->ip;
		break;
	case pt_ipc_update_48:
		*last_ip = (*last_ip & ~UINT64_C(0xffffffffffff)) | p->ip;
		break;
	case pt_ipc_sext_48:
		*last_ip = p->ip | (p->ip >> 47 ? UINT64_C(0xffff) << 48 : 0);
		break;
	case pt_ipc_full:
		*last_ip = p->ip;
		break;
	}
	return *last_ip;
}

static void ip_text(char *buf, size_t size, const char *name, const struct pt_packet_ip *p,
		    uint64_t *last_ip)
{
	const uint64_t ip = rebuild(last_ip, p);

	if (p->ipc == pt_ipc_suppressed)
		snprintf(buf, size, "%s -", name);
	else
		snprintf(buf, size, "%s 0x%" PRIx64, name, ip);
}

static void tnt_text(char *buf, size_t size, const char *name, const struct pt_packet_tnt *p)
{
	char results[65] = "";

	for (unsigned int i = 0; i < p->bit_size && i < 64; i++)
		results[i] = p->payload >> (p->bit_size - 1u - i) & 1 ? 'T' : 'N';
	snprintf(buf, size, "%s %s", name, results);
}

static void mode_text(char *buf, size_t size, const struct pt_packet_mode *p)
{
	static const char *const widths[] = { "16", "64", "32", "bad" };
	static const char *const states[] = { "end", "begin", "abort", "bad" };

	if (p->leaf == pt_mol_exec)
		snprintf(buf, size, "mode.exec %s",
			 widths[p->bits.exec.csl | p->bits.exec.csd << 1]);
	else
		snprintf(buf, size, "mode.tsx %s",
			 states[p->bits.tsx.intx | p->bits.tsx.abrt << 1]);
}

static void number_text(char *buf, size_t size, const char *name, uint64_t value)
{
	snprintf(buf, size, "%s 0x%" PRIx64, name, value);
}

static void power_text(char *buf, size_t size, const struct pt_packet *p)
{
	const struct pt_packet_pwrx *x = &p->payload.pwrx;

	switch (p->type) {
	case ppt_exstop:
		snprintf(buf, size, "exstop%s", p->payload.exstop.ip ? " ip" : "");
		break;
	case ppt_mwait:
		snprintf(buf, size, "mwait hints=0x%x ext=%u", p->payload.mwait.hints & 0xff,
			 p->payload.mwait.ext & 3);
		break;
	case ppt_pwre:
		snprintf(buf, size, "pwre state=%u sub=%u", p->payload.pwre.state,
			 p->payload.pwre.sub_state);
		break;
	default:
		snprintf(buf, size, "pwrx last=%u deepest=%u wake=%u", x->last, x->deepest,
			 x->interrupt | x->store << 2 | x->autonomous << 3);
		break;
	}
}

static void plain_text(char *buf, size_t size, const struct pt_packet *p)
{
	switch (p->type) {
	case ppt_pad:
		snprintf(buf, size, "pad");
		break;
	case ppt_psb:
		snprintf(buf, size, "psb");
		break;
	case ppt_psbend:
		snprintf(buf, size, "psbend");
		break;
	case ppt_ovf:
		snprintf(buf, size, "ovf");
		break;
	case ppt_stop:
		snprintf(buf, size, "tracestop");
		break;
	default:
		snprintf(buf, size, "libipt type %d", (int)p->type);
	}
}

static void libipt_text(char *buf, size_t size, const struct pt_packet *p, uint64_t *last_ip)
{
	switch (p->type) {
	case ppt_fup:
		ip_text(buf, size, "fup", &p->payload.ip, last_ip);
		break;
	case ppt_tip:
		ip_text(buf, size, "tip", &p->payload.ip, last_ip);
		break;
	case ppt_tip_pge:
		ip_text(buf, size, "tip.pge", &p->payload.ip, last_ip);
		break;
	case ppt_tip_pgd:
		ip_text(buf, size, "tip.pgd", &p->payload.ip, last_ip);
		break;
	case ppt_tnt_8:
		tnt_text(buf, size, "tnt", &p->payload.tnt);
		break;
	case ppt_tnt_64:
		tnt_text(buf, size, "tnt.long", &p->payload.tnt);
		break;
	case ppt_mode:
		mode_text(buf, size, &p->payload.mode);
		break;
	case ppt_pip:
		snprintf(buf, size, "pip cr3=0x%" PRIx64 " nr=%u", p->payload.pip.cr3,
			 p->payload.pip.nr);
		break;
	case ppt_vmcs:
		number_text(buf, size, "vmcs", p->payload.vmcs.base);
		break;
	case ppt_cbr:
		number_text(buf, size, "cbr", p->payload.cbr.ratio);
		break;
	case ppt_tsc:
		number_text(buf, size, "tsc", p->payload.tsc.tsc);
		break;
	case ppt_mtc:
		number_text(buf, size, "mtc", p->payload.mtc.ctc);
		break;
	case ppt_cyc:
		number_text(buf, size, "cyc", p->payload.cyc.value);
		break;
	case ppt_mnt:
		number_text(buf, size, "mnt", p->payload.mnt.payload);
		break;
	case ppt_tma:
		snprintf(buf, size, "tma ctc=0x%x fc=0x%x", p->payload.tma.ctc, p->payload.tma.fc);
		break;
	case ppt_ptw:
		snprintf(buf, size, "ptw %d 0x%" PRIx64 "%s", p->payload.ptw.plc ? 8 : 4,
			 p->payload.ptw.payload, p->payload.ptw.ip ? " ip" : "");
		break;
	case ppt_exstop:
	case ppt_mwait:
	case ppt_pwre:
	case ppt_pwrx:
		power_text(buf, size, p);
		break;
	default:
		plain_text(buf, size, p);
	}
}

/* ---- random packets ---- */

static struct pt_packet_decoder *libipt_of(uint8_t *bytes, size_t len)
{
	struct pt_config config;
	struct pt_packet_decoder *decoder;

	pt_config_init(&config);
	config.begin = bytes;
	config.end = bytes + len;
	decoder = pt_pkt_alloc_decoder(&config);
	assert_non_null(decoder);
	assert_int_equal(pt_pkt_sync_set(decoder, 0), 0);
	return decoder;
}

/* What Debian's libipt does not tell: RFLAGS.IF in MODE.Exec and HW in PWRE. */
static void forget_news(struct vmt_pt_packet *p)
{
	if (p->type == VMT_PT_MODE_EXEC)
		p->payload &= 3;
	if (p->type == VMT_PT_PWRE)
		p->payload &= ~UINT64_C(0x80);
	if (p->type == VMT_PT_PWRX)
		p->payload &= ~UINT64_C(0x200);
}

static void one_stream(uint64_t seed)
{
	const struct vmt_pt_random_kinds kinds = { .modes = 4, .old = true, .bare_psb = true };
	struct vmt_ptenc stream = { 0 };
	struct pt_packet_decoder *libipt;
	struct vmt_pt_reader r;
	uint64_t last_ip = 0, packets = 0;

	vmt_pt_random(&stream, &kinds, seed, NR_PACKETS);
	libipt = libipt_of(stream.bytes, stream.len);
	r = vmt_pt_reader_of(stream.bytes, stream.len);
	for (;; packets++) {
		char ours_text[96], their_text[96];
		struct vmt_pt_packet ours;
		struct pt_packet theirs;
		const size_t offset = (size_t)(r.pos - r.begin);
		const int status = pt_pkt_next(libipt, &theirs, sizeof(theirs));

		if (status == -pte_eos)
			break;
		if (vmt_pt_next(&r, &ours, NULL) != 1 || status < 0)
			fail_msg("offset 0x%zx: %s, libipt: %d", offset,
				 vmt_pt_packet_text(ours_text, sizeof(ours_text), &ours), status);
		assert_int_equal(ours.len, theirs.size);
		if (theirs.type == ppt_psb)
			last_ip = 0;
		libipt_text(their_text, sizeof(their_text), &theirs, &last_ip);
		forget_news(&ours);
		if (strcmp(vmt_pt_packet_text(ours_text, sizeof(ours_text), &ours), their_text) !=
		    0)
			fail_msg("offset 0x%zx: %s, libipt: %s", offset, ours_text, their_text);
		if (ours.has_ip)
			assert_int_equal(ours.ip, last_ip);
	}
	assert_ptr_equal(r.pos, r.end);
	assert_true(packets > NR_PACKETS / 2);
	pt_pkt_free_decoder(libipt);
	vmt_ptenc_free(&stream);
}

/* VMT_TEST_LONG=1: ten million packets. */
static void random_packets_are_read_alike(void **state)
{
	const uint64_t streams = getenv("VMT_TEST_LONG") ? 34 : 1;

	(void)state;
	for (uint64_t seed = 1; seed <= streams; seed++)
		one_stream(seed);
}

/* Packets that this libipt refuses although the manual or a newer one has them. */
static bool news(const struct vmt_pt_packet *p)
{
	switch (p->type) {
	case VMT_PT_CFE:
	case VMT_PT_EVD:
	case VMT_PT_BBP:
	case VMT_PT_BIP:
	case VMT_PT_BEP:
	case VMT_PT_TRIG:
		return true;
	case VMT_PT_TMA:
		return p->reserved;
	case VMT_PT_CYC:
		return p->len > 9;
	default:
		return false;
	}
}

static void check_bytes(uint8_t *bytes, size_t len)
{
	struct vmt_pt_reader r = vmt_pt_reader_of(bytes, len);
	struct pt_packet_decoder *libipt = libipt_of(bytes, len);
	char ours_text[96] = "none", their_text[96] = "none";
	struct vmt_pt_packet ours;
	struct pt_packet theirs;
	uint64_t last_ip = 0;
	const int status = vmt_pt_next(&r, &ours, NULL);
	const int their_status = pt_pkt_next(libipt, &theirs, sizeof(theirs));
	bool alike = (status == 1) == (their_status > 0);

	pt_pkt_free_decoder(libipt);
	if (status == 1 && news(&ours))
		return;
	if (status == 1) {
		forget_news(&ours);
		vmt_pt_packet_text(ours_text, sizeof(ours_text), &ours);
	}
	if (their_status > 0)
		libipt_text(their_text, sizeof(their_text), &theirs, &last_ip);
	if (alike && status == 1)
		alike = ours.len == theirs.size && !strcmp(ours_text, their_text);
	if (!alike)
		fail_msg("%02x %02x %02x %02x ...: %d %s, libipt: %d %s", bytes[0], bytes[1],
			 bytes[2], bytes[3], status, ours_text, their_status, their_text);
}

static void random_bytes_are_read_alike(void **state)
{
	(void)state;
	state_of_random = 2;
	for (unsigned int i = 0; i < NR_BYTES; i++) {
		uint8_t bytes[20];

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)random_below(256);
		if (random_below(2))
			bytes[0] = 0x02;
		if (!random_below(8))
			bytes[0] = 0x99;
		check_bytes(bytes, random_below(2) ? sizeof(bytes) : 4 + random_below(16));
	}
}

#else

static void random_packets_are_read_alike(void **state)
{
	(void)state;
	print_message("libipt's header was not there at build time (package libipt-dev)\n");
	skip();
}

static void random_bytes_are_read_alike(void **state)
{
	random_packets_are_read_alike(state);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_packets_are_read_alike),
		cmocka_unit_test(random_bytes_are_read_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
