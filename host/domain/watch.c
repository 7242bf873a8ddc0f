// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two threads: libvirt's default event loop, one a process as libvirt demands, calls the callbacks
 * below; each watch has a thread that opens its connection and opens it again when it is lost.
 *
 * Invariant: no call into libvirt is made with the lock held, since libvirt may call back.
 */
#include <errno.h>
#include <jansson.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/io/diagf.h"
#include "host/domain/domain.h"
#include "host/domain/link.h"
#include "host/domain/watch_dedup.h"

#define KEEPALIVE_S	5
#define KEEPALIVE_COUNT 3
#define RETRY_FIRST_MS	250
#define RETRY_MOST_MS	4000
#define CLOSE_WAIT_MS	500
#define PORTS_MAX	16

enum watch_state {
	WATCH_OPENING,
	WATCH_OPEN,
	WATCH_FAILED, /* the first connection could not be opened */
	WATCH_ENDED,
};

struct port_change { /* QEMU's VSERPORT_CHANGE */
	char uuid[40], alias[32];
	bool open;
	uint64_t now_ns;
};

struct vmt_watch {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int holders; /* owner, thread, each registered callback */
	enum watch_state state;
	bool lost, quit, read_write;
	char *uri;
	struct vmt_link_call failure; /* why the first connection failed */
	struct vmt_dedup *dedup;
	struct port_change ports[PORTS_MAX];
	size_t nr_ports;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct timespec at_ns(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				  .tv_nsec = (long)(ns % 1000000000u) };
}

static void hold(struct vmt_watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->holders++;
	pthread_mutex_unlock(&watch->lock);
}

/* Takes back a hold that is not the last one. */
static void unhold(struct vmt_watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->holders--;
	pthread_mutex_unlock(&watch->lock);
}

static void release(void *context)
{
	struct vmt_watch *watch = context;
	bool last;

	pthread_mutex_lock(&watch->lock);
	last = --watch->holders == 0;
	pthread_mutex_unlock(&watch->lock);
	if (!last)
		return;
	pthread_cond_destroy(&watch->changed);
	pthread_mutex_destroy(&watch->lock);
	vmt_dedup_free(watch->dedup);
	free(watch->uri);
	free(watch);
}

/* ---- the event loop of the process ---- */
static void *loop_thread(void *context)
{
	(void)context;
	for (;;) {
		if (virEventRunDefaultImpl() < 0) /* never seen; do not spin if it happens */
			nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	}
	return NULL;
}

static bool loop_runs;

static void start_loop(void)
{
	vmt_libvirt_init();
	loop_runs = virEventRegisterDefaultImpl() == 0 && vmt_thread_start(loop_thread, NULL) == 0;
}

/* ---- callbacks, in the loop's thread ---- */
static bool uuid_of(virDomainPtr domain, char *uuid)
{
	return virDomainGetUUIDString(domain, uuid) == 0;
}

static int on_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail,
			void *context)
{
	struct vmt_watch *watch = context;
	char uuid[VIR_UUID_STRING_BUFLEN];

	(void)connection;
	if (!uuid_of(domain, uuid))
		return 0;
	pthread_mutex_lock(&watch->lock);
	vmt_dedup_lifecycle(watch->dedup, uuid, event, detail, now_ns());
	pthread_cond_broadcast(&watch->changed);
	pthread_mutex_unlock(&watch->lock);
	return 0;
}

static void on_reboot(virConnectPtr connection, virDomainPtr domain, void *context)
{
	struct vmt_watch *watch = context;
	char uuid[VIR_UUID_STRING_BUFLEN];

	(void)connection;
	if (!uuid_of(domain, uuid))
		return;
	pthread_mutex_lock(&watch->lock);
	vmt_dedup_reboot(watch->dedup, uuid, now_ns());
	pthread_cond_broadcast(&watch->changed);
	pthread_mutex_unlock(&watch->lock);
}

static void tell(struct vmt_watch *watch, virDomainPtr domain, const char *name, const char *detail)
{
	char uuid[VIR_UUID_STRING_BUFLEN];

	if (!uuid_of(domain, uuid))
		return;
	pthread_mutex_lock(&watch->lock);
	vmt_dedup_other(watch->dedup, uuid, name, detail, now_ns());
	pthread_cond_broadcast(&watch->changed);
	pthread_mutex_unlock(&watch->lock);
}

static void on_device_added(virConnectPtr connection, virDomainPtr domain, const char *alias,
			    void *context)
{
	(void)connection;
	(void)alias;
	tell(context, domain, "hotplug", "device added");
}

static void on_device_removed(virConnectPtr connection, virDomainPtr domain, const char *alias,
			      void *context)
{
	(void)connection;
	(void)alias;
	tell(context, domain, "hotplug", "device removed");
}

