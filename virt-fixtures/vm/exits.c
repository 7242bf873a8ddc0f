// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A virtual machine whose exits are known exactly: a real-mode guest of a few instructions on
 * /dev/kvm, each loop of which causes one kind of exit a given number of times at a known address.
 * Invariant: whatever the guest executes is counted in the truth that is printed at the end, one
 * JSON line; exits that the guest does not ask for (page faults, interrupts) are not in it.
 *
 * Life: {"state":"ready",...} once VM and vCPU threads exist; with --wait FILE nothing runs until
 * FILE appears ("-": until a line is read from standard input); {"state":"done",...} after the last
 * exit; with --linger FILE the VM then stays (debugfs keeps its folder) until FILE appears.
 *
 * HLT exits to user space, which resumes the vCPU at once; with --halt-us US the VM has KVM's own
 * interrupt controller instead, HLT blocks in KVM, and a timer interrupt every US microseconds
 * wakes vCPU 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum {
	MAX_VCPUS = 8,
	MAX_SAMPLES = 256,
	CODE_GPA = 0x1000,    /* one page of code a vCPU */
	SAMPLE_GPA = 0x10000, /* one page of guest TSCs a vCPU */
	RAM_BYTES = 0x20000,
	PAGE_BYTES = 0x1000,
	PORT_SAMPLE = 0x3f9,
	PORT_END = 0x3fa,
	STACK_TOP = 0x1000,
	VECTOR = 0x20, /* of the waking interrupt; its handler is one IRET */
	HANDLER_GPA = 0x600,
	MSR_APIC_BASE = 0x1b, /* intercepted by kvm-intel and by kvm-amd alike */
};

struct options {
	uint32_t outs, cpuids, hlts, rdmsrs, samples;
	uint32_t port, leaf, msr;
	unsigned int vcpus;
	uint64_t tsc_khz; /* 0: as KVM gives it */
	uint64_t halt_us; /* 0: HLT exits to user space */
	const char *wait, *linger;
};

/* Addresses of the instructions that exit, equal offsets in every vCPU's code page. */
struct program {
	uint8_t code[256];
	size_t len;
	uint32_t sample_rip, out_rip, cpuid_rip, hlt_rip, rdmsr_rip, end_rip;
};

struct vcpu {
	unsigned int id;
	int fd;
	pid_t tid;
	struct kvm_run *run;
	struct vm *vm;
	pthread_t thread;
	uint64_t userspace_exits, outs, hlts, samples, ends, interrupted;
	uint64_t before[MAX_SAMPLES], after[MAX_SAMPLES]; /* host TSC round each sample's KVM_RUN */
};

