/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One function a packet statement: it takes the words, writes the packet and notes it with all
 * values in full, as the packet layer must give it back.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_vtt_private.h"

#define MAX_PACKETS (1u << 18)

/* Notes what the packet that begins at offset is. */
static bool __attribute__((format(printf, 3, 4)))
note(struct vmt_vtt_state *s, size_t offset, const char *format, ...)
{
	struct vmt_vtt *out = s->out;
	struct vmt_vtt_packet *p;
	va_list args;

	if (out->nr_packets == MAX_PACKETS)
		return vmt_vtt_fail(s, "more than %u packets", MAX_PACKETS);
	if (out->nr_packets == s->cap_packets) {
		s->cap_packets = 2 * s->cap_packets + 64;
		out->packets = realloc(out->packets, s->cap_packets * sizeof(*out->packets));
		if (!out->packets)
			abort();
	}
	p = &out->packets[out->nr_packets++];
	p->offset = offset;
	va_start(args, format);
	vsnprintf(p->text, sizeof(p->text), format, args);
	va_end(args);
	return true;
}

static const char *flag_text(bool flag, const char *text)
{
	return flag ? text : "";
}

static bool do_pad(struct vmt_vtt_state *s)
{
	uint64_t count = 1;

	if (s->line.nr_words > 1 && !vmt_vtt_position(s, 1, 4096, &count))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		if (!note(s, s->out->stream.len, "pad"))
			return false;
		vmt_ptenc_pad(&s->out->stream);
	}
	return true;
}

static bool do_plain(struct vmt_vtt_state *s)
{
	static const struct {
		const char *name;
		void (*put)(struct vmt_ptenc *e);
	} plain[] = {
		{ "psb", vmt_ptenc_psb },
		{ "psbend", vmt_ptenc_psbend },
		{ "ovf", vmt_ptenc_ovf },
		{ "tracestop", vmt_ptenc_tracestop },
	};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(s->line.words[0], plain[i].name)) {
			note(s, s->out->stream.len, "%s", plain[i].name);
			plain[i].put(&s->out->stream);
		}
	return true;
}

static bool do_ip(struct vmt_vtt_state *s)
{
	static const struct {
		const char *name;
		enum vmt_ptenc_form form;
	} forms[] = {
		{ "update16", VMT_PTENC_UPDATE_16 }, { "update32", VMT_PTENC_UPDATE_32 },
		{ "sign48", VMT_PTENC_SIGN_48 },     { "update48", VMT_PTENC_UPDATE_48 },
		{ "full", VMT_PTENC_FULL },
	};
	const char *name = s->line.words[0], *address = vmt_vtt_word(s, 1);
	enum vmt_ptenc_ip kind = !strcmp(name, "tip")	    ? VMT_PTENC_TIP
				 : !strcmp(name, "tip.pge") ? VMT_PTENC_TIP_PGE
				 : !strcmp(name, "tip.pgd") ? VMT_PTENC_TIP_PGD
							    : VMT_PTENC_FUP;
	enum vmt_ptenc_form form = VMT_PTENC_AUTO;
	const size_t offset = s->out->stream.len;
	uint64_t ip;

	if (!address)
		return vmt_vtt_fail(s, "%s: an address or - is missing", name);
	if (!strcmp(address, "-")) {
		vmt_ptenc_ip(&s->out->stream, kind, VMT_PTENC_SUPPRESSED, 0);
		return note(s, offset, "%s -", name);
	}
	if (!vmt_vtt_number(s, address, UINT64_MAX, &ip))
		return false;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (vmt_vtt_flag(s, forms[i].name))
			form = forms[i].form;
	if (!vmt_ptenc_ip(&s->out->stream, kind, form, ip))
		return vmt_vtt_fail(s, "%s: this form does not give 0x%" PRIx64 " here", name, ip);
	return note(s, offset, "%s 0x%" PRIx64, name, ip);
}

static bool do_tnt(struct vmt_vtt_state *s)
{
	const char *results = vmt_vtt_word(s, 1);
	const bool is_long = !strcmp(s->line.words[0], "tnt.long");
	const size_t count = results ? strlen(results) : 0, offset = s->out->stream.len;
	uint64_t bits = 0;

	if (!count || count > (is_long ? 47 : 6) || strspn(results, "TN") != count)
		return vmt_vtt_fail(s, "%s: not %s times T or N", s->line.words[0],
				    is_long ? "1 to 47" : "1 to 6");
	for (size_t i = 0; i < count; i++)
		bits = bits << 1 | (results[i] == 'T');
	if (!is_long && s->item_bytes && !(bits & 1) && (count == 1 || bits & 2))
		return vmt_vtt_fail(s, "tnt: in an open block this is a BIP's first byte");
	if (is_long)
		vmt_ptenc_tnt_long(&s->out->stream, bits, (unsigned int)count);
	else
		vmt_ptenc_tnt(&s->out->stream, bits, (unsigned int)count);
	return note(s, offset, "%s %s", s->line.words[0], results);
}

