// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs in the emulated system: records Intel PT of every CPU with perf_event_open while a command
 * runs, and hands the AUX bytes and the perf records to the bed, which also logs the truth of that
 * time: NAME.cpuN.aux and NAME.cpuN.side beside NAME.cpuN.pt and NAME.cpuN.truth.
 * usage: ptrec [OPTION]... NAME [COMMAND [ARGUMENT]...]
 *   --config HEX     perf config of intel_pt (default pt, branch)
 *   --user, --kernel leave the other out
 *   --pages N        AUX pages a CPU, a power of two (default 2048)
 *   --watermark N    bytes between AUX records
 *   --snapshot       AUX area that is overwritten
 *   --no-drain       leave the AUX area full: what comes later is lost
 *   --filter TEXT    address filters
 *   --overflow N     N instructions of CPU 0 after the start are lost in an overflow
 * Instead of a command:
 *   --vm N           a virtual machine of a few instructions with N port writes (vm.h), and one
 *                    on the second CPU if there is one
 *   --long           it runs in 64-bit mode
 *   --self           it traces itself (no perf event)
 *   --khz K          its TSC rate
 *   --conceal        it is concealed from Intel PT
 *   --guest-only CTL no perf event: IA32_RTIT_CTL is CTL in the guest and 0 outside
 */
#include "virt-fixtures/ptcpu/guest/bed.h"
#include "virt-fixtures/ptcpu/guest/output.h"
#include "virt-fixtures/ptcpu/guest/vm.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_CPUS = 8, PAGE = 4096, DATA_PAGES = 64 };

struct options {
	const char *name, *filter;
	uint64_t config, pages, watermark, overflow, vm_outs, vm_khz, guest_only;
	bool user, kernel, snapshot, no_drain, long_mode, self, conceal;
	char **command;
};

struct recorder {
	int fd;
	struct perf_event_mmap_page *page;
	uint8_t *data, *aux;
	uint64_t aux_bytes;
};

static struct recorder recorders[MAX_CPUS];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "ptrec: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Every page is touched first: the bed reads memory that is present. */
static void call_write(const uint8_t *bytes, uint64_t count)
{
	for (uint64_t i = 0; i < count; i += PAGE)
		*(const volatile uint8_t *)(bytes + i);
	if (count) {
		*(const volatile uint8_t *)(bytes + count - 1);
		bed_call(PTCPU_CALL_WRITE, (uint64_t)(uintptr_t)bytes, count);
	}
}

static void write_ring(const char *name, int cpu, const char *suffix, const uint8_t *ring,
		       uint64_t size, uint64_t from, uint64_t to)
{
	char file[64];

	snprintf(file, sizeof(file), "%s.cpu%d.%s", name, cpu, suffix);
	bed_name(PTCPU_CALL_FILE, file);
	while (from < to) {
		uint64_t at = from & (size - 1), n = size - at;

		if (n > to - from)
			n = to - from;
		call_write(ring + at, n);
		from += n;
	}
}

static void drain(const struct options *o, int cpu)
{
	struct recorder *r = &recorders[cpu];
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);

	write_ring(o->name, cpu, "side", r->data, DATA_PAGES * PAGE, r->page->data_tail, head);
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
	if (o->snapshot || o->no_drain)
		return;
	head = __atomic_load_n(&r->page->aux_head, __ATOMIC_ACQUIRE);
	write_ring(o->name, cpu, "aux", r->aux, r->aux_bytes, r->page->aux_tail, head);
	__atomic_store_n(&r->page->aux_tail, head, __ATOMIC_RELEASE);
}

/* What is left when the events are disabled. */
static void drain_last(struct options *o, int cpu)
{
	struct recorder *r = &recorders[cpu];
	const uint64_t head = r->page->aux_head;

	if (o->snapshot) { /* oldest first; zero where it never got to */
		write_ring(o->name, cpu, "aux", r->aux, r->aux_bytes, head, r->aux_bytes);
		write_ring(o->name, cpu, "aux", r->aux, r->aux_bytes, 0, head);
	}
	o->no_drain = false;
	drain(o, cpu);
}

static uint32_t pt_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/intel_pt/type", "r");
	unsigned int type = 0;

	if (!f || fscanf(f, "%u", &type) != 1)
		die("intel_pt");
	fclose(f);
	return type;
}

