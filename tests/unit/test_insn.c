// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lengths, classes and targets of instructions, written from the SDM's opcode tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/insn/insn.h"

#define WINDOW 32

struct row {
	const char *text; /* bytes of the instruction, hexadecimal */
	uint8_t class;	  /* enum vmt_insn_class */
	bool none;	  /* it is #UD */
	bool operand_16;
	int32_t displacement; /* of direct branches */
};

static size_t parse(const char *text, uint8_t *bytes)
{
	size_t n = 0;

	for (char *end; *text && n < WINDOW; text = end)
		bytes[n++] = (uint8_t)strtoul(text, &end, 16);
	return n;
}

/* Whole, and with each number of bytes, exactly as long as given (the sanitizer looks). */
static void check_row(const struct row *row, enum vmt_insn_mode mode)
{
	uint8_t bytes[WINDOW] = { 0 };
	struct vmt_insn insn;
	const size_t n = parse(row->text, bytes);
	const bool direct = row->class == VMT_INSN_JCC || row->class == VMT_INSN_JMP ||
			    row->class == VMT_INSN_CALL;

	for (size_t len = 0; len <= WINDOW; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		int status;

		assert_non_null(copy);
		memcpy(copy, bytes, len);
		status = vmt_insn_decode(copy, len, mode, &insn);
		free(copy);
		if (row->none) {
			assert_int_equal(status, len >= n ? -1 : status == -1 ? -1 : 0);
			continue;
		}
		if (status != (len >= n) || (status == 1 && insn.len != n))
			fail_msg("%s, mode %d, %zu bytes: %d, length %u", row->text, (int)mode, len,
				 status, insn.len);
	}
	if (row->none)
		return;
	if (insn.class != row->class)
		fail_msg("%s, mode %d: class %u", row->text, (int)mode, insn.class);
	assert_int_equal(insn.direct, direct);
	assert_int_equal(insn.displacement, row->displacement);
	assert_int_equal(insn.operand_16, row->operand_16);
}

#define CHECK(rows, mode)                                                                          \
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)                                \
	check_row(&rows[i], mode)

static void branches_of_64_bit_code(void **state)
{
	static const struct row rows[] = {
		{ .text = "74 fe", .class = VMT_INSN_JCC, .displacement = -2 },
		{ .text = "66 74 7f", .class = VMT_INSN_JCC, .displacement = 127 },
		{ .text = "0f 84 78 56 34 12", .class = VMT_INSN_JCC, .displacement = 0x12345678 },
		{ .text = "66 0f 84 78 56 34 12",
		  .class = VMT_INSN_JCC,
		  .displacement = 0x12345678 },
		{ .text = "2e 75 00", .class = VMT_INSN_JCC },
		{ .text = "e0 01", .class = VMT_INSN_JCC, .displacement = 1 }, /* LOOPNE */
		{ .text = "e1 01", .class = VMT_INSN_JCC, .displacement = 1 },
		{ .text = "e2 fd", .class = VMT_INSN_JCC, .displacement = -3 },
		{ .text = "e3 10", .class = VMT_INSN_JCC, .displacement = 16 },	   /* JRCXZ */
		{ .text = "67 e3 10", .class = VMT_INSN_JCC, .displacement = 16 }, /* JECXZ */
		{ .text = "e8 ff ff ff ff", .class = VMT_INSN_CALL, .displacement = -1 },
		{ .text = "66 e8 01 00 00 00", .class = VMT_INSN_CALL, .displacement = 1 },
		{ .text = "48 e8 00 00 00 80", .class = VMT_INSN_CALL, .displacement = INT32_MIN },
		{ .text = "e9 00 01 00 00", .class = VMT_INSN_JMP, .displacement = 256 },
		{ .text = "66 e9 00 01 00 00", .class = VMT_INSN_JMP, .displacement = 256 },
		{ .text = "eb 80", .class = VMT_INSN_JMP, .displacement = -128 },
		{ .text = "f2 eb 02", .class = VMT_INSN_JMP, .displacement = 2 }, /* BND */
		{ .text = "ff e0", .class = VMT_INSN_JMP_INDIRECT },
		{ .text = "3e ff e0", .class = VMT_INSN_JMP_INDIRECT }, /* NOTRACK */
		{ .text = "ff 25 00 00 00 00", .class = VMT_INSN_JMP_INDIRECT },
		{ .text = "ff 24 c5 00 00 00 00", .class = VMT_INSN_JMP_INDIRECT },
		{ .text = "41 ff d3", .class = VMT_INSN_CALL_INDIRECT },
		{ .text = "ff 54 24 08", .class = VMT_INSN_CALL_INDIRECT },
		{ .text = "ff 1c 24", .class = VMT_INSN_FAR_CALL },
		{ .text = "48 ff 2c 24", .class = VMT_INSN_FAR_JMP },
		{ .text = "ff d8", .none = true }, /* far call of a register */
		{ .text = "ff e8", .none = true },
		{ .text = "c3", .class = VMT_INSN_RET },
		{ .text = "f3 c3", .class = VMT_INSN_RET },
		{ .text = "66 c3", .class = VMT_INSN_RET },
		{ .text = "c2 08 00", .class = VMT_INSN_RET },
		{ .text = "cb", .class = VMT_INSN_FAR_RET },
		{ .text = "48 cb", .class = VMT_INSN_FAR_RET },
		{ .text = "ca 08 00", .class = VMT_INSN_FAR_RET },
		{ .text = "cf", .class = VMT_INSN_FAR_RET },
		{ .text = "48 cf", .class = VMT_INSN_FAR_RET },
		{ .text = "0f aa", .class = VMT_INSN_FAR_RET },
		{ .text = "0f 07", .class = VMT_INSN_FAR_RET },
		{ .text = "48 0f 07", .class = VMT_INSN_FAR_RET },
		{ .text = "0f 35", .class = VMT_INSN_FAR_RET },
		{ .text = "f3 0f 01 ec", .class = VMT_INSN_FAR_RET }, /* UIRET */
		{ .text = "0f 05", .class = VMT_INSN_FAR_CALL },
		{ .text = "0f 34", .class = VMT_INSN_FAR_CALL },
		{ .text = "cc", .class = VMT_INSN_FAR_CALL },
		{ .text = "cd 80", .class = VMT_INSN_FAR_CALL },
		{ .text = "f1", .class = VMT_INSN_FAR_CALL },
	};

	(void)state;
	CHECK(rows, VMT_INSN_64);
}

