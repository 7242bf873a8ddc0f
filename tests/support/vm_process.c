// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/vm_process.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define VCPUS_MAX 8

struct order {
	char what; /* a: add a vCPU, r: run */
	uint32_t vcpu, nr_writes;
};

static struct {
	int vm, kvm_mmap_size;
	struct {
		pthread_t thread;
		int fd, go, done;
		uint32_t index, nr_writes;
		struct kvm_run *run;
	} vcpus[VCPUS_MAX];
	uint32_t nr_vcpus;
} machine;

static void check(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

const char *vm_process_reason(void)
{
	if (geteuid())
		return "needs root";
	if (access("/dev/kvm", R_OK | W_OK))
		return "no /dev/kvm on this machine";
	if (access("/sys/kernel/tracing/events/kvm/kvm_pio/format", R_OK))
		return "tracefs is not mounted, or the kernel's KVM has no tracepoints";
	return NULL;
}

/* ---- in the process ---- */

static void *vcpu_main(void *arg)
{
	uint32_t index = *(const uint32_t *)arg;
	char name[16];
	uint64_t token = 1;

	snprintf(name, sizeof(name), "CPU %u/KVM", index);
	prctl(PR_SET_NAME, name);
	check(write(machine.vcpus[index].done, &token, sizeof(token)) == sizeof(token), "ready");
	while (read(machine.vcpus[index].go, &token, sizeof(token)) == sizeof(token)) {
		for (uint32_t i = 0; i < machine.vcpus[index].nr_writes; i++) {
			check(ioctl(machine.vcpus[index].fd, KVM_RUN, 0) == 0, "KVM_RUN");
			check(machine.vcpus[index].run->exit_reason == KVM_EXIT_IO, "KVM_EXIT_IO");
			if (i == 0)
				usleep(2000);
		}
		token = 1;
		check(write(machine.vcpus[index].done, &token, sizeof(token)) == sizeof(token),
		      "done");
	}
	return NULL;
}

static void add_vcpu(void)
{
	uint32_t index = machine.nr_vcpus++;
	struct kvm_sregs sregs;
	struct kvm_regs regs = { .rip = 0x1000, .rflags = 2 };
	int fd = ioctl(machine.vm, KVM_CREATE_VCPU, index);
	uint64_t token;

	check(fd >= 0, "KVM_CREATE_VCPU");
	machine.vcpus[index].fd = fd;
	machine.vcpus[index].index = index;
	machine.vcpus[index].run = mmap(NULL, (size_t)machine.kvm_mmap_size, PROT_READ | PROT_WRITE,
					MAP_SHARED, fd, 0);
	check(ioctl(fd, KVM_GET_SREGS, &sregs) == 0, "KVM_GET_SREGS");
	sregs.cs.base = sregs.cs.selector = 0;
	check(ioctl(fd, KVM_SET_SREGS, &sregs) == 0 && ioctl(fd, KVM_SET_REGS, &regs) == 0,
	      "KVM_SET_SREGS");
	machine.vcpus[index].go = eventfd(0, EFD_CLOEXEC);
	machine.vcpus[index].done = eventfd(0, EFD_CLOEXEC);
	check(pthread_create(&machine.vcpus[index].thread, NULL, vcpu_main,
			     &machine.vcpus[index].index) == 0,
	      "pthread_create");
	check(read(machine.vcpus[index].done, &token, sizeof(token)) == sizeof(token), "ready");
}

static void make_machine(void)
{
	static const uint8_t code[] = { 0xba, 0xf8, 0x03, 0xee, 0xeb, 0xfd }; /* out dx, al; jmp */
	uint8_t *memory =
		mmap(NULL, 0x4000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	struct kvm_userspace_memory_region region = { .guest_phys_addr = 0x1000,
						      .memory_size = 0x4000,
						      .userspace_addr = (uintptr_t)memory };

	machine.vm = ioctl(kvm, KVM_CREATE_VM, 0);
	check(kvm >= 0 && machine.vm >= 0 && memory != MAP_FAILED, "KVM_CREATE_VM");
	ioctl(machine.vm, KVM_SET_TSS_ADDR, 0xfffbd000);
	memcpy(memory, code, sizeof(code));
	check(ioctl(machine.vm, KVM_SET_USER_MEMORY_REGION, &region) == 0, "memory region");
	machine.kvm_mmap_size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
}

static void obey(int from, int to, unsigned int nr_vcpus)
{
	struct order order;
	uint64_t token = 1;

	make_machine();
	for (unsigned int i = 0; i < nr_vcpus; i++)
		add_vcpu();
	check(write(to, "+", 1) == 1, "answer");
	while (read(from, &order, sizeof(order)) == (ssize_t)sizeof(order)) {
		if (order.what == 'a') {
			add_vcpu();
		} else {
			machine.vcpus[order.vcpu].nr_writes = order.nr_writes;
			check(write(machine.vcpus[order.vcpu].go, &token, sizeof(token)) ==
				      sizeof(token),
			      "go");
			check(read(machine.vcpus[order.vcpu].done, &token, sizeof(token)) ==
				      sizeof(token),
			      "done");
		}
		check(write(to, "+", 1) == 1, "answer");
	}
	_exit(0);
}

/* ---- in the test ---- */

static void wait_answer(const struct vm_process *vm)
{
	char answer;

	check(read(vm->from, &answer, 1) == 1, "the machine's answer");
}

void vm_process_start(struct vm_process *vm, unsigned int nr_vcpus)
{
	int there[2], back[2];

	check(pipe2(there, O_CLOEXEC) == 0 && pipe2(back, O_CLOEXEC) == 0, "pipe");
	vm->pid = fork();
	if (vm->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(there[1]);
		close(back[0]);
		obey(there[0], back[1], nr_vcpus);
	}
	close(there[0]);
	close(back[1]);
	vm->to = there[1];
	vm->from = back[0];
	wait_answer(vm);
}

static void tell(const struct vm_process *vm, struct order order)
{
	check(write(vm->to, &order, sizeof(order)) == (ssize_t)sizeof(order), "order");
	wait_answer(vm);
}

void vm_process_add_vcpu(struct vm_process *vm)
{
	tell(vm, (struct order){ .what = 'a' });
}

void vm_process_run(struct vm_process *vm, unsigned int vcpu, unsigned int nr_writes)
{
	tell(vm, (struct order){ 'r', vcpu, nr_writes });
}

void vm_process_stop(struct vm_process *vm)
{
	close(vm->to);
	close(vm->from);
	kill(vm->pid, SIGKILL);
	waitpid(vm->pid, NULL, 0);
}