static void open_recorder(const struct options *o, int cpu)
{
	struct recorder *r = &recorders[cpu];
	struct perf_event_attr a = {
		.type = pt_type(),
		.size = sizeof(a),
		.config = o->config,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_IDENTIFIER,
		.sample_id_all = 1,
		.disabled = 1,
		.exclude_kernel = o->user,
		.exclude_user = o->kernel,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.context_switch = 1,
		.ksymbol = 1,
		.text_poke = 1,
		.aux_watermark = (uint32_t)o->watermark,
	};

	r->fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, 0UL);
	if (r->fd < 0)
		die("perf_event_open");
	if (o->filter && ioctl(r->fd, PERF_EVENT_IOC_SET_FILTER, o->filter))
		die("PERF_EVENT_IOC_SET_FILTER");
	r->page = mmap(NULL, (DATA_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->page == MAP_FAILED)
		die("mmap");
	r->data = (uint8_t *)r->page + PAGE;
	r->page->aux_offset = (DATA_PAGES + 1) * PAGE;
	r->page->aux_size = r->aux_bytes = o->pages * PAGE;
	r->aux = mmap(NULL, r->aux_bytes, PROT_READ | (o->snapshot ? 0 : PROT_WRITE), MAP_SHARED,
		      r->fd, (off_t)r->page->aux_offset);
	if (r->aux == MAP_FAILED)
		die("mmap of the AUX area");
}

/* Instructions of CPU 0, by a fixed counter. */
static int open_counter(void)
{
	struct perf_event_attr a = { .type = PERF_TYPE_HARDWARE,
				     .size = sizeof(a),
				     .config = PERF_COUNT_HW_INSTRUCTIONS,
				     .disabled = 1,
				     .pinned = 1 };
	const int fd = (int)syscall(SYS_perf_event_open, &a, -1, 0, -1, 0UL);

	if (fd < 0)
		die("perf_event_open of a counter");
	return fd;
}