static void what_pt_treats_apart(void **state)
{
	static const struct row rows[] = {
		{ .text = "0f 01 c1", .class = VMT_INSN_VMCALL },
		{ .text = "0f 01 d4", .class = VMT_INSN_VMCALL }, /* VMFUNC */
		{ .text = "0f 01 c2", .class = VMT_INSN_VMENTRY },
		{ .text = "0f 01 c3", .class = VMT_INSN_VMENTRY },
		{ .text = "66 0f 01 cc", .class = VMT_INSN_VMCALL },  /* TDCALL */
		{ .text = "66 0f 01 cd", .class = VMT_INSN_VMENTRY }, /* SEAMRET */
		{ .text = "66 0f 01 cf", .class = VMT_INSN_VMCALL },  /* SEAMCALL */
		{ .text = "f3 0f ae e0", .class = VMT_INSN_PTWRITE },
		{ .text = "f3 48 0f ae 24 24", .class = VMT_INSN_PTWRITE },
		{ .text = "0f 22 d8", .class = VMT_INSN_MOV_CR3 },
		{ .text = "0f 22 1c", .class = VMT_INSN_MOV_CR3 }, /* ModRM.mod does not count */
		{ .text = "41 0f 22 df", .class = VMT_INSN_MOV_CR3 },
		{ .text = "44 0f 22 d8", .none = true }, /* CR11 */
		{ .text = "44 0f 22 c0" },		 /* CR8 */
		{ .text = "0f 22 c8", .none = true },	 /* CR1 */
		{ .text = "0f 20 d8" },
		{ .text = "0f 23 f8" },
		{ .text = "c6 f8 00" },		 /* XABORT */
		{ .text = "c7 f8 00 00 00 00" }, /* XBEGIN */
		{ .text = "66 c7 f8 00 00" },	 /* with 16 bits */
		{ .text = "c7 f9", .none = true },
		{ .text = "f3 0f 1e fa" }, /* ENDBR64 */
		{ .text = "f3 0f 1e fb" },
		{ .text = "0f 1e 00" },
		{ .text = "0f 0b" },
		{ .text = "0f b9 45 00" }, /* UD1 */
		{ .text = "0f ff c0" },	   /* UD0 */
		{ .text = "f4" },
		{ .text = "0f 30" },
	};

	(void)state;
	CHECK(rows, VMT_INSN_64);
}