struct vm {
	struct options options;
	int kvm_fd, fd;
	uint8_t *ram;
	struct vcpu vcpus[MAX_VCPUS];
	pthread_barrier_t born, go;
	atomic_bool done; /* ends the thread that wakes halted vCPUs */
	uint64_t wakes;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "exits: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int must(int result, const char *what)
{
	if (result < 0)
		die(what);
	return result;
}

static void emit(struct program *p, size_t count, ...)
{
	va_list bytes;

	va_start(bytes, count);
	for (size_t i = 0; i < count; i++)
		p->code[p->len++] = (uint8_t)va_arg(bytes, int);
	va_end(bytes);
}

static void emit32(struct program *p, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		p->code[p->len++] = (uint8_t)(value >> (8 * i));
}

static uint32_t here(const struct program *p, uint32_t base)
{
	return base + (uint32_t)p->len;
}

/* dec ebp; jnz start */
static void emit_loop_end(struct program *p, size_t start)
{
	emit(p, 2, 0x66, 0x4d);
	emit(p, 2, 0x75, (int)(start - (p->len + 2)) & 0xff);
}

/* mov ebp, count: the loop counter that CPUID and RDMSR leave alone. */
static size_t emit_loop_start(struct program *p, uint32_t count)
{
	emit(p, 2, 0x66, 0xbd);
	emit32(p, count);
	return p->len;
}

static void emit_samples(struct program *p, const struct options *o, uint32_t base)
{
	size_t top = emit_loop_start(p, o->samples);

	emit(p, 2, 0x0f, 0x31);					/* rdtsc */
	emit(p, 3, 0x66, 0x89, 0x07);				/* mov [bx], eax */
	emit(p, 4, 0x66, 0x89, 0x57, 0x04);			/* mov [bx+4], edx */
	emit(p, 3, 0x83, 0xc3, 0x08);				/* add bx, 8 */
	emit(p, 3, 0xba, PORT_SAMPLE & 0xff, PORT_SAMPLE >> 8); /* mov dx, port */
	p->sample_rip = here(p, base);
	emit(p, 1, 0xee); /* out dx, al */
	emit_loop_end(p, top);
}

static void emit_outs(struct program *p, const struct options *o, uint32_t base)
{
	size_t top;

	emit(p, 5, 0xba, (int)(o->port & 0xff), (int)(o->port >> 8), 0xb0, 'x');
	top = emit_loop_start(p, o->outs);
	p->out_rip = here(p, base);
	emit(p, 1, 0xee);
	emit_loop_end(p, top);
}

static void emit_cpuids(struct program *p, const struct options *o, uint32_t base)
{
	size_t top = emit_loop_start(p, o->cpuids);

	emit(p, 2, 0x66, 0xb8); /* mov eax, leaf */
	emit32(p, o->leaf);
	emit(p, 3, 0x66, 0x31, 0xc9); /* xor ecx, ecx */
	p->cpuid_rip = here(p, base);
	emit(p, 2, 0x0f, 0xa2);
	emit_loop_end(p, top);
}

static void emit_hlts(struct program *p, const struct options *o, uint32_t base)
{
	size_t top = emit_loop_start(p, o->hlts);

	if (o->halt_us)
		emit(p, 1, 0xfb); /* sti */
	p->hlt_rip = here(p, base);
	emit(p, 1, 0xf4);
	emit_loop_end(p, top);
	emit(p, 1, 0xfa); /* cli */
}

static void emit_rdmsrs(struct program *p, const struct options *o, uint32_t base)
{
	size_t top;

	emit(p, 2, 0x66, 0xb9); /* mov ecx, msr */
	emit32(p, o->msr);
	top = emit_loop_start(p, o->rdmsrs);
	p->rdmsr_rip = here(p, base);
	emit(p, 2, 0x0f, 0x32);
	emit_loop_end(p, top);
}

static struct program assemble(const struct options *o, uint32_t base)
{
	struct program p = { .len = 0 };

	if (o->samples)
		emit_samples(&p, o, base);
	if (o->outs)
		emit_outs(&p, o, base);
	if (o->cpuids)
		emit_cpuids(&p, o, base);
	if (o->hlts)
		emit_hlts(&p, o, base);
	if (o->rdmsrs)
		emit_rdmsrs(&p, o, base);
	emit(&p, 3, 0xba, PORT_END & 0xff, PORT_END >> 8);
	p.end_rip = here(&p, base);
	emit(&p, 2, 0xee, 0xf4);
	return p;
}

static uint32_t code_base(unsigned int vcpu)
{
	return CODE_GPA + vcpu * PAGE_BYTES;
}

/* One exit to user space; false when the guest has reached its end. */
static bool handle_exit(struct vcpu *v, uint64_t before, uint64_t after)
{
	struct kvm_run *run = v->run;

	v->userspace_exits++;
	if (run->exit_reason == KVM_EXIT_HLT) {
		v->hlts++;
		return true;
	}
	if (run->exit_reason != KVM_EXIT_IO || run->io.direction != KVM_EXIT_IO_OUT) {
		fprintf(stderr, "exits: vCPU %u: exit reason %u\n", v->id, run->exit_reason);
		exit(1);
	}
	if (run->io.port == PORT_END) {
		v->ends++;
		return false;
	}
	if (run->io.port == PORT_SAMPLE) {
		v->before[v->samples] = before;
		v->after[v->samples++] = after;
	} else {
		v->outs++;
	}
	return true;
}

static void *vcpu_thread(void *context)
{
	struct vcpu *v = context;
	char name[16];
	uint64_t before, after;

	snprintf(name, sizeof(name), "CPU %u/KVM", v->id);
	prctl(PR_SET_NAME, name);
	v->tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&v->vm->born);
	pthread_barrier_wait(&v->vm->go);
	do {
		before = __rdtsc();
		while (ioctl(v->fd, KVM_RUN, 0) < 0) {
			if (errno != EINTR)
				die("KVM_RUN");
			v->interrupted++;
		}
		after = __rdtsc();
	} while (handle_exit(v, before, after));
	return NULL;
}

