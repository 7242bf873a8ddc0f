// SPDX-License-Identifier: LGPL-2.1-or-later
#include "virt-fixtures/ptcpu/guest/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	MSR_OUTPUT_BASE = 0x560,
	MSR_MASK_PTRS = 0x561,
	MSR_STATUS = 0x571,
	MSR_CR3_MATCH = 0x572
};
#define TOPA_STOP (1ULL << 4)

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static uint64_t physical(const void *at)
{
	const int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	must(fd >= 0 && pread(fd, &entry, 8, (off_t)((uintptr_t)at / PAGE * 8)) == 8, "pagemap");
	close(fd);
	must((entry & 1ULL << 63) != 0, "page not present");
	return (entry & ((1ULL << 55) - 1)) * PAGE;
}

static int msr_device(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/cpu/0/msr", O_RDWR);
	must(fd >= 0, "/dev/cpu/0/msr");
	return fd;
}

static void wrmsr(uint32_t index, uint64_t value)
{
	must(pwrite(msr_device(), &value, 8, index) == 8, "wrmsr");
}

static uint8_t *allocate(void)
{
	static uint8_t *pages;

	if (!pages)
		pages = mmap(NULL, (OUTPUT_PAGES + 1) * (size_t)PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);
	must(pages != MAP_FAILED, "mmap");
	return pages;
}

uint64_t *output_table(void)
{
	uint8_t *pages = allocate();
	uint64_t *table = (uint64_t *)(void *)(pages + OUTPUT_PAGES * (size_t)PAGE);

	for (size_t i = 0; i < OUTPUT_PAGES; i++)
		table[i] = physical(pages + i * PAGE) | (i == OUTPUT_PAGES - 1 ? TOPA_STOP : 0);
	wrmsr(MSR_STATUS, 0);
	wrmsr(MSR_OUTPUT_BASE, physical(table));
	wrmsr(MSR_MASK_PTRS, 0x7f);
	return table;
}

uint8_t *output_create(uint64_t cr3_match)
{
	output_table();
	wrmsr(MSR_CR3_MATCH, cr3_match);
	return allocate();
}

uint64_t output_bytes(void)
{
	uint64_t pointers = 0;

	must(pread(msr_device(), &pointers, 8, MSR_MASK_PTRS) == 8, "rdmsr");
	return (pointers >> 7 & 0x1ffffff) * PAGE + (pointers >> 32);
}
