/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_CONTROL_H
#define VMT_SESSION_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "host/session/session.h"

/*
 * The control socket of a session: SOCK_SEQPACKET, one request a connection, a message of JSON each
 * way. Requests: {"do":"status"}, {"do":"stop"}, {"do":"flush"}; the answer is the session's state,
 * for stop after the file is finished. Peers other than the recorder's user and root are cut off.
 */
#define VMT_CONTROL_REQUEST_MAX 512

enum vmt_control_request {
	VMT_CONTROL_NONE, /* not a request: the connection is to be closed */
	VMT_CONTROL_STATUS,
	VMT_CONTROL_STOP,
	VMT_CONTROL_FLUSH,
};

/* Listens at FOLDER/control, mode 0600. A descriptor, or VMT_E_IO. */
int vmt_control_listen(int folder, struct vmt_diag *diag);

/* Accepts a peer that may ask; -1 when there is none or it was refused. Non-blocking. */
int vmt_control_accept(int listener);

/* Reads the request of a connection that is readable. */
enum vmt_control_request vmt_control_read(int connection);

/* Answers and closes. A peer that does not take the answer at once does not get it. */
void vmt_control_answer(int connection, const struct vmt_session_info *info);

/*
 * Asks the recorder whose folder it is and waits for the answer. VMT_E_NOT_FOUND when nobody
 * listens, VMT_E_PERMISSION when the recorder refuses, VMT_E_TIMEOUT, VMT_E_DAMAGED.
 */
int vmt_control_ask(const char *folder, enum vmt_control_request request, unsigned int timeout_ms,
		    struct vmt_session_info *info, struct vmt_diag *diag);

#endif
