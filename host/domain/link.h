/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_LINK_H
#define VMT_DOMAIN_LINK_H

#include <libvirt/libvirt.h>
#include <stdbool.h>

#include "decode/base/diag.h"

/*
 * A connection to libvirt whose calls have a deadline. Every call runs in the link's own thread; a
 * call that takes too long is left to that thread, which cleans up whenever libvirt comes back, and
 * the link answers VMT_E_TIMEOUT from then on.
 *
 * Invariant: a call is owned by exactly one side, the caller or the thread; ownership changes hands
 * only under the link's lock.
 */
struct vmt_link;

/* A call; the first member of a struct with its arguments and results, from calloc. */
struct vmt_link_call {
	/* Runs in the link's thread. 0, or negative when libvirt failed. */
	int (*run)(virConnectPtr connection, struct vmt_link_call *call);
	/* Frees the struct with its results. */
	void (*drop)(struct vmt_link_call *call);
	/* filled by the link */
	int status;
	int error_number, error_domain, error_errno; /* virErrorNumber, virErrorDomain, errno */
	char error_text[200];
};

#define VMT_LINK_DEADLINE_MS 3000

/*
 * Connects, read-only unless read_write. deadline_ms 0: 3000. VMT_E_TIMEOUT; VMT_E_PERMISSION;
 * VMT_E_USAGE for a URI that libvirt does not understand; VMT_E_IO for all else. libvirt's own
 * words stand in diag; it prints nothing itself any more in this process.
 */
int vmt_link_open(struct vmt_link **out, const char *uri, bool read_write, unsigned int deadline_ms,
		  struct vmt_diag *diag);

/*
 * Runs a call. On VMT_E_TIMEOUT *call becomes NULL; otherwise it stays the caller's, also when it
 * failed. VMT_E_PERMISSION, VMT_E_NOT_FOUND (no such domain), VMT_E_UNSUPPORTED, VMT_E_IO.
 */
int vmt_link_run(struct vmt_link *link, struct vmt_link_call **call, struct vmt_diag *diag);

/* Closes; waits for libvirt half a second at most. NULL is allowed. */
void vmt_link_close(struct vmt_link *link);

/* Keeps the error of the calling thread's last libvirt call in call. */
void vmt_link_keep_error(struct vmt_link_call *call);

/* The diag for a failed call. Returns its code. */
int vmt_link_fail(const struct vmt_link_call *call, const char *uri, struct vmt_diag *diag);

/*
 * Initialises libvirt, which then prints no error any more, and quietens libxml2 (which libvirt
 * uses) in the calling thread. The process' part is done once.
 */
void vmt_libvirt_init(void);

/* Starts a detached thread that takes no signals. 0 or an errno value. */
int vmt_thread_start(void *(*run)(void *context), void *context);

#endif
