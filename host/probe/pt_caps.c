// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/probe/pt_caps.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/reader.h"
#include "decode/pt/errata.h"
#include "vmx/text.h"

#define FILE_MAX   (1u << 20)
#define VALUES_MAX 6u

/* ---- errata, which are data of the decoder ---- */

static void add_errata(struct vmx_pt_caps *caps)
{
	const uint32_t eax = caps->leaf1.reg[VMX_EAX];
	struct vmt_pt_cpu cpu = { .known = caps->leaf1.known,
				  .family = (uint16_t)(eax >> 8 & 15),
				  .model = (uint8_t)(eax >> 4 & 15),
				  .stepping = (uint8_t)(eax & 15) };
	uint32_t errata;

	if (cpu.family == 6 || cpu.family == 15)
		cpu.model |= (uint8_t)(eax >> 12 & 0xf0);
	if (cpu.family == 15)
		cpu.family = (uint16_t)(cpu.family + (eax >> 20 & 0xff));
	if (!cpu.known)
		return;
	errata = vmt_pt_errata_of(&cpu);
	caps->tma_wrong_in_nonroot = errata & VMT_PT_SKZ84;
	caps->needs_branch_en = errata & VMT_PT_BDM64; /* BDM106 has the same models */
}

/* ---- this machine ---- */

static void read_cpuid(struct vmt_pt_caps *caps)
{
	uint32_t leaf, subleaf, r[12];
	unsigned int n = 0;

	for (unsigned int i = 0; vmx_pt_caps_wanted_cpuid(i, &leaf, &subleaf); i++) {
		if (__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]))
			vmx_pt_caps_cpuid(&caps->cpu, leaf, subleaf, r);
	}
	for (uint32_t part = 0x80000002; part <= 0x80000004; part++, n += 4) {
		if (!__get_cpuid(part, &r[n], &r[n + 1], &r[n + 2], &r[n + 3]))
			return;
	}
	memcpy(caps->name, r, sizeof(r)); /* 48 characters, name[48] stays 0 */
	for (size_t len = strlen(caps->name); len && caps->name[len - 1] == ' ';)
		caps->name[--len] = '\0';
}

static void read_msrs(struct vmt_pt_caps *caps)
{
	const char *path = "/dev/cpu/0/msr";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint32_t index;
	uint64_t value;

	if (fd < 0) {
		snprintf(caps->msr_note, sizeof(caps->msr_note), "%s: %s (%s)", path,
			 strerror(errno),
			 errno == ENOENT ? "modprobe msr"
					 : "root may read it, unless the kernel is locked down");
		return;
	}
	for (unsigned int i = 0; vmx_pt_caps_wanted_msr(i, &index); i++) {
		if (pread(fd, &value, sizeof(value), index) == sizeof(value))
			vmx_pt_caps_msr(&caps->cpu, index, value);
	}
	close(fd);
	if (!caps->cpu.misc.known)
		snprintf(caps->msr_note, sizeof(caps->msr_note),
			 "this CPU has no VMX capability MSRs (no VMX, or it is hidden from this "
			 "machine)");
}

void vmt_pt_caps_here(struct vmt_pt_caps *caps)
{
	memset(caps, 0, sizeof(*caps));
	read_cpuid(caps);
	read_msrs(caps);
	add_errata(&caps->cpu);
}

/* ---- a file ---- */

/* The numbers of a line behind its word; false when one is none, or their count is wrong. */
static bool numbers(const char *at, uint64_t *values, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		at += strspn(at, " \t");
		at = vmx_text_number(at, &values[i]);
		if (!at || !strchr(" \t", *at))
			return false;
	}
	return at[strspn(at, " \t\r")] == '\0';
}

static bool take_name(struct vmt_pt_caps *caps, const char *rest)
{
	snprintf(caps->name, sizeof(caps->name), "%s", rest + strspn(rest, " \t"));
	return true;
}

static bool take_cpuid(struct vmt_pt_caps *caps, const char *rest)
{
	uint64_t v[VALUES_MAX];
	uint32_t r[4];

	if (!numbers(rest, v, 6))
		return false;
	for (unsigned int i = 0; i < 6; i++) {
		if (v[i] > UINT32_MAX)
			return false;
	}
	for (unsigned int i = 0; i < 4; i++)
		r[i] = (uint32_t)v[2 + i];
	vmx_pt_caps_cpuid(&caps->cpu, (uint32_t)v[0], (uint32_t)v[1], r);
	return true;
}

static bool take_msr(struct vmt_pt_caps *caps, const char *rest)
{
	uint64_t v[VALUES_MAX];

	if (!numbers(rest, v, 2) || v[0] > UINT32_MAX)
		return false;
	vmx_pt_caps_msr(&caps->cpu, (uint32_t)v[0], v[1]);
	return true;
}

static bool take_line(struct vmt_pt_caps *caps, char *line)
{
	static const struct {
		const char *word;
		bool (*take)(struct vmt_pt_caps *caps, const char *rest);
	} words[] = { { "name", take_name }, { "cpuid", take_cpuid }, { "msr", take_msr } };
	size_t len;

	line[strcspn(line, "#\r")] = '\0';
	line += strspn(line, " \t");
	len = strcspn(line, " \t");
	if (!len)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) == len && !strncmp(line, words[i].word, len))
			return words[i].take(caps, line + len);
	}
	return false;
}

int vmt_pt_caps_text(struct vmt_pt_caps *caps, const uint8_t *bytes, size_t len,
		     struct vmt_diag *diag)
{
	char line[256];
	unsigned int nr = 0;

	memset(caps, 0, sizeof(*caps));

	for (size_t at = 0; at < len; nr++) {
		const uint8_t *end = memchr(bytes + at, '\n', len - at);
		size_t n = end ? (size_t)(end - (bytes + at)) : len - at;

		if (n >= sizeof(line) || memchr(bytes + at, 0, n))
			n = sizeof(line);
		else
			memcpy(line, bytes + at, n);
		if (n < sizeof(line))
			line[n] = '\0';
		if (n == sizeof(line) || !take_line(caps, line))
			return vmt_diag_printf(
				diag, VMT_E_DAMAGED, 0,
				"lines are: name TEXT, cpuid LEAF SUBLEAF EAX EBX ECX "
				"EDX, msr INDEX VALUE",
				"line %u of the capabilities is not understood", nr + 1);
		at += n + 1;
	}
	add_errata(&caps->cpu);
	if (!caps->cpu.misc.known)
		snprintf(caps->msr_note, sizeof(caps->msr_note), "the file does not give them");
	return 0;
}

int vmt_pt_caps_read(struct vmt_pt_caps *caps, const char *path, struct vmt_diag *diag)
{
	struct vmt_reader *reader;
	const uint8_t *bytes;
	int64_t got;
	int err = vmt_reader_open(&reader, path, NULL, diag);

	if (err)
		return err;
	got = vmt_reader_peek(reader, FILE_MAX + 1, &bytes, diag);
	if (got > (int64_t)FILE_MAX)
		err = vmt_diag_set(diag, VMT_E_LIMIT, "the file of capabilities is too large",
				   "it has a line a fact, some hundred bytes in all");
	else
		err = got < 0 ? (int)got : vmt_pt_caps_text(caps, bytes, (size_t)got, diag);
	vmt_reader_close(reader);
	return err;
}