static bool do_pip(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	uint64_t cr3, nr;

	if (!vmt_vtt_field(s, "cr3", true, 0xfffffffffffff, &cr3) ||
	    !vmt_vtt_field(s, "nr", true, 1, &nr))
		return false;
	vmt_ptenc_pip(&s->out->stream, cr3, nr);
	return note(s, offset, "pip cr3=0x%" PRIx64 " nr=%" PRIu64, cr3 & ~UINT64_C(0x1f), nr);
}

static bool do_vmcs(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	uint64_t pointer;

	if (!vmt_vtt_position(s, 1, 0xfffffffffffff, &pointer))
		return false;
	vmt_ptenc_vmcs(&s->out->stream, pointer);
	return note(s, offset, "vmcs 0x%" PRIx64, pointer & ~UINT64_C(0xfff));
}

static bool do_mode_exec(struct vmt_vtt_state *s)
{
	static const char *const widths[] = { "16", "64", "32", "bad" };
	const size_t offset = s->out->stream.len;
	const char *width = vmt_vtt_word(s, 1);
	const bool interrupts = vmt_vtt_flag(s, "if");

	for (unsigned int bits = 0; width && bits < 4; bits++)
		if (!strcmp(width, widths[bits])) {
			vmt_ptenc_mode_exec(&s->out->stream,
					    (uint8_t)(bits | (interrupts ? 4u : 0u)));
			return note(s, offset, "mode.exec %s%s", width,
				    flag_text(interrupts, " if"));
		}
	return vmt_vtt_fail(s, "mode.exec: not 16, 32, 64 or bad");
}

static bool do_mode_tsx(struct vmt_vtt_state *s)
{
	static const char *const states[] = { "end", "begin", "abort", "bad" };
	const size_t offset = s->out->stream.len;
	const char *state = vmt_vtt_word(s, 1);

	for (unsigned int bits = 0; state && bits < 4; bits++)
		if (!strcmp(state, states[bits])) {
			vmt_ptenc_mode_tsx(&s->out->stream, (uint8_t)bits);
			return note(s, offset, "mode.tsx %s", state);
		}
	return vmt_vtt_fail(s, "mode.tsx: not begin, end, abort or bad");
}

/* tsc, mtc, cyc, cbr, mnt: one number. */
static bool do_number(struct vmt_vtt_state *s)
{
	const char *name = s->line.words[0];
	struct vmt_ptenc *e = &s->out->stream;
	const size_t offset = e->len;
	const bool is_byte = !strcmp(name, "mtc") || !strcmp(name, "cbr");
	uint64_t value;

	if (!vmt_vtt_position(s, 1, is_byte ? 255 : UINT64_MAX, &value))
		return false;
	if (!strcmp(name, "tsc"))
		vmt_ptenc_tsc(e, value &= 0xffffffffffffff);
	else if (!strcmp(name, "mtc"))
		vmt_ptenc_mtc(e, (uint8_t)value);
	else if (!strcmp(name, "cyc"))
		vmt_ptenc_cyc(e, value);
	else if (!strcmp(name, "cbr"))
		vmt_ptenc_cbr(e, (uint8_t)value);
	else
		vmt_ptenc_mnt(e, value);
	return note(s, offset, "%s 0x%" PRIx64, name, value);
}

static bool do_tma(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	uint64_t ctc, fc;

	if (!vmt_vtt_field(s, "ctc", true, 0xffff, &ctc) ||
	    !vmt_vtt_field(s, "fc", true, 0x1ff, &fc))
		return false;
	vmt_ptenc_tma(&s->out->stream, (uint16_t)ctc, (uint16_t)fc);
	return note(s, offset, "tma ctc=0x%" PRIx64 " fc=0x%" PRIx64, ctc, fc);
}

