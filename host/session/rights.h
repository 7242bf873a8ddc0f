/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_RIGHTS_H
#define VMT_SESSION_RIGHTS_H

#include "decode/base/diag.h"

/*
 * What a recorder gives up, in two steps; nothing can be taken back, and no program that it starts
 * can gain more (no_new_privs).
 */
enum vmt_rights {
	/*
	 * Before a domain's XML is read: what opening a capture and its file takes (CAP_PERFMON,
	 * CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, CAP_IPC_LOCK, CAP_SYS_RESOURCE).
	 */
	VMT_RIGHTS_OPEN,
	/*
	 * Before a control message or a libvirt event is read: what following new threads takes
	 * (CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH).
	 */
	VMT_RIGHTS_RUN,
	/* Before a replayed file is read: what opening it took (CAP_DAC_READ_SEARCH). */
	VMT_RIGHTS_REPLAY,
};

/*
 * Where opening an event takes CAP_SYS_ADMIN (kernels before 5.8; kernel.perf_event_paranoid above
 * 2 on Debian and Ubuntu), OPEN and RUN keep it permitted but not effective: vmt_perf_system raises
 * it for the one call.
 */

/* Must be called while the process has one thread. VMT_E_IO when the kernel refuses. */
int vmt_rights_drop(enum vmt_rights rights, struct vmt_diag *diag);

#endif