/* Raises the line of IRQ 0 at the given pace until the guest is done. */
static void *wake_thread(void *context)
{
	struct vm *vm = context;
	struct timespec pause = { .tv_sec = (time_t)(vm->options.halt_us / 1000000),
				  .tv_nsec = (long)(vm->options.halt_us % 1000000 * 1000) };
	struct kvm_irq_level level = { .irq = 0 };

	while (!atomic_load(&vm->done)) {
		nanosleep(&pause, NULL);
		level.level = 1;
		must(ioctl(vm->fd, KVM_IRQ_LINE, &level), "KVM_IRQ_LINE");
		level.level = 0;
		must(ioctl(vm->fd, KVM_IRQ_LINE, &level), "KVM_IRQ_LINE");
		vm->wakes++;
	}
	return NULL;
}

/* KVM's interrupt controllers; the PIC is set up as a guest would: base VECTOR, automatic EOI. */
static void create_irqchip(struct vm *vm)
{
	static const uint8_t iret = 0xcf;
	struct kvm_irqchip chip = { .chip_id = KVM_IRQCHIP_PIC_MASTER };

	must(ioctl(vm->fd, KVM_CREATE_IRQCHIP, 0), "KVM_CREATE_IRQCHIP");
	must(ioctl(vm->fd, KVM_GET_IRQCHIP, &chip), "KVM_GET_IRQCHIP");
	chip.chip.pic.irq_base = VECTOR;
	chip.chip.pic.imr = 0xfe;
	chip.chip.pic.auto_eoi = 1;
	chip.chip.pic.init4 = 1;
	must(ioctl(vm->fd, KVM_SET_IRQCHIP, &chip), "KVM_SET_IRQCHIP");
	vm->ram[4 * VECTOR] = HANDLER_GPA & 0xff;
	vm->ram[4 * VECTOR + 1] = HANDLER_GPA >> 8;
	vm->ram[HANDLER_GPA] = iret;
}