static bool do_ptw(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	const bool ip = vmt_vtt_flag(s, "ip");
	uint64_t bytes, value;

	if (!vmt_vtt_position(s, 1, 8, &bytes))
		return false;
	if (bytes != 4 && bytes != 8)
		return vmt_vtt_fail(s, "ptw: neither 4 nor 8 bytes");
	if (!vmt_vtt_position(s, 2, bytes == 4 ? UINT32_MAX : UINT64_MAX, &value))
		return false;
	vmt_ptenc_ptw(&s->out->stream, (unsigned int)bytes, value, ip);
	return note(s, offset, "ptw %" PRIu64 " 0x%" PRIx64 "%s", bytes, value,
		    flag_text(ip, " ip"));
}

static bool do_exstop(struct vmt_vtt_state *s)
{
	const bool ip = vmt_vtt_flag(s, "ip");

	note(s, s->out->stream.len, "exstop%s", flag_text(ip, " ip"));
	vmt_ptenc_exstop(&s->out->stream, ip);
	return true;
}

static bool do_mwait(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	uint64_t hints, ext;

	if (!vmt_vtt_field(s, "hints", true, 255, &hints) ||
	    !vmt_vtt_field(s, "ext", true, 3, &ext))
		return false;
	vmt_ptenc_mwait(&s->out->stream, (uint8_t)hints, (uint8_t)ext);
	return note(s, offset, "mwait hints=0x%" PRIx64 " ext=%" PRIu64, hints, ext);
}

static bool do_pwre(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	const bool hw = vmt_vtt_flag(s, "hw");
	uint64_t state, sub;

	if (!vmt_vtt_field(s, "state", true, 15, &state) ||
	    !vmt_vtt_field(s, "sub", true, 15, &sub))
		return false;
	vmt_ptenc_pwre(&s->out->stream, (uint8_t)state, (uint8_t)sub, hw);
	return note(s, offset, "pwre state=%" PRIu64 " sub=%" PRIu64 "%s", state, sub,
		    flag_text(hw, " hw"));
}

static bool do_pwrx(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	uint64_t last, deepest, wake;

	if (!vmt_vtt_field(s, "last", true, 15, &last) ||
	    !vmt_vtt_field(s, "deepest", true, 15, &deepest) ||
	    !vmt_vtt_field(s, "wake", true, 15, &wake))
		return false;
	vmt_ptenc_pwrx(&s->out->stream, (uint8_t)last, (uint8_t)deepest, (uint8_t)wake);
	return note(s, offset, "pwrx last=%" PRIu64 " deepest=%" PRIu64 " wake=%" PRIu64, last,
		    deepest, wake);
}

static bool do_bbp(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	uint64_t type, bytes;

	if (!vmt_vtt_position(s, 1, 31, &type) || !vmt_vtt_position(s, 2, 8, &bytes))
		return false;
	if (bytes != 4 && bytes != 8)
		return vmt_vtt_fail(s, "bbp: neither 4 nor 8 bytes an item");
	s->item_bytes = (unsigned int)bytes;
	vmt_ptenc_bbp(&s->out->stream, (uint8_t)type, s->item_bytes);
	return note(s, offset, "bbp 0x%" PRIx64 " %" PRIu64, type, bytes);
}

static bool do_bip(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	uint64_t id, value;

	if (!s->item_bytes)
		return vmt_vtt_fail(s, "bip: no block is open");
	if (!vmt_vtt_position(s, 1, 31, &id) ||
	    !vmt_vtt_position(s, 2, s->item_bytes == 4 ? UINT32_MAX : UINT64_MAX, &value))
		return false;
	vmt_ptenc_bip(&s->out->stream, (uint8_t)id, s->item_bytes, value);
	return note(s, offset, "bip 0x%" PRIx64 " 0x%" PRIx64, id, value);
}

static bool do_bep(struct vmt_vtt_state *s)
{
	const bool ip = vmt_vtt_flag(s, "ip");

	note(s, s->out->stream.len, "bep%s", flag_text(ip, " ip"));
	vmt_ptenc_bep(&s->out->stream, ip);
	s->item_bytes = 0;
	return true;
}

/* A type by one of names or by number. */
static bool take_type(struct vmt_vtt_state *s, const char *const *names, size_t nr, uint64_t max,
		      uint64_t *type)
{
	const char *word = vmt_vtt_word(s, 1);

	if (!word)
		return vmt_vtt_fail(s, "%s: the type is missing", s->line.words[0]);
	for (size_t i = 0; i < nr; i++)
		if (names[i] && !strcmp(names[i], word)) {
			*type = i;
			return true;
		}
	return vmt_vtt_number(s, word, max, type);
}