static void lengths_of_64_bit_code(void **state)
{
	static const struct row rows[] = {
		{ .text = "90" },
		{ .text = "48 89 e5" },
		{ .text = "8b 05 00 00 00 00" },
		{ .text = "8b 04 25 00 00 00 00" },
		{ .text = "8b 44 24 08" },
		{ .text = "8b 84 24 00 00 00 00" },
		{ .text = "67 8b 04 25 00 00 00 00" },
		{ .text = "8d c0", .none = true }, /* LEA of a register */
		{ .text = "48 8d 3d 00 00 00 00" },
		{ .text = "b8 00 00 00 00" },
		{ .text = "66 b8 00 00" },
		{ .text = "48 b8 00 00 00 00 00 00 00 00" },
		{ .text = "66 48 b8 00 00 00 00 00 00 00 00" },
		{ .text = "48 66 b8 00 00" }, /* a REX that is not last does not count */
		{ .text = "a1 00 00 00 00 00 00 00 00" },
		{ .text = "67 a1 00 00 00 00" },
		{ .text = "48 a3 00 00 00 00 00 00 00 00" },
		{ .text = "c8 00 00 00" },
		{ .text = "68 00 00 00 00" },
		{ .text = "66 68 00 00" },
		{ .text = "f6 c0 01" },
		{ .text = "f6 d0" },
		{ .text = "f7 c0 00 00 00 00" },
		{ .text = "66 f7 c0 00 00" },
		{ .text = "48 f7 c0 00 00 00 00" },
		{ .text = "f7 d8" },
		{ .text = "69 c0 00 00 00 00" },
		{ .text = "66 69 c0 00 00" },
		{ .text = "0f 78 c0" }, /* VMREAD */
		{ .text = "66 0f 78 c0 01 02" },
		{ .text = "f2 0f 78 c0 01 02" },
		{ .text = "0f 0f c1 9e" },
		{ .text = "0f 38 f0 00" },
		{ .text = "66 0f 38 82 00" }, /* INVPCID */
		{ .text = "66 0f 3a 0f c1 08" },
		{ .text = "66 66 2e 0f 1f 84 00 00 00 00 00" },
		{ .text = "c5 f8 77" },
		{ .text = "c5 f9 70 c0 00" },
		{ .text = "c4 e2 7d 18 05 00 00 00 00" },
		{ .text = "c4 e3 7d 19 c0 01" },
		{ .text = "62 f1 7c 48 10 00" },
		{ .text = "62 f1 7c 48 10 40 01" },
		{ .text = "62 f3 7d 48 25 c0 ff" },
		{ .text = "62 f5 7c 48 58 c0" }, /* FP16 */
		{ .text = "8f e8 78 c0 c0 01" }, /* XOP */
		{ .text = "8f ea 78 10 c0 01 02 03 04" },
		{ .text = "8f 00" },
		{ .text = "66 c5 f8 77", .none = true },
		{ .text = "48 c5 f8 77", .none = true },
		{ .text = "f0 0f b1 0a" },
		{ .text = "f0 01 00" },
		{ .text = "f0 01 c0", .none = true }, /* LOCK without memory */
		{ .text = "f0 89 00", .none = true }, /* LOCK of MOV */
		{ .text = "66 66 66 66 66 66 66 66 66 66 66 66 66 66 90" },
		{ .text = "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66", .none = true },
		{ .text = "66 66 66 66 66 66 66 66 66 66 66 66 66 66 89", .none = true },
	};

	(void)state;
	CHECK(rows, VMT_INSN_64);
}

/* Each is none in 64-bit mode. */
static void only_outside_64_bit_mode(void **state)
{
	static const struct row rows[] = {
		{ .text = "06" },
		{ .text = "27" },
		{ .text = "60" },
		{ .text = "82 c0 00" },
		{ .text = "9a 00 00 00 00 00 00", .class = VMT_INSN_FAR_CALL },
		{ .text = "ea 00 00 00 00 00 00", .class = VMT_INSN_FAR_JMP },
		{ .text = "ce", .class = VMT_INSN_FAR_CALL },
		{ .text = "d4 0a" },
		{ .text = "d6" },
	};

	(void)state;
	CHECK(rows, VMT_INSN_32);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row none = { .text = rows[i].text, .none = true };

		check_row(&none, VMT_INSN_64);
	}
}

