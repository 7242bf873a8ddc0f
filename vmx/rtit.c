// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vmx/rtit.h"

#include "vmx/text.h"

static const struct rtit_field {
	uint8_t shift, width;
	const char *name;
} fields[] = {
	{ 0, 1, "TraceEn" },	{ 1, 1, "CYCEn" },	{ 2, 1, "OS" },
	{ 3, 1, "User" },	{ 4, 1, "PwrEvtEn" },	{ 5, 1, "FUPonPTW" },
	{ 6, 1, "FabricEn" },	{ 7, 1, "CR3Filter" },	{ 8, 1, "ToPA" },
	{ 9, 1, "MTCEn" },	{ 10, 1, "TSCEn" },	{ 11, 1, "DisRETC" },
	{ 12, 1, "PTWEn" },	{ 13, 1, "BranchEn" },	{ 14, 4, "MTCFreq" },
	{ 19, 4, "CycThresh" }, { 24, 4, "PSBFreq" },	{ 31, 1, "EventEn" },
	{ 32, 4, "ADDR0_CFG" }, { 36, 4, "ADDR1_CFG" }, { 40, 4, "ADDR2_CFG" },
	{ 44, 4, "ADDR3_CFG" }, { 55, 1, "DisTNT" },	{ 56, 1, "InjectPsbPmiOnEnable" },
};

void vmx_rtit_ctl_text(uint64_t ctl, char *buf, size_t size)
{
	struct vmx_text t = vmx_text_of(buf, size);

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const uint64_t value = ctl >> fields[i].shift & ((1u << fields[i].width) - 1);

		if (!value)
			continue;
		vmx_text_item(&t, " ", fields[i].name);
		if (fields[i].width > 1) {
			vmx_text_char(&t, '=');
			vmx_text_dec(&t, value);
		}
	}
	if (!t.len)
		vmx_text_char(&t, '0');
}
