// SPDX-License-Identifier: LGPL-2.1-or-later
/* A mnemonic has one class, but for JMP, CALL and RET, whose encodings tell. */
#if __has_include(<Zydis/Zydis.h>)
#include "tests/support/zydis_peer.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

struct zydis_peer {
	ZydisDecoder decoder;
	enum vmt_insn_mode mode;
};

static const uint8_t classes[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
	[ZYDIS_MNEMONIC_JB] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JBE] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JCXZ] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JECXZ] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JL] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JLE] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JNB] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JNBE] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JNL] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JNLE] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JNO] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JNP] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JNS] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JNZ] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JO] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JP] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JRCXZ] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JS] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JZ] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_LOOP] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_LOOPE] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_LOOPNE] = VMT_INSN_JCC,
	[ZYDIS_MNEMONIC_JMP] = VMT_INSN_JMP,
	[ZYDIS_MNEMONIC_CALL] = VMT_INSN_CALL,
	[ZYDIS_MNEMONIC_RET] = VMT_INSN_RET,
	[ZYDIS_MNEMONIC_INT] = VMT_INSN_FAR_CALL,
	[ZYDIS_MNEMONIC_INT1] = VMT_INSN_FAR_CALL,
	[ZYDIS_MNEMONIC_INT3] = VMT_INSN_FAR_CALL,
	[ZYDIS_MNEMONIC_INTO] = VMT_INSN_FAR_CALL,
	[ZYDIS_MNEMONIC_SYSCALL] = VMT_INSN_FAR_CALL,
	[ZYDIS_MNEMONIC_SYSENTER] = VMT_INSN_FAR_CALL,
	[ZYDIS_MNEMONIC_IRET] = VMT_INSN_FAR_RET,
	[ZYDIS_MNEMONIC_IRETD] = VMT_INSN_FAR_RET,
	[ZYDIS_MNEMONIC_IRETQ] = VMT_INSN_FAR_RET,
	[ZYDIS_MNEMONIC_SYSRET] = VMT_INSN_FAR_RET,
	[ZYDIS_MNEMONIC_SYSEXIT] = VMT_INSN_FAR_RET,
	[ZYDIS_MNEMONIC_RSM] = VMT_INSN_FAR_RET,
	[ZYDIS_MNEMONIC_UIRET] = VMT_INSN_FAR_RET,
	[ZYDIS_MNEMONIC_VMLAUNCH] = VMT_INSN_VMENTRY,
	[ZYDIS_MNEMONIC_VMRESUME] = VMT_INSN_VMENTRY,
	[ZYDIS_MNEMONIC_VMRUN] = VMT_INSN_VMENTRY,
	[ZYDIS_MNEMONIC_SEAMRET] = VMT_INSN_VMENTRY,
	[ZYDIS_MNEMONIC_VMCALL] = VMT_INSN_VMCALL,
	[ZYDIS_MNEMONIC_VMMCALL] = VMT_INSN_VMCALL,
	[ZYDIS_MNEMONIC_VMFUNC] = VMT_INSN_VMCALL,
	[ZYDIS_MNEMONIC_TDCALL] = VMT_INSN_VMCALL,
	[ZYDIS_MNEMONIC_SEAMCALL] = VMT_INSN_VMCALL,
	[ZYDIS_MNEMONIC_PTWRITE] = VMT_INSN_PTWRITE,
};

