// SPDX-License-Identifier: LGPL-2.1-or-later
#include "virt-fixtures/ptcpu/guest/vm.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { CODE = 0x1000, DATA = 0x2000, STACK = 0x3ff0, TABLES = VM_CR3, RAM = 0x8000 };

static const uint8_t real_code[] = {
	0xbe, 0x00, 0x20,	/*    mov si, 0x2000 */
	0x4e,			/* 1: dec si */
	0x75, 0xfd,		/*    jnz 1b */
	0x0f, 0x31,		/* 2: rdtsc */
	0x66, 0x89, 0x07,	/*    mov [bx], eax */
	0x66, 0x89, 0x57, 0x04, /*    mov [bx + 4], edx */
	0x83, 0xc3, 0x08,	/*    add bx, 8 */
	0xb0, 0x78,		/*    mov al, 'x' */
	0xba, 0xf8, 0x03,	/*    mov dx, 0x3f8 */
	0xee,			/*    out dx, al */
	0xe2, 0xec,		/*    loop 2b */
	0xe8, 0x06, 0x00,	/*    call 3f */
	0x66, 0x31, 0xc0,	/*    xor eax, eax */
	0x0f, 0xa2,		/*    cpuid */
	0xf4,			/*    hlt */
	0xc3,			/* 3: ret */
};

static const uint8_t long_code[] = {
	0xbe, 0x00, 0x20, 0x00, 0x00, /*    mov esi, 0x2000 */
	0xff, 0xce,		      /* 1: dec esi */
	0x75, 0xfc,		      /*    jnz 1b */
	0x0f, 0x31,		      /* 2: rdtsc */
	0x89, 0x03,		      /*    mov [rbx], eax */
	0x89, 0x53, 0x04,	      /*    mov [rbx + 4], edx */
	0x48, 0x83, 0xc3, 0x08,	      /*    add rbx, 8 */
	0xb0, 0x78,		      /*    mov al, 'x' */
	0x66, 0xba, 0xf8, 0x03,	      /*    mov dx, 0x3f8 */
	0xee,			      /*    out dx, al */
	0xe2, 0xec,		      /*    loop 2b */
	0xe8, 0x05, 0x00, 0x00, 0x00, /*    call 3f */
	0x31, 0xc0,		      /*    xor eax, eax */
	0x0f, 0xa2,		      /*    cpuid */
	0xf4,			      /*    hlt */
	0xc3,			      /* 3: ret */
};

/* Single-range output, then TraceEn, OS, TSCEn and BranchEn. */
static const uint8_t self_code[] = {
	0x31, 0xd2,		      /*    xor edx, edx */
	0xb9, 0x60, 0x05, 0x00, 0x00, /*    mov ecx, 0x560 */
	0xb8, 0x00, 0x70, 0x00, 0x00, /*    mov eax, VM_OUTPUT */
	0x0f, 0x30,		      /*    wrmsr */
	0xff, 0xc1,		      /*    inc ecx */
	0xb8, 0xff, 0x0f, 0x00, 0x00, /*    mov eax, VM_OUTPUT_BYTES - 1 */
	0x0f, 0x30,		      /*    wrmsr */
	0xb9, 0x70, 0x05, 0x00, 0x00, /*    mov ecx, 0x570 */
	0xb8, 0x05, 0x24, 0x00, 0x00, /*    mov eax, 0x2405 */
	0x0f, 0x30,		      /*    wrmsr */
	0xbe, 0x00, 0x08, 0x00, 0x00, /*    mov esi, 0x800 */
	0xff, 0xce,		      /* 1: dec esi */
	0x75, 0xfc,		      /*    jnz 1b */
	0x66, 0xba, 0xf8, 0x03,	      /*    mov dx, 0x3f8 */
	0xee,			      /*    out dx, al */
	0xe8, 0x0a, 0x00, 0x00, 0x00, /*    call 2f */
	0x31, 0xd2,		      /*    xor edx, edx */
	0xb8, 0x04, 0x24, 0x00, 0x00, /*    mov eax, 0x2404 */
	0x0f, 0x30,		      /*    wrmsr */
	0xf4,			      /*    hlt */
	0xc3,			      /* 2: ret */
};

