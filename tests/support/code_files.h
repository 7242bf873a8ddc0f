/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_TESTS_SUPPORT_CODE_FILES_H
#define VMT_TESTS_SUPPORT_CODE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/insn/insn.h"

/* Code of this machine: executable sections of its programs and libraries, and its ROM images. */
struct code_files {
	size_t bytes_max;	  /* of all; 0: no limit */
	size_t section_bytes_max; /* 0: no limit */
	/* Sections smaller than this are left out. */
	size_t section_bytes_min;
	/* Returns false to stop. The bytes live until it returns. */
	bool (*take)(void *ctx, const char *path, const uint8_t *bytes, size_t len,
		     enum vmt_insn_mode mode);
	void *ctx;
	size_t files, bytes; /* taken */
};

/* Executable sections of ELF files for x86 in the folders of programs and libraries. */
void code_files_elf(struct code_files *c);

/* Firmware images of emulators, each as 16-bit and as 32-bit code. */
void code_files_rom(struct code_files *c);

#endif
