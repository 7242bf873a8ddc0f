// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/link.h"

#include <errno.h>
#include <libvirt/virterror.h>
#include <libxml/xmlerror.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/io/diagf.h"

#define CLOSE_WAIT_MS 500

struct vmt_link {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int holders; /* caller and thread */
	bool quit, dead;
	struct vmt_link_call *wanted;  /* given to the thread, not begun */
	struct vmt_link_call *running; /* being run; abandoned when dead */
	struct vmt_link_call *done;    /* finished, not yet fetched */
	char *uri;
	bool read_write;
	unsigned int deadline_ms;
	virConnectPtr connection; /* of the thread alone */
};

static void swallow_error(void *context, virErrorPtr error)
{
	(void)context;
	(void)error;
}

static void swallow_text(void *context, const char *format, ...)
{
	(void)context;
	(void)format;
}

/* Before virInitialize libvirt's error calls use a thread key that is not theirs. */
static void initialize(void)
{
	virInitialize();
	virSetErrorFunc(NULL, swallow_error);
}

void vmt_libvirt_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, initialize);
	xmlSetGenericErrorFunc(NULL, swallow_text);
}

int vmt_thread_start(void *(*run)(void *context), void *context)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, run, context);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

void vmt_link_keep_error(struct vmt_link_call *call)
{
	const virError *error = virGetLastError();

	if (!error)
		return;
	call->error_number = error->code;
	call->error_domain = error->domain;
	call->error_errno = error->code == VIR_ERR_SYSTEM_ERROR ? error->int1 : 0;
	snprintf(call->error_text, sizeof(call->error_text), "%s",
		 error->message ? error->message : "");
}

static void release(struct vmt_link *link)
{
	bool last;

	pthread_mutex_lock(&link->lock);
	last = --link->holders == 0;
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
	if (!last)
		return;
	pthread_cond_destroy(&link->changed);
	pthread_mutex_destroy(&link->lock);
	free(link->uri);
	free(link);
}

/* Next call to run, NULL when the link is being closed. */
static struct vmt_link_call *take_wanted(struct vmt_link *link)
{
	struct vmt_link_call *call;

	pthread_mutex_lock(&link->lock);
	while (!link->wanted && !link->quit)
		pthread_cond_wait(&link->changed, &link->lock);
	call = link->wanted;
	link->wanted = NULL;
	link->running = call;
	pthread_mutex_unlock(&link->lock);
	return call;
}

static void give_back(struct vmt_link *link, struct vmt_link_call *call)
{
	bool abandoned;

	pthread_mutex_lock(&link->lock);
	abandoned = link->dead;
	link->running = NULL;
	link->done = abandoned ? NULL : call;
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
	if (abandoned)
		call->drop(call);
}

static void *link_thread(void *context)
{
	struct vmt_link *link = context;
	struct vmt_link_call *call;

	vmt_libvirt_init();
	while ((call = take_wanted(link))) {
		virResetLastError();
		call->status = call->run(link->connection, call);
		if (call->status < 0)
			vmt_link_keep_error(call);
		give_back(link, call);
	}
	if (link->connection)
		virConnectClose(link->connection);
	release(link);
	return NULL;
}

