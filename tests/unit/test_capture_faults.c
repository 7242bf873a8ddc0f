// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A capture on a system that fails at every call in turn: the error is the right one and names its
 * cure, and no descriptor or mapping stays behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/capture/capture_with.h"
#include "tests/support/remove_all.h"
#include "tests/support/stream.h"
#include "tests/support/vmt_counts.h"

static char top[] = "/tmp/vmt-faults-XXXXXX";

/* ---- a system that counts and fails ---- */

static struct {
	int open_fds, maps, opens;
	int fail_at;	/* the how manieth call fails; 0: none */
	int fail_errno; /* with this */
	bool only_once; /* EINTR and EAGAIN go away */
	int calls;
	uint64_t next_id;
	uint64_t lost;	 /* by each event */
	bool before_6_0; /* refuses PERF_FORMAT_LOST */
	bool locked_out; /* no more memory for rings */
} fake;

static bool fails(void)
{
	fake.calls++;
	if (!fake.fail_at ||
	    (fake.only_once ? fake.calls != fake.fail_at : fake.calls < fake.fail_at))
		return false;
	errno = fake.fail_errno;
	return true;
}

static int fake_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		     unsigned long flags)
{
	int fd;

	assert_true(attr->disabled && attr->sample_id_all && attr->watermark);
	assert_true(pid != -1 || cpu != -1);
	assert_int_equal(group, -1);
	assert_int_equal(flags, PERF_FLAG_FD_CLOEXEC);
	if (fails())
		return -1;
	if (fake.before_6_0 && attr->read_format) {
		errno = EINVAL;
		return -1;
	}
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	fake.open_fds++;
	fake.opens++;
	return fd;
}

static void *fake_map(size_t len, int prot, int fd, size_t offset)
{
	void *map;

	(void)offset;
	(void)prot;
	(void)fd;
	if (fails())
		return MAP_FAILED;
	if (fake.locked_out) {
		errno = EPERM;
		return MAP_FAILED;
	}
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fake.maps++;
	return map;
}

static int fake_unmap(void *map, size_t len)
{
	fake.maps--;
	return munmap(map, len);
}

static int fake_control(int fd, unsigned long request, uintptr_t argument)
{
	(void)fd;
	if (fails())
		return -1;
	if (request == PERF_EVENT_IOC_ID) {
		/* as ioctl(2) takes it */
		uint64_t *id = (uint64_t *)argument; /* NOLINT(performance-no-int-to-ptr) */

		*id = ++fake.next_id;
	}
	return 0;
}

static int fake_close(int fd)
{
	fake.open_fds--;
	return close(fd);
}

static ssize_t fake_read(int fd, void *buffer, size_t size)
{
	const uint64_t words[2] = { 0, fake.lost };

	(void)fd;
	assert_int_equal(size, sizeof(words));
	memcpy(buffer, words, size);
	return fake.before_6_0 ? 8 : (ssize_t)size;
}

static const struct vmt_perf_ops fake_ops = {
	.open = fake_open,
	.map = fake_map,
	.unmap = fake_unmap,
	.control = fake_control,
	.read = fake_read,
	.close = fake_close,
};

/* ---- fixtures ---- */

static void add_event(const char *system, const char *name)
{
	char path[200], *text;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/events/%s", top, system);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/events/%s/%s", top, system, name);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/events/%s/%s/format", top, system, name);
	text = vmt_stream_format_text("6.18", name, &len);
	f = fopen(path, "w");
	assert_non_null(f);
	fwrite(text, 1, len, f);
	fclose(f);
	free(text);
}

static int set_up(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(path, sizeof(path), "%s/events", top);
	mkdir(path, 0755);
	add_event("kvm", "kvm_exit");
	add_event("kvm", "kvm_entry");
	add_event("kvm", "kvm_set_irq");
	add_event("kvm", "kvm_unmap_hva_range");
	add_event("sched", "sched_waking");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return vmt_remove_all(top);
}

static struct vmt_vcpu vcpus[4];
static struct vmt_helper helpers[2];
static struct vmt_domain domain;
static struct vmt_domains domains;

