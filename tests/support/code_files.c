// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file that cannot be read, or that is no ELF file for x86, is passed over. */
#include "tests/support/code_files.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* nftw() has no argument for its caller. */
static struct code_files *current;

static bool take(struct code_files *c, const char *path, const uint8_t *bytes, size_t len,
		 enum vmt_insn_mode mode)
{
	if (len < c->section_bytes_min)
		return true;
	if (c->section_bytes_max && len > c->section_bytes_max)
		len = c->section_bytes_max;
	if (c->bytes_max && len > c->bytes_max - c->bytes)
		len = c->bytes_max - c->bytes;
	c->bytes += len;
	return c->take(c->ctx, path, bytes, len, mode) &&
	       (!c->bytes_max || c->bytes < c->bytes_max);
}

static bool take_sections_64(struct code_files *c, const char *path, const uint8_t *file,
			     size_t len)
{
	Elf64_Ehdr header;

	if (len < sizeof(header))
		return true;
	memcpy(&header, file, sizeof(header));
	for (size_t i = 0; header.e_machine == EM_X86_64 && i < header.e_shnum; i++) {
		const size_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Shdr section;

		if (at > len || sizeof(section) > len - at)
			return true;
		memcpy(&section, file + at, sizeof(section));
		if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_EXECINSTR) ||
		    section.sh_offset > len || section.sh_size > len - section.sh_offset)
			continue;
		if (!take(c, path, file + section.sh_offset, section.sh_size, VMT_INSN_64))
			return false;
	}
	return true;
}

static bool take_sections_32(struct code_files *c, const char *path, const uint8_t *file,
			     size_t len)
{
	Elf32_Ehdr header;

	if (len < sizeof(header))
		return true;
	memcpy(&header, file, sizeof(header));
	for (size_t i = 0; header.e_machine == EM_386 && i < header.e_shnum; i++) {
		const size_t at = header.e_shoff + i * sizeof(Elf32_Shdr);
		Elf32_Shdr section;

		if (at > len || sizeof(section) > len - at)
			return true;
		memcpy(&section, file + at, sizeof(section));
		if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_EXECINSTR) ||
		    section.sh_offset > len || section.sh_size > len - section.sh_offset)
			continue;
		if (!take(c, path, file + section.sh_offset, section.sh_size, VMT_INSN_32))
			return false;
	}
	return true;
}

static bool take_elf(struct code_files *c, const char *path, const uint8_t *file, size_t len)
{
	if (len < EI_NIDENT || memcmp(file, ELFMAG, SELFMAG) != 0)
		return true;
	c->files++;
	return file[EI_CLASS] == ELFCLASS64 ? take_sections_64(c, path, file, len)
					    : take_sections_32(c, path, file, len);
}

static bool take_rom(struct code_files *c, const char *path, const uint8_t *file, size_t len)
{
	c->files++;
	return take(c, path, file, len, VMT_INSN_16) && take(c, path, file, len, VMT_INSN_32);
}

/* Maps a file for one of the above. */
static bool with_file(struct code_files *c, const char *path,
		      bool (*then)(struct code_files *, const char *, const uint8_t *, size_t))
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool go_on = true;
	void *file;

	if (fd < 0)
		return true;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			go_on = then(c, path, file, (size_t)st.st_size);
			munmap(file, (size_t)st.st_size);
		}
	}
	close(fd);
	return go_on;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	return type == FTW_F && st->st_size > 4096 && !with_file(current, path, take_elf);
}

void code_files_elf(struct code_files *c)
{
	static const char *const folders[] = { "/usr/bin", "/usr/sbin",	 "/usr/libexec",
					       "/usr/lib", "/usr/lib32", "/usr/local",
					       "/opt" };

	current = c;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (nftw(folders[i], visit, 32, FTW_PHYS) > 0)
			return;
	}
}

void code_files_rom(struct code_files *c)
{
	static const char *const patterns[] = {
		"/usr/share/seabios/*.bin",    "/usr/share/vgabios/*.bin",
		"/usr/share/bochs/*BIOS*",     "/usr/share/qemu/*.bin",
		"/usr/lib/syslinux/mbr/*.bin", "/usr/lib/ISOLINUX/*.bin"
	};
	bool go_on = true;

	for (size_t i = 0; go_on && i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		glob_t found;

		if (glob(patterns[i], 0, NULL, &found))
			continue;
		for (size_t k = 0; go_on && k < found.gl_pathc; k++)
			go_on = with_file(c, found.gl_pathv[k], take_rom);
		globfree(&found);
	}
}
