// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libelf sees the first bytes of the file alone, in memory: it checks the headers against them, and
 * only the reader of decode/io touches the file. What a segment claims to have is never allocated
 * before the file is known to have it: memory grows by chunks that were read. Segments together
 * hold no more bytes than the file, or than VMT_ELF_BYTES_MAX.
 */
#include "decode/symbols/elf_image.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "decode/io/reader.h"
#include "decode/symbols/limits.h"

#define CHUNK_BYTES (1u << 20)
#define PAGE_BYTES  4096u

struct vmt_elf_image {
	struct vmt_elf_segment *segments;
	uint8_t **memory; /* of the segments */
	size_t nr;
	unsigned int bits;
	uint64_t bytes, bytes_missing;
};

void vmt_elf_image_free(struct vmt_elf_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->nr; i++)
		free(image->memory[i]);
	free(image->memory);
	free(image->segments);
	free(image);
}

const struct vmt_elf_segment *vmt_elf_image_segments(const struct vmt_elf_image *image,
						     size_t *count)
{
	*count = image->nr;
	return image->segments;
}

unsigned int vmt_elf_image_bits(const struct vmt_elf_image *image)
{
	return image->bits;
}

uint64_t vmt_elf_image_bytes_missing(const struct vmt_elf_image *image)
{
	return image->bytes_missing;
}

bool vmt_elf_image_bias(const struct vmt_elf_image *image, uint64_t addr, uint64_t offset,
			uint64_t *bias)
{
	for (size_t i = 0; i < image->nr; i++) {
		const struct vmt_elf_segment *s = &image->segments[i];
		const uint64_t lead = s->offset % PAGE_BYTES, first = s->offset - lead;

		if (offset >= first && offset - first < s->len + lead) {
			*bias = addr - (s->vaddr + (offset - s->offset));
			return true;
		}
	}
	return false;
}

/* Takes up to `want` bytes at the reader's position into memory that *len bytes of are used. */
static int read_bytes(struct vmt_reader *r, uint64_t want, uint8_t **bytes, size_t *len,
		      struct vmt_diag *diag)
{
	size_t room = 0;

	while (*len < want) {
		const uint8_t *p;
		const size_t step = want - *len < CHUNK_BYTES ? (size_t)(want - *len) : CHUNK_BYTES;
		int64_t got = vmt_reader_peek(r, step, &p, diag);

		if (got <= 0)
			return (int)got;
		if ((uint64_t)got > step)
			got = (int64_t)step;
		if (*len + (size_t)got > room) {
			room = *len + (size_t)got > 2 * room ? *len + (size_t)got : 2 * room;
			uint8_t *more = realloc(*bytes, room);

			if (!more)
				return vmt_diag_set(diag, VMT_E_NOMEM,
						    "memory for a segment of code", "");
			*bytes = more;
		}
		memcpy(*bytes + *len, p, (size_t)got);
		*len += (size_t)got;
		int err = vmt_reader_skip(r, (uint64_t)got, diag);

		if (err)
			return err;
	}
	return 0;
}

/* Reads what the file has of a segment; *len 0: nothing. */
static int read_segment(struct vmt_elf_image *image, struct vmt_reader *r, const GElf_Phdr *p,
			size_t *len, struct vmt_diag *diag)
{
	const uint64_t size = vmt_reader_size(r),
		       most = size < VMT_ELF_BYTES_MAX ? size : VMT_ELF_BYTES_MAX,
		       room = most - image->bytes, want = p->p_filesz < room ? p->p_filesz : room;
	uint8_t *bytes = NULL;
	int err;

	*len = 0;
	if (p->p_vaddr + p->p_filesz < p->p_vaddr || p->p_offset >= size)
		return 0;
	err = vmt_reader_seek(r, p->p_offset, diag);
	if (!err)
		err = read_bytes(r, want, &bytes, len, diag);
	if (err || !*len) {
		free(bytes);
		return err;
	}
	image->memory[image->nr] = bytes;
	image->segments[image->nr++] = (struct vmt_elf_segment){
		.vaddr = p->p_vaddr, .offset = p->p_offset, .bytes = bytes, .len = *len
	};
	image->bytes += *len;
	return 0;
}

static int add_segment(struct vmt_elf_image *image, struct vmt_reader *r, const GElf_Phdr *p,
		       struct vmt_diag *diag)
{
	size_t len;
	const int err = read_segment(image, r, p, &len, diag);
	const uint64_t missing = err ? 0 : p->p_filesz - len;

