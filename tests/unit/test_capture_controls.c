// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Captures that set VMX controls by the kernel module, from a stand-in for it: the words that it is
 * told, the threads, the events that leave the host out, what the file says of it, and refusals.
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
#include <unistd.h>

#include "decode/analyze/input.h"
#include "host/capture/capture_with.h"
#include "host/capture/vmx_module.h"
#include "tests/support/pt_machine.h"
#include "tests/support/remove_all.h"

#define TID	  1000001
#define DEVICE_FD 900000

static char top[] = "/tmp/vmt-capture-controls-XXXXXX";
static char path[64];
static struct vmt_hostfs fs;

/* ---- the module ---- */

static struct module {
	int open_errno, setup_errno; /* 0: it works */
	bool open;
	unsigned int opened, nr_tids;
	uint32_t tids[8], wrong_exit; /* wrong_exit: bits that are 1 though they are to be 0 */
	struct vmtrace_vmx_setup setup;
} module;

static int fails(int error)
{
	errno = error;
	return -1;
}

static int open_device(const char *name)
{
	assert_string_equal(name, VMTRACE_VMX_DEVICE);
	if (module.open_errno)
		return fails(module.open_errno);
	module.open = true;
	module.opened++;
	return DEVICE_FD;
}

static int add_tid(const uint32_t *tid)
{
	assert_int_not_equal(module.setup.abi, 0);
	if (*tid == TID + 1)
		return fails(ESRCH); /* it has just ended */
	module.tids[module.nr_tids++] = *tid;
	return 0;
}

static int read_state(struct vmtrace_vmx_state *state)
{
	if (!module.nr_tids || state->tid != module.tids[0])
		return fails(ENOENT);
	for (size_t i = 0; i < VMTRACE_VMX_WORDS; i++)
		state->in_force[i] = 0x11ff | module.setup.set[i];
	state->in_force[VMTRACE_VMX_EXIT] |= module.wrong_exit;
	state->entries = 1000;
	state->untraced = 3;
	return 0;
}

static int control(int fd, unsigned long request, uintptr_t argument)
{
	if (fd != DEVICE_FD)
		return vmt_ptm_ops.control(fd, request, argument);
	assert_true(module.open);
	if (request == VMTRACE_VMX_ADD)
		return add_tid((const uint32_t *)argument);
	if (request == VMTRACE_VMX_READ)
		return read_state((struct vmtrace_vmx_state *)argument);
	assert_int_equal(request, VMTRACE_VMX_SETUP);
	if (module.setup_errno)
		return fails(module.setup_errno);
	module.setup = *(const struct vmtrace_vmx_setup *)argument;
	return 0;
}

static int close_any(int fd)
{
	if (fd != DEVICE_FD)
		return vmt_ptm_ops.close(fd);
	assert_true(module.open);
	module.open = false;
	return 0;
}

/* ---- a capture ---- */

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(path, sizeof(path), "%s/out.vmt", top);
	fs = vmt_ptm_files(top, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return vmt_remove_all(top);
}

/* Opens, looks at the first event, closes. The error of opening. */
static int capture(struct vmt_capture_options options, bool *excludes_host, struct vmt_diag *diag)
{
	static char name[] = "web01";
	struct vmt_vcpu vcpus[2] = { { .id = 0, .tid = TID, .tid_source = "thread name" },
				     { .id = 1, .tid = TID + 1, .tid_source = "thread name" } };
	struct vmt_domain domain = { .name = name, .nr_vcpus = 2, .vcpus = vcpus };
	struct vmt_domains domains = { 1, &domain };
	struct vmt_store_options store_options = { .force = true };
	struct vmt_perf_ops ops = vmt_ptm_ops;
	struct vmt_store_writer *store;
	struct vmt_capture *c;
	int err;

	ops.open_device = open_device;
	ops.control = control;
	ops.close = close_any;
	options.backend = "pt";
	vmt_ptm_reset();
	assert_int_equal(vmt_store_create(&store, path, &store_options, NULL), 0);
	err = vmt_capture_open_with(&c, &options, &domains, store, &ops, NULL, &fs, diag);
	if (err) {
		vmt_store_discard(store);
		return err;
	}
	if (excludes_host) {
		const struct perf_event_attr *attr = vmt_ptm_attr(
			options.system_wide ? vmt_ptm_event(-1, 0) : vmt_ptm_event(TID, -1));

		assert_int_equal(attr->exclude_kernel, attr->exclude_user);
		*excludes_host = attr->exclude_kernel;
	}
	assert_int_equal(vmt_capture_close(c, NULL), 0);
	assert_int_equal(vmt_store_finish(store, NULL), 0);
	vmt_ptm_reset();
	assert_false(module.open);
	return 0;
}

static void take(void *context, const struct vmt_event *event)
{
	(void)context;
	(void)event;
}

static const struct vmt_input_facts *read_back(struct vmt_input **input)
{
	struct vmt_reader *reader;

	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_input_open(input, reader, &(struct vmt_input_options){ 0 }, NULL), 0);
	assert_int_equal(vmt_input_run(*input, take, NULL, NULL), 0);
	return vmt_input_facts(*input);
}

