// SPDX-License-Identifier: GPL-2.0-only
/* Invariant: every IP is written in full (IPBytes 110b), so no packet depends on another. */
#include <linux/string.h>

#include "standin.h"

static void put(struct standin_group *group, const u8 *bytes, unsigned int len)
{
	memcpy(group->bytes + group->len, bytes, len);
	group->len += len;
}

/* An opcode and the low bytes of a payload. */
static void put_payload(struct standin_group *group, u8 first, u8 second, u64 payload,
			unsigned int len)
{
	u8 bytes[10] = { first, second };
	unsigned int head = second ? 2 : 1;

	memcpy(bytes + head, &payload, len);
	put(group, bytes, head + len);
}

void standin_psb(struct standin_group *group)
{
	static const u8 psb[] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
				  0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };

	put(group, psb, sizeof(psb));
}

void standin_psbend(struct standin_group *group)
{
	put_payload(group, 0x02, 0x23, 0, 0);
}

void standin_tsc(struct standin_group *group, u64 tsc)
{
	put_payload(group, 0x19, 0, tsc, 7);
}

/* CR3[51:12] in payload bits 47:8, NR in bit 0. */
void standin_pip(struct standin_group *group, u64 cr3, bool non_root)
{
	put_payload(group, 0x02, 0x43, (cr3 & 0xffffffffff000ULL) >> 4 | non_root, 6);
}

void standin_vmcs(struct standin_group *group, u64 address)
{
	put_payload(group, 0x02, 0xc8, address >> 12, 5);
}

void standin_mode_exec(struct standin_group *group)
{
	put_payload(group, 0x99, 0, 1, 1); /* 64 bit */
}

void standin_fup(struct standin_group *group, u64 ip)
{
	put_payload(group, 0xdd, 0, ip, 8);
}

void standin_cfe(struct standin_group *group, enum standin_cfe type, u8 vector)
{
	put_payload(group, 0x02, 0x13, (u64)vector << 8 | 0x80 | type, 2); /* bit 7: a FUP follows */
}

void standin_evd(struct standin_group *group, enum standin_evd type, u64 payload)
{
	const u8 head[] = { 0x02, 0x53, type };

	put(group, head, sizeof(head));
	put(group, (const u8 *)&payload, sizeof(payload));
}
