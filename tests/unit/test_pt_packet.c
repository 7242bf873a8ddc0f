/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every packet of SDM vol. 3 chapter 33 from its bytes: fields, length, reserved encodings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/pt/packet.h"

#define LAST_IP UINT64_C(0xffff8000aabbccdd)
#define P(...)                                                                                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

struct row {
	const char *hex;
	struct vmt_pt_packet want;
	uint8_t block; /* before; a BIP leaves it */
};

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = 0;

	for (; hex[0] && hex[1]; hex += 2) {
		char pair[3] = { hex[0], hex[1], 0 };

		out[n++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n;
}

/* clang-format off */
static const struct row rows[] = {
	{ "00", P(.type = VMT_PT_PAD), 0 },
	{ "04", P(.type = VMT_PT_TNT, .count = 1, .payload = 0), 0 },
	{ "06", P(.type = VMT_PT_TNT, .count = 1, .payload = 1), 0 },
	{ "80", P(.type = VMT_PT_TNT, .count = 6, .payload = 0), 0 },
	{ "fe", P(.type = VMT_PT_TNT, .count = 6, .payload = 0x3f), 0 },
	{ "02a30200000000" "00", P(.type = VMT_PT_TNT_LONG, .count = 1), 0 },
	{ "02a303000000" "0000", P(.type = VMT_PT_TNT_LONG, .count = 1, .payload = 1), 0 },
	{ "02a3000000000080", P(.type = VMT_PT_TNT_LONG, .count = 47), 0 },
	{ "02a30102030405ff", P(.type = VMT_PT_TNT_LONG, .count = 47, .payload = 0x7f0504030201), 0 },
	{ "0d", P(.type = VMT_PT_TIP), 0 },
	{ "2d0102", P(.type = VMT_PT_TIP, .ip_bytes = 1, .has_ip = true, .payload = 0x201,
		      .ip = 0xffff8000aabb0201), 0 },
	{ "4d01020304", P(.type = VMT_PT_TIP, .ip_bytes = 2, .has_ip = true, .payload = 0x4030201,
			  .ip = 0xffff800004030201), 0 },
	{ "6d010203040506", P(.type = VMT_PT_TIP, .ip_bytes = 3, .has_ip = true,
			      .payload = 0x60504030201, .ip = 0x60504030201), 0 },
	{ "6d010203040586", P(.type = VMT_PT_TIP, .ip_bytes = 3, .has_ip = true,
			      .payload = 0x860504030201, .ip = 0xffff860504030201), 0 },
	{ "8d010203040506", P(.type = VMT_PT_TIP, .ip_bytes = 4, .has_ip = true,
			      .payload = 0x60504030201, .ip = 0xffff060504030201), 0 },
	{ "cd0102030405060708", P(.type = VMT_PT_TIP, .ip_bytes = 6, .has_ip = true,
				  .payload = 0x807060504030201, .ip = 0x807060504030201), 0 },
	{ "11", P(.type = VMT_PT_TIP_PGE), 0 },
	{ "310102", P(.type = VMT_PT_TIP_PGE, .ip_bytes = 1, .has_ip = true, .payload = 0x201,
		      .ip = 0xffff8000aabb0201), 0 },
	{ "d10102030405060708", P(.type = VMT_PT_TIP_PGE, .ip_bytes = 6, .has_ip = true,
				  .payload = 0x807060504030201, .ip = 0x807060504030201), 0 },
	{ "01", P(.type = VMT_PT_TIP_PGD), 0 },
	{ "4101020304", P(.type = VMT_PT_TIP_PGD, .ip_bytes = 2, .has_ip = true,
			  .payload = 0x4030201, .ip = 0xffff800004030201), 0 },
	{ "1d", P(.type = VMT_PT_FUP), 0 },
	{ "7d305039c0ffff", P(.type = VMT_PT_FUP, .ip_bytes = 3, .has_ip = true,
			      .payload = 0xffffc0395030, .ip = 0xffffffffc0395030), 0 },
	{ "0243030406080a0c", P(.type = VMT_PT_PIP, .nr = true, .payload = 0xc0a08060403,
				.address = 0xc0a080604020), 0 },
	{ "0243020406080a0c", P(.type = VMT_PT_PIP, .payload = 0xc0a08060402,
				.address = 0xc0a080604020), 0 },
	{ "02430034d43f0000", P(.type = VMT_PT_PIP, .payload = 0x3fd43400,
				.address = 0x3fd434000), 0 },
	{ "024302040608ffff", P(.type = VMT_PT_PIP, .payload = 0xffff08060402,
				.address = 0xffff080604020), 0 },
	{ "9901", P(.type = VMT_PT_MODE_EXEC, .payload = 1), 0 },
	{ "9905", P(.type = VMT_PT_MODE_EXEC, .payload = 5), 0 },
	{ "9906", P(.type = VMT_PT_MODE_EXEC, .payload = 6), 0 },
	{ "9903", P(.type = VMT_PT_MODE_EXEC, .payload = 3, .reserved = true), 0 },
	{ "9921", P(.type = VMT_PT_MODE_TSX, .payload = 1), 0 },
	{ "9922", P(.type = VMT_PT_MODE_TSX, .payload = 2), 0 },
	{ "9923", P(.type = VMT_PT_MODE_TSX, .payload = 3, .reserved = true), 0 },
	{ "0283", P(.type = VMT_PT_TRACESTOP), 0 },
	{ "02031200", P(.type = VMT_PT_CBR, .payload = 0x12), 0 },
	{ "020312ff", P(.type = VMT_PT_CBR, .payload = 0x12), 0 },
	{ "1901020304050607", P(.type = VMT_PT_TSC, .payload = 0x7060504030201), 0 },
	{ "5912", P(.type = VMT_PT_MTC, .payload = 0x12), 0 },
	{ "027380c000ff01", P(.type = VMT_PT_TMA, .payload = 0xc080, .fc = 0x1ff), 0 },
	{ "02730102ff0301", P(.type = VMT_PT_TMA, .payload = 0x201, .fc = 0x103,
			      .reserved = true), 0 },
	{ "0273010200030f", P(.type = VMT_PT_TMA, .payload = 0x201, .fc = 0x103,
			      .reserved = true), 0 },
	{ "03", P(.type = VMT_PT_CYC), 0 },
	{ "0b", P(.type = VMT_PT_CYC, .payload = 1), 0 },
	{ "fb", P(.type = VMT_PT_CYC, .payload = 31), 0 },
	{ "0702", P(.type = VMT_PT_CYC, .payload = 32), 0 },
	{ "fffe", P(.type = VMT_PT_CYC, .payload = 4095), 0 },
	{ "070102", P(.type = VMT_PT_CYC, .payload = 4096), 0 },
	{ "fffffe", P(.type = VMT_PT_CYC, .payload = 0x7ffff), 0 },
	{ "ffffffffffffffffff0e", P(.type = VMT_PT_CYC, .payload = UINT64_MAX), 0 },
	{ "ffffffffffffffffff1e", P(.type = VMT_PT_CYC, .payload = UINT64_MAX,
				    .reserved = true), 0 },
	{ "02c80102030405", P(.type = VMT_PT_VMCS, .payload = 0x504030201,
			      .address = 0x504030201000), 0 },
	{ "02c8ffffffffff", P(.type = VMT_PT_VMCS, .payload = 0xffffffffff,
			      .address = 0xffffffffff000), 0 },
	{ "02f3", P(.type = VMT_PT_OVF), 0 },
	{ "02820282028202820282028202820282", P(.type = VMT_PT_PSB), 0 },
	{ "0223", P(.type = VMT_PT_PSBEND), 0 },
	{ "02c3880102030405060708", P(.type = VMT_PT_MNT, .payload = 0x807060504030201), 0 },
	{ "021201020304", P(.type = VMT_PT_PTW, .kind = 4, .payload = 0x4030201), 0 },
	{ "029201020304", P(.type = VMT_PT_PTW, .kind = 4, .ip_bit = true,
			    .payload = 0x4030201), 0 },
	{ "02320102030405060708", P(.type = VMT_PT_PTW, .kind = 8,
				    .payload = 0x807060504030201), 0 },
	{ "02b20102030405060708", P(.type = VMT_PT_PTW, .kind = 8, .ip_bit = true,
				    .payload = 0x807060504030201), 0 },
	{ "0262", P(.type = VMT_PT_EXSTOP), 0 },
	{ "02e2", P(.type = VMT_PT_EXSTOP, .ip_bit = true), 0 },
	{ "02c22000000001000000", P(.type = VMT_PT_MWAIT, .payload = 0x100000020), 0 },
	{ "02228034", P(.type = VMT_PT_PWRE, .payload = 0x3480), 0 },
	{ "02a22108000000", P(.type = VMT_PT_PWRX, .payload = 0x821), 0 },
	{ "026300", P(.type = VMT_PT_BBP, .payload = 0, .kind = 0), 0 },
	{ "02639f", P(.type = VMT_PT_BBP, .payload = 0x9f, .kind = 0x1f), 0 },
	{ "fc01020304", P(.type = VMT_PT_BIP, .kind = 0x1f, .payload = 0x4030201), 4 },
	{ "0c0102030405060708", P(.type = VMT_PT_BIP, .kind = 1, .payload = 0x807060504030201), 8 },
	{ "0233", P(.type = VMT_PT_BEP), 0 },
	{ "02b3", P(.type = VMT_PT_BEP, .ip_bit = true), 8 },
	{ "02138103", P(.type = VMT_PT_CFE, .kind = VMT_PT_CFE_INTR, .vector = 3, .ip_bit = true,
			.payload = 0x381), 0 },
	{ "02130800", P(.type = VMT_PT_CFE, .kind = VMT_PT_CFE_VMEXIT, .payload = 8), 0 },
	{ "02130e80", P(.type = VMT_PT_CFE, .kind = VMT_PT_CFE_SWINTR, .vector = 0x80,
			.payload = 0x800e), 0 },
	{ "02130b00", P(.type = VMT_PT_CFE, .kind = 0xb, .payload = 0xb, .reserved = true), 0 },
	{ "02139f07", P(.type = VMT_PT_CFE, .kind = 0x1f, .vector = 7, .ip_bit = true,
			.payload = 0x79f, .reserved = true), 0 },
	{ "0253010102030405060708", P(.type = VMT_PT_EVD, .kind = VMT_PT_EVD_VMXQ,
				      .payload = 0x807060504030201), 0 },
	{ "02533f0102030405060708", P(.type = VMT_PT_EVD, .kind = 0x3f, .reserved = true,
				      .payload = 0x807060504030201), 0 },
	{ "0253c20102030405060708", P(.type = VMT_PT_EVD, .kind = VMT_PT_EVD_VMXR,
				      .payload = 0x807060504030201), 0 },
	{ "d90001", P(.type = VMT_PT_TRIG, .kind = 1, .payload = 0x100), 0 },
	{ "d9c0020500", P(.type = VMT_PT_TRIG, .kind = 2, .ip_bit = true, .payload = 0x502c0), 0 },
};
/* clang-format on */

static struct vmt_pt_reader reader_of(const uint8_t *bytes, size_t len, uint8_t block)
{
	struct vmt_pt_reader r = vmt_pt_reader_of(bytes, len);

	r.last_ip = LAST_IP;
	r.last_ip_known = true;
	r.block = block;
	return r;
}

static void check_row(const struct row *row)
{
	struct vmt_pt_packet want = row->want, got;
	uint8_t bytes[32];
	size_t len = unhex(row->hex, bytes);
	struct vmt_pt_reader r;

	want.len = (uint8_t)len;
	memcpy(bytes + len, "\x02\x23", 2);
	r = reader_of(bytes, len + 2, row->block);
	if (vmt_pt_next(&r, &got, NULL) != 1)
		fail_msg("%s is refused", row->hex);
	if (memcmp(&got, &want, sizeof(got)))
		fail_msg("%s: type %u len %u payload %#llx ip %#llx kind %u count %u reserved %d",
			 row->hex, got.type, got.len, (unsigned long long)got.payload,
			 (unsigned long long)got.ip, got.kind, got.count, got.reserved);
	assert_int_equal(vmt_pt_next(&r, &got, NULL), 1);
	assert_int_equal(got.type, VMT_PT_PSBEND);
	assert_int_equal(vmt_pt_next(&r, &got, NULL), 0);
	/* Cut off anywhere it needs more, and the reader stays where it was. */
	for (size_t cut = 1; cut < len; cut++) {
		r = reader_of(bytes, cut, row->block);
		assert_int_equal(vmt_pt_next(&r, &got, NULL), VMT_E_TRUNCATED);
		assert_ptr_equal(r.pos, bytes);
		assert_true(r.last_ip == LAST_IP && r.block == row->block);
	}
}

static void every_packet(void **state)
{
	uint64_t seen = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_row(&rows[i]);
		seen |= UINT64_C(1) << rows[i].want.type;
	}
	assert_true(seen == (UINT64_C(1) << VMT_PT_TYPE_COUNT) - 1);
}

