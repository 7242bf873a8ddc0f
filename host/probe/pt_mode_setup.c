// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: nothing is written where it would have no effect, and no file but vmtrace's own is
 * replaced.
 */
#include "host/probe/pt_mode_setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/output.h"

#define HEAD "# Written by vmtrace setup --pt-mode.\n"

static const char *const modes[] = { "system", "host-guest" };

#define NR_MODES (sizeof(modes) / sizeof(modes[0]))

const char *vmt_pt_mode_name(unsigned int mode)
{
	return mode < NR_MODES ? modes[mode] : "?";
}

static int find_mode(const char *text, unsigned int *mode, struct vmt_diag *diag)
{
	for (*mode = 0; *mode < NR_MODES; ++*mode) {
		if (!strcmp(text, modes[*mode]))
			return 0;
	}
	return vmt_diag_printf(diag, VMT_E_USAGE, 0, "it is system or host-guest",
			       "unknown PT mode '%s'", text);
}

static bool exists(const char *sys, const char *name)
{
	char path[VMT_PATH_MAX];

	snprintf(path, sizeof(path), "%s/module/kvm_intel/%s", sys, name);
	return !access(path, F_OK);
}

static int no_module(const char *sys, unsigned int mode, struct vmt_diag *diag)
{
	if (!exists(sys, ""))
		return vmt_diag_set(
			diag, VMT_E_CAPABILITY, "kvm_intel is not loaded",
			"modprobe kvm_intel shows whether it has the parameter pt_mode; "
			"on another CPU than Intel's there is none");
	if (mode)
		return vmt_diag_set(diag, VMT_E_CAPABILITY, "kvm_intel has no parameter pt_mode",
				    "this kernel is always in mode system, as all since 6.12 are "
				    "(CONFIG_BROKEN): vmtrace start --mode guest-only traces the "
				    "guests alone");
	return vmt_diag_set(diag, VMT_E_CAPABILITY, "kvm_intel has no parameter pt_mode",
			    "nothing is to be done: this kernel is always in mode system");
}

/* Each virtual machine holds a reference; a module without a count is part of the kernel. */
static int check_module(const char *sys, struct vmt_pt_mode_setup *out, struct vmt_diag *diag)
{
	uint64_t now, users;
	int err = vmt_hostfs_u64(&now, "%s/module/kvm_intel/parameters/pt_mode", sys);

	if (err == -ENOENT)
		return no_module(sys, out->mode, diag);
	if (err)
		return vmt_diag_printf(diag, vmt_err_of_errno(-err), -err, NULL,
				       "cannot read kvm_intel's parameter pt_mode");
	out->mode_now = now != 0;
	if (vmt_hostfs_u64(&users, "%s/module/kvm_intel/refcnt", sys)) {
		vmt_diag_set(diag, VMT_E_CAPABILITY, "kvm_intel is part of this kernel",
			     "files of modprobe.d do not reach it");
		vmt_diag_cure(diag,
			      "add kvm_intel.pt_mode=%u to the kernel's command line and "
			      "start the host anew",
			      out->mode);
		return VMT_E_CAPABILITY;
	}
	if (!users)
		return 0;
	return vmt_diag_printf(diag, VMT_E_EXISTS, 0,
			       "shut them down or migrate them away first: the mode changes when "
			       "kvm_intel is loaded anew",
			       "virtual machines run (kvm_intel is used %llu times)",
			       (unsigned long long)users);
}

/* 1: it is vmtrace's; 0: there is none. */
static int look_at_file(const char *path, struct vmt_diag *diag)
{
	char text[sizeof(HEAD)];
	int n = vmt_hostfs_read(text, sizeof(text), "%s", path);

	if (n == -ENOENT)
		return 0;
	if (n < 0)
		return vmt_diag_printf(diag, vmt_err_of_errno(-n), -n, NULL, "cannot read %s",
				       path);
	if (!strcmp(text, HEAD))
		return 1;
	return vmt_diag_printf(diag, VMT_E_EXISTS, 0, "move it away, or write the option there",
			       "%s is not vmtrace's", path);
}

static int write_file(const struct vmt_pt_mode_setup *setup, bool replace, struct vmt_diag *diag)
{
	char text[160];
	struct vmt_output out;
	struct iovec part = { .iov_base = text };
	int err;

	part.iov_len = (size_t)snprintf(text, sizeof(text), HEAD "options kvm_intel pt_mode=%u\n",
					setup->mode);
	err = vmt_output_open(&out, setup->file, replace, NULL, diag);
	if (err)
		return err;
	err = vmt_output_writev(&out, &part, 1, NULL, diag);
	if (!err && fchmod(out.fd, 0644))
		err = vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot write %s", setup->file);
	if (!err)
		return vmt_output_finish(&out, diag);
	vmt_output_discard(&out);
	return err;
}

int vmt_pt_mode_setup(struct vmt_pt_mode_setup *out, const char *mode, const struct vmt_hostfs *fs,
		      struct vmt_diag *diag)
{
	int err, found;

	*out = (struct vmt_pt_mode_setup){ 0 };
	err = find_mode(mode, &out->mode, diag);
	if (!err)
		err = check_module(vmt_hostfs_sys(fs), out, diag);
	if (err)
		return err;
	snprintf(out->file, sizeof(out->file), "%s/modprobe.d/vmtrace.conf", vmt_hostfs_etc(fs));
	found = look_at_file(out->file, diag);
	return found < 0 ? found : write_file(out, found, diag);
}
