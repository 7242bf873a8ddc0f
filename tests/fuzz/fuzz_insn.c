// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes as instructions in all modes: a length of 1 to 15 within the bytes given, 0 only with
 * fewer than 15, and the same answer, or "too short", from each shorter copy of the bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/insn/insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LEN_MAX 15

static void check_answer(int status, const struct vmt_insn *insn, size_t len)
{
	if (status == 0 && len >= LEN_MAX)
		abort();
	if (status == 1 &&
	    (insn->len < 1 || insn->len > LEN_MAX || insn->len > len ||
	     insn->class > VMT_INSN_MOV_CR3 || (!insn->direct && insn->displacement)))
		abort();
}

static int decode_copy(const uint8_t *bytes, size_t len, enum vmt_insn_mode mode,
		       struct vmt_insn *out)
{
	uint8_t *copy = malloc(len ? len : 1);
	int status;

	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	status = vmt_insn_decode(copy, len, mode, out);
	free(copy);
	check_answer(status, out, len);
	return status;
}

static void check_cuts(const uint8_t *bytes, size_t len, enum vmt_insn_mode mode)
{
	struct vmt_insn whole = { 0 }, part = { 0 };
	const int status = decode_copy(bytes, len, mode, &whole);

	for (size_t cut = 0; cut < len && cut <= LEN_MAX; cut++) {
		const int got = decode_copy(bytes, cut, mode, &part);

		if (got && got != status)
			abort();
		if (got == 1 && (part.len != whole.len || part.class != whole.class ||
				 part.displacement != whole.displacement))
			abort();
		if (!got && status == 1 && cut >= whole.len)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum vmt_insn_mode modes[] = { VMT_INSN_16, VMT_INSN_32, VMT_INSN_64 };

	for (size_t m = 0; m < 3; m++) {
		struct vmt_insn insn;

		for (size_t at = 0; at < size && at < 4096;) {
			const size_t left = size - at;

			check_cuts(data + at, left < 40 ? left : 40, modes[m]);
			at += vmt_insn_decode(data + at, left, modes[m], &insn) == 1 ? insn.len : 1;
		}
	}
	return 0;
}