static const struct {
	const uint8_t *bytes;
	size_t count;
} codes[] = {
	[VM_REAL] = { real_code, sizeof(real_code) },
	[VM_LONG] = { long_code, sizeof(long_code) },
	[VM_SELF] = { self_code, sizeof(self_code) },
};

static int must(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

static void *map(int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS | MAP_POPULATE : 0), fd, 0);

	must(at == MAP_FAILED ? -1 : 0, "mmap");
	return at;
}

/* 2 MiB identity-mapped by one large page. */
static void enter_long_mode(struct vm *vm, struct kvm_sregs *s)
{
	const uint64_t tables[3] = { (TABLES + 0x1000) | 7, (TABLES + 0x2000) | 7, 0x87 };

	for (unsigned int i = 0; i < 3; i++)
		memcpy(vm->ram + TABLES + 0x1000 * i, &tables[i], 8);
	s->cr3 = TABLES;
	s->cr4 = 1 << 5;
	s->cr0 = 0x80000033;
	s->efer = 0x500;
	s->cs.l = 1;
	s->cs.db = 0;
	s->cs.type = 11;
	s->cs.g = 1;
	s->cs.limit = 0xffffffff;
	s->cs.selector = 8;
}

/* All that KVM can give, Intel PT among it where KVM lets guests have it. */
static void set_cpuid(int kvm, int vcpu)
{
	static struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entries[128];
	} cpuid = { .head.nent = 128 };

	must(ioctl(kvm, KVM_GET_SUPPORTED_CPUID, &cpuid), "KVM_GET_SUPPORTED_CPUID");
	must(ioctl(vcpu, KVM_SET_CPUID2, &cpuid), "KVM_SET_CPUID2");
}

void vm_create(struct vm *vm, enum vm_kind kind, uint32_t outs, uint32_t tsc_khz)
{
	const int kvm = must(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	struct kvm_regs r = {
		.rip = CODE, .rflags = 0x202, .rbx = DATA, .rcx = outs, .rsp = STACK
	};
	struct kvm_userspace_memory_region memory = { .memory_size = RAM };
	struct kvm_sregs s;

	vm->fd = must(ioctl(kvm, KVM_CREATE_VM, 0UL), "KVM_CREATE_VM");
	must(ioctl(vm->fd, KVM_SET_TSS_ADDR, 0xfffbd000UL), "KVM_SET_TSS_ADDR");
	vm->ram = map(-1, RAM);
	memory.userspace_addr = (uint64_t)(uintptr_t)vm->ram;
	must(ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &memory), "KVM_SET_USER_MEMORY_REGION");
	vm->vcpu = must(ioctl(vm->fd, KVM_CREATE_VCPU, 0UL), "KVM_CREATE_VCPU");
	vm->run = map(vm->vcpu, (size_t)must(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0UL), "size"));
	must(ioctl(vm->vcpu, KVM_GET_SREGS, &s), "KVM_GET_SREGS");
	s.cs.base = s.cs.selector = 0;
	if (kind != VM_REAL)
		enter_long_mode(vm, &s);
	if (kind == VM_SELF)
		set_cpuid(kvm, vm->vcpu);
	must(ioctl(vm->vcpu, KVM_SET_SREGS, &s), "KVM_SET_SREGS");
	must(ioctl(vm->vcpu, KVM_SET_REGS, &r), "KVM_SET_REGS");
	if (tsc_khz)
		must(ioctl(vm->vcpu, KVM_SET_TSC_KHZ, (unsigned long)tsc_khz), "KVM_SET_TSC_KHZ");
	memcpy(vm->ram + CODE, codes[kind].bytes, codes[kind].count);
}

void vm_set_spin(struct vm *vm, uint32_t count)
{
	memcpy(vm->ram + CODE + 1, &count, sizeof(count)); /* mov esi, count */
}

void vm_run(struct vm *vm)
{
	const struct kvm_run *run = vm->run;

	do {
		must(ioctl(vm->vcpu, KVM_RUN, 0UL), "KVM_RUN");
		vm->exits++;
	} while (run->exit_reason == KVM_EXIT_IO);
	if (run->exit_reason != KVM_EXIT_HLT) {
		fprintf(stderr, "ptrec: exit reason %u\n", run->exit_reason);
		exit(1);
	}
}