static int run(const struct options *o, int cpus)
{
	struct pollfd fds[MAX_CPUS];
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		execvp(o->command[0], o->command);
		_exit(127);
	}
	for (int c = 0; c < cpus; c++)
		fds[c] = (struct pollfd){ .fd = recorders[c].fd, .events = POLLIN };
	while (waitpid(pid, &status, WNOHANG) == 0) {
		poll(fds, (nfds_t)cpus, 20);
		for (int c = 0; c < cpus; c++)
			drain(o, c);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static uint64_t number(const char *text)
{
	return text ? strtoull(text, NULL, 0) : 0;
}

static struct options parse(char **argv)
{
	struct options o = { .config = 1ULL << 13 | 1, .pages = 2048 };
	const struct {
		const char *name;
		uint64_t *value;
	} numbers[] = { { "--config", &o.config },	  { "--pages", &o.pages },
			{ "--watermark", &o.watermark },  { "--overflow", &o.overflow },
			{ "--vm", &o.vm_outs },		  { "--khz", &o.vm_khz },
			{ "--guest-only", &o.guest_only } };
	const struct {
		const char *name;
		bool *value;
	} flags[] = { { "--user", &o.user },	     { "--kernel", &o.kernel },
		      { "--snapshot", &o.snapshot }, { "--no-drain", &o.no_drain },
		      { "--long", &o.long_mode },    { "--self", &o.self },
		      { "--conceal", &o.conceal } };

	for (argv++; *argv && !strncmp(*argv, "--", 2); argv++) {
		for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
			if (!strcmp(*argv, flags[i].name))
				*flags[i].value = true;
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			if (!strcmp(*argv, numbers[i].name))
				*numbers[i].value = number(*++argv);
		if (!strcmp(*argv, "--filter"))
			o.filter = *++argv;
	}
	o.name = *argv;
	if (!o.name || (!argv[1] && !o.vm_outs)) {
		fputs("usage: ptrec [OPTION]... NAME [COMMAND [ARGUMENT]...]\n", stderr);
		exit(2);
	}
	o.command = argv + 1;
	return o;
}

/* The controls for PT: secondary 19, VM-exit 24 and 25, VM-entry 17 and 18. */
static void call_plan(const struct options *o)
{
	const struct ptcpu_plan plan = {
		.secondary = o->conceal ? 1U << 19 : 0,
		.exit = (o->conceal ? 1U << 24 : 0) | (o->guest_only ? 1U << 25 : 0),
		.entry = (o->conceal ? 1U << 17 : 0) | (o->guest_only ? 1U << 18 : 0),
		.guest_rtit_ctl = o->guest_only,
	};

	bed_call(PTCPU_CALL_PLAN, (uint64_t)(uintptr_t)&plan, sizeof(plan));
}

static void write_output(const struct options *o, const uint8_t *bytes, uint64_t count)
{
	char file[64];

	snprintf(file, sizeof(file), "%s.cpu0.aux", o->name);
	bed_name(PTCPU_CALL_FILE, file);
	call_write(bytes, count);
}

static void create_vm(const struct options *o, struct vm *vm)
{
	const enum vm_kind kind = o->self ? VM_SELF : o->long_mode ? VM_LONG : VM_REAL;

	if (o->vm_outs)
		vm_create(vm, kind, (uint32_t)o->vm_outs, (uint32_t)o->vm_khz);
}

struct second {
	int socket; /* it writes a byte when it is ready, and starts when it can read one */
	pid_t pid;
};

/* Where there is a second CPU: the same virtual machine once more, on that one. */
static struct second start_second(const struct options *o)
{
	struct second s = { .pid = -1 };
	cpu_set_t cpus;
	struct vm vm;
	int ends[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die("socketpair");
	s.socket = ends[0];
	s.pid = fork();
	if (s.pid) {
		if (read(s.socket, &byte, 1) != 1)
			die("second virtual machine");
		return s;
	}
	CPU_ZERO(&cpus);
	CPU_SET(1, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("sched_setaffinity");
	create_vm(o, &vm);
	if (write(ends[1], "", 1) == 1 && read(ends[1], &byte, 1) == 1)
		vm_run(&vm);
	_exit(0);
}

static void run_vms(struct vm *vm, const struct second *second)
{
	if (second->pid > 0 && write(second->socket, "", 1) != 1)
		die("write");
	vm_run(vm);
}

/* The AUX bytes of a recording without perf. */
static void write_own_output(const struct options *o, const struct vm *vm, const uint8_t *output)
{
	if (o->guest_only)
		write_output(o, output, output_bytes());
	if (o->self)
		write_output(o, vm->ram + VM_OUTPUT, VM_OUTPUT_BYTES);
}

int main(int argc, char **argv)
{
	struct options o = parse(argv);
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN), status = 0, counter;
	uint64_t counted = 0;
	const uint8_t *output = NULL;
	struct second second = { .pid = -1 };
	cpu_set_t first;
	struct vm vm;

	(void)argc;
	cpus = o.guest_only || o.self ? 0 : cpus > MAX_CPUS ? MAX_CPUS : cpus;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (iopl(3) || (o.vm_outs && sched_setaffinity(0, sizeof(first), &first)))
		die("iopl");
	create_vm(&o, &vm);
	if (o.vm_outs && cpus > 1)
		second = start_second(&o);
	if (o.guest_only)
		output = output_create(VM_CR3);
	call_plan(&o);
	counter = open_counter();
	for (int c = 0; c < cpus; c++)
		open_recorder(&o, c);
	bed_name(PTCPU_CALL_BEGIN, o.name);
	for (int c = 0; c < cpus; c++)
		ioctl(recorders[c].fd, PERF_EVENT_IOC_ENABLE, 0UL);
	ioctl(counter, PERF_EVENT_IOC_ENABLE, 0UL);
	if (o.overflow)
		bed_call(PTCPU_CALL_OVERFLOW, 0, o.overflow);
	if (o.vm_outs)
		run_vms(&vm, &second);
	else
		status = run(&o, cpus);
	ioctl(counter, PERF_EVENT_IOC_DISABLE, 0UL);
	for (int c = 0; c < cpus; c++)
		ioctl(recorders[c].fd, PERF_EVENT_IOC_DISABLE, 0UL);
	bed_call(PTCPU_CALL_END, 0, 0);
	for (int c = 0; c < cpus; c++)
		drain_last(&o, c);
	write_own_output(&o, &vm, output);
	if (second.pid > 0)
		waitpid(second.pid, NULL, 0);
	bed_call(PTCPU_CALL_END, 0, 0); /* the files are complete */
	if (read(counter, &counted, sizeof(counted)) != sizeof(counted))
		die("read of a counter");
	printf("LAB-PTREC %s status %d instructions %llu\n", o.name, status,
	       (unsigned long long)counted);
	return status;
}
