// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * doctor's checks on machines made of files (virt-fixtures/proc-trees/doctor-*.tree):
 * tests/golden/doctor/NAME.txt holds them, a line a check, and what is blocked.
 * VMT_TEST_REGENERATE=1 rewrites the files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/probe/probe.h"
#include "tests/support/tree.h"

#define TEXT_MAX 16384u

/* What the machine's IA32_VMX_MISC is and its driver answers. */
struct host {
	const char *name;
	uint64_t vmx_misc; /* 0: no /dev/cpu/0/msr */
	int open_err, pause_err;
};

static const struct host hosts[] = {
	{ "skylake-sp", 0x7004c1e7, 0, -EINVAL },
	{ "icelake-sp", 0, 0, -EINVAL },
	{ "sapphire-rapids", 0x7004c1e7, 0, 0 },
	{ "alder-lake", 0x7004c1e7, -EBUSY, -EBUSY },
	{ "broadwell", 0x300481e5, 0, -EINVAL },
	{ "amd", 0, 0, 0 },
	{ "kvm-guest", 0, 0, 0 },
	{ "unprivileged", 0, -EACCES, -EACCES },
};

static const struct host *current;

static int pt_open(uint32_t type, bool start_paused)
{
	assert_int_equal(type, 8);
	return start_paused ? current->pause_err : current->open_err;
}

static int perf_page(struct vmt_perf_page *out)
{
	*out = (struct vmt_perf_page){ .cap_user_time = true,
				       .cap_user_time_zero = true,
				       .time_shift = 31,
				       .time_mult = 1073741824 };
	return 0;
}

static void write_msr(const struct vmt_tree *tree, uint64_t misc)
{
	char path[160];
	FILE *f;

	vmt_tree_write(tree, "dev/cpu/0/msr", "");
	snprintf(path, sizeof(path), "%s/cpu/0/msr", tree->dev);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0x485, SEEK_SET), 0);
	assert_int_equal(fwrite(&misc, sizeof(misc), 1, f), 1);
	assert_int_equal(fclose(f), 0);
}

/* Without the scratch folder's name. */
static size_t put(char *text, size_t at, const char *root, const char *label, const char *what)
{
	size_t skip = strlen(root);
	const char *found;

	at += (size_t)snprintf(text + at, TEXT_MAX - at, "%s", label);
	while ((found = strstr(what, root))) {
		at += (size_t)snprintf(text + at, TEXT_MAX - at, "%.*s", (int)(found - what), what);
		what = found + skip;
	}
	return at + (size_t)snprintf(text + at, TEXT_MAX - at, "%s\n", what);
}

static void describe(const struct vmt_probe *probe, const char *root, char *text)
{
	static const struct {
		const char *name;
		uint32_t need;
	} needs[] = { { "kvm", VMT_NEED_KVM }, { "sched", VMT_NEED_SCHED }, { "pt", VMT_NEED_PT } };
	size_t at = 0;

	for (size_t i = 0; i < probe->count; i++) {
		const struct vmt_check *c = &probe->checks[i];
		char label[64];

		snprintf(label, sizeof(label), "%-8s %-13s ", vmt_check_status_name(c->status),
			 c->id);
		at = put(text, at, root, label, c->cause);
		if (c->cure[0])
			at = put(text, at, root, "                       -> ", c->cure);
	}
	for (size_t i = 0; i < 3; i++) {
		const struct vmt_check *c = vmt_probe_blocked(probe, needs[i].need);

		at += (size_t)snprintf(text + at, TEXT_MAX - at, "%s: %s\n", needs[i].name,
				       c ? c->id : "possible");
	}
}

static void compare(const char *name, const char *text)
{
	const char *top = getenv("VMT_TOP");
	char path[300], want[TEXT_MAX] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/golden/doctor/%s.txt", top ? top : ".", name);
	if (getenv("VMT_TEST_REGENERATE")) {
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(text, f);
		fclose(f);
		return;
	}
	f = fopen(path, "r");
	if (f) {
		want[fread(want, 1, sizeof(want) - 1, f)] = '\0';
		fclose(f);
	}
	assert_string_equal(text, want);
}

static void test_hosts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct vmt_probe_env env = { .perf_page = perf_page, .pt_open = pt_open };
		char text[TEXT_MAX], name[64];
		struct vmt_probe probe;
		struct vmt_tree tree;

		current = &hosts[i];
		snprintf(name, sizeof(name), "doctor-%s", current->name);
		vmt_tree_unpack(&tree, name);
		if (current->vmx_misc)
			write_msr(&tree, current->vmx_misc);
		env.fs = &tree.fs;
		vmt_probe_host(&probe, &env);
		describe(&probe, tree.root, text);
		vmt_tree_remove(&tree);
		compare(current->name, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hosts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
