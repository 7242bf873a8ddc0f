// SPDX-License-Identifier: LGPL-2.1-or-later
/* Code out of ELF files: programs, libraries with a load bias, cores, and files that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <unistd.h>

#include "decode/symbols/elf_image.h"
#include "tests/support/memory_file.h"

#define FILE_BYTES 0x3000

struct file_64 {
	Elf64_Ehdr header;
	Elf64_Phdr segments[4];
	uint8_t rest[FILE_BYTES - sizeof(Elf64_Ehdr) - 4 * sizeof(Elf64_Phdr)];
};

/* Executable: 0x1080..0x1180 and 0x2000..0x2010 of the file; the others are data and a note. */
static struct file_64 file_of(uint16_t type)
{
	struct file_64 f = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = type,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 4 },
		.segments = { { .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x1000 },
			      { .p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = 0x1080,
				.p_vaddr = 0x401080,
				.p_filesz = 0x100,
				.p_memsz = 0x200 },
			      { .p_type = PT_NOTE,
				.p_flags = PF_X,
				.p_offset = 0x1000,
				.p_filesz = 16 },
			      { .p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = 0x2000,
				.p_vaddr = 0xffffffffc0000000,
				.p_filesz = 0x10,
				.p_memsz = 0x10 } },
	};

	((uint8_t *)&f)[0x1080] = 0x90;
	((uint8_t *)&f)[0x117f] = 0xc3;
	((uint8_t *)&f)[0x2000] = 0xcc;
	return f;
}

static int read_bytes(struct vmt_elf_image **image, const void *bytes, size_t len)
{
	struct vmt_diag diag = { 0 };
	const int err = vmt_elf_image_from_fd(image, vmt_memory_file(bytes, len), &diag);

	assert_int_equal(diag.code, err);
	assert_true(!err || diag.what[0]);
	return err;
}

static void refuse(const void *bytes, size_t len, int code)
{
	struct vmt_elf_image *image = NULL;

	assert_int_equal(read_bytes(&image, bytes, len), code);
	assert_null(image);
}

static void executable_segments(void **state)
{
	static const uint16_t types[] = { ET_EXEC, ET_DYN, ET_CORE };

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const struct file_64 f = file_of(types[i]);
		struct vmt_elf_image *image = NULL;
		size_t count;

		assert_int_equal(read_bytes(&image, &f, sizeof(f)), 0);
		const struct vmt_elf_segment *s = vmt_elf_image_segments(image, &count);

		assert_int_equal(count, 2);
		assert_int_equal(vmt_elf_image_bits(image), 64);
		assert_int_equal(vmt_elf_image_bytes_missing(image), 0);
		assert_true(s[0].vaddr == 0x401080 && s[0].offset == 0x1080 && s[0].len == 0x100);
		assert_true(s[0].bytes[0] == 0x90 && s[0].bytes[0xff] == 0xc3);
		assert_true(s[1].vaddr == 0xffffffffc0000000 && s[1].len == 0x10);
		assert_int_equal(s[1].bytes[0], 0xcc);
		vmt_elf_image_free(image);
	}
}

static void load_bias(void **state)
{
	const struct file_64 f = file_of(ET_DYN);
	struct vmt_elf_image *image = NULL;
	uint64_t bias = 7;

	(void)state;
	assert_int_equal(read_bytes(&image, &f, sizeof(f)), 0);
	assert_true(vmt_elf_image_bias(image, 0x7f0000001000, 0x1000, &bias));
	assert_true(0x401080 + bias == 0x7f0000001080);
	assert_true(vmt_elf_image_bias(image, 0x401100, 0x1100, &bias));
	assert_true(bias == 0);
	assert_true(vmt_elf_image_bias(image, 0x1000, 0x2000, &bias));
	assert_true(0xffffffffc0000000 + bias == 0x1000);
	bias = 7;
	assert_false(vmt_elf_image_bias(image, 0x1000, 0, &bias));
	assert_false(vmt_elf_image_bias(image, 0x1000, 0x1180, &bias));
	assert_false(vmt_elf_image_bias(image, 0x1000, UINT64_MAX, &bias));
	assert_true(bias == 7);
	vmt_elf_image_free(image);
}

