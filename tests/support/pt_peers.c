// SPDX-License-Identifier: LGPL-2.1-or-later
/* Each peer's packets are summed as cheaply as its own structures allow. */
#include "tests/support/pt_peers.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

vmt_pt_sum_perf_fn *vmt_pt_perf_open(const char *path)
{
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	vmt_pt_sum_perf_fn *fn = NULL;
	void *symbol = object ? dlsym(object, "vmt_pt_sum_perf") : NULL;

	memcpy(&fn, &symbol, sizeof(fn));
	return fn;
}

#if defined(__has_include) && __has_include(<intel-pt.h>)

#include <intel-pt.h>

/* By libipt's ipc: bits of the last address that stay. */
static uint64_t rebuild(uint64_t *last_ip, const struct pt_packet_ip *p)
{
	switch (p->ipc) {
	case pt_ipc_suppressed:
		return 0;
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

static const uint8_t ip_types[] = {
	[ppt_tip] = VMT_PT_TIP,
	[ppt_tip_pge] = VMT_PT_TIP_PGE,
	[ppt_tip_pgd] = VMT_PT_TIP_PGD,
	[ppt_fup] = VMT_PT_FUP,
};

static const struct row {
	enum pt_packet_type theirs;
	enum vmt_pt_type ours;
} plain[] = {
	{ ppt_pad, VMT_PT_PAD }, { ppt_psbend, VMT_PT_PSBEND }, { ppt_stop, VMT_PT_TRACESTOP },
	{ ppt_ovf, VMT_PT_OVF }, { ppt_psb, VMT_PT_PSB },
};

static void sum_plain(const struct pt_packet *p, struct vmt_pt_sums *s)
{
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		s->counts[plain[i].ours] += plain[i].theirs == p->type;
}

static void put(struct vmt_pt_sums *s, enum vmt_pt_type type, uint64_t payload)
{
	s->counts[type]++;
	s->payloads += payload;
}

static void sum_one(const struct pt_packet *p, uint64_t *last_ip, struct vmt_pt_sums *s)
{
	const struct pt_packet_mode *mode = &p->payload.mode;

	s->bytes += p->size;
	switch (p->type) {
	case ppt_tnt_8:
		put(s, VMT_PT_TNT, p->payload.tnt.payload);
		break;
	case ppt_pad:
		s->counts[VMT_PT_PAD]++;
		break;
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
	case ppt_fup:
		put(s, (enum vmt_pt_type)ip_types[p->type], p->payload.ip.ip);
		s->ips += rebuild(last_ip, &p->payload.ip);
		break;
	case ppt_cyc:
		put(s, VMT_PT_CYC, p->payload.cyc.value);
		break;
	case ppt_mtc:
		put(s, VMT_PT_MTC, p->payload.mtc.ctc);
		break;
	case ppt_tnt_64:
		put(s, VMT_PT_TNT_LONG, p->payload.tnt.payload);
		break;
	case ppt_pip:
		put(s, VMT_PT_PIP, p->payload.pip.cr3 >> 5 << 1 | p->payload.pip.nr);
		break;
	case ppt_vmcs:
		put(s, VMT_PT_VMCS, p->payload.vmcs.base >> 12);
		break;
	case ppt_tsc:
		put(s, VMT_PT_TSC, p->payload.tsc.tsc);
		break;
	case ppt_tma:
		put(s, VMT_PT_TMA, p->payload.tma.ctc);
		break;
	case ppt_cbr:
		put(s, VMT_PT_CBR, p->payload.cbr.ratio);
		break;
	case ppt_mode:
		if (mode->leaf == pt_mol_exec)
			put(s, VMT_PT_MODE_EXEC, mode->bits.exec.csl | mode->bits.exec.csd << 1);
		else
			put(s, VMT_PT_MODE_TSX, mode->bits.tsx.intx | mode->bits.tsx.abrt << 1);
		break;
	case ppt_psb:
		*last_ip = 0;
		s->counts[VMT_PT_PSB]++;
		break;
	default:
		sum_plain(p, s);
	}
}

static struct pt_packet_decoder *decoder_of(uint8_t *bytes, size_t len)
{
	struct pt_packet_decoder *decoder;
	struct pt_config config;

	pt_config_init(&config);
	config.begin = bytes;
	config.end = bytes + len;
	decoder = pt_pkt_alloc_decoder(&config);
	if (decoder && pt_pkt_sync_set(decoder, 0)) {
		pt_pkt_free_decoder(decoder);
		return NULL;
	}
	return decoder;
}

bool vmt_pt_sum_libipt(uint8_t *bytes, size_t len, struct vmt_pt_sums *sums)
{
	struct pt_packet_decoder *decoder = decoder_of(bytes, len);
	uint64_t last_ip = 0;
	struct pt_packet p;
	int status;

	memset(sums, 0, sizeof(*sums));
	if (!decoder)
		return false;
	while ((status = pt_pkt_next(decoder, &p, sizeof(p))) > 0)
		sum_one(&p, &last_ip, sums);
	pt_pkt_free_decoder(decoder);
	return status == -pte_eos && sums->bytes == len;
}

static const char *name_of(const struct pt_packet *p)
{
	static const char *const names[] = {
		[ppt_pad] = "pad",	   [ppt_psb] = "psb",	  [ppt_psbend] = "psbend",
		[ppt_fup] = "fup",	   [ppt_tip] = "tip",	  [ppt_tip_pge] = "tip.pge",
		[ppt_tip_pgd] = "tip.pgd", [ppt_tnt_8] = "tnt.8", [ppt_tnt_64] = "tnt.64",
		[ppt_mode] = "mode",	   [ppt_pip] = "pip",	  [ppt_vmcs] = "vmcs",
		[ppt_cbr] = "cbr",	   [ppt_tsc] = "tsc",	  [ppt_tma] = "tma",
		[ppt_mtc] = "mtc",	   [ppt_cyc] = "cyc",	  [ppt_stop] = "stop",
		[ppt_ovf] = "ovf",	   [ppt_mnt] = "mnt",	  [ppt_exstop] = "exstop",
		[ppt_mwait] = "mwait",	   [ppt_pwre] = "pwre",	  [ppt_pwrx] = "pwrx",
		[ppt_ptw] = "ptw",
	};
	const size_t type = (size_t)p->type;

	return type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "?";
}

static void print_one(FILE *out, uint64_t offset, const struct pt_packet *p, uint64_t *last_ip)
{
	char results[65];
	unsigned int n = 0;

	switch (p->type) {
	case ppt_tnt_8:
	case ppt_tnt_64:
		for (; n < p->payload.tnt.bit_size && n < 64; n++)
			results[n] =
				p->payload.tnt.payload >> (p->payload.tnt.bit_size - 1u - n) & 1
					? 'T'
					: 'N';
		results[n] = 0;
		fprintf(out, "0x%08" PRIx64 " %2u %s %s\n", offset, p->size, name_of(p), results);
		break;
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
	case ppt_fup:
		fprintf(out, "0x%08" PRIx64 " %2u %s ip_bytes=%d ip=0x%" PRIx64 "\n", offset,
			p->size, name_of(p), p->payload.ip.ipc, rebuild(last_ip, &p->payload.ip));
		break;
	case ppt_pip:
		fprintf(out, "0x%08" PRIx64 " %2u pip cr3=0x%" PRIx64 " nr=%d\n", offset, p->size,
			p->payload.pip.cr3, p->payload.pip.nr);
		break;
	case ppt_cyc:
		fprintf(out, "0x%08" PRIx64 " %2u cyc cycles=%" PRIu64 "\n", offset, p->size,
			p->payload.cyc.value);
		break;
	case ppt_mtc:
		fprintf(out, "0x%08" PRIx64 " %2u mtc ctc=%u\n", offset, p->size,
			p->payload.mtc.ctc);
		break;
	case ppt_tsc:
		fprintf(out, "0x%08" PRIx64 " %2u tsc tsc=0x%" PRIx64 "\n", offset, p->size,
			p->payload.tsc.tsc);
		break;
	case ppt_psb:
		*last_ip = 0;
		/* fall through */
	default:
		fprintf(out, "0x%08" PRIx64 " %2u %s\n", offset, p->size, name_of(p));
	}
}

bool vmt_pt_print_libipt(uint8_t *bytes, size_t len, FILE *out)
{
	struct pt_packet_decoder *decoder = decoder_of(bytes, len);
	uint64_t last_ip = 0, offset = 0;
	struct pt_packet p;

	if (!decoder)
		return false;
	while (pt_pkt_next(decoder, &p, sizeof(p)) > 0) {
		print_one(out, offset, &p, &last_ip);
		offset += p.size;
	}
	pt_pkt_free_decoder(decoder);
	return offset + 16 > len; /* the last one may be cut off */
}

#else

bool vmt_pt_sum_libipt(uint8_t *bytes, size_t len, struct vmt_pt_sums *sums)
{
	(void)bytes;
	(void)len;
	memset(sums, 0, sizeof(*sums));
	return false;
}

bool vmt_pt_print_libipt(uint8_t *bytes, size_t len, FILE *out)
{
	(void)bytes;
	(void)len;
	(void)out;
	return false;
}

#endif
