// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options of bare PT streams: processor, clock, VMs. Numbers are C syntax. */
#include "host/cli/pt_options.h"

#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/options.h"

#define TSC_HZ_MAX UINT64_C(10000000000)

/* A number up to most, which fills the text. */
static bool whole_number(const char *text, uint64_t most, uint64_t *n)
{
	char *end;

	return vmt_cli_number(text, n, &end) && !*end && *n <= most;
}

bool vmt_pt_read_block(struct vmt_cli *cli, const char *value, const char **why)
{
	static const struct {
		const char *name;
		uint8_t block;
	} rows[] = {
		{ "none", VMT_PT_BLOCK_NONE },
		{ "blk4", VMT_PT_BLOCK_4 },
		{ "blk8", VMT_PT_BLOCK_8 },
	};

	*why = "none, blk4 or blk8";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strcmp(value, rows[i].name)) {
			cli->pt.block = rows[i].block;
			return true;
		}
	}
	return false;
}

bool vmt_pt_read_cpu_id(struct vmt_cli *cli, const char *value, const char **why)
{
	*why = "family/model/stepping, as in 6/0x55/4";
	return vmt_pt_cpu_parse(value, &cli->pt.cpu);
}

bool vmt_pt_read_mtc_freq(struct vmt_cli *cli, const char *value, const char **why)
{
	uint64_t n;

	*why = "RTIT_CTL.MTCFreq, 0 to 15";
	if (!whole_number(value, 15, &n))
		return false;
	cli->pt.clock.mtc_freq = (uint8_t)n;
	cli->pt.given = "--mtc-freq";
	return true;
}

bool vmt_pt_read_nom_ratio(struct vmt_cli *cli, const char *value, const char **why)
{
	uint64_t n;

	*why = "the maximum non-turbo ratio, 1 to 255";
	if (!whole_number(value, 255, &n) || !n)
		return false;
	cli->pt.clock.nom_ratio = (uint32_t)n;
	cli->pt.given = "--nom-ratio";
	return true;
}

bool vmt_pt_read_tsc_hz(struct vmt_cli *cli, const char *value, const char **why)
{
	uint64_t n;

	*why = "TSC ticks a second, at most 10000000000";
	if (!whole_number(value, TSC_HZ_MAX, &n) || !n)
		return false;
	cli->pt.clock.tsc_hz = n;
	cli->pt.given = "--tsc-hz";
	return true;
}

bool vmt_pt_read_cpuid_15h(struct vmt_cli *cli, const char *value, const char **why)
{
	uint64_t v[3] = { 0 };
	const char *p = value;
	char *end;
	unsigned int n = 0;

	*why = "EAX,EBX[,ECX] of CPUID leaf 15H";
	do {
		if (!vmt_cli_number(p, &v[n], &end) || v[n] > UINT32_MAX)
			return false;
		n++;
		p = end + 1;
	} while (*end == ',' && n < 3);
	if (*end || n < 2 || !v[0])
		return false;
	cli->pt.clock.art_den = (uint32_t)v[0];
	cli->pt.clock.tsc_num = (uint32_t)v[1];
	cli->pt.crystal_hz = (uint32_t)v[2];
	cli->pt.given = "--cpuid-15h";
	return true;
}

uint64_t vmt_pt_tsc_hz(const struct vmt_pt_cli *pt)
{
	const struct vmt_pt_clock_params *c = &pt->clock;
	uint64_t hz = c->tsc_hz;

	if (!hz && pt->crystal_hz && c->tsc_num)
		hz = (uint64_t)pt->crystal_hz * c->tsc_num / c->art_den;
	if (hz && hz <= TSC_HZ_MAX)
		return hz;
	return (uint64_t)c->nom_ratio * 100000000;
}

/* ---- --vm ---- */

static bool read_signed(const char *text, uint64_t *n)
{
	bool negative = *text == '-';
	uint64_t v;

	if (!whole_number(text + negative, UINT64_MAX, &v))
		return false;
	*n = negative ? 0 - v : v;
	return true;
}

struct vm_text {
	struct vmt_pt_vm vm;
	bool has_offset, has_mult;
	char name[VMT_PT_NAME_MAX];
};

static bool read_member(struct vm_text *t, const char *member)
{
	const char *value = strchr(member, '=');
	size_t len = value ? (size_t)(value - member) : 0;
	uint64_t n;

	if (!value)
		return false;
	value++;
	if (len == 6 && !memcmp(member, "offset", len)) {
		t->has_offset = read_signed(value, &t->vm.map.offset);
		return t->has_offset;
	}
	if (len == 4 && !memcmp(member, "mult", len)) {
		t->has_mult = whole_number(value, UINT64_MAX, &t->vm.map.multiplier) &&
			      t->vm.map.multiplier;
		return t->has_mult;
	}
	if (len == 4 && !memcmp(member, "frac", len)) {
		if (!whole_number(value, 63, &n) || !n)
			return false;
		t->vm.map.frac_bits = (uint8_t)n;
		return true;
	}
	if (len == 4 && !memcmp(member, "vcpu", len)) {
		t->vm.has_vcpu = whole_number(value, INT32_MAX, &n);
		t->vm.vcpu = (uint32_t)n;
		return t->vm.has_vcpu;
	}
	if (len == 4 && !memcmp(member, "name", len) && *value) {
		memcpy(t->name, value, strlen(value) + 1); /* a member is shorter than name */
		return true;
	}
	return false;
}

static bool read_vm(struct vm_text *t, const char *text)
{
	bool first = true;

	t->vm.map.frac_bits = VMX_TSC_FRAC_BITS_VMX;
	while (first || *text++ == ',') {
		size_t len = strcspn(text, ",");
		char member[VMT_PT_NAME_MAX];

		if (len >= sizeof(member))
			return false;
		memcpy(member, text, len);
		member[len] = '\0';
		if (first && !strcmp(member, "any"))
			t->vm.vmcs = VMT_PT_ANY_VMCS;
		else if (first ? !whole_number(member, UINT64_MAX - 1, &t->vm.vmcs)
			       : !read_member(t, member))
			return false;
		first = false;
		text += len;
		if (!*text)
			break;
	}
	if (!t->has_mult)
		t->vm.map.multiplier = UINT64_C(1) << t->vm.map.frac_bits;
	t->vm.has_map = t->has_offset || t->has_mult;
	return true;
}

/* Index of a name, new or known. */
static uint32_t domain_of(struct vmt_pt_cli *pt, const char *name)
{
	size_t i = 0;

	while (i < pt->nr_names && strcmp(pt->names[i], name) != 0)
		i++;
	if (i == pt->nr_names)
		memcpy(pt->names[pt->nr_names++], name, VMT_PT_NAME_MAX);
	return (uint32_t)i;
}

bool vmt_pt_read_vm(struct vmt_cli *cli, const char *value, const char **why)
{
	struct vmt_pt_cli *pt = &cli->pt;
	struct vm_text t = { 0 };

	*why = "VMCS,offset=N[,mult=N][,frac=48][,name=NAME][,vcpu=N]; VMCS is a pointer or any";
	if (!read_vm(&t, value))
		return false;
	*why = "at most 64 VMs";
	if (pt->nr_vms == VMT_CLI_VMS_MAX)
		return false;
	if (t.name[0]) {
		t.vm.has_domain = true;
		t.vm.domain = domain_of(pt, t.name);
	}
	pt->vms[pt->nr_vms++] = t.vm;
	pt->given = "--vm";
	return true;
}