static void set_registers(struct vcpu *v)
{
	struct kvm_sregs sregs;
	struct kvm_regs regs = { .rflags = 2,
				 .rip = code_base(v->id),
				 .rsp = STACK_TOP - v->id * 0x80,
				 .rbx = SAMPLE_GPA + v->id * PAGE_BYTES };

	must(ioctl(v->fd, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = sregs.cs.selector = 0;
	sregs.es.base = sregs.es.selector = 0;
	sregs.ss.base = sregs.ss.selector = 0;
	/* The samples lie above 64 KiB: DS holds their page, BX the offset in it. */
	sregs.ds.base = regs.rbx;
	sregs.ds.selector = (uint16_t)(regs.rbx >> 4);
	regs.rbx = 0;
	must(ioctl(v->fd, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	must(ioctl(v->fd, KVM_SET_REGS, &regs), "KVM_SET_REGS");
}

/* The host's CPUID: without it a guest has no leaf 4 and no TSC features. */
static void set_cpuid(struct vcpu *v)
{
	enum { ENTRIES = 128 };
	struct kvm_cpuid2 *list = calloc(1, sizeof(*list) + ENTRIES * sizeof(list->entries[0]));

	if (!list)
		die("calloc");
	list->nent = ENTRIES;
	must(ioctl(v->vm->kvm_fd, KVM_GET_SUPPORTED_CPUID, list), "KVM_GET_SUPPORTED_CPUID");
	must(ioctl(v->fd, KVM_SET_CPUID2, list), "KVM_SET_CPUID2");
	free(list);
}

static void create_vcpu(struct vm *vm, unsigned int id)
{
	struct vcpu *v = &vm->vcpus[id];
	struct program p = assemble(&vm->options, code_base(id));
	int run_bytes =
		must(ioctl(vm->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");

	v->id = id;
	v->vm = vm;
	v->fd = must(ioctl(vm->fd, KVM_CREATE_VCPU, (unsigned long)id), "KVM_CREATE_VCPU");
	v->run = mmap(NULL, (size_t)run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (v->run == MAP_FAILED)
		die("mmap of the vCPU");
	set_cpuid(v);
	if (vm->options.tsc_khz &&
	    ioctl(v->fd, KVM_SET_TSC_KHZ, (unsigned long)vm->options.tsc_khz) < 0)
		die("KVM_SET_TSC_KHZ");
	set_registers(v);
	memcpy(vm->ram + code_base(id), p.code, p.len);
	if (pthread_create(&v->thread, NULL, vcpu_thread, v))
		die("pthread_create");
}

static void create_vm(struct vm *vm)
{
	vm->kvm_fd = must(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	vm->fd = must(ioctl(vm->kvm_fd, KVM_CREATE_VM, 0UL), "KVM_CREATE_VM");
	must(ioctl(vm->fd, KVM_SET_TSS_ADDR, 0xfffbd000UL), "KVM_SET_TSS_ADDR");
	vm->ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (vm->ram == MAP_FAILED)
		die("mmap of guest memory");
	struct kvm_userspace_memory_region region = { .memory_size = RAM_BYTES,
						      .userspace_addr =
							      (uint64_t)(uintptr_t)vm->ram };
	must(ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	if (vm->options.halt_us)
		create_irqchip(vm);
	pthread_barrier_init(&vm->born, NULL, vm->options.vcpus + 1);
	pthread_barrier_init(&vm->go, NULL, vm->options.vcpus + 1);
	for (unsigned int i = 0; i < vm->options.vcpus; i++)
		create_vcpu(vm, i);
	pthread_barrier_wait(&vm->born);
}

/* Members that both lines have; the caller closes the object. */
static void print_head(const struct vm *vm, const char *state)
{
	printf("{\"schema\":\"vmtrace-exits/1\",\"state\":\"%s\",\"pid\":%d,\"vm_fd\":%d,"
	       "\"debugfs\":\"/sys/kernel/debug/kvm/%d-%d\",\"tids\":[",
	       state, getpid(), vm->fd, getpid(), vm->fd);
	for (unsigned int i = 0; i < vm->options.vcpus; i++)
		printf("%s%d", i ? "," : "", vm->vcpus[i].tid);
	printf("]");
}

static void print_rip(const char *name, uint32_t count, uint32_t rip)
{
	if (count)
		printf(",\"%s\":\"0x%x\"", name, rip);
	else
		printf(",\"%s\":null", name);
}

static void print_vcpu(const struct vm *vm, const struct vcpu *v)
{
	const struct options *o = &vm->options;
	struct program p = assemble(o, code_base(v->id));
	int64_t offset = 0;
	struct kvm_device_attr attr = { .group = KVM_VCPU_TSC_CTRL,
					.attr = KVM_VCPU_TSC_OFFSET,
					.addr = (uint64_t)(uintptr_t)&offset };
	uint64_t guest;

	printf("{\"id\":%u,\"tid\":%d,\"outs\":%" PRIu64 ",\"cpuids\":%u,\"hlts\":%" PRIu64
	       ",\"rdmsrs\":%u,\"samples_out\":%" PRIu64 ",\"ends\":%" PRIu64
	       ",\"userspace_exits\":%" PRIu64 ",\"interrupted\":%" PRIu64,
	       v->id, v->tid, v->outs, o->cpuids, o->halt_us ? o->hlts : v->hlts, o->rdmsrs,
	       v->samples, v->ends, v->userspace_exits, v->interrupted);
	print_rip("out_rip", o->outs, p.out_rip);
	print_rip("cpuid_rip", o->cpuids, p.cpuid_rip);
	print_rip("hlt_rip", o->hlts, p.hlt_rip);
	print_rip("rdmsr_rip", o->rdmsrs, p.rdmsr_rip);
	print_rip("sample_rip", o->samples, p.sample_rip);
	print_rip("end_rip", 1, p.end_rip);
	if (ioctl(v->fd, KVM_GET_DEVICE_ATTR, &attr) == 0)
		printf(",\"tsc_offset\":%" PRId64, offset);
	else
		printf(",\"tsc_offset\":null");
	printf(",\"tsc_khz\":%d,\"samples\":[", ioctl(v->fd, KVM_GET_TSC_KHZ, 0));
	for (uint64_t i = 0; i < v->samples; i++) {
		memcpy(&guest, vm->ram + SAMPLE_GPA + v->id * PAGE_BYTES + i * 8, sizeof(guest));
		printf("%s{\"guest\":\"0x%" PRIx64 "\",\"before\":\"0x%" PRIx64
		       "\",\"after\":\"0x%" PRIx64 "\"}",
		       i ? "," : "", guest, v->before[i], v->after[i]);
	}
	printf("]}");
}

static void print_truth(const struct vm *vm)
{
	const struct options *o = &vm->options;

	print_head(vm, "done");
	printf(",\"port\":\"0x%x\",\"leaf\":\"0x%x\",\"msr\":\"0x%x\",\"sample_port\":\"0x%x\","
	       "\"end_port\":\"0x%x\",\"wakes\":%" PRIu64 ",\"vcpus\":[",
	       o->port, o->leaf, o->msr, PORT_SAMPLE, PORT_END, vm->wakes);
	for (unsigned int i = 0; i < o->vcpus; i++) {
		if (i)
			printf(",");
		print_vcpu(vm, &vm->vcpus[i]);
	}
	printf("]}\n");
	fflush(stdout);
}

static void wait_for(const char *what)
{
	struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	int c;

	if (!what)
		return;
	if (!strcmp(what, "-")) {
		do
			c = getchar();
		while (c != '\n' && c != EOF);
		return;
	}
	while (access(what, F_OK))
		nanosleep(&pause, NULL);
}

static _Noreturn void usage(void)
{
	fputs("usage: exits [--out N] [--cpuid N] [--hlt N] [--rdmsr N] [--samples N]\n"
	      "             [--port P] [--leaf L] [--msr M] [--vcpus N] [--tsc-khz K]\n"
	      "             [--halt-us US] [--wait FILE|-] [--linger FILE|-]\n",
	      stderr);
	exit(2);
}

static uint64_t number(const char *text, uint64_t max)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end || end == text || value > max)
		usage();
	return value;
}

static struct options parse(int argc, char **argv)
{
	struct options o = { .outs = 1000,
			     .cpuids = 500,
			     .hlts = 200,
			     .rdmsrs = 50,
			     .samples = 8,
			     .port = 0x3f8,
			     .leaf = 4,
			     .msr = MSR_APIC_BASE,
			     .vcpus = 1 };
	const struct {
		const char *name;
		uint32_t *value;
		uint32_t max;
	} counts[] = {
		{ "--out", &o.outs, UINT32_MAX },	  { "--cpuid", &o.cpuids, UINT32_MAX },
		{ "--hlt", &o.hlts, UINT32_MAX },	  { "--rdmsr", &o.rdmsrs, UINT32_MAX },
		{ "--samples", &o.samples, MAX_SAMPLES }, { "--port", &o.port, 0xffff },
		{ "--leaf", &o.leaf, UINT32_MAX },	  { "--msr", &o.msr, UINT32_MAX },
		{ "--vcpus", &o.vcpus, MAX_VCPUS },
	};

	for (int i = 1; i < argc; i += 2) {
		bool known = false;

		if (i + 1 >= argc)
			usage();
		for (size_t j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
			if (strcmp(argv[i], counts[j].name))
				continue;
			*counts[j].value = (uint32_t)number(argv[i + 1], counts[j].max);
			known = true;
		}
		if (known)
			continue;
		if (!strcmp(argv[i], "--tsc-khz"))
			o.tsc_khz = number(argv[i + 1], UINT32_MAX);
		else if (!strcmp(argv[i], "--halt-us"))
			o.halt_us = number(argv[i + 1], UINT32_MAX);
		else if (!strcmp(argv[i], "--wait"))
			o.wait = argv[i + 1];
		else if (!strcmp(argv[i], "--linger"))
			o.linger = argv[i + 1];
		else
			usage();
	}
	if (o.halt_us && o.vcpus > 1) /* the PIC wakes vCPU 0 only */
		usage();
	if (!o.vcpus || o.port == PORT_SAMPLE || o.port == PORT_END)
		usage();
	return o;
}

int main(int argc, char **argv)
{
	static struct vm vm;
	pthread_t waker;

	vm.options = parse(argc, argv);
	create_vm(&vm);
	print_head(&vm, "ready");
	puts("}");
	fflush(stdout);
	wait_for(vm.options.wait);
	pthread_barrier_wait(&vm.go);
	if (vm.options.halt_us && pthread_create(&waker, NULL, wake_thread, &vm))
		die("pthread_create");
	for (unsigned int i = 0; i < vm.options.vcpus; i++)
		pthread_join(vm.vcpus[i].thread, NULL);
	atomic_store(&vm.done, true);
	if (vm.options.halt_us)
		pthread_join(waker, NULL);
	print_truth(&vm);
	wait_for(vm.options.linger);
	return 0;
}
