/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way into perf's packet decoder: run-bench.sh builds this together with
 * tools/perf/util/intel-pt-decoder/intel-pt-pkt-decoder.c of the kernel's sources into a shared
 * object, which is used and thrown away. PADs that perf adds to another packet are its bytes.
 */
#include <string.h>

#include "intel-pt-pkt-decoder.h"
#include "tests/support/pt_peers.h"

int vmt_pt_sum_perf(const uint8_t *bytes, size_t len, struct vmt_pt_sums *sums);

static const uint8_t types[] = {
	[INTEL_PT_PAD] = VMT_PT_PAD,
	[INTEL_PT_TNT] = VMT_PT_TNT,
	[INTEL_PT_TIP_PGD] = VMT_PT_TIP_PGD,
	[INTEL_PT_TIP_PGE] = VMT_PT_TIP_PGE,
	[INTEL_PT_TSC] = VMT_PT_TSC,
	[INTEL_PT_TMA] = VMT_PT_TMA,
	[INTEL_PT_MODE_EXEC] = VMT_PT_MODE_EXEC,
	[INTEL_PT_MODE_TSX] = VMT_PT_MODE_TSX,
	[INTEL_PT_MTC] = VMT_PT_MTC,
	[INTEL_PT_TIP] = VMT_PT_TIP,
	[INTEL_PT_FUP] = VMT_PT_FUP,
	[INTEL_PT_CYC] = VMT_PT_CYC,
	[INTEL_PT_VMCS] = VMT_PT_VMCS,
	[INTEL_PT_PSB] = VMT_PT_PSB,
	[INTEL_PT_PSBEND] = VMT_PT_PSBEND,
	[INTEL_PT_CBR] = VMT_PT_CBR,
	[INTEL_PT_TRACESTOP] = VMT_PT_TRACESTOP,
	[INTEL_PT_PIP] = VMT_PT_PIP,
	[INTEL_PT_OVF] = VMT_PT_OVF,
	[INTEL_PT_MNT] = VMT_PT_MNT,
	[INTEL_PT_PTWRITE] = VMT_PT_PTW,
	[INTEL_PT_PTWRITE_IP] = VMT_PT_PTW,
	[INTEL_PT_EXSTOP] = VMT_PT_EXSTOP,
	[INTEL_PT_EXSTOP_IP] = VMT_PT_EXSTOP,
	[INTEL_PT_MWAIT] = VMT_PT_MWAIT,
	[INTEL_PT_PWRE] = VMT_PT_PWRE,
	[INTEL_PT_PWRX] = VMT_PT_PWRX,
	[INTEL_PT_BBP] = VMT_PT_BBP,
	[INTEL_PT_BIP] = VMT_PT_BIP,
	[INTEL_PT_BEP] = VMT_PT_BEP,
	[INTEL_PT_BEP_IP] = VMT_PT_BEP,
	[INTEL_PT_CFE] = VMT_PT_CFE,
	[INTEL_PT_CFE_IP] = VMT_PT_CFE,
	[INTEL_PT_EVD] = VMT_PT_EVD,
};

static uint64_t rebuild(uint64_t last_ip, const struct intel_pt_pkt *p)
{
	switch (p->count) {
	case 1:
		return (last_ip & ~UINT64_C(0xffff)) | p->payload;
	case 2:
		return (last_ip & ~UINT64_C(0xffffffff)) | p->payload;
	case 3:
		return p->payload | (p->payload >> 47 ? UINT64_C(0xffff) << 48 : 0);
	case 4:
		return (last_ip & ~UINT64_C(0xffffffffffff)) | p->payload;
	default:
		return p->payload;
	}
}

int vmt_pt_sum_perf(const uint8_t *bytes, size_t len, struct vmt_pt_sums *sums)
{
	enum intel_pt_pkt_ctx context = INTEL_PT_NO_CTX;
	uint64_t last_ip = 0;
	size_t at = 0;

	memset(sums, 0, sizeof(*sums));
	while (at < len) {
		struct intel_pt_pkt p;
		int n = intel_pt_get_packet(bytes + at, len - at, &p, &context);

		if (n <= 0)
			return 0;
		sums->counts[types[p.type]]++;
		at += (size_t)n;
		switch (p.type) {
		case INTEL_PT_PAD:
			break;
		case INTEL_PT_TNT:
			sums->payloads += p.count ? p.payload >> (64 - p.count) : 0;
			break;
		case INTEL_PT_TIP:
		case INTEL_PT_FUP:
		case INTEL_PT_TIP_PGE:
		case INTEL_PT_TIP_PGD:
			sums->payloads += p.count ? p.payload : 0;
			if (p.count)
				sums->ips += last_ip = rebuild(last_ip, &p);
			break;
		case INTEL_PT_PSB:
			last_ip = 0;
			break;
		case INTEL_PT_MODE_EXEC:
			sums->payloads += (unsigned int)p.count & 0x1f;
			break;
		case INTEL_PT_CFE:
		case INTEL_PT_CFE_IP:
			sums->payloads += p.payload << 8 | (unsigned int)p.count |
					  (p.type == INTEL_PT_CFE_IP ? 0x80u : 0);
			break;
		case INTEL_PT_CBR:
			sums->payloads += p.payload & 0xff;
			break;
		default:
			sums->payloads += p.payload;
		}
	}
	sums->bytes = at;
	return 1;
}