static void on_tunable(virConnectPtr connection, virDomainPtr domain, virTypedParameterPtr params,
		       int nparams, void *context)
{
	(void)connection;
	(void)params;
	(void)nparams;
	tell(context, domain, "hotplug", "tunables changed");
}

static void on_port(virConnectPtr connection, virDomainPtr domain, const char *event,
		    long long seconds, unsigned int micros, const char *details, void *context)
{
	struct vmt_watch *watch = context;
	struct port_change change = { .now_ns = now_ns() };
	json_t *root = details ? json_loads(details, 0, NULL) : NULL;
	const char *alias = json_string_value(json_object_get(root, "id"));

	(void)connection;
	(void)event;
	(void)seconds;
	(void)micros;
	if (alias && uuid_of(domain, change.uuid)) {
		snprintf(change.alias, sizeof(change.alias), "%s", alias);
		change.open = json_is_true(json_object_get(root, "open"));
		pthread_mutex_lock(&watch->lock);
		if (watch->nr_ports < PORTS_MAX)
			watch->ports[watch->nr_ports++] = change;
		pthread_cond_broadcast(&watch->changed);
		pthread_mutex_unlock(&watch->lock);
	}
	json_decref(root);
}

static void on_close(virConnectPtr connection, int reason, void *context)
{
	struct vmt_watch *watch = context;

	(void)connection;
	(void)reason;
	pthread_mutex_lock(&watch->lock);
	watch->lost = true;
	pthread_cond_broadcast(&watch->changed);
	pthread_mutex_unlock(&watch->lock);
}

/* ---- the watch's thread ---- */
static const struct {
	int id;
	virConnectDomainEventGenericCallback fn;
} subscriptions[] = {
	{ VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle) },
	{ VIR_DOMAIN_EVENT_ID_REBOOT, VIR_DOMAIN_EVENT_CALLBACK(on_reboot) },
	{ VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device_added) },
	{ VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device_removed) },
	{ VIR_DOMAIN_EVENT_ID_TUNABLE, VIR_DOMAIN_EVENT_CALLBACK(on_tunable) },
};
#define NR_SUBSCRIPTIONS (sizeof(subscriptions) / sizeof(subscriptions[0]))

struct watch_link {
	virConnectPtr connection;
	int ids[NR_SUBSCRIPTIONS]; /* -1: the driver has no such event */
	int port_id;
	bool close_callback;
};

static void link_down(struct watch_link *link)
{
	if (!link->connection)
		return;
	for (size_t i = 0; i < NR_SUBSCRIPTIONS; i++) {
		if (link->ids[i] >= 0)
			virConnectDomainEventDeregisterAny(link->connection, link->ids[i]);
	}
	if (link->port_id >= 0)
		virConnectDomainQemuMonitorEventDeregister(link->connection, link->port_id);
	if (link->close_callback)
		virConnectUnregisterCloseCallback(link->connection, on_close);
	virConnectClose(link->connection);
	link->connection = NULL;
}

/*
 * An event's callback holds the watch until libvirt frees it; a registration that fails does not
 * call the free function. The close callback ends before link_down does.
 */
static void subscribe(struct vmt_watch *watch, struct watch_link *link)
{
	/* A driver that cannot lose its connection takes the callback and forgets it. */
	link->close_callback =
		virConnectRegisterCloseCallback(link->connection, on_close, watch, NULL) == 0;
	for (size_t i = 0; i < NR_SUBSCRIPTIONS; i++) {
		hold(watch);
		link->ids[i] =
			virConnectDomainEventRegisterAny(link->connection, NULL,
							 subscriptions[i].id, subscriptions[i].fn,
							 watch, release);
		if (link->ids[i] < 0)
			unhold(watch);
	}
	link->port_id = -1;
	if (!watch->read_write)
		return;
	hold(watch);
	link->port_id =
		virConnectDomainQemuMonitorEventRegister(link->connection, NULL, "VSERPORT_CHANGE",
							 on_port, watch, release, 0);
	if (link->port_id < 0)
		unhold(watch);
}

struct listed {
	char uuid[VIR_UUID_STRING_BUFLEN];
	int state, id;
};