static bool do_cfe(struct vmt_vtt_state *s)
{
	static const char *const names[] = {
		NULL,	  "INTR",	 "IRET",     "SMI", "RSM",   "SIPI",  "INIT",	"VMENTRY",
		"VMEXIT", "VMEXIT_INTR", "SHUTDOWN", NULL,  "UINTR", "UIRET", "SWINTR", "SYSCALL",
	};
	const size_t nr = sizeof(names) / sizeof(names[0]), offset = s->out->stream.len;
	uint64_t type, ip = 0, vector = 0;

	if (!take_type(s, names, nr, 31, &type) || !vmt_vtt_field(s, "ip", false, 1, &ip) ||
	    !vmt_vtt_field(s, "vec", false, 255, &vector))
		return false;
	vmt_ptenc_cfe(&s->out->stream, (uint8_t)type, (uint8_t)vector, ip);
	if (type < nr && names[type])
		return note(s, offset, "cfe %s ip=%" PRIu64 " vec=%" PRIu64, names[type], ip,
			    vector);
	return note(s, offset, "cfe 0x%" PRIx64 " ip=%" PRIu64 " vec=%" PRIu64, type, ip, vector);
}

static bool do_evd(struct vmt_vtt_state *s)
{
	static const char *const names[] = { "PFA", "VMXQ", "VMXR" };
	const size_t offset = s->out->stream.len;
	uint64_t type, value;

	if (!take_type(s, names, 3, 63, &type) || !vmt_vtt_position(s, 2, UINT64_MAX, &value))
		return false;
	vmt_ptenc_evd(&s->out->stream, (uint8_t)type, value);
	if (type < 3)
		return note(s, offset, "evd %s 0x%" PRIx64, names[type], value);
	return note(s, offset, "evd 0x%" PRIx64 " 0x%" PRIx64, type, value);
}

static bool do_trig(struct vmt_vtt_state *s)
{
	const size_t offset = s->out->stream.len;
	const bool ip = vmt_vtt_flag(s, "ip"), multiple = vmt_vtt_flag(s, "mult");
	uint64_t triggers, count = UINT64_MAX;
	char text[24] = "";

	if (!vmt_vtt_position(s, 1, 255, &triggers) ||
	    !vmt_vtt_field(s, "icnt", false, 0xffff, &count))
		return false;
	vmt_ptenc_trig(&s->out->stream, (uint8_t)triggers, ip, multiple,
		       count > 0xffff ? -1 : (int)count);
	if (count <= 0xffff)
		snprintf(text, sizeof(text), " icnt=%u", (unsigned int)count);
	return note(s, offset, "trig 0x%" PRIx64 "%s%s%s", triggers, flag_text(ip, " ip"),
		    flag_text(multiple, " mult"), text);
}

/* closes: ends an open block (SDM vol. 3 33.4.2, "Block" packets). */
static const struct {
	const char *name;
	bool (*run)(struct vmt_vtt_state *s);
	bool closes;
} packets[] = {
	{ "pad", do_pad, false },	   { "psb", do_plain, true },
	{ "psbend", do_plain, true },	   { "ovf", do_plain, true },
	{ "tracestop", do_plain, true },   { "tip", do_ip, true },
	{ "tip.pge", do_ip, true },	   { "tip.pgd", do_ip, true },
	{ "fup", do_ip, false },	   { "tnt", do_tnt, true },
	{ "tnt.long", do_tnt, true },	   { "pip", do_pip, true },
	{ "vmcs", do_vmcs, true },	   { "mode.exec", do_mode_exec, true },
	{ "mode.tsx", do_mode_tsx, true }, { "tsc", do_number, false },
	{ "mtc", do_number, false },	   { "cyc", do_number, false },
	{ "cbr", do_number, false },	   { "mnt", do_number, false },
	{ "tma", do_tma, false },	   { "ptw", do_ptw, true },
	{ "exstop", do_exstop, false },	   { "mwait", do_mwait, true },
	{ "pwre", do_pwre, false },	   { "pwrx", do_pwrx, false },
	{ "bbp", do_bbp, false },	   { "bip", do_bip, false },
	{ "bep", do_bep, true },	   { "cfe", do_cfe, true },
	{ "evd", do_evd, true },	   { "trig", do_trig, false },
};

bool vmt_vtt_packet_statement(struct vmt_vtt_state *s, bool *known)
{
	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		if (strcmp(packets[i].name, s->line.words[0]) != 0)
			continue;
		if (!packets[i].run(s))
			return false;
		if (packets[i].closes)
			s->item_bytes = 0;
		return true;
	}
	return *known = false;
}