static void the_words_are_the_plans(void **state)
{
	static const struct {
		enum vmx_pt_mode mode;
		bool conceal, wide, no_host;
		uint32_t secondary, exit, entry;
		uint64_t ctl;
	} rows[] = {
		{ VMX_PT_GUEST_ONLY, false, false, true, 0, 1u << 25, 1u << 18, 0xc },
		{ VMX_PT_GUEST_ONLY, true, true, true, 1u << 19, 3u << 24, 3u << 17, 0xc },
		{ VMX_PT_SYSTEM, true, false, false, 1u << 19, 1u << 24, 1u << 17, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vmt_capture_options options = { .pt_mode = rows[i].mode,
							     .pt_conceal = rows[i].conceal,
							     .system_wide = rows[i].wide };
		bool no_host;

		module = (struct module){ 0 };
		assert_int_equal(capture(options, &no_host, NULL), 0);
		assert_int_equal(no_host, rows[i].no_host);
		assert_int_equal(module.setup.abi, VMTRACE_VMX_ABI);
		assert_int_equal(module.setup.set[VMTRACE_VMX_SECONDARY], rows[i].secondary);
		assert_int_equal(module.setup.set[VMTRACE_VMX_EXIT], rows[i].exit);
		assert_int_equal(module.setup.set[VMTRACE_VMX_ENTRY], rows[i].entry);
		assert_int_equal(module.setup.set[0] | module.setup.clear[0], 0x1080000);
		assert_int_equal(module.setup.set[1] | module.setup.clear[1], 0x3000000);
		assert_int_equal(module.setup.set[2] | module.setup.clear[2], 0x60000);
		assert_int_equal(module.setup.guest_ctl, rows[i].ctl);
		assert_int_equal(module.nr_tids, 1);
		assert_int_equal(module.tids[0], TID);
	}
}

static void system_mode_needs_no_module(void **state)
{
	bool no_host;

	(void)state;
	module = (struct module){ .open_errno = ENOENT };
	assert_int_equal(capture((struct vmt_capture_options){ 0 }, &no_host, NULL), 0);
	assert_false(no_host);
	assert_int_equal(module.opened, 0);
}

static void refusals_say_why(void **state)
{
	static const struct {
		int open_errno, setup_errno, err;
		enum vmx_pt_mode mode;
		const char *says;
	} rows[] = {
		{ ENOENT, 0, VMT_E_CAPABILITY, VMX_PT_SYSTEM, "set the VMX controls" },
		{ EACCES, 0, VMT_E_PERMISSION, VMX_PT_GUEST_ONLY, "no right" },
		{ EMFILE, 0, VMT_E_IO, VMX_PT_GUEST_ONLY, "cannot open" },
		{ 0, EOPNOTSUPP, VMT_E_CAPABILITY, VMX_PT_GUEST_ONLY, "CPU does not allow" },
		{ 0, EBUSY, VMT_E_EXISTS, VMX_PT_GUEST_ONLY, "another capture" },
		{ 0, EINVAL, VMT_E_CAPABILITY, VMX_PT_GUEST_ONLY, "another version" },
		{ 0, ENOMEM, VMT_E_IO, VMX_PT_GUEST_ONLY, "cannot set" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vmt_diag diag = { 0 };

		module = (struct module){ .open_errno = rows[i].open_errno,
					  .setup_errno = rows[i].setup_errno };
		assert_int_equal(capture((struct vmt_capture_options){ .pt_mode = rows[i].mode,
								       .pt_conceal = true },
					 NULL, &diag),
				 rows[i].err);
		if (!strstr(diag.what, rows[i].says))
			fail_msg("%s", diag.what);
		assert_false(module.open);
	}
}

static void the_file_says_what_was_in_force(void **state)
{
	const struct vmt_capture_options options = { .pt_mode = VMX_PT_GUEST_ONLY };
	const struct vmt_pt_controls *c;
	struct vmx_pt_control planned;
	struct vmt_input *input = NULL;

	(void)state;
	module = (struct module){ 0 };
	assert_int_equal(capture(options, NULL, NULL), 0);
	c = &read_back(&input)->pt_controls;
	assert_true(c->known && c->mode == VMX_PT_GUEST_ONLY && !c->conceal);
	assert_string_equal(c->means, "vmx-controls");
	assert_int_equal(c->nr_vcpus, 1);
	assert_int_equal(c->entries, 1000);
	assert_int_equal(c->untraced, 3);
	assert_false(vmt_pt_controls_differ(c, 0, &planned));
	vmt_input_close(input);

	module = (struct module){ .wrong_exit = 1u << 24 };
	assert_int_equal(capture(options, NULL, NULL), 0);
	c = &read_back(&input)->pt_controls;
	assert_true(vmt_pt_controls_differ(c, 0, &planned));
	assert_true(planned.word == VMX_CTL_EXIT && planned.bit == 24 && !planned.value);
	assert_false(vmt_pt_controls_differ(c, 1, &planned));
	vmt_input_close(input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_words_are_the_plans),
		cmocka_unit_test(system_mode_needs_no_module),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(the_file_says_what_was_in_force),
	};

	return cmocka_run_group_tests_name("capture_controls", tests, set_up, tear_down);
}