static void code_of_32_bits(void **state)
{
	static const struct row rows[] = {
		{ .text = "40" },
		{ .text = "4f" },
		{ .text = "66 e9 fe ff",
		  .class = VMT_INSN_JMP,
		  .operand_16 = true,
		  .displacement = -2 },
		{ .text = "66 74 02",
		  .class = VMT_INSN_JCC,
		  .operand_16 = true,
		  .displacement = 2 },
		{ .text = "66 0f 85 00 80",
		  .class = VMT_INSN_JCC,
		  .operand_16 = true,
		  .displacement = -32768 },
		{ .text = "66 c3", .class = VMT_INSN_RET, .operand_16 = true },
		{ .text = "66 ff e0", .class = VMT_INSN_JMP_INDIRECT, .operand_16 = true },
		{ .text = "e8 00 00 00 80", .class = VMT_INSN_CALL, .displacement = INT32_MIN },
		{ .text = "66 9a 00 00 00 00", .class = VMT_INSN_FAR_CALL, .operand_16 = true },
		{ .text = "a1 00 00 00 00" },
		{ .text = "67 a1 00 00" },
		{ .text = "67 8b 06 00 00" },
		{ .text = "67 8b 40 01" },
		{ .text = "8b 05 00 00 00 00" },
		{ .text = "c4 00" }, /* LES */
		{ .text = "c5 45 08" },
		{ .text = "c5 f8 77" },
		{ .text = "62 05 00 00 00 00" }, /* BOUND */
		{ .text = "62 f1 7c 48 10 00" },
		{ .text = "0f 05", .none = true }, /* SYSCALL: AMD alone */
		{ .text = "0f 01 f8", .none = true },
		{ .text = "f3 0f ae c0", .none = true }, /* RDFSBASE */
		{ .text = "0f 22 d8", .class = VMT_INSN_MOV_CR3 },
		{ .text = "0f 01 c2", .class = VMT_INSN_VMENTRY },
	};

	(void)state;
	CHECK(rows, VMT_INSN_32);
}

static void code_of_16_bits(void **state)
{
	static const struct row rows[] = {
		{ .text = "e9 fe ff",
		  .class = VMT_INSN_JMP,
		  .operand_16 = true,
		  .displacement = -2 },
		{ .text = "66 e9 fe ff ff ff", .class = VMT_INSN_JMP, .displacement = -2 },
		{ .text = "0f 84 34 12",
		  .class = VMT_INSN_JCC,
		  .operand_16 = true,
		  .displacement = 0x1234 },
		{ .text = "ea 00 00 00 f0", .class = VMT_INSN_FAR_JMP, .operand_16 = true },
		{ .text = "66 ea 00 00 00 00 08 00", .class = VMT_INSN_FAR_JMP },
		{ .text = "cd 10", .class = VMT_INSN_FAR_CALL, .operand_16 = true },
		{ .text = "b8 00 00" },
		{ .text = "66 b8 00 00 00 00" },
		{ .text = "8b 06 00 00" },
		{ .text = "67 8b 05 00 00 00 00" },
		{ .text = "67 66 8b 84 24 00 00 00 00" },
		{ .text = "a1 00 00" },
		{ .text = "67 a1 00 00 00 00" },
		{ .text = "c7 06 00 00 34 12" },
		{ .text = "0f 22 d8", .class = VMT_INSN_MOV_CR3, .operand_16 = true },
	};

	(void)state;
	CHECK(rows, VMT_INSN_16);
}

static void targets(void **state)
{
	struct vmt_insn insn = {
		.len = 2, .class = VMT_INSN_JMP, .direct = true, .displacement = -4
	};

	(void)state;
	assert_true(vmt_insn_target(&insn, 0, VMT_INSN_64) == UINT64_MAX - 1);
	assert_true(vmt_insn_target(&insn, 0, VMT_INSN_32) == 0xfffffffe);
	assert_true(vmt_insn_target(&insn, 0x12340000, VMT_INSN_32) == 0x1233fffe);
	insn.operand_16 = true;
	assert_true(vmt_insn_target(&insn, 0x12340000, VMT_INSN_32) == 0xfffe);
	assert_true(vmt_insn_target(&insn, 0x7c00, VMT_INSN_16) == 0x7bfe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches_of_64_bit_code),
		cmocka_unit_test(what_pt_treats_apart),
		cmocka_unit_test(lengths_of_64_bit_code),
		cmocka_unit_test(only_outside_64_bit_mode),
		cmocka_unit_test(code_of_32_bits),
		cmocka_unit_test(code_of_16_bits),
		cmocka_unit_test(targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