static void reserved_encodings_are_refused(void **state)
{
	static const char *const refused[] = {
		"ad", /* TIP, IPBytes 5 */
		"ed", /* TIP, IPBytes 7 */
		"b1",
		"e1",
		"bd",	/* the other IP packets */
		"99e0", /* MODE leaf 7 */
		"9940", /* MODE leaf 2 */
		"025201020304",
		"027201020304",
		"02d201020304",
		"02f201020304",
		"02a3000000000000",
		"02a3010000000000",
		"ffffffffffffffffffffff00",
		"020f",
		"39",
		"c902",
		"02c3870000000000000000", /* MNT's third byte is 88 */
		"02820282028202820282028202820283",
		"0204",
	};
	uint8_t bytes[32];
	struct vmt_pt_packet p;

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		size_t len = unhex(refused[i], bytes);
		struct vmt_pt_reader r;
		const char *why = NULL;

		memcpy(bytes + len, "\x02\x23", 2);
		r = reader_of(bytes, len + 2, 0);
		assert_int_equal(vmt_pt_next(&r, &p, &why), VMT_E_DAMAGED);
		assert_non_null(why);
		assert_ptr_equal(r.pos, bytes);
	}
}

static void last_ip(void **state)
{
	/* compressed first, suppressed, sign-extended, compressed, PSB, compressed */
	static const uint8_t bytes[] = { 0x2d, 0x34, 0x12, 0x0d, 0x7d, 0x30, 0x50, 0x39, 0xc0,
					 0xff, 0xff, 0x2d, 0x40, 0x50, 0x02, 0x82, 0x02, 0x82,
					 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
					 0x82, 0x02, 0x82, 0x3d, 0x06, 0x01 };
	struct vmt_pt_reader r = vmt_pt_reader_of(bytes, sizeof(bytes));
	struct vmt_pt_packet p;

	(void)state;
	assert_int_equal(vmt_pt_next(&r, &p, NULL), 1);
	assert_true(p.has_ip && p.ip_unsure && p.ip == 0x1234);
	assert_int_equal(vmt_pt_next(&r, &p, NULL), 1);
	assert_true(!p.has_ip && r.last_ip == 0x1234);
	assert_int_equal(vmt_pt_next(&r, &p, NULL), 1);
	assert_true(!p.ip_unsure && p.ip == UINT64_C(0xffffffffc0395030));
	assert_int_equal(vmt_pt_next(&r, &p, NULL), 1);
	assert_true(!p.ip_unsure && p.ip == UINT64_C(0xffffffffc0395040));
	assert_int_equal(vmt_pt_next(&r, &p, NULL), 1);
	assert_int_equal(p.type, VMT_PT_PSB);
	assert_int_equal(vmt_pt_next(&r, &p, NULL), 1);
	assert_true(p.type == VMT_PT_FUP && !p.ip_unsure && p.ip == 0x106);
}

