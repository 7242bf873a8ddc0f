// SPDX-License-Identifier: LGPL-2.1-or-later
/* A bare stream, and those in AUXTRACE records of a perf.data file. */
#include "tests/support/pt_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"

#define FILE_MAX	  (1u << 20)
#define HEADER_DATA	  40 /* where perf's header has the offset of its records */
#define AUXTRACE	  71
#define AUXTRACE_SIZE_POS 8

static uint8_t *load(const char *name, size_t *len)
{
	uint8_t *bytes = malloc(FILE_MAX);
	const char *top = getenv("VMT_TOP");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/../shared/data/pt/%s", top ? top : ".", name);
	file = fopen(path, "rb");
	if (!bytes)
		abort();
	*len = file ? fread(bytes, 1, FILE_MAX, file) : 0;
	if (file)
		fclose(file);
	return bytes;
}

static void add(struct vmt_pt_files *f, const char *name, const uint8_t *bytes, size_t len)
{
	if (f->n == VMT_PT_FILES_MAX)
		return;
	f->bytes[f->n] = malloc(len);
	if (!f->bytes[f->n])
		abort();
	memcpy(f->bytes[f->n], bytes, len);
	f->names[f->n] = name;
	f->lens[f->n++] = len;
}

bool vmt_pt_files_load(struct vmt_pt_files *f)
{
	size_t len;
	uint8_t *bytes = load("dynamorio-pt.bin", &len);

	f->n = 0;
	if (len)
		add(f, "dynamorio-pt.bin", bytes, len);
	free(bytes);
	bytes = load("perf.data.intel_pt-4.14", &len);
	for (uint64_t at = len > 48 ? vmt_load_u64(bytes + HEADER_DATA) : len; at + 16 <= len;) {
		const uint16_t size = vmt_load_u16(bytes + at + 6);
		uint64_t aux = 0;

		if (size < 8)
			break;
		if (vmt_load_u32(bytes + at) == AUXTRACE) {
			aux = vmt_load_u64(bytes + at + AUXTRACE_SIZE_POS);
			if (aux > len - at - size)
				break;
			add(f, "perf.data.intel_pt-4.14", bytes + at + size, aux);
		}
		at += size + aux;
	}
	free(bytes);
	return f->n;
}

void vmt_pt_files_free(struct vmt_pt_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->bytes[i]);
	f->n = 0;
}
