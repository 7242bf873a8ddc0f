// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests of the emulated system to the bed. A request that cannot be met is reported on standard
 * error and otherwise without effect; the emulated system goes on. */
#include "virt-fixtures/ptcpu/call.h"
#include "virt-fixtures/ptcpu/truth_log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 4096 };

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

struct sink {
	char bytes[64];
	size_t count;
};

static void add_to_sink(void *context, const uint8_t *bytes, size_t n)
{
	struct sink *sink = context;

	for (size_t i = 0; i < n && sink->count < sizeof(sink->bytes) - 1; i++)
		sink->bytes[sink->count++] = (char)bytes[i];
}

static bool read_argument(struct ptcpu *p, struct sink *sink)
{
	*sink = (struct sink){ .count = 0 };
	return each_page(p, bochs_u64(p->cpu, BOCHS_RBX), bochs_u64(p->cpu, BOCHS_RCX), add_to_sink,
			 sink);
}

static bool read_name(struct ptcpu *p, struct sink *name)
{
	if (!read_argument(p, name))
		return false;
	for (size_t i = 0; i < name->count; i++)
		if (!isalnum((unsigned char)name->bytes[i]) && !strchr(".-_", name->bytes[i]))
			return false;
	return name->count > 0 && name->bytes[0] != '.';
}

static bool read_plan(struct ptcpu *p)
{
	struct ptcpu_plan plan;
	struct sink sink;

	if (!read_argument(p, &sink) || sink.count != sizeof(plan))
		return false;
	memcpy(&plan, sink.bytes, sizeof(plan));
	vmx_set_plan(&plan);
	return true;
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
	struct sink name;

	switch (command) {
	case PTCPU_CALL_BEGIN:
		return read_name(p, &name) && truth_open(folder, name.bytes);
	case PTCPU_CALL_END:
		truth_close();
		if (file)
			fflush(file);
		return true;
	case PTCPU_CALL_FILE:
		return read_name(p, &name) && open_file(folder, name.bytes);
	case PTCPU_CALL_WRITE:
		return file && each_page(p, bochs_u64(p->cpu, BOCHS_RBX),
					 bochs_u64(p->cpu, BOCHS_RCX), add_to_file, file);
	case PTCPU_CALL_OVERFLOW:
		engine_overflow(p, bochs_u64(p->cpu, BOCHS_RCX));
		return true;
	case PTCPU_CALL_PLAN:
		return read_plan(p);
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