/* After BBP the bytes xxxxx100 are BIP until a packet closes the block. */
static void block_context(void **state)
{
	static const struct {
		const char *hex;
		bool closes;
	} packets[] = {
		{ "00", false },
		{ "1901020304050607", false },
		{ "02730102000301", false },
		{ "5901", false },
		{ "1d", false },
		{ "0b", false },
		{ "02031200", false },
		{ "02c3880102030405060708", false },
		{ "0262", false },
		{ "02228034", false },
		{ "02a22108000000", false },
		{ "06", true },
		{ "02a30300000000"
		  "00",
		  true },
		{ "0d", true },
		{ "11", true },
		{ "01", true },
		{ "9901", true },
		{ "9921", true },
		{ "0243030406080a0c", true },
		{ "02f3", true },
		{ "02c80102030405", true },
		{ "0283", true },
		{ "0223", true },
		{ "021201020304", true },
		{ "02c22000000001000000", true },
		{ "0233", true },
		{ "02138103", true },
		{ "0253010102030405060708", true },
		{ "02820282028202820282028202820282", true },
	};
	uint8_t bytes[64] = { 0x02, 0x63, 0x84 };
	struct vmt_pt_packet p;

	(void)state;
	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		size_t len = 3 + unhex(packets[i].hex, bytes + 3);
		struct vmt_pt_reader r;

		memcpy(bytes + len, "\x0c\x01\x02\x03\x04", 5);
		r = vmt_pt_reader_of(bytes, len + 5);
		for (int k = 0; k < 3; k++)
			assert_int_equal(vmt_pt_next(&r, &p, NULL), 1);
		assert_int_equal(p.type, packets[i].closes ? VMT_PT_TNT : VMT_PT_BIP);
	}
}

