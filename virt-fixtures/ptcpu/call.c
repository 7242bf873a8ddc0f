// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests of the emulated system to the bed. A request that cannot be met is reported on standard
 * error and otherwise without effect; the emulated system goes on. */
#include "virt-fixtures/ptcpu/call.h"
#include "virt-fixtures/ptcpu/truth_log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 64, PAGE = 4096 };

static FILE *file;

/* Gives the memory at linear address `at` to use(), page by page; false where a page is missing. */
static bool each_page(struct ptcpu *p, uint64_t at, uint64_t count,
		      void (*use)(void *context, const uint8_t *bytes, size_t n), void *context)
{
	while (count) {
		uint8_t bytes[PAGE];
		uint64_t pa, mask, n = PAGE - (at & (PAGE - 1));

		n = n < count ? n : count;
		if (!bochs.translate(p->cpu, at, &pa, &mask, false))
			return false;
		bochs.read_memory(pa, (uint32_t)n, bytes);
		use(context, bytes, n);
		at += n;
		count -= n;
	}
	return true;
}

struct name {
	char text[NAME_BYTES];
	size_t count;
};

static void add_to_name(void *context, const uint8_t *bytes, size_t n)
{
	struct name *name = context;

	for (size_t i = 0; i < n && name->count < sizeof(name->text) - 1; i++)
		name->text[name->count++] = (char)bytes[i];
}

static bool read_name(struct ptcpu *p, struct name *name)
{
	*name = (struct name){ .count = 0 };
	if (!each_page(p, bochs_u64(p->cpu, BOCHS_RBX), bochs_u64(p->cpu, BOCHS_RCX), add_to_name,
		       name))
		return false;
	for (size_t i = 0; i < name->count; i++)
		if (!isalnum((unsigned char)name->text[i]) && !strchr(".-_", name->text[i]))
			return false;
	return name->count > 0 && name->text[0] != '.';
}

static void add_to_file(void *context, const uint8_t *bytes, size_t n)
{
	fwrite(bytes, 1, n, context);
}

static bool open_file(const char *folder, const char *name)
{
	char path[512];

	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "ab");
	return file != NULL;
}

static bool obey(struct ptcpu *p, uint32_t command, const char *folder)
{
	struct name name;

	switch (command) {
	case PTCPU_CALL_BEGIN:
		return read_name(p, &name) && truth_open(folder, name.text);
	case PTCPU_CALL_END:
		truth_close();
		if (file)
			fflush(file);
		return true;
	case PTCPU_CALL_FILE:
		return read_name(p, &name) && open_file(folder, name.text);
	case PTCPU_CALL_WRITE:
		return file && each_page(p, bochs_u64(p->cpu, BOCHS_RBX),
					 bochs_u64(p->cpu, BOCHS_RCX), add_to_file, file);
	case PTCPU_CALL_OVERFLOW:
		engine_overflow(p, bochs_u64(p->cpu, BOCHS_RCX));
		return true;
	default:
		return false;
	}
}

void call_out(struct ptcpu *p, uint32_t command)
{
	const char *folder = getenv("PTCPU_OUT");

	if (!folder)
		folder = ".";
	if (!obey(p, command, folder))
		fprintf(stderr, "ptcpu: request %u of CPU %u cannot be met\n", command, p->id);
}