static void a_file_that_is_cut_off(void **state)
{
	const struct file_64 f = file_of(ET_EXEC);
	struct vmt_elf_image *image = NULL;
	size_t count;

	(void)state;
	assert_int_equal(read_bytes(&image, &f, 0x1090), 0);
	const struct vmt_elf_segment *s = vmt_elf_image_segments(image, &count);

	assert_true(count == 1 && s[0].len == 0x10);
	assert_int_equal(vmt_elf_image_bytes_missing(image), 0xf0 + 0x10);
	vmt_elf_image_free(image);
	refuse(&f, 100, VMT_E_DAMAGED);
	refuse(&f, 16, VMT_E_DAMAGED);
	refuse(&f, 0, VMT_E_DAMAGED);
}

static void segments_that_cannot_be(void **state)
{
	struct file_64 f = file_of(ET_EXEC);
	struct vmt_elf_image *image = NULL;
	size_t count;

	(void)state;
	f.segments[1].p_filesz = UINT64_MAX;
	f.segments[3].p_offset = UINT64_MAX - 4;
	assert_int_equal(read_bytes(&image, &f, sizeof(f)), 0);
	vmt_elf_image_segments(image, &count);
	assert_int_equal(count, 0);
	assert_true(vmt_elf_image_bytes_missing(image) == UINT64_MAX);
	vmt_elf_image_free(image);
	f = file_of(ET_EXEC);
	f.segments[1].p_filesz = UINT64_C(1) << 62;
	assert_int_equal(read_bytes(&image, &f, sizeof(f)), 0);
	assert_true(vmt_elf_image_segments(image, &count)[0].len == FILE_BYTES - 0x1080);
	vmt_elf_image_free(image);
}

static void files_that_are_none(void **state)
{
	struct file_64 f = file_of(ET_REL);

	(void)state;
	refuse(&f, sizeof(f), VMT_E_UNSUPPORTED);
	f = file_of(ET_EXEC);
	f.header.e_machine = EM_AARCH64;
	refuse(&f, sizeof(f), VMT_E_UNSUPPORTED);
	f = file_of(ET_EXEC);
	f.header.e_phoff = 1u << 30;
	refuse(&f, sizeof(f), VMT_E_DAMAGED);
	f = file_of(ET_EXEC);
	f.header.e_phnum = 4097;
	refuse(&f, sizeof(f), VMT_E_LIMIT);
	f = file_of(ET_EXEC);
	f.header.e_ident[0] = 0;
	refuse(&f, sizeof(f), VMT_E_DAMAGED);
	refuse("#!/bin/sh\nexit 0 # not a program of this kind\n", 46, VMT_E_DAMAGED);
}

static void a_pipe(void **state)
{
	const struct file_64 f = file_of(ET_EXEC);
	struct vmt_elf_image *image = NULL;
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_int_equal(vmt_elf_image_from_fd(&image,
					       vmt_memory_pipe((const uint8_t *)&f, sizeof(f)),
					       &diag),
			 VMT_E_UNSUPPORTED);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_elf_image_read(&image, "/nonexistent/file", &diag), VMT_E_NOT_FOUND);
	assert_null(image);
}

/* The machine code of this very function is in the image of this program. */
static void this_program(void **state)
{
	const uintptr_t own = (uintptr_t)this_program;
	struct vmt_elf_image *image = NULL;
	struct vmt_diag diag = { 0 };
	size_t count, found = 0;

	(void)state;
	assert_int_equal(vmt_elf_image_read(&image, "/proc/self/exe", &diag), 0);
	const struct vmt_elf_segment *s = vmt_elf_image_segments(image, &count);

	for (size_t i = 0; i < count; i++) {
		for (size_t at = own % 4096; at + 32 <= s[i].len + s[i].vaddr % 4096; at += 4096) {
			const size_t place = at - s[i].vaddr % 4096;

			if (at >= s[i].vaddr % 4096 &&
			    !memcmp(s[i].bytes + place, (const void *)own, 32))
				found++;
		}
	}
	assert_true(found >= 1);
	vmt_elf_image_free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executable_segments),	  cmocka_unit_test(load_bias),
		cmocka_unit_test(a_file_that_is_cut_off), cmocka_unit_test(segments_that_cannot_be),
		cmocka_unit_test(files_that_are_none),	  cmocka_unit_test(a_pipe),
		cmocka_unit_test(this_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