/* A domain of threads without a process: nothing of it is read again from /proc. */
static void make_domain(void)
{
	static char name[] = "web01";

	vcpus[0] = (struct vmt_vcpu){ .id = 0, .tid = 1000001, .tid_source = "thread name" };
	vcpus[1] = (struct vmt_vcpu){ .id = 1, .tid = 1000002, .tid_source = "thread name" };
	helpers[0] = (struct vmt_helper){ 1000003, "IO mon_iothread", "iothread" };
	helpers[1] = (struct vmt_helper){ 1000004, "worker", "worker" };
	domain = (struct vmt_domain){
		.name = name, .nr_vcpus = 2, .vcpus = vcpus, .nr_helpers = 2, .helpers = helpers
	};
	domains = (struct vmt_domains){ 1, &domain };
}

static struct vmt_store_writer *make_store(char *path, size_t size)
{
	struct vmt_store_options options = { .force = true };
	struct vmt_store_writer *store;

	snprintf(path, size, "%s/out.vmt", top);
	assert_int_equal(vmt_store_create(&store, path, &options, NULL), 0);
	return store;
}

static int open_capture(struct vmt_capture **capture, struct vmt_store_writer *store,
			struct vmt_diag *diag)
{
	struct vmt_capture_options options = { .backend = "kvm,sched",
					       .buffer_bytes = 1u << 20,
					       .session_json = "{}" };

	*capture = NULL;
	fake.calls = 0;
	return vmt_capture_open_with(capture, &options, &domains, store, &fake_ops, top, NULL,
				     diag);
}

/* ---- tests ---- */

static void test_all_good(void **state)
{
	struct vmt_diag diag = { 0 };
	struct vmt_capture *capture;
	struct vmt_capture_stats stats;
	char path[64];
	struct vmt_store_writer *store = make_store(path, sizeof(path));
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	(void)state;
	memset(&fake, 0, sizeof(fake));
	make_domain();
	assert_int_equal(open_capture(&capture, store, &diag), 0);
	stats = vmt_capture_stats(capture);
	/* a ring a CPU, and one for two vCPUs and the iothread: not for QEMU's worker */
	assert_int_equal(stats.rings, cpus + 3);
	assert_int_equal(stats.threads, 3);
	assert_int_equal(stats.descriptors, cpus * 6 + 3);
	assert_int_equal(fake.open_fds, stats.descriptors + 1); /* and the clock's own */
	assert_int_equal(vmt_capture_close(capture, &diag), 0);
	assert_int_equal(fake.open_fds, 0);
	assert_int_equal(fake.maps, 0);
	vmt_store_abandon(store);
}

static void check_failure(int error, int result, const struct vmt_diag *diag)
{
	char limit[] = "RLIMIT_NOFILE";

	assert_int_equal(result, diag->code);
	assert_true(diag->what[0] && diag->sys_errno == error);
	switch (error) {
	case EACCES:
		/* mmap is refused for another reason than the events */
		assert_true(result == VMT_E_PERMISSION);
		assert_non_null(strstr(diag->cure, "CAP_PERFMON"));
		assert_non_null(strstr(diag->cure, "perf_event_paranoid"));
		break;
	case EMFILE:
		assert_int_equal(result, VMT_E_LIMIT);
		assert_non_null(strstr(diag->cure, limit));
		break;
	case ENOMEM:
		assert_true(result == VMT_E_NOMEM || result == VMT_E_LIMIT);
		break;
	default:
		break;
	}
}

/* Each call fails in turn, and all after it. The clock's own calls may fail: it does without. */
static void test_each_call_fails(void **state)
{
	static const int errors[] = { EACCES, EMFILE, ENOMEM, EINTR };
	char path[64];
	struct vmt_store_writer *store = make_store(path, sizeof(path));

	(void)state;
	for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
		bool over = false;
		int failures = 0;

		for (int at = 1; !over; at++) {
			struct vmt_diag diag = { 0 };
			struct vmt_capture *capture;
			int err;

			memset(&fake, 0, sizeof(fake));
			make_domain();
			fake.fail_at = at;
			fake.fail_errno = errors[e];
			err = open_capture(&capture, store, &diag);
			over = !err && fake.calls < at;
			failures += err != 0;
			if (err)
				check_failure(errors[e], err, &diag);
			else
				vmt_capture_close(capture, NULL);
			assert_int_equal(fake.open_fds, 0);
			assert_int_equal(fake.maps, 0);
		}
		assert_true(failures > 20);
	}
	vmt_store_abandon(store);
}

