// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A preload library that makes Debian's bochs-bin 2.7+dfsg-4+deb12u1, CPU model corei7_skylake_x, a
 * processor with Intel PT. In any other program it does nothing; in another build of bochs-bin it
 * ends the program with a reason on standard error and status 77.
 *
 * Bochs is told apart by the vtable of that model, the build by its build ID; every place that is
 * changed is compared with what is expected there before anything is changed. Three ways in:
 * - the model's virtual functions for CPUID and unknown MSRs: the vtable slots;
 * - the empty instrumentation callbacks of the build, one RET each: a jump in their place;
 * - functions that are wrapped: a jump over their first instructions, which are kept elsewhere.
 */
#include "virt-fixtures/ptcpu/bochs.h"
#include "virt-fixtures/ptcpu/hooks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REFUSED = 77, JUMP_BYTES = 12, PAGE = 4096 };
#define MODEL_VTABLE "_ZTV18corei7_skylake_x_t"
static const char package[] = "bochs 2.7+dfsg-4+deb12u1";
static const uint8_t build_id[20] = { 0x6e, 0x89, 0xe0, 0xc0, 0x7c, 0x09, 0x6a, 0xb3, 0x05, 0xb6,
				      0x8e, 0xb0, 0xbf, 0x69, 0xc4, 0xae, 0xb7, 0x88, 0xd1, 0x0d };

static _Noreturn void refuse(const char *reason, const char *what)
{
	fprintf(stderr, "ptcpu: this bochs-bin is not that of %s: %s%s\n", package, reason, what);
	_exit(REFUSED);
}

static int find_build_id(struct dl_phdr_info *info, size_t size, void *found)
{
	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)info->dlpi_addr + h->p_vaddr;

		if (h->p_type != PT_NOTE)
			continue;
		for (const uint8_t *end = at + h->p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
			ElfW(Nhdr) n;
			const uint8_t *name = at + sizeof(n), *desc;

			memcpy(&n, at, sizeof(n));
			desc = name + (n.n_namesz + 3) / 4 * 4;
			at = desc + (n.n_descsz + 3) / 4 * 4;
			if (n.n_type == NT_GNU_BUILD_ID && n.n_descsz == sizeof(build_id) &&
			    !memcmp(name, "GNU", 4))
				*(bool *)found = !memcmp(desc, build_id, sizeof(build_id));
		}
	}
	return 1; /* the program itself comes first */
}

static void check_places(void *const *vtable)
{
	bool known = false;
	const char *name;

	dl_iterate_phdr(find_build_id, &known);
	if (!known)
		refuse("another build ID", "");
	if (!bochs_bind(&name))
		refuse("it has no ", name);
	for (size_t i = 0; i < hooks_slot_count; i++)
		if (vtable[hooks_slots[i].slot] != dlsym(RTLD_DEFAULT, hooks_slots[i].symbol))
			refuse("another function in the slot of ", hooks_slots[i].symbol);
	for (size_t i = 0; i < hooks_callback_count; i++) {
		const uint8_t *code = dlsym(RTLD_DEFAULT, hooks_callbacks[i].symbol);

		if (!code || *code != 0xc3)
			refuse("no empty callback ", hooks_callbacks[i].symbol);
	}
	for (size_t i = 0; i < hooks_wrap_count; i++) {
		const uint8_t *code = dlsym(RTLD_DEFAULT, hooks_wraps[i].symbol);

		if (!code || memcmp(code, hooks_wraps[i].bytes, hooks_wraps[i].count) != 0)
			refuse("other code in ", hooks_wraps[i].symbol);
	}
}

static void make_writable(void *at, size_t count, int protection)
{
	uintptr_t first = (uintptr_t)at & ~(uintptr_t)(PAGE - 1);
	uintptr_t end = ((uintptr_t)at + count + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

	if (mprotect((void *)first, end - first, protection))
		refuse("its memory cannot be changed", "");
}

/* mov rax, to; jmp rax: neither callbacks nor wrapped functions take an argument in RAX. */
static void write_jump(uint8_t *at, const void *to)
{
	make_writable(at, JUMP_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(at, "\x48\xb8", 2);
	memcpy(at + 2, &to, 8);
	memcpy(at + 10, "\xff\xe0", 2);
	make_writable(at, JUMP_BYTES, PROT_READ | PROT_EXEC);
}

/* jmp [rip]; address */
static uint8_t *append_jump(uint8_t *at, const uint8_t *to)
{
	memcpy(at, "\xff\x25\0\0\0\0", 6);
	memcpy(at + 6, &to, 8);
	return at + 14;
}

/* A copy of the first instructions that goes on behind them. */
static uint8_t *write_trampoline(uint8_t *at, const uint8_t *code, size_t i)
{
	const size_t ja = hooks_wraps[i].ja_at;
	int32_t distance;

	if (!ja) {
		memcpy(at, code, hooks_wraps[i].count);
		return append_jump(at + hooks_wraps[i].count, code + hooks_wraps[i].count);
	}
	memcpy(at, code, ja);
	memcpy(&distance, code + ja + 2, 4);
	memcpy(at + ja, "\x76\x0e", 2); /* jbe over the jump that replaces ja */
	at = append_jump(at + ja + 2, code + ja + 6 + distance);
	return append_jump(at, code + hooks_wraps[i].count);
}

static void wrap_functions(void)
{
	uint8_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *pool = at;

	if (at == MAP_FAILED)
		refuse("no memory", "");
	for (size_t i = 0; i < hooks_wrap_count; i++) {
		uint8_t *code = dlsym(RTLD_DEFAULT, hooks_wraps[i].symbol);

		if (hooks_wraps[i].old) {
			memcpy(hooks_wraps[i].old, &at, sizeof(at));
			at = write_trampoline(at, code, i);
		}
		write_jump(code, hooks_wraps[i].function);
	}
	mprotect(pool, PAGE, PROT_READ | PROT_EXEC);
}

static void replace_slots(void **vtable)
{
	for (size_t i = 0; i < hooks_slot_count; i++) {
		void **slot = &vtable[hooks_slots[i].slot];

		if (hooks_slots[i].old)
			memcpy(hooks_slots[i].old, slot, sizeof(*slot));
		make_writable(slot, sizeof(*slot), PROT_READ | PROT_WRITE);
		*slot = hooks_slots[i].function;
	}
}

__attribute__((constructor)) static void ptcpu_start(void)
{
	void **vtable = dlsym(RTLD_DEFAULT, MODEL_VTABLE);

	if (!vtable)
		return; /* not Bochs */
	vtable += 2;	/* offset to top, type information */
	check_places(vtable);
	replace_slots(vtable);
	for (size_t i = 0; i < hooks_callback_count; i++)
		write_jump(dlsym(RTLD_DEFAULT, hooks_callbacks[i].symbol),
			   hooks_callbacks[i].function);
	wrap_functions();
}