static struct timespec after_ms(unsigned int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += (time_t)(ms / 1000);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

static int no_answer(const struct vmt_link *link, struct vmt_diag *diag)
{
	return vmt_diag_printf(
		diag, VMT_E_TIMEOUT, 0,
		"libvirtd hangs or is overloaded: see its log, restart it; --pid PID works without "
		"libvirt",
		"libvirt (%s) gave no answer within %u ms", link->uri ? link->uri : "default",
		link->deadline_ms);
}

/* Which error a libvirt error is, and what a person can do. */
static const struct {
	int number;
	enum vmt_err code;
	const char *cure;
} error_rows[] = {
	{ VIR_ERR_NO_DOMAIN, VMT_E_NOT_FOUND, "vmtrace list --all shows the domains" },
	{ VIR_ERR_OPERATION_DENIED, VMT_E_PERMISSION, "the connection is read-only" },
	{ VIR_ERR_ACCESS_DENIED, VMT_E_PERMISSION, "libvirt's access control forbids it" },
	{ VIR_ERR_AUTH_FAILED, VMT_E_PERMISSION,
	  "run as root, or be in the group that libvirtd.conf allows" },
	{ VIR_ERR_AUTH_CANCELLED, VMT_E_PERMISSION,
	  "run as root, or be in the group that libvirtd.conf allows" },
	{ VIR_ERR_AUTH_UNAVAILABLE, VMT_E_PERMISSION,
	  "run as root, or be in the group that libvirtd.conf allows" },
	{ VIR_ERR_NO_SUPPORT, VMT_E_UNSUPPORTED, "this driver of libvirt does not offer it" },
	{ VIR_ERR_ARGUMENT_UNSUPPORTED, VMT_E_UNSUPPORTED,
	  "this driver of libvirt does not offer it" },
	{ VIR_ERR_NO_CONNECT, VMT_E_USAGE,
	  "--connect takes URIs as qemu:///system, qemu:///session, test:///FILE" },
	{ VIR_ERR_INVALID_ARG, VMT_E_USAGE,
	  "--connect takes URIs as qemu:///system, qemu:///session, test:///FILE" },
	{ VIR_ERR_NO_MEMORY, VMT_E_NOMEM, "memory is short" },
};

int vmt_link_fail(const struct vmt_link_call *call, const char *uri, struct vmt_diag *diag)
{
	enum vmt_err code = VMT_E_IO;
	const char *cure = "is libvirtd running? --connect URI names another one; --pid PID works "
			   "without libvirt";

	for (size_t i = 0; i < sizeof(error_rows) / sizeof(error_rows[0]); i++) {
		if (error_rows[i].number == call->error_number) {
			code = error_rows[i].code;
			cure = error_rows[i].cure;
		}
	}
	if (call->error_errno == EACCES || call->error_errno == EPERM) {
		code = VMT_E_PERMISSION;
		cure = "run as root, or be in the group that may use libvirt's socket";
	}
	vmt_diag_printf(diag, code, 0, cure, "libvirt (%s): %s", uri ? uri : "default",
			call->error_text[0] ? call->error_text : "failed without a reason");
	return (int)code;
}

/* Waits for the running call; true when it is done in time. */
static bool await(struct vmt_link *link)
{
	struct timespec until = after_ms(link->deadline_ms);

	while (!link->done) {
		if (pthread_cond_timedwait(&link->changed, &link->lock, &until) == ETIMEDOUT)
			return link->done != NULL;
	}
	return true;
}

int vmt_link_run(struct vmt_link *link, struct vmt_link_call **call, struct vmt_diag *diag)
{
	bool in_time = false;

	pthread_mutex_lock(&link->lock);
	if (!link->dead) {
		link->wanted = *call;
		pthread_cond_broadcast(&link->changed);
		in_time = await(link);
		link->done = NULL;
		if (!in_time) {
			link->dead = true;
			if (link->running == *call)
				*call = NULL; /* the thread's now */
			link->wanted = NULL;
		}
	}
	pthread_mutex_unlock(&link->lock);
	if (!in_time) {
		if (*call)
			(*call)->drop(*call);
		*call = NULL;
		return no_answer(link, diag);
	}
	return (*call)->status < 0 ? vmt_link_fail(*call, link->uri, diag) : VMT_OK;
}

struct open_call {
	struct vmt_link_call call;
	struct vmt_link *link;
};

static int run_open(virConnectPtr connection, struct vmt_link_call *call)
{
	struct vmt_link *link = ((struct open_call *)call)->link;

	(void)connection;
	link->connection =
		link->read_write ? virConnectOpen(link->uri) : virConnectOpenReadOnly(link->uri);
	return link->connection ? 0 : -1;
}

static void drop_plain(struct vmt_link_call *call)
{
	free(call);
}

static struct vmt_link *link_new(const char *uri, bool read_write, unsigned int deadline_ms)
{
	struct vmt_link *link = calloc(1, sizeof(*link));
	pthread_condattr_t attr;

	if (!link)
		return NULL;
	link->uri = uri ? strdup(uri) : NULL;
	link->read_write = read_write;
	link->deadline_ms = deadline_ms ? deadline_ms : VMT_LINK_DEADLINE_MS;
	link->holders = 1;
	pthread_mutex_init(&link->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&link->changed, &attr);
	pthread_condattr_destroy(&attr);
	return link;
}

int vmt_link_open(struct vmt_link **out, const char *uri, bool read_write, unsigned int deadline_ms,
		  struct vmt_diag *diag)
{
	struct vmt_link *link = link_new(uri, read_write, deadline_ms);
	struct open_call *open = calloc(1, sizeof(*open));
	struct vmt_link_call *call;
	int err;

	*out = NULL;
	if (!link || !open) {
		free(open);
		if (link)
			release(link);
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for a connection", "");
	}
	*open = (struct open_call){ .call = { .run = run_open, .drop = drop_plain }, .link = link };
	call = &open->call;
	link->holders = 2;
	err = vmt_thread_start(link_thread, link);
	if (err) {
		free(open);
		link->holders = 1;
		release(link);
		return vmt_diag_printf(diag, VMT_E_NOMEM, err, NULL, "no thread for libvirt");
	}
	err = vmt_link_run(link, &call, diag);
	if (call)
		call->drop(call);
	if (err) {
		vmt_link_close(link);
		return err;
	}
	*out = link;
	return VMT_OK;
}

void vmt_link_close(struct vmt_link *link)
{
	struct timespec until = after_ms(CLOSE_WAIT_MS);

	if (!link)
		return;
	pthread_mutex_lock(&link->lock);
	link->quit = true;
	pthread_cond_broadcast(&link->changed);
	while (!link->dead && link->holders > 1) {
		if (pthread_cond_timedwait(&link->changed, &link->lock, &until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&link->lock);
	release(link);
}