	if (missing > UINT64_MAX - image->bytes_missing)
		image->bytes_missing = UINT64_MAX;
	else
		image->bytes_missing += missing;
	return err;
}

static int damaged(struct vmt_diag *diag)
{
	return vmt_diag_set(
		diag, VMT_E_DAMAGED, "no program headers of an ELF file",
		"the file is no ELF file, it is cut off, or they are far from its start");
}

/* Whether it is a file for code of this kind; sets bits and the number of program headers. */
static int check_header(struct vmt_elf_image *image, Elf *elf, size_t *count, struct vmt_diag *diag)
{
	GElf_Ehdr header;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return damaged(diag);
	image->bits = header.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	if (header.e_machine != (image->bits == 64 ? EM_X86_64 : EM_386) ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB)
		return vmt_diag_set(diag, VMT_E_UNSUPPORTED, "an ELF file of another processor",
				    "Intel PT traces x86-64 and i386 code");
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN && header.e_type != ET_CORE)
		return vmt_diag_set(diag, VMT_E_UNSUPPORTED, "an ELF file without segments",
				    "give a linked program, library or kernel, or a kcore");
	if (header.e_phnum > VMT_ELF_SEGMENTS_MAX)
		return vmt_diag_set(diag, VMT_E_LIMIT, "an ELF file with too many program headers",
				    "at most 4096 are read");
	/* libelf counts those that are there */
	if (elf_getphdrnum(elf, count) || *count != header.e_phnum)
		return damaged(diag);
	return 0;
}

static int take_segments(struct vmt_elf_image *image, struct vmt_reader *r, Elf *elf,
			 struct vmt_diag *diag)
{
	size_t count = 0;
	int err = check_header(image, elf, &count, diag);

	if (err)
		return err;
	image->segments = calloc(count ? count : 1, sizeof(*image->segments));
	image->memory = calloc(count ? count : 1, sizeof(*image->memory));
	if (!image->segments || !image->memory)
		return vmt_diag_set(diag, VMT_E_NOMEM, "memory for program headers", "");
	for (size_t i = 0; !err && i < count; i++) {
		GElf_Phdr p = { 0 };

		if (!gelf_getphdr(elf, (int)i, &p))
			return damaged(diag);
		if (p.p_type == PT_LOAD && p.p_flags & PF_X && p.p_filesz)
			err = add_segment(image, r, &p, diag);
	}
	return err;
}

/* `head` is the start of the file; libelf may change it. */
static int take_head(struct vmt_elf_image *image, struct vmt_reader *r, char *head, size_t len,
		     struct vmt_diag *diag)
{
	Elf *elf;
	int err;

	if (len < EI_NIDENT || elf_version(EV_CURRENT) == EV_NONE)
		return damaged(diag);
	elf = elf_memory(head, len);
	if (!elf)
		return damaged(diag);
	err = take_segments(image, r, elf, diag);
	elf_end(elf);
	return err;
}

static int read_image(struct vmt_elf_image **out, struct vmt_reader *r, struct vmt_diag *diag)
{
	struct vmt_elf_image *image = calloc(1, sizeof(*image));
	uint8_t *head = NULL;
	size_t len = 0;
	int err;

	if (!image)
		return vmt_diag_set(diag, VMT_E_NOMEM, "memory for an ELF file", "");
	if (!vmt_reader_can_seek(r))
		err = vmt_diag_set(diag, VMT_E_UNSUPPORTED, "an ELF file through a pipe",
				   "give a file");
	else
		err = read_bytes(r, VMT_ELF_HEAD_BYTES, &head, &len, diag);
	if (!err)
		err = take_head(image, r, (char *)head, len, diag);
	free(head);
	if (err) {
		vmt_elf_image_free(image);
		return err;
	}
	*out = image;
	return 0;
}

int vmt_elf_image_read(struct vmt_elf_image **out, const char *path, struct vmt_diag *diag)
{
	struct vmt_reader *r;
	int err = vmt_reader_open(&r, path, NULL, diag);

	if (err)
		return err;
	err = read_image(out, r, diag);
	vmt_reader_close(r);
	return err;
}

int vmt_elf_image_from_fd(struct vmt_elf_image **out, int fd, struct vmt_diag *diag)
{
	struct vmt_reader *r;
	int err = vmt_reader_from_fd(&r, fd, NULL, diag);

	if (err)
		return err;
	err = read_image(out, r, diag);
	vmt_reader_close(r);
	return err;
}