struct zydis_peer *zydis_peer_new(enum vmt_insn_mode mode, bool minimal)
{
	static const ZydisMachineMode machine_modes[] = {
		[VMT_INSN_16] = ZYDIS_MACHINE_MODE_LEGACY_16,
		[VMT_INSN_32] = ZYDIS_MACHINE_MODE_LEGACY_32,
		[VMT_INSN_64] = ZYDIS_MACHINE_MODE_LONG_64,
	};
	static const ZydisStackWidth widths[] = {
		[VMT_INSN_16] = ZYDIS_STACK_WIDTH_16,
		[VMT_INSN_32] = ZYDIS_STACK_WIDTH_32,
		[VMT_INSN_64] = ZYDIS_STACK_WIDTH_64,
	};
	struct zydis_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->mode = mode;
	ZydisDecoderInit(&peer->decoder, machine_modes[mode], widths[mode]);
	ZydisDecoderEnableMode(&peer->decoder, ZYDIS_DECODER_MODE_MINIMAL, minimal);
	/* No processor with Event Trace has MPX: 0F 1A and 0F 1B are NOPs. */
	ZydisDecoderEnableMode(&peer->decoder, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
	return peer;
}

void zydis_peer_free(struct zydis_peer *peer)
{
	free(peer);
}

static uint8_t class_of(const ZydisDecodedInstruction *i)
{
	const uint8_t class = classes[i->mnemonic];

	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return i->opcode_map == ZYDIS_OPCODE_MAP_0F && i->opcode == 0x22 &&
				       i->raw.modrm.reg == 3
			       ? VMT_INSN_MOV_CR3
			       : VMT_INSN_OTHER;
	case ZYDIS_MNEMONIC_JMP:
		if (i->opcode == 0xea || (i->opcode == 0xff && i->raw.modrm.reg == 5))
			return VMT_INSN_FAR_JMP;
		return i->opcode == 0xff ? VMT_INSN_JMP_INDIRECT : class;
	case ZYDIS_MNEMONIC_CALL:
		if (i->opcode == 0x9a || (i->opcode == 0xff && i->raw.modrm.reg == 3))
			return VMT_INSN_FAR_CALL;
		return i->opcode == 0xff ? VMT_INSN_CALL_INDIRECT : class;
	case ZYDIS_MNEMONIC_RET:
		return i->opcode == 0xca || i->opcode == 0xcb ? VMT_INSN_FAR_RET : class;
	default:
		return class;
	}
}

int zydis_peer_decode(const struct zydis_peer *peer, const uint8_t *bytes, size_t len,
		      struct vmt_insn *out)
{
	ZydisDecodedInstruction i;
	const ZyanStatus status =
		ZydisDecoderDecodeInstruction(&peer->decoder, ZYAN_NULL, bytes, len, &i);

	if (!ZYAN_SUCCESS(status))
		return status == ZYDIS_STATUS_NO_MORE_DATA && len < 15 ? 0 : -1;
	*out = (struct vmt_insn){ .len = i.length, .class = class_of(&i) };
	out->direct = out->class == VMT_INSN_JCC || out->class == VMT_INSN_JMP ||
		      out->class == VMT_INSN_CALL;
	if (out->direct)
		out->displacement = (int32_t)i.raw.imm[0].value.s;
	return 1;
}

const char *zydis_peer_name(const struct zydis_peer *peer, const uint8_t *bytes, size_t len)
{
	ZydisDecodedInstruction i;

	switch (ZydisDecoderDecodeInstruction(&peer->decoder, ZYAN_NULL, bytes, len, &i)) {
	case ZYAN_STATUS_SUCCESS:
		return ZydisMnemonicGetString(i.mnemonic);
	case ZYDIS_STATUS_ILLEGAL_LOCK:
		return "LOCK is not allowed";
	case ZYDIS_STATUS_ILLEGAL_LEGACY_PFX:
		return "prefix is not allowed";
	case ZYDIS_STATUS_ILLEGAL_REX:
		return "REX is not allowed";
	case ZYDIS_STATUS_BAD_REGISTER:
		return "no such register";
	case ZYDIS_STATUS_INSTRUCTION_TOO_LONG:
		return "more than 15 bytes";
	case ZYDIS_STATUS_DECODING_ERROR:
		return "no such encoding";
	case ZYDIS_STATUS_NO_MORE_DATA:
		return "bytes are missing";
	default:
		return "an encoding with a wrong field";
	}
}
#endif
