// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which rings for the kvm tracepoints: one a thread (pid = tid, cpu = -1) or one a CPU with a
 * kernel filter on common_pid. Both carry the same load, a two-thread KVM program of I/O exits;
 * descriptors, CPU time a KVM_RUN and lost records are printed for each. docs/CAPTURE.md holds the
 * decision that the figures led to.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_EVENTS 128
#define MAX_RINGS  256
#define MAX_FDS	   20000
#define RING_PAGES 1024u

static const char *const tracefs = "/sys/kernel/tracing/events/kvm";

static const char *const event_names[] = {
	"kvm_entry",
	"kvm_exit",
	"kvm_userspace_exit",
	"kvm_pio",
	"kvm_mmio",
	"kvm_fast_mmio",
	"kvm_msr",
	"kvm_cpuid",
	"kvm_cr",
	"kvm_inj_virq",
	"kvm_inj_exception",
	"kvm_apic",
	"kvm_apic_ipi",
	"kvm_apic_accept_irq",
	"kvm_eoi",
	"kvm_pv_eoi",
	"kvm_hypercall",
	"kvm_hv_hypercall",
	"kvm_page_fault",
	"kvm_halt_poll_ns",
	"kvm_vcpu_wakeup",
	"kvm_ple_window_update",
	"kvm_nested_vmexit",
	"kvm_nested_vmenter",
	"kvm_write_tsc_offset",
	"kvm_track_tsc",
	"kvm_pvclock_update",
	"kvm_hv_timer_state",
	"kvm_set_irq",
	"kvm_msi_set_irq",
	"kvm_ack_irq",
	"kvm_ioapic_set_irq",
	"kvm_pic_set_irq",
	"kvm_wait_lapic_expire",
	"kvm_unmap_hva_range",
	"kvm_smm_transition",
	"kvm_pml_full",
	"kvm_try_async_get_page",
	"kvm_async_pf_ready",
	"kvm_async_pf_completed",
};

/* ---- load: two vCPUs that write to a port for ever ---- */

struct vcpu {
	pthread_t thread;
	int fd, wake_fd, peer_fd;
	pid_t tid;
	volatile bool ready;
	struct kvm_run *run;
	uint64_t rounds, cpu_ns;
};

