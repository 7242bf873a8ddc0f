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

#include "host/capture/events.h"
#include "host/capture/tracefs.h"

#define MAX_EVENTS  128
#define MAX_RINGS   256
#define MAX_FDS	    20000
#define RING_PAGES  1024u
#define RUNS	    30000
#define TURNS	    10000
#define REPEATS_MAX 15

static char tracefs[VMT_TRACEFS_PATH_MAX];

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
	CPU_SET(the_load.handover ? 0 : (size_t)(v - the_load.vcpus), &cpu);
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

/* VMT_BENCH_REPEATS: each takes half a minute, most of it the kernel closing tracepoints. */
static int repeats = 1;

static uint64_t event_ids[MAX_EVENTS];
static size_t nr_events;

/* What the product records of KVM, as far as this kernel has it. */
static void find_events(void)
{
	size_t count;
	const struct vmt_event_row *rows = vmt_event_rows(&count);

	for (size_t i = 0; i < count && nr_events < MAX_EVENTS; i++) {
		char *format;

		if (rows[i].role == VMT_ROLE_FLOOD || rows[i].role == VMT_ROLE_WAKING ||
		    vmt_tracefs_event(tracefs, rows[i].system, rows[i].name, &event_ids[nr_events],
				      &format, NULL))
			continue;
		free(format);
		nr_events++;
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
			void *page = mmap(NULL, (size_t)(RING_PAGES + 1) * 4096,
					  PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

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
		munmap(r->pages[i], (size_t)(RING_PAGES + 1) * 4096);
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
		/* CPU-wide switch records would see every thread of the machine */
		if (!add_ring(r, -1, cpu, filter, false, mode != MODE_CPU))
			return false;
	}
	if (mode == MODE_MIXED)
		return add_ring(r, a, -1, NULL, true, false) &&
		       add_ring(r, b, -1, NULL, true, false);
	return true;
}

/* What one run of a mode gave. */
struct figures {
	size_t descriptors, rings;
	double run_ns; /* CPU time of the two threads a KVM_RUN */
	uint64_t records, lost, open_ns, drain_ns;
};

static bool run_mode(enum mode mode, bool turns, struct figures *out)
{
	struct rings *r = calloc(1, sizeof(*r));
	uint64_t start_ns;

	if (!r)
		return false;
	if (!load_make(turns, turns ? TURNS : RUNS)) {
		free(r);
		return false;
	}
	start_ns = now_ns(CLOCK_MONOTONIC);
	if (!open_mode(r, mode)) {
		printf("rings: %s: %s\n", mode_names[mode], strerror(errno));
		free(r);
		return false;
	}
	out->open_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
	pthread_create(&r->thread, NULL, drain_main, r);
	load_run();
	r->stop = true;
	pthread_join(r->thread, NULL);
	out->run_ns = (double)(the_load.vcpus[0].cpu_ns + the_load.vcpus[1].cpu_ns) /
		      (double)(the_load.vcpus[0].rounds + the_load.vcpus[1].rounds);
	out->descriptors = r->nr_fds;
	out->rings = r->nr_rings;
	out->records = r->records;
	out->lost = r->lost;
	out->drain_ns = r->drain_ns;
	close_rings(r);
	load_free();
	free(r);
	return true;
}

static int by_run(const void *a, const void *b)
{
	const struct figures *x = a, *y = b;

	return (x->run_ns > y->run_ns) - (x->run_ns < y->run_ns);
}

/* The modes take turns, so that what else the machine does meets all of them; medians count. */
static bool compare(bool turns)
{
	static struct figures all[MODE_COUNT][REPEATS_MAX];

	for (int i = 0; i < repeats; i++) {
		for (enum mode mode = MODE_NONE; mode < MODE_COUNT; mode++) {
			if (!run_mode(mode, turns, &all[mode][i]))
				return false;
		}
	}
	printf("%s\n", turns ? "two vCPUs that take turns (a context switch a KVM_RUN):"
			     : "two vCPUs that never sleep:");
	for (enum mode mode = MODE_NONE; mode < MODE_COUNT; mode++) {
		struct figures *f = all[mode];

		double least, most;

		qsort(f, (size_t)repeats, sizeof(*f), by_run);
		least = f[0].run_ns;
		most = f[repeats - 1].run_ns;
		f += repeats / 2;
		printf("  %-42s %4zu fds %2zu rings  %6.0f ns a KVM_RUN (%.0f..%.0f; %+6.0f)  "
		       "%7llu records %llu lost  open %llu ms\n",
		       mode_names[mode], f->descriptors, f->rings, f->run_ns, least, most,
		       f->run_ns - all[MODE_NONE][repeats / 2].run_ns,
		       (unsigned long long)f->records, (unsigned long long)f->lost,
		       (unsigned long long)f->open_ns / 1000000);
	}
	return true;
}

int main(void)
{
	const char *wanted = getenv("VMT_BENCH_REPEATS");
	struct rlimit limit;

	if (geteuid() || access("/dev/kvm", R_OK | W_OK) ||
	    vmt_tracefs_find("/proc/self/mounts", tracefs, sizeof(tracefs), NULL)) {
		printf("rings: skipped: needs root, /dev/kvm and tracefs\n");
		return 0;
	}
	if (wanted && strtol(wanted, NULL, 10) > 0)
		repeats = strtol(wanted, NULL, 10) < REPEATS_MAX ? (int)strtol(wanted, NULL, 10)
								 : REPEATS_MAX;
	find_events();
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	printf("rings: %zu events of KVM, 2 threads, %ld CPUs, median of %d\n", nr_events,
	       sysconf(_SC_NPROCESSORS_ONLN), repeats);
	return compare(false) && compare(true) ? 0 : 1;
}