/* Running domains into an array; their number, or negative when libvirt failed. */
static int list_domains(virConnectPtr connection, struct listed **out)
{
	virDomainPtr *domains = NULL;
	int n = virConnectListAllDomains(connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	int count = 0;

	*out = n < 0 ? NULL : calloc((size_t)n + 1, sizeof(**out));
	for (int i = 0; i < n; i++) {
		struct listed *one = *out ? &(*out)[count] : NULL;

		if (one && uuid_of(domains[i], one->uuid) &&
		    virDomainGetState(domains[i], &one->state, NULL, 0) == 0) {
			one->id = (int)virDomainGetID(domains[i]);
			count++;
		}
		virDomainFree(domains[i]);
	}
	free(domains);
	return n < 0 ? n : count;
}

static void tell_connection(struct vmt_watch *watch, const char *name)
{
	pthread_mutex_lock(&watch->lock);
	vmt_dedup_other(watch->dedup, "", name, "", now_ns());
	pthread_cond_broadcast(&watch->changed);
	pthread_mutex_unlock(&watch->lock);
}

static int compare_with_list(struct vmt_watch *watch, virConnectPtr connection, bool again)
{
	struct listed *list;
	int n = list_domains(connection, &list);

	if (n < 0)
		return n;
	if (again)
		tell_connection(watch, "connection-back");
	pthread_mutex_lock(&watch->lock);
	vmt_dedup_begin(watch->dedup);
	for (int i = 0; i < n; i++)
		vmt_dedup_known(watch->dedup, list[i].uuid, list[i].state, list[i].id, now_ns());
	vmt_dedup_end(watch->dedup, now_ns());
	pthread_cond_broadcast(&watch->changed);
	pthread_mutex_unlock(&watch->lock);
	free(list);
	return 0;
}

static bool link_up(struct vmt_watch *watch, struct watch_link *link, bool again)
{
	pthread_mutex_lock(&watch->lock);
	watch->lost = false;
	pthread_mutex_unlock(&watch->lock);
	virResetLastError();
	link->connection =
		watch->read_write ? virConnectOpen(watch->uri) : virConnectOpenReadOnly(watch->uri);
	if (link->connection) {
		virConnectSetKeepAlive(link->connection, KEEPALIVE_S, KEEPALIVE_COUNT);
		subscribe(watch, link);
		if (link->ids[0] >= 0 && compare_with_list(watch, link->connection, again) == 0)
			return true;
	}
	vmt_link_keep_error(&watch->failure);
	link_down(link);
	return false;
}

/* The agent's channel or another one? The domain's XML knows the alias. */
static void settle_port(struct vmt_watch *watch, virConnectPtr connection,
			const struct port_change *change)
{
	virDomainPtr domain = virDomainLookupByUUIDString(connection, change->uuid);
	char *xml = domain ? virDomainGetXMLDesc(domain, 0) : NULL;
	struct vmt_xml_facts facts;

	if (xml && vmt_xml_read(xml, strlen(xml), &facts, NULL) == VMT_OK &&
	    facts.has_agent_channel && !strcmp(facts.agent_alias, change->alias)) {
		pthread_mutex_lock(&watch->lock);
		vmt_dedup_other(watch->dedup, change->uuid,
				change->open ? "agent-connected" : "agent-disconnected", "",
				change->now_ns);
		pthread_cond_broadcast(&watch->changed);
		pthread_mutex_unlock(&watch->lock);
	}
	free(xml);
	if (domain)
		virDomainFree(domain);
}

/* Until the connection is lost or the watch is closed. */
static void attend(struct vmt_watch *watch, virConnectPtr connection)
{
	pthread_mutex_lock(&watch->lock);
	while (!watch->lost && !watch->quit) {
		if (watch->nr_ports) {
			struct port_change change = watch->ports[0];

			watch->nr_ports--;
			memmove(watch->ports, watch->ports + 1,
				watch->nr_ports * sizeof(watch->ports[0]));
			pthread_mutex_unlock(&watch->lock);
			settle_port(watch, connection, &change);
			pthread_mutex_lock(&watch->lock);
			continue;
		}
		pthread_cond_wait(&watch->changed, &watch->lock);
	}
	pthread_mutex_unlock(&watch->lock);
}

static void set_state(struct vmt_watch *watch, enum watch_state state)
{
	pthread_mutex_lock(&watch->lock);
	watch->state = state;
	pthread_cond_broadcast(&watch->changed);
	pthread_mutex_unlock(&watch->lock);
}

/* Sleeps before the next try; false when the watch is being closed. */
static bool pause_ms(struct vmt_watch *watch, unsigned int ms)
{
	struct timespec until = at_ns(now_ns() + (uint64_t)ms * 1000000u);
	bool goes_on;

	pthread_mutex_lock(&watch->lock);
	while (!watch->quit &&
	       pthread_cond_timedwait(&watch->changed, &watch->lock, &until) != ETIMEDOUT)
		;
	goes_on = !watch->quit;
	pthread_mutex_unlock(&watch->lock);
	return goes_on;
}

static bool link_again(struct vmt_watch *watch, struct watch_link *link)
{
	unsigned int ms = RETRY_FIRST_MS;

	while (pause_ms(watch, ms)) {
		if (link_up(watch, link, true))
			return true;
		ms = ms * 2 > RETRY_MOST_MS ? RETRY_MOST_MS : ms * 2;
	}
	return false;
}

static void *watch_thread(void *context)
{
	struct vmt_watch *watch = context;
	struct watch_link link = { .connection = NULL };
	bool up;

	vmt_libvirt_init();
	up = link_up(watch, &link, false);
	if (!up) {
		set_state(watch, WATCH_FAILED);
		release(watch);
		return NULL;
	}
	set_state(watch, WATCH_OPEN);
	while (up) {
		bool quit;

		attend(watch, link.connection);
		pthread_mutex_lock(&watch->lock);
		quit = watch->quit;
		pthread_mutex_unlock(&watch->lock);
		if (!quit)
			tell_connection(watch, "connection-lost");
		link_down(&link);
		up = !quit && link_again(watch, &link);
	}
	set_state(watch, WATCH_ENDED);
	release(watch);
	return NULL;
}

/* ---- the owner's side ---- */
static struct vmt_watch *watch_new(const char *uri, bool read_write)
{
	struct vmt_watch *watch = calloc(1, sizeof(*watch));
	pthread_condattr_t attr;

	if (!watch)
		return NULL;
	watch->dedup = vmt_dedup_new();
	watch->uri = uri ? strdup(uri) : NULL;
	watch->read_write = read_write;
	watch->holders = 1;
	pthread_mutex_init(&watch->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&watch->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (watch->dedup && (!uri || watch->uri))
		return watch;
	release(watch);
	return NULL;
}

static enum watch_state await_first(struct vmt_watch *watch)
{
	struct timespec until = at_ns(now_ns() + VMT_LINK_DEADLINE_MS * UINT64_C(1000000));
	enum watch_state state;

	pthread_mutex_lock(&watch->lock);
	while (watch->state == WATCH_OPENING &&
	       pthread_cond_timedwait(&watch->changed, &watch->lock, &until) != ETIMEDOUT)
		;
	state = watch->state;
	pthread_mutex_unlock(&watch->lock);
	return state;
}

static int watch_open(struct vmt_watch **out, const char *uri, bool read_write,
		      struct vmt_diag *diag)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct vmt_watch *watch;
	enum watch_state state;
	int err;

	*out = NULL;
	pthread_once(&once, start_loop);
	watch = loop_runs ? watch_new(uri, read_write) : NULL;
	if (!watch)
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory or thread for libvirt's events",
				    "");
	hold(watch);
	err = vmt_thread_start(watch_thread, watch);
	if (err) {
		unhold(watch);
		release(watch);
		return vmt_diag_printf(diag, VMT_E_NOMEM, err, NULL, "no thread for libvirt");
	}
	state = await_first(watch);
	if (state == WATCH_OPEN) {
		*out = watch;
		return VMT_OK;
	}
	if (state == WATCH_FAILED)
		err = vmt_link_fail(&watch->failure, uri, diag);
	else
		err = vmt_diag_printf(diag, VMT_E_TIMEOUT, 0,
				      "libvirtd hangs or is overloaded: see its log, restart it",
				      "libvirt (%s) gave no answer within %d ms",
				      uri ? uri : "default", VMT_LINK_DEADLINE_MS);
	vmt_watch_close(watch);
	return err;
}