/* EINTR and EAGAIN that go away are not seen by anybody. */
static void test_interrupted(void **state)
{
	static const int errors[] = { EINTR, EAGAIN };
	char path[64];
	struct vmt_store_writer *store = make_store(path, sizeof(path));

	(void)state;
	for (size_t e = 0; e < 2; e++) {
		for (int at = 1; at < 60; at++) {
			struct vmt_diag diag = { 0 };
			struct vmt_capture *capture;

			memset(&fake, 0, sizeof(fake));
			make_domain();
			fake.fail_at = at;
			fake.fail_errno = errors[e];
			fake.only_once = true;
			assert_int_equal(open_capture(&capture, store, &diag), 0);
			vmt_capture_close(capture, NULL);
			assert_int_equal(fake.open_fds, 0);
		}
	}
	vmt_store_abandon(store);
}

/* A thread that ends while the capture opens is no error. */
static void test_thread_ends(void **state)
{
	char path[64];
	struct vmt_store_writer *store = make_store(path, sizeof(path));
	struct vmt_diag diag = { 0 };
	struct vmt_capture *capture;
	int last;

	(void)state;
	memset(&fake, 0, sizeof(fake));
	make_domain();
	assert_int_equal(open_capture(&capture, store, &diag), 0);
	vmt_capture_close(capture, NULL);
	/* the last open is the iothread's ring; after it: map, id, and the enabling of all */
	last = fake.opens;
	memset(&fake, 0, sizeof(fake));
	for (int at = 1; at < 500; at++) {
		int before;

		memset(&fake, 0, sizeof(fake));
		make_domain();
		fake.fail_at = at;
		fake.fail_errno = ESRCH;
		fake.only_once = true;
		vmt_diag_clear(&diag);
		if (open_capture(&capture, store, &diag))
			continue; /* ESRCH for a CPU's event: not what is meant here */
		before = fake.opens;
		vmt_capture_close(capture, NULL);
		assert_int_equal(fake.open_fds, 0);
		if (before == last - 1 && vmt_diag_set(&diag, VMT_OK, "", "") == 0)
			last = -1;
	}
	assert_int_equal(last, -1);
	vmt_store_abandon(store);
}

static void test_missing_event(void **state)
{
	char path[64], event[100], moved[100];
	struct vmt_store_writer *store = make_store(path, sizeof(path));
	struct vmt_diag diag = { 0 };
	struct vmt_capture *capture;

	(void)state;
	memset(&fake, 0, sizeof(fake));
	make_domain();
	snprintf(event, sizeof(event), "%s/events/kvm", top);
	snprintf(moved, sizeof(moved), "%s/events/gone", top);
	assert_int_equal(rename(event, moved), 0);
	assert_int_equal(open_capture(&capture, store, &diag), VMT_E_CAPABILITY);
	assert_non_null(strstr(diag.cure, "kvm is not loaded"));
	assert_int_equal(rename(moved, event), 0);
	assert_int_equal(fake.open_fds, 0);
	domain.nr_vcpus = domain.nr_helpers = 0;
	vmt_diag_clear(&diag);
	assert_int_equal(open_capture(&capture, store, &diag), VMT_E_NOT_FOUND);
	assert_int_equal(fake.open_fds, 0);
	vmt_store_abandon(store);
}