struct load {
	int kvm, vm;
	struct vcpu vcpus[2];
	pthread_barrier_t barrier;
	uint64_t rounds;
	bool handover; /* the threads take turns: one context switch a round */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct load the_load;

static void *vcpu_main(void *arg)
{
	struct vcpu *v = arg;
	uint64_t token = 1, start;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(the_load.handover ? 0 : (int)(v - the_load.vcpus), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	v->tid = (pid_t)syscall(SYS_gettid);
	v->ready = true;
	pthread_barrier_wait(&the_load.barrier);
	pthread_barrier_wait(&the_load.barrier);
	start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (uint64_t i = 0; i < the_load.rounds; i++) {
		if (the_load.handover && read(v->wake_fd, &token, sizeof(token)) < 0)
			break;
		if (ioctl(v->fd, KVM_RUN, 0) < 0 || v->run->exit_reason != KVM_EXIT_IO)
			break;
		v->rounds++;
		if (the_load.handover && write(v->peer_fd, &token, sizeof(token)) < 0)
			break;
	}
	v->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	return NULL;
}

static bool load_make(bool handover, uint64_t rounds)
{
	static const uint8_t code[] = { 0xba, 0xf8, 0x03, 0xee, 0xeb, 0xfd }; /* out dx, al; jmp */
	struct load *l = &the_load;
	uint8_t *memory =
		mmap(NULL, 0x4000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(l, 0, sizeof(*l));
	l->handover = handover;
	l->rounds = rounds;
	l->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	l->vm = l->kvm < 0 ? -1 : ioctl(l->kvm, KVM_CREATE_VM, 0);
	if (l->vm < 0 || memory == MAP_FAILED)
		return false;
	ioctl(l->vm, KVM_SET_TSS_ADDR, 0xfffbd000);
	memcpy(memory, code, sizeof(code));
	struct kvm_userspace_memory_region region = { .guest_phys_addr = 0x1000,
						      .memory_size = 0x4000,
						      .userspace_addr = (uintptr_t)memory };
	if (ioctl(l->vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return false;
	int size = ioctl(l->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	for (int i = 0; i < 2; i++) {
		struct vcpu *v = &l->vcpus[i];
		struct kvm_sregs sregs;
		struct kvm_regs regs = { .rip = 0x1000, .rflags = 2 };

		v->fd = ioctl(l->vm, KVM_CREATE_VCPU, i);
		if (v->fd < 0 || size < 0)
			return false;
		v->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
		v->wake_fd = eventfd(i == 0, 0);
		ioctl(v->fd, KVM_GET_SREGS, &sregs);
		sregs.cs.base = sregs.cs.selector = 0;
		ioctl(v->fd, KVM_SET_SREGS, &sregs);
		ioctl(v->fd, KVM_SET_REGS, &regs);
	}
	l->vcpus[0].peer_fd = l->vcpus[1].wake_fd;
	l->vcpus[1].peer_fd = l->vcpus[0].wake_fd;
	pthread_barrier_init(&l->barrier, NULL, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&l->vcpus[i].thread, NULL, vcpu_main, &l->vcpus[i]);
	pthread_barrier_wait(&l->barrier);
	return true;
}

static void load_run(void)
{
	pthread_barrier_wait(&the_load.barrier);
	for (int i = 0; i < 2; i++)
		pthread_join(the_load.vcpus[i].thread, NULL);
}

static void load_free(void)
{
	for (int i = 0; i < 2; i++) {
		close(the_load.vcpus[i].fd);
		close(the_load.vcpus[i].wake_fd);
	}
	close(the_load.vm);
	close(the_load.kvm);
}

/* ---- rings ---- */

struct rings {
	int fds[MAX_FDS];
	size_t nr_fds;
	struct perf_event_mmap_page *pages[MAX_RINGS];
	size_t nr_rings;
	uint64_t records, lost, drain_ns;
	volatile bool stop;
	pthread_t thread;
};

static uint64_t event_ids[MAX_EVENTS];
static size_t nr_events;

static void find_events(void)
{
	for (size_t i = 0; i < sizeof(event_names) / sizeof(event_names[0]); i++) {
		char path[256];
		unsigned long long id;

		snprintf(path, sizeof(path), "%s/%s/id", tracefs, event_names[i]);
		FILE *f = fopen(path, "re");

		if (!f)
			continue;
		if (fscanf(f, "%llu", &id) == 1)
			event_ids[nr_events++] = id;
		fclose(f);
	}
}

static int open_event(uint32_t type, uint64_t config, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.sample_period = type == PERF_TYPE_TRACEPOINT,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.context_switch = type == PERF_TYPE_SOFTWARE,
		.watermark = 1,
		.wakeup_watermark = RING_PAGES * 1024,
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* One ring: a leader (dummy with context switches) and, unless `bare`, every kvm event. */
static bool add_ring(struct rings *r, pid_t pid, int cpu, const char *filter, bool bare,
		     bool events_only)
{
	int leader =
		events_only ? -1 : open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, pid, cpu);

	for (size_t i = 0; i < (bare ? 1 : nr_events + 1); i++) {
		int fd = i == 0 ? leader
				: open_event(PERF_TYPE_TRACEPOINT, event_ids[i - 1], pid, cpu);

		if (fd < 0 && i == 0 && events_only)
			continue;
		if (fd < 0 || r->nr_fds == MAX_FDS)
			return false;
		if (i && filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0)
			return false;
		r->fds[r->nr_fds++] = fd;
		if (leader < 0)
			leader = fd;
		if (fd == leader) {
			void *page = mmap(NULL, (RING_PAGES + 1) * 4096, PROT_READ | PROT_WRITE,
					  MAP_SHARED, fd, 0);

			if (page == MAP_FAILED)
				return false;
			r->pages[r->nr_rings++] = page;
		} else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, leader) < 0) {
			return false;
		}
	}
	return true;
}

static void drain(struct rings *r)
{
	for (size_t i = 0; i < r->nr_rings; i++) {
		struct perf_event_mmap_page *p = r->pages[i];
		const uint8_t *data = (const uint8_t *)p + 4096;
		uint64_t head = __atomic_load_n(&p->data_head, __ATOMIC_ACQUIRE),
			 tail = p->data_tail;

		while (tail < head) {
			struct perf_event_header header;
			uint64_t at = tail % (RING_PAGES * 4096ull);

			memcpy(&header, data + at, sizeof(header));
			if (header.type == PERF_RECORD_LOST) {
				uint64_t lost;

				memcpy(&lost, data + (at + 16) % (RING_PAGES * 4096ull),
				       sizeof(lost));
				r->lost += lost;
			} else {
				r->records++;
			}
			tail += header.size;
		}
		__atomic_store_n(&p->data_tail, tail, __ATOMIC_RELEASE);
	}
}

static void *drain_main(void *arg)
{
	struct rings *r = arg;

	while (!r->stop) {
		usleep(50000);
		drain(r);
	}
	drain(r);
	r->drain_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void close_rings(struct rings *r)
{
	for (size_t i = 0; i < r->nr_rings; i++)
		munmap(r->pages[i], (RING_PAGES + 1) * 4096);
	for (size_t i = 0; i < r->nr_fds; i++)
		close(r->fds[i]);
}

enum mode {
	MODE_NONE,
	MODE_THREAD,
	MODE_CPU,
	MODE_MIXED,
	MODE_CPU_FOREIGN,
	MODE_COUNT,
};
static const char *const mode_names[] = { "no capture", "ring a thread", "ring a CPU, filter",
					  "ring a CPU, filter + switches a thread",
					  "ring a CPU, filter on another VM" };

static bool open_mode(struct rings *r, enum mode mode)
{
	char filter[200];
	pid_t a = the_load.vcpus[0].tid, b = the_load.vcpus[1].tid;

	if (mode == MODE_CPU_FOREIGN)
		a = b = getpid();
	snprintf(filter, sizeof(filter), "common_pid == %d || common_pid == %d", a, b);
	if (mode == MODE_THREAD)
		return add_ring(r, a, -1, NULL, false, false) &&
		       add_ring(r, b, -1, NULL, false, false);
	if (mode == MODE_NONE)
		return true;
	for (int cpu = 0; cpu < (int)sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		if (!add_ring(r, -1, cpu, filter, false, mode == MODE_MIXED))
			return false;
	}
	if (mode == MODE_MIXED)
		return add_ring(r, a, -1, NULL, true, false) &&
		       add_ring(r, b, -1, NULL, true, false);
	return true;
}

static int run_mode(enum mode mode, bool handover, uint64_t rounds, double *base)
{
	struct rings *r = calloc(1, sizeof(*r));
	uint64_t wall, open_ns;

	if (!r || !load_make(handover, rounds))
		return 1;
	open_ns = now_ns(CLOCK_MONOTONIC);
	if (!open_mode(r, mode)) {
		printf("# %s: %s\n", mode_names[mode], strerror(errno));
		return 1;
	}
	open_ns = now_ns(CLOCK_MONOTONIC) - open_ns;
	pthread_create(&r->thread, NULL, drain_main, r);
	wall = now_ns(CLOCK_MONOTONIC);
	load_run();
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	r->stop = true;
	pthread_join(r->thread, NULL);
	uint64_t cpu = the_load.vcpus[0].cpu_ns + the_load.vcpus[1].cpu_ns;
	uint64_t done = the_load.vcpus[0].rounds + the_load.vcpus[1].rounds;
	double each = (double)cpu / (double)done;

	if (mode == MODE_NONE)
		*base = each;
	printf("%-9s %-40s %5zu descriptors %3zu rings %8.0f ns a run (%+6.0f) %9llu records %6llu "
	       "lost  open %4llu ms  wall %5.2f s  drain %4llu ms\n",
	       handover ? "turns" : "exits", mode_names[mode], r->nr_fds, r->nr_rings, each,
	       each - *base, (unsigned long long)r->records, (unsigned long long)r->lost,
	       (unsigned long long)open_ns / 1000000, (double)wall / 1e9,
	       (unsigned long long)r->drain_ns / 1000000);
	close_rings(r);
	load_free();
	free(r);
	return 0;
}

int main(void)
{
	struct rlimit limit;
	double base = 0;

	find_events();
	if (access("/dev/kvm", R_OK | W_OK) || !nr_events || geteuid()) {
		printf("rings: skipped: needs root, /dev/kvm and tracefs\n");
		return 0;
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	printf("rings: %zu kvm events, 2 threads, %ld CPUs\n", nr_events,
	       sysconf(_SC_NPROCESSORS_ONLN));
	for (int handover = 0; handover < 2; handover++) {
		for (enum mode mode = MODE_NONE; mode < MODE_COUNT; mode++) {
			if (run_mode(mode, handover, handover ? 20000 : 60000, &base))
				return 1;
		}
	}
	return 0;
}
