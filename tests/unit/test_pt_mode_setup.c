// SPDX-License-Identifier: LGPL-2.1-or-later
/* setup --pt-mode on hosts made of files: with and without the parameter, with machines running. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "host/probe/pt_mode_setup.h"
#include "tests/support/tree.h"

#define MODULE "sys/module/kvm_intel/"

struct host {
	struct vmt_tree tree;
	char etc[96];
};

static void open_host(struct host *h, const char *pt_mode, const char *refcnt)
{
	vmt_tree_unpack(&h->tree, "host-intel");
	snprintf(h->etc, sizeof(h->etc), "%s/etc", h->tree.root);
	h->tree.fs.etc = h->etc;
	vmt_tree_write(&h->tree, "etc/modprobe.d/other.conf", "options kvm_intel nested=1\n");
	vmt_tree_write(&h->tree, MODULE "parameters/nested", "Y\n");
	vmt_tree_write(&h->tree, MODULE "parameters/pt_mode", pt_mode);
	vmt_tree_write(&h->tree, MODULE "refcnt", refcnt);
}

static void refused(const struct host *h, const char *mode, int code, const char *text)
{
	struct vmt_pt_mode_setup setup;
	struct vmt_diag diag = { 0 };

	assert_int_equal(vmt_pt_mode_setup(&setup, mode, &h->tree.fs, &diag), code);
	if (!strstr(diag.what, text) && !strstr(diag.cure, text))
		fail_msg("%s (%s)", diag.what, diag.cure);
}

static void expect_file(const struct host *h, const char *text)
{
	char got[256] = "";

	assert_true(vmt_hostfs_read(got, sizeof(got), "%s/modprobe.d/vmtrace.conf", h->etc) > 0);
	assert_non_null(strstr(got, text));
}

static void test_writes(void **state)
{
	struct vmt_pt_mode_setup setup;
	struct vmt_diag diag = { 0 };
	struct host h;

	(void)state;
	open_host(&h, "0\n", "0\n");
	if (vmt_pt_mode_setup(&setup, "host-guest", &h.tree.fs, &diag))
		fail_msg("%s (%s)", diag.what, diag.cure);
	assert_int_equal(setup.mode, 1);
	assert_int_equal(setup.mode_now, 0);
	expect_file(&h, "\noptions kvm_intel pt_mode=1\n");
	assert_int_equal(vmt_pt_mode_setup(&setup, "system", &h.tree.fs, NULL), 0);
	expect_file(&h, "\noptions kvm_intel pt_mode=0\n");
	refused(&h, "guest", VMT_E_USAGE, "system or host-guest");
	vmt_tree_write(&h.tree, "etc/modprobe.d/vmtrace.conf", "options kvm_intel ept=0\n");
	refused(&h, "system", VMT_E_EXISTS, "is not vmtrace's");
	expect_file(&h, "ept=0");
	vmt_tree_remove(&h.tree);
}

static void test_refuses(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, "1\n", "3\n");
	refused(&h, "system", VMT_E_EXISTS, "virtual machines run (kvm_intel is used 3 times)");
	vmt_tree_write(&h.tree, MODULE "refcnt", NULL);
	refused(&h, "system", VMT_E_CAPABILITY, "kvm_intel.pt_mode=0");
	vmt_tree_write(&h.tree, MODULE "parameters/pt_mode", NULL);
	refused(&h, "system", VMT_E_CAPABILITY, "nothing is to be done");
	refused(&h, "host-guest", VMT_E_CAPABILITY, "--mode guest-only");
	vmt_tree_remove(&h.tree);
}

static void test_no_module(void **state)
{
	struct host h = { .etc = "/nonexistent" };

	(void)state;
	h.tree.fs = (struct vmt_hostfs){ .sys = "/nonexistent", .etc = h.etc };
	refused(&h, "system", VMT_E_CAPABILITY, "kvm_intel is not loaded");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_no_module),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
