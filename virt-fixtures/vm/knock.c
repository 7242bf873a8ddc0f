// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs inside a Linux guest (static, root) and causes a known number of exits that nothing else
 * in that guest causes: OUT to the first port of the q35 machine's AHCI controller (which drivers
 * reach through memory), CPUID with a sub-leaf nobody asks for, RDMSR through /dev/cpu/0/msr.
 * Prints the truth as one JSON line. CPUID is executed here, at a known address; OUT and RDMSR by
 * the guest's kernel. (OUT in user space would need the TSS's I/O bitmap, which QEMU's TCG ignores
 * in a nested guest once KVM has loaded TR as busy.)
 * usage: knock OUTS CPUIDS RDMSRS
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PORT_BAR = 4,
	LEAF = 0x4,
	SUBLEAF = 0x77,
	MSR = 0x17, /* IA32_PLATFORM_ID: KVM answers 0, Linux on AMD never asks */
};

extern const char knock_cpuid_at[];

static __attribute__((noinline)) void knock_cpuid(void)
{
	uint32_t eax = LEAF, ebx, ecx = SUBLEAF, edx;

	__asm__ volatile(".globl knock_cpuid_at\nknock_cpuid_at: cpuid"
			 : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
}

static int open_or_die(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "knock: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return fd;
}

#define AHCI "/sys/bus/pci/devices/0000:00:1f.2/"

/* First port of the BAR: line n of the device's resource file is BAR n. */
static unsigned int first_port(void)
{
	FILE *f = fopen(AHCI "resource", "re");
	unsigned long start = 0;

	if (f) {
		for (int bar = 0; bar <= PORT_BAR; bar++)
			if (fscanf(f, "%lx %*x %*x", &start) != 1)
				start = 0;
		fclose(f);
	}
	if (!start || start > 0xffff) {
		fputs("knock: the AHCI controller has no ports\n", stderr);
		exit(1);
	}
	return (unsigned int)start;
}

int main(int argc, char **argv)
{
	unsigned long outs, cpuids, rdmsrs, outs_done = 0, rdmsrs_done = 0;
	uint64_t value;
	int port, msr;

	if (argc != 4)
		return 2;
	outs = strtoul(argv[1], NULL, 0);
	cpuids = strtoul(argv[2], NULL, 0);
	rdmsrs = strtoul(argv[3], NULL, 0);
	port = open_or_die(AHCI "resource4", O_WRONLY);
	msr = open_or_die("/dev/cpu/0/msr", O_RDONLY);
	for (unsigned long i = 0; i < outs; i++)
		outs_done += pwrite(port, "k", 1, 0) == 1;
	for (unsigned long i = 0; i < cpuids; i++)
		knock_cpuid();
	for (unsigned long i = 0; i < rdmsrs; i++)
		rdmsrs_done += pread(msr, &value, sizeof(value), MSR) == (ssize_t)sizeof(value);
	printf("{\"schema\":\"vmtrace-knock/1\",\"port\":\"0x%x\",\"outs\":%lu,\"leaf\":\"0x%x\","
	       "\"subleaf\":\"0x%x\",\"cpuids\":%lu,\"cpuid_rip\":\"0x%" PRIxPTR
	       "\",\"msr\":\"0x%x\",\"rdmsrs\":%lu}\n",
	       first_port(), outs_done, LEAF, SUBLEAF, cpuids, (uintptr_t)knock_cpuid_at, MSR,
	       rdmsrs_done);
	return 0;
}
