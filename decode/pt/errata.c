// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which processors have which erratum. A model belongs to the group of parts that share their
 * specification update; an erratum names its groups. Sources: Intel's specification updates by
 * their published names; the model lists are those that intel/libipt publishes (pt_cpu errata).
 */
#include "decode/pt/errata.h"

#include <string.h>

#include "vmx/text.h"

enum group {
	BROADWELL = 1u << 0,
	SKYLAKE = 1u << 1,     /* client: Skylake, Kaby Lake, Coffee Lake, Comet Lake */
	SKYLAKE_SP = 1u << 2,  /* Skylake and Ice Lake servers */
	SAPPHIRE = 1u << 3,    /* Sapphire, Emerald and Granite Rapids */
	ICELAKE = 1u << 4,     /* client: Cannon, Ice, Tiger and Rocket Lake */
	ALDERLAKE = 1u << 5,   /* Alder, Raptor, Meteor, Arrow, Lunar and Panther Lake */
	FAMILY_12 = 1u << 6,   /* family 12h */
	FAMILY_13 = 1u << 7,   /* family 13h */
	GOLDMONT = 1u << 8,    /* Apollo Lake, Denverton */
	GOLDMONT_UP = 1u << 9, /* Goldmont Plus, Tremont, Gracemont, Crestmont */
};

struct model_row {
	uint16_t family;
	uint8_t model;
	uint16_t group;
};

static const struct model_row models[] = {
	{ 6, 0x3d, BROADWELL },	   { 6, 0x47, BROADWELL },    { 6, 0x4f, BROADWELL },
	{ 6, 0x56, BROADWELL },	   { 6, 0x4e, SKYLAKE },      { 6, 0x5e, SKYLAKE },
	{ 6, 0x8e, SKYLAKE },	   { 6, 0x9e, SKYLAKE },      { 6, 0xa5, SKYLAKE },
	{ 6, 0xa6, SKYLAKE },	   { 6, 0x55, SKYLAKE_SP },   { 6, 0x6a, SKYLAKE_SP },
	{ 6, 0x6c, SKYLAKE_SP },   { 6, 0x8f, SAPPHIRE },     { 6, 0xcf, SAPPHIRE },
	{ 6, 0xad, SAPPHIRE },	   { 6, 0xae, SAPPHIRE },     { 6, 0x66, ICELAKE },
	{ 6, 0x7d, ICELAKE },	   { 6, 0x7e, ICELAKE },      { 6, 0x8c, ICELAKE },
	{ 6, 0x8d, ICELAKE },	   { 6, 0xa7, ICELAKE },      { 6, 0xa8, ICELAKE },
	{ 6, 0x97, ALDERLAKE },	   { 6, 0x9a, ALDERLAKE },    { 6, 0xba, ALDERLAKE },
	{ 6, 0xb7, ALDERLAKE },	   { 6, 0xbf, ALDERLAKE },    { 6, 0xc5, ALDERLAKE },
	{ 6, 0xc6, ALDERLAKE },	   { 6, 0xb5, ALDERLAKE },    { 6, 0xaa, ALDERLAKE },
	{ 6, 0xac, ALDERLAKE },	   { 6, 0xbd, ALDERLAKE },    { 6, 0xcc, ALDERLAKE },
	{ 6, 0xd5, ALDERLAKE },	   { 0x12, 0x01, FAMILY_12 }, { 0x12, 0x03, FAMILY_12 },
	{ 0x13, 0x01, FAMILY_13 }, { 6, 0x5c, GOLDMONT },     { 6, 0x5f, GOLDMONT },
	{ 6, 0x7a, GOLDMONT_UP },  { 6, 0x86, GOLDMONT_UP },  { 6, 0x96, GOLDMONT_UP },
	{ 6, 0x9c, GOLDMONT_UP },  { 6, 0xb6, GOLDMONT_UP },  { 6, 0xaf, GOLDMONT_UP },
	{ 6, 0xdd, GOLDMONT_UP },
};

struct erratum_row {
	enum vmt_pt_erratum erratum;
	uint16_t groups;
	const char *name;
};

static const struct erratum_row errata[] = {
	/* also SKD024, SKL021, KBL021 */
	{ VMT_PT_BDM70,
	  BROADWELL | SKYLAKE | SKYLAKE_SP | SAPPHIRE | ICELAKE | ALDERLAKE | FAMILY_12 | FAMILY_13,
	  "BDM70" },
	{ VMT_PT_BDM64, BROADWELL, "BDM64" },
	/* also SKL049, KBL041 */
	{ VMT_PT_SKD007, SKYLAKE, "SKD007" },
	/* also SKD014, SKL033, KBL030 */
	{ VMT_PT_SKD010, SKYLAKE, "SKD010" },
	/* also SKL024, KBL023 */
	{ VMT_PT_SKD022,
	  SKYLAKE | SKYLAKE_SP | SAPPHIRE | ICELAKE | ALDERLAKE | FAMILY_12 | FAMILY_13, "SKD022" },
	/* also KBL014 */
	{ VMT_PT_SKL014, SKYLAKE | SKYLAKE_SP | ICELAKE, "SKL014" },
	{ VMT_PT_SKL168, SKYLAKE, "SKL168" },
	{ VMT_PT_APL11, GOLDMONT | GOLDMONT_UP | ALDERLAKE | FAMILY_12, "APL11" },
	{ VMT_PT_APL12, GOLDMONT, "APL12" },
	{ VMT_PT_SKZ84, SKYLAKE_SP | SAPPHIRE | FAMILY_13, "SKZ84" },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

uint32_t vmt_pt_errata_of(const struct vmt_pt_cpu *cpu)
{
	uint32_t groups = 0, mask = 0;

	if (!cpu->known)
		return VMT_PT_BDM70 | VMT_PT_SKZ84;
	for (size_t i = 0; i < COUNT(models); i++)
		if (models[i].family == cpu->family && models[i].model == cpu->model)
			groups |= models[i].group;
	for (size_t i = 0; i < COUNT(errata); i++)
		if (errata[i].groups & groups)
			mask |= errata[i].erratum;
	return mask;
}

const char *vmt_pt_erratum_name(enum vmt_pt_erratum erratum)
{
	for (size_t i = 0; i < COUNT(errata); i++)
		if (errata[i].erratum == erratum)
			return errata[i].name;
	return NULL;
}

bool vmt_pt_cpu_parse(const char *text, struct vmt_pt_cpu *cpu)
{
	static const char vendor[] = "GenuineIntel,";
	const size_t vendor_len = sizeof(vendor) - 1;
	bool perf = !strncmp(text, vendor, vendor_len);
	const char *p = perf ? text + vendor_len : text;
	uint64_t v[3];

	for (unsigned int i = 0; i < 3; i++) {
		p = vmx_text_number(p, &v[i]);
		if (!p || *p != (i == 2 ? '\0' : perf ? ',' : '/'))
			return false;
		p++;
	}
	if (v[0] > UINT16_MAX || v[1] > UINT8_MAX || v[2] > UINT8_MAX)
		return false;
	*cpu = (struct vmt_pt_cpu){
		.known = true,
		.family = (uint16_t)v[0],
		.model = (uint8_t)v[1],
		.stepping = (uint8_t)v[2],
	};
	return true;
}