int vmt_watch_open(struct vmt_watch **out, const char *uri, struct vmt_diag *diag)
{
	return watch_open(out, uri, false, diag);
}

int vmt_watch_open_agent(struct vmt_watch **out, const char *uri, struct vmt_diag *diag)
{
	return watch_open(out, uri, true, diag);
}

int vmt_watch_next(struct vmt_watch *watch, unsigned int timeout_ms, struct vmt_watch_event *event)
{
	uint64_t end = now_ns() + (uint64_t)timeout_ms * 1000000u, wait;
	bool found;

	pthread_mutex_lock(&watch->lock);
	while (!(found = vmt_dedup_next(watch->dedup, now_ns(), event, &wait))) {
		uint64_t now = now_ns();
		struct timespec until;

		if (now >= end)
			break;
		until = at_ns(wait < end - now ? now + wait : end);
		pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
	}
	pthread_mutex_unlock(&watch->lock);
	return found;
}

void vmt_watch_close(struct vmt_watch *watch)
{
	struct timespec until = at_ns(now_ns() + CLOSE_WAIT_MS * UINT64_C(1000000));

	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->quit = true;
	pthread_cond_broadcast(&watch->changed);
	/* A hung libvirt is left to the thread. */
	while (watch->state == WATCH_OPEN &&
	       pthread_cond_timedwait(&watch->changed, &watch->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&watch->lock);
	release(watch);
}