static void sync_finds_the_next_psb(void **state)
{
	uint8_t bytes[64];
	struct vmt_pt_reader r;
	size_t len = 0;

	(void)state;
	memset(bytes, 0x02, 5);
	len = 5 + unhex("02820282028202820282028202820282", bytes + 5);
	len += unhex("0223", bytes + len);
	r = vmt_pt_reader_of(bytes, len);
	r.block = VMT_PT_BLOCK_4;
	assert_int_equal(vmt_pt_sync(&r), 5);
	assert_true(r.pos == bytes + 5 && r.block == VMT_PT_BLOCK_NONE);
	/* At a PSB it goes on to the one behind; here the end is none, not even of one cut off. */
	assert_int_equal(vmt_pt_sync(&r), 18);
	assert_ptr_equal(r.pos, bytes + len);
	/* A PSB that is cut off is kept. */
	r = vmt_pt_reader_of(bytes, 12);
	assert_int_equal(vmt_pt_sync(&r), 5);
	assert_ptr_equal(r.pos, bytes + 5);
}

static void names(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < VMT_PT_TYPE_COUNT; i++)
		assert_non_null(vmt_pt_type_name((enum vmt_pt_type)i));
	assert_null(vmt_pt_type_name(VMT_PT_TYPE_COUNT));
	assert_string_equal(vmt_pt_type_name(VMT_PT_TIP_PGE), "TIP.PGE");
	assert_string_equal(vmt_pt_type_name(VMT_PT_TRIG), "TRIG");
	assert_string_equal(vmt_pt_cfe_name(VMT_PT_CFE_VMEXIT_INTR), "VMEXIT_INTR");
	assert_null(vmt_pt_cfe_name(0));
	assert_null(vmt_pt_cfe_name(0x0b));
	assert_null(vmt_pt_cfe_name(32));
	assert_string_equal(vmt_pt_evd_name(VMT_PT_EVD_VMXR), "VMXR");
	assert_null(vmt_pt_evd_name(3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet),
		cmocka_unit_test(reserved_encodings_are_refused),
		cmocka_unit_test(last_ip),
		cmocka_unit_test(block_context),
		cmocka_unit_test(sync_finds_the_next_psb),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
