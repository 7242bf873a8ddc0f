// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: rights only shrink; a failure to shrink is an error, never passed over. */
#include "host/session/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decode/io/diagf.h"

#define BIT(capability) (UINT64_C(1) << (capability))

#define RUN_MASK  (BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH))
#define OPEN_MASK (RUN_MASK | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_IPC_LOCK) | BIT(CAP_SYS_RESOURCE))

static bool kernel_has_perfmon(void)
{
	/* The bounding set holds or lacks a capability that exists; EINVAL: there is none. */
	return prctl(PR_CAPBSET_READ, CAP_PERFMON, 0, 0, 0) >= 0;
}

/* Above 2 (Debian's default is 3, Ubuntu's 4) a distribution's patch asks for CAP_SYS_ADMIN. */
static bool perf_needs_admin(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	char text[16] = "";
	long level = f && fgets(text, sizeof(text), f) ? strtol(text, NULL, 10) : 0;

	if (f)
		fclose(f);
	return level > 2;
}

int vmt_rights_drop(enum vmt_rights rights, struct vmt_diag *diag)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];
	uint64_t effective = rights == VMT_RIGHTS_OPEN ? OPEN_MASK : RUN_MASK;
	uint64_t permitted = effective;

	if (rights != VMT_RIGHTS_REPLAY && (!kernel_has_perfmon() || perf_needs_admin()))
		permitted |= BIT(CAP_SYS_ADMIN);
	if (rights == VMT_RIGHTS_REPLAY)
		effective = permitted = BIT(CAP_DAC_READ_SEARCH);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capget, &header, data))
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot give up rights");
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(permitted >> (32 * i));
		data[i].effective = data[i].permitted & (uint32_t)(effective >> (32 * i));
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data))
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot give up rights");
	return 0;
}