/* What the rings lost last, which no LOST record tells, is in the sums. */
static void test_untold_loss(void **state)
{
	char path[64];
	struct vmt_store_writer *store = make_store(path, sizeof(path));

	(void)state;
	for (int before_6_0 = 0; before_6_0 < 2; before_6_0++) {
		struct vmt_capture_stats stats;
		struct vmt_capture *capture;
		size_t events;

		memset(&fake, 0, sizeof(fake));
		fake.before_6_0 = before_6_0;
		make_domain();
		assert_int_equal(open_capture(&capture, store, NULL), 0);
		assert_int_equal(vmt_capture_stats(capture).lost_records, 0);
		events = vmt_capture_stats(capture).descriptors;
		fake.lost = 7;
		assert_int_equal(vmt_capture_stop(capture, NULL), 0);
		stats = vmt_capture_stats(capture);
		assert_int_equal(stats.lost_records, before_6_0 ? 0 : events * 7);
		assert_int_equal(vmt_capture_close(capture, NULL), 0);
		assert_int_equal(fake.open_fds, 0);
	}
	vmt_store_abandon(store);
}

/*
 * vCPUs that are plugged in when no ring can be mapped any more: their switches go into the CPUs'
 * rings; one for which nothing can be opened at all is named, in the file as well.
 */
static void test_new_thread(void **state)
{
	struct vmt_diag diag = { 0 };
	struct vmt_capture *capture;
	struct vmt_capture_stats before, after;
	struct vmt_counts counts;
	char path[64];
	struct vmt_store_writer *store = make_store(path, sizeof(path));
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN);

	(void)state;
	memset(&fake, 0, sizeof(fake));
	make_domain();
	assert_int_equal(open_capture(&capture, store, &diag), 0);
	before = vmt_capture_stats(capture);
	fake.locked_out = true;
	vcpus[2] = (struct vmt_vcpu){ .id = 2, .tid = 1000005, .tid_source = "thread name" };
	domain.nr_vcpus = 3;
	assert_int_equal(vmt_capture_mark(capture, 0, "hotplug", NULL, &diag), 0);
	after = vmt_capture_stats(capture);
	assert_int_equal(after.rings, before.rings);
	assert_int_equal(after.threads, 4);
	/* kvm_exit, kvm_entry, kvm_set_irq and sched_waking on each CPU, and the switches */
	assert_int_equal(after.descriptors, before.descriptors + cpus * 5);
	assert_int_equal(after.unknown_losses, 0);
	fake.fail_at = 1;
	fake.fail_errno = EMFILE;
	vcpus[3] = (struct vmt_vcpu){ .id = 3, .tid = 1000006, .tid_source = "thread name" };
	domain.nr_vcpus = 4;
	assert_int_equal(vmt_capture_mark(capture, 0, "hotplug", NULL, &diag), VMT_E_LIMIT);
	assert_non_null(strstr(diag.what, "the exits of the new thread 1000006 are not captured"));
	assert_int_equal(vmt_capture_stats(capture).unknown_losses, 1);
	fake.fail_at = 0;
	assert_int_equal(vmt_capture_close(capture, NULL), 0);
	assert_int_equal(fake.open_fds, 0);
	assert_int_equal(fake.maps, 0);
	assert_int_equal(vmt_store_finish(store, NULL), 0);
	counts = vmt_counts_of(path);
	assert_true(counts.readable && counts.closed);
	assert_int_equal(counts.losses, 1);
}

static void test_backend_names(void **state)
{
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_int_equal(vmt_capture_prepare("kvm,sheds", &diag), VMT_E_USAGE);
	assert_non_null(strstr(diag.what, "sheds"));
	assert_int_equal(vmt_capture_prepare("pmu", NULL), VMT_E_CAPABILITY);
	assert_int_equal(vmt_capture_prepare("", NULL), VMT_E_USAGE);
	assert_int_equal(vmt_capture_prepare("replay:", NULL), VMT_E_USAGE);
	assert_int_equal(vmt_capture_prepare("replay:x.vmt", NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_good),      cmocka_unit_test(test_each_call_fails),
		cmocka_unit_test(test_interrupted),   cmocka_unit_test(test_thread_ends),
		cmocka_unit_test(test_missing_event), cmocka_unit_test(test_backend_names),
		cmocka_unit_test(test_untold_loss),   cmocka_unit_test(test_new_thread),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
