// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: a message is read only after the kernel has said who sent it, it is bounded, and a
 * peer can make the recorder neither wait nor allocate.
 */
#include "host/session/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"
#include "host/session/info.h"

static const char *const requests[] = {
	[VMT_CONTROL_STATUS] = "{\"do\":\"status\"}",
	[VMT_CONTROL_STOP] = "{\"do\":\"stop\"}",
	[VMT_CONTROL_FLUSH] = "{\"do\":\"flush\"}",
};

/* By the folder's descriptor: the path of a socket may be longer than its address holds. */
static struct sockaddr_un address_of(int folder)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control", folder);
	return address;
}

int vmt_control_listen(int folder, struct vmt_diag *diag)
{
	struct sockaddr_un address = address_of(folder);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old = umask(0177);
	int err = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 8);

	umask(old);
	if (!err)
		return fd;
	vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot make the session's control socket");
	if (fd >= 0)
		close(fd);
	return VMT_E_IO;
}

int vmt_control_accept(int listener)
{
	struct ucred peer = { 0, (uid_t)-1, 0 };
	socklen_t len = sizeof(peer);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -1;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && len == sizeof(peer) &&
	    (peer.uid == geteuid() || peer.uid == 0))
		return fd;
	close(fd);
	return -1;
}

enum vmt_control_request vmt_control_read(int connection)
{
	char text[VMT_CONTROL_REQUEST_MAX];
	ssize_t n = recv(connection, text, sizeof(text), MSG_DONTWAIT | MSG_TRUNC);

	for (int i = VMT_CONTROL_STATUS; i <= VMT_CONTROL_FLUSH; i++) {
		if (n == (ssize_t)strlen(requests[i]) && !memcmp(text, requests[i], (size_t)n))
			return (enum vmt_control_request)i;
	}
	return VMT_CONTROL_NONE;
}

void vmt_control_answer(int connection, const struct vmt_session_info *info)
{
	char *text = vmt_info_to_json(info);

	if (text)
		send(connection, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	free(text);
	close(connection);
}

static int no_answer(struct vmt_diag *diag)
{
	return vmt_diag_set(diag, VMT_E_TIMEOUT, "the recorder does not answer",
			    "it may be stopped, or its disk may hang");
}

static int connect_to(const char *folder, struct vmt_diag *diag)
{
	int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sockaddr_un address = address_of(dir);
	int fd = dir < 0 ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ? errno : 0;

	if (dir >= 0)
		close(dir);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	if (err == EAGAIN) /* as many wait already as its socket lets */
		return no_answer(diag);
	if (err == ENOENT || err == ECONNREFUSED || err == ENOTDIR)
		return vmt_diag_set(diag, VMT_E_NOT_FOUND, "the session's recorder is gone",
				    "vmtrace status tells which file survives");
	return vmt_diag_printf(diag, vmt_err_of_errno(err), err,
			       "only the user who started a session and root may control it",
			       "cannot reach the session's recorder");
}

/* Waits for one message. Its length, 0 when the peer closed, VMT_E_TIMEOUT or VMT_E_IO. */
static ssize_t receive(int fd, char *text, size_t size, unsigned int timeout_ms)
{
	uint64_t end_ns = vmt_io_monotonic_ns() + timeout_ms * UINT64_C(1000000);

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now_ns = vmt_io_monotonic_ns();
		ssize_t n;

		if (now_ns >= end_ns)
			return VMT_E_TIMEOUT;
		if (poll(&p, 1, (int)((end_ns - now_ns) / 1000000) + 1) < 1)
			continue;
		n = recv(fd, text, size, 0);
		if (n >= 0)
			return n;
		if (errno == ECONNRESET)
			return 0;
		if (errno != EINTR && errno != EAGAIN)
			return VMT_E_IO;
	}
}

int vmt_control_ask(const char *folder, enum vmt_control_request request, unsigned int timeout_ms,
		    struct vmt_session_info *info, struct vmt_diag *diag)
{
	char text[VMT_INFO_TEXT_MAX];
	int fd = connect_to(folder, diag);
	ssize_t n;

	if (fd < 0)
		return fd;
	if (send(fd, requests[request], strlen(requests[request]), MSG_NOSIGNAL) < 0)
		n = errno == EPIPE || errno == ECONNRESET ? 0 : VMT_E_IO;
	else
		n = receive(fd, text, sizeof(text), timeout_ms);
	close(fd);
	if (n > 0 && vmt_info_from_json(text, (size_t)n, info))
		return 0;
	if (n > 0)
		return vmt_diag_set(diag, VMT_E_DAMAGED, "the recorder's answer cannot be read",
				    "it may be of another version");
	if (n == VMT_E_TIMEOUT)
		return no_answer(diag);
	return vmt_diag_set(diag, n == 0 ? VMT_E_PERMISSION : VMT_E_IO,
			    "the recorder closed the connection",
			    "only the user who started a session and root may control it");
}
