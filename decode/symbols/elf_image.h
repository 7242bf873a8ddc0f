/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SYMBOLS_ELF_IMAGE_H
#define VMT_SYMBOLS_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

/*
 * The code in an ELF file: what its executable PT_LOAD segments hold. Programs and kernels
 * (ET_EXEC), libraries, position-independent programs and the vDSO (ET_DYN), and cores in the
 * manner of /proc/kcore and of perf's kcore directory (ET_CORE), for x86-64 and i386. Bytes are
 * read into memory, so that a file that changes later changes nothing.
 */
struct vmt_elf_image;

struct vmt_elf_segment {
	uint64_t vaddr;	 /* as in the file: without the load bias */
	uint64_t offset; /* in the file */
	const uint8_t *bytes;
	size_t len; /* what the file holds; zero-filled memory behind it is not code */
};

/*
 * Reads a file that can seek. Errors: those of vmt_reader_open; VMT_E_DAMAGED when it is no ELF
 * file or its program headers are not all within its first VMT_ELF_HEAD_BYTES; VMT_E_UNSUPPORTED
 * for another machine, another type (relocatable objects have no segments), or an input that cannot
 * seek; VMT_E_LIMIT for more than VMT_ELF_SEGMENTS_MAX program headers; VMT_E_NOMEM. Free with
 * vmt_elf_image_free.
 */
int vmt_elf_image_read(struct vmt_elf_image **out, const char *path, struct vmt_diag *diag);

/* The same from an open descriptor, which is taken over. */
int vmt_elf_image_from_fd(struct vmt_elf_image **out, int fd, struct vmt_diag *diag);
void vmt_elf_image_free(struct vmt_elf_image *image);

/* In the order of the file; bytes are the image's. */
const struct vmt_elf_segment *vmt_elf_image_segments(const struct vmt_elf_image *image,
						     size_t *count);

/* 64 or 32: the mode that its code is for. */
unsigned int vmt_elf_image_bits(const struct vmt_elf_image *image);

/* Bytes of executable segments that are not there: the file is cut off, or a bound was reached. */
uint64_t vmt_elf_image_bytes_missing(const struct vmt_elf_image *image);

/*
 * What to add to each vaddr when file offset `offset` is mapped at `addr`, as a mapping in
 * /proc/PID/maps or in PERF_RECORD_MMAP2 tells. Segments begin in the middle of a page at times:
 * the offset may be up to a page before one. False when no executable segment is there.
 */
bool vmt_elf_image_bias(const struct vmt_elf_image *image, uint64_t addr, uint64_t offset,
			uint64_t *bias);

#endif
