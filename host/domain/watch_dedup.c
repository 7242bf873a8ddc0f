// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/watch_dedup.h"

#include <libvirt/libvirt.h>
#include <stdlib.h>
#include <string.h>

#define DOMAINS_MAX	 16384
#define QUEUE_LEN	 1024
#define HOLD_NS		 UINT64_C(500000000) /* STARTED follows RESUMED within some ms */
#define RESET_WINDOW_NS	 UINT64_C(3000000000)
#define REPEAT_WINDOW_NS UINT64_C(1000000000)

enum run_state {
	STATE_OFF, /* also: never heard of */
	STATE_RUNNING,
	STATE_PAUSED,
};

struct known_domain {
	char uuid[40];
	enum run_state state;
	int id;
	bool seen; /* in the list that is being read */
	uint64_t last_reset_ns, last_stop_ns;
};

struct queued {
	struct vmt_watch_event event;
	uint64_t due_ns;
	bool dropped;
};

struct vmt_dedup {
	struct known_domain *domains;
	size_t nr_domains;
	struct queued queue[QUEUE_LEN]; /* ring */
	size_t head, count;
	uint64_t dropped;
	bool listed_before;
};

struct vmt_dedup *vmt_dedup_new(void)
{
	return calloc(1, sizeof(struct vmt_dedup));
}

void vmt_dedup_free(struct vmt_dedup *dedup)
{
	if (dedup)
		free(dedup->domains);
	free(dedup);
}

uint64_t vmt_dedup_dropped(const struct vmt_dedup *dedup)
{
	return dedup->dropped;
}

static struct known_domain *domain_of(struct vmt_dedup *dedup, const char *uuid)
{
	struct known_domain *grown;

	for (size_t i = 0; i < dedup->nr_domains; i++) {
		if (!strcmp(dedup->domains[i].uuid, uuid))
			return &dedup->domains[i];
	}
	if (dedup->nr_domains >= DOMAINS_MAX)
		return NULL;
	grown = realloc(dedup->domains, (dedup->nr_domains + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	dedup->domains = grown;
	grown += dedup->nr_domains++;
	memset(grown, 0, sizeof(*grown));
	strncpy(grown->uuid, uuid, sizeof(grown->uuid) - 1);
	grown->id = -1;
	return grown;
}

static void push(struct vmt_dedup *dedup, const char *uuid, const char *name, const char *detail,
		 uint64_t now_ns, uint64_t hold_ns)
{
	struct queued *q;

	if (dedup->count == QUEUE_LEN) {
		dedup->dropped++;
		return;
	}
	q = &dedup->queue[(dedup->head + dedup->count++) % QUEUE_LEN];
	memset(q, 0, sizeof(*q));
	memcpy(q->event.uuid, uuid, strnlen(uuid, sizeof(q->event.uuid) - 1));
	q->event.name = name;
	q->event.detail = detail;
	q->event.monotonic_ns = now_ns;
	q->due_ns = now_ns + hold_ns;
}

/* Takes back an event that still waits in the queue; whether there was one. */
static bool take_back(struct vmt_dedup *dedup, const char *uuid, const char *name)
{
	bool found = false;

	for (size_t i = 0; i < dedup->count; i++) {
		struct queued *q = &dedup->queue[(dedup->head + i) % QUEUE_LEN];

		if (q->dropped || q->due_ns == q->event.monotonic_ns ||
		    strcmp(q->event.uuid, uuid) != 0 || strcmp(q->event.name, name) != 0)
			continue;
		q->dropped = true;
		found = true;
	}
	return found;
}

/* ---- the list of a fresh connection ---- */
void vmt_dedup_begin(struct vmt_dedup *dedup)
{
	for (size_t i = 0; i < dedup->nr_domains; i++)
		dedup->domains[i].seen = false;
}

static enum run_state state_of(int state)
{
	switch (state) {
	case VIR_DOMAIN_RUNNING:
	case VIR_DOMAIN_BLOCKED:
	case VIR_DOMAIN_SHUTDOWN:
		return STATE_RUNNING;
	case VIR_DOMAIN_PAUSED:
	case VIR_DOMAIN_PMSUSPENDED:
		return STATE_PAUSED;
	default:
		return STATE_OFF;
	}
}

#define MISSED "while disconnected"

void vmt_dedup_known(struct vmt_dedup *dedup, const char *uuid, int state, int id, uint64_t now_ns)
{
	struct known_domain *domain = domain_of(dedup, uuid);
	enum run_state now = state_of(state), before;

	if (!domain)
		return;
	before = domain->state;
	if (dedup->listed_before && before != STATE_OFF && now != STATE_OFF && id != domain->id) {
		push(dedup, uuid, "stopped", MISSED, now_ns, 0);
		before = STATE_OFF;
	}
	if (dedup->listed_before && before != now) {
		if (before == STATE_OFF)
			push(dedup, uuid, "started", MISSED, now_ns, 0);
		if (now == STATE_OFF)
			push(dedup, uuid, "stopped", MISSED, now_ns, 0);
		else if (now == STATE_PAUSED)
			push(dedup, uuid, "paused", MISSED, now_ns, 0);
		else if (before == STATE_PAUSED)
			push(dedup, uuid, "resumed", MISSED, now_ns, 0);
	}
	domain->seen = true;
	domain->state = now;
	domain->id = id;
}

void vmt_dedup_end(struct vmt_dedup *dedup, uint64_t now_ns)
{
	for (size_t i = 0; i < dedup->nr_domains; i++) {
		struct known_domain *domain = &dedup->domains[i];

		if (domain->seen || domain->state == STATE_OFF)
			continue;
		push(dedup, domain->uuid, "stopped", MISSED, now_ns, 0);
		domain->state = STATE_OFF;
	}
	dedup->listed_before = true;
}

/* ---- events ---- */
struct detail_row {
	int detail;
	const char *name, *text;
};

static const struct detail_row started[] = {
	{ VIR_DOMAIN_EVENT_STARTED_BOOTED, "started", "booted" },
	{ VIR_DOMAIN_EVENT_STARTED_MIGRATED, "started", "migrated in" },
	{ VIR_DOMAIN_EVENT_STARTED_RESTORED, "started", "restored" },
	{ VIR_DOMAIN_EVENT_STARTED_FROM_SNAPSHOT, "started", "from snapshot" },
	{ VIR_DOMAIN_EVENT_STARTED_WAKEUP, "resumed", "wakeup" },
};

static const struct detail_row suspended[] = {
	{ VIR_DOMAIN_EVENT_SUSPENDED_PAUSED, "paused", "paused" },
	{ VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED, "paused", "migration" },
	{ VIR_DOMAIN_EVENT_SUSPENDED_IOERROR, "paused", "I/O error" },
	{ VIR_DOMAIN_EVENT_SUSPENDED_WATCHDOG, "paused", "watchdog" },
	{ VIR_DOMAIN_EVENT_SUSPENDED_RESTORED, "paused", "restored" },
	{ VIR_DOMAIN_EVENT_SUSPENDED_FROM_SNAPSHOT, "paused", "from snapshot" },
	{ VIR_DOMAIN_EVENT_SUSPENDED_API_ERROR, "paused", "API error" },
	{ VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY, "paused", "post-copy migration" },
	{ VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY_FAILED, "paused", "post-copy migration failed" },
};

static const struct detail_row resumed[] = {
	{ VIR_DOMAIN_EVENT_RESUMED_UNPAUSED, "resumed", "unpaused" },
	{ VIR_DOMAIN_EVENT_RESUMED_MIGRATED, "resumed", "migrated" },
	{ VIR_DOMAIN_EVENT_RESUMED_FROM_SNAPSHOT, "resumed", "from snapshot" },
	{ VIR_DOMAIN_EVENT_RESUMED_POSTCOPY, "resumed", "post-copy migration" },
	{ VIR_DOMAIN_EVENT_RESUMED_POSTCOPY_FAILED, "resumed", "post-copy migration failed" },
};

static const struct detail_row stopped[] = {
	{ VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN, "stopped", "shutdown" },
	{ VIR_DOMAIN_EVENT_STOPPED_DESTROYED, "stopped", "destroyed" },
	{ VIR_DOMAIN_EVENT_STOPPED_CRASHED, "crashed", "crashed" },
	{ VIR_DOMAIN_EVENT_STOPPED_MIGRATED, "migrated-away", "migrated" },
	{ VIR_DOMAIN_EVENT_STOPPED_SAVED, "stopped", "saved" },
	{ VIR_DOMAIN_EVENT_STOPPED_FAILED, "stopped", "failed" },
	{ VIR_DOMAIN_EVENT_STOPPED_FROM_SNAPSHOT, "stopped", "from snapshot" },
};

static const struct detail_row pmsuspended[] = {
	{ VIR_DOMAIN_EVENT_PMSUSPENDED_MEMORY, "paused", "suspended to memory" },
	{ VIR_DOMAIN_EVENT_PMSUSPENDED_DISK, "paused", "suspended to disk" },
};

static const struct detail_row crashed[] = {
	{ VIR_DOMAIN_EVENT_CRASHED_PANICKED, "crashed", "guest panicked" },
	{ VIR_DOMAIN_EVENT_CRASHED_CRASHLOADED, "crashed", "guest loaded its crash kernel" },
};

#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])
static const struct {
	int event;
	const struct detail_row *rows;
	size_t count;
} lifecycle[] = {
	{ VIR_DOMAIN_EVENT_STARTED, ROWS(started) },
	{ VIR_DOMAIN_EVENT_SUSPENDED, ROWS(suspended) },
	{ VIR_DOMAIN_EVENT_RESUMED, ROWS(resumed) },
	{ VIR_DOMAIN_EVENT_STOPPED, ROWS(stopped) },
	{ VIR_DOMAIN_EVENT_PMSUSPENDED, ROWS(pmsuspended) },
	{ VIR_DOMAIN_EVENT_CRASHED, ROWS(crashed) },
};

/* The row of an event; a detail that is not known gets the first one's name without a text. */
static bool find_row(int event, int detail, struct detail_row *out)
{
	for (size_t i = 0; i < sizeof(lifecycle) / sizeof(lifecycle[0]); i++) {
		if (lifecycle[i].event != event)
			continue;
		*out = lifecycle[i].rows[0];
		out->text = "";
		for (size_t j = 0; j < lifecycle[i].count; j++) {
			if (lifecycle[i].rows[j].detail == detail)
				*out = lifecycle[i].rows[j];
		}
		return true;
	}
	return false;
}

static void on_started(struct vmt_dedup *dedup, struct known_domain *domain,
		       const struct detail_row *row, uint64_t now_ns)
{
	bool paused = take_back(dedup, domain->uuid, "paused");

	take_back(dedup, domain->uuid, "resumed");
	if (domain->state == STATE_OFF)
		domain->state = STATE_RUNNING;
	push(dedup, domain->uuid, row->name, row->text, now_ns, 0);
	if (paused)
		push(dedup, domain->uuid, "paused", "paused", now_ns, 0);
}

static void on_resumed(struct vmt_dedup *dedup, struct known_domain *domain,
		       const struct detail_row *row, uint64_t now_ns)
{
	/* Of a domain that was off it is the first half of a start. */
	uint64_t hold = domain->state == STATE_OFF ? HOLD_NS : 0;

	if (domain->state == STATE_RUNNING)
		return;
	domain->state = STATE_RUNNING;
	push(dedup, domain->uuid, row->name, row->text, now_ns, hold);
}

static void on_stopped(struct vmt_dedup *dedup, struct known_domain *domain,
		       const struct detail_row *row, uint64_t now_ns)
{
	bool again = domain->state == STATE_OFF && domain->last_stop_ns &&
		     now_ns - domain->last_stop_ns < REPEAT_WINDOW_NS;

	domain->state = STATE_OFF;
	domain->id = -1;
	if (again)
		return;
	domain->last_stop_ns = now_ns;
	push(dedup, domain->uuid, row->name, row->text, now_ns, 0);
}

static void on_paused(struct vmt_dedup *dedup, struct known_domain *domain,
		      const struct detail_row *row, uint64_t now_ns)
{
	/* Of a domain that was off it is the first half of a start in the paused state. */
	uint64_t hold = domain->state == STATE_OFF ? HOLD_NS : 0;

	if (domain->state == STATE_PAUSED)
		return;
	domain->state = STATE_PAUSED;
	push(dedup, domain->uuid, row->name, row->text, now_ns, hold);
}

void vmt_dedup_lifecycle(struct vmt_dedup *dedup, const char *uuid, int event, int detail,
			 uint64_t now_ns)
{
	struct known_domain *domain = domain_of(dedup, uuid);
	struct detail_row row;

	if (!domain || !find_row(event, detail, &row))
		return;
	switch (event) {
	case VIR_DOMAIN_EVENT_STARTED:
		on_started(dedup, domain, &row, now_ns);
		break;
	case VIR_DOMAIN_EVENT_RESUMED:
		on_resumed(dedup, domain, &row, now_ns);
		break;
	case VIR_DOMAIN_EVENT_STOPPED:
	case VIR_DOMAIN_EVENT_CRASHED:
		on_stopped(dedup, domain, &row, now_ns);
		break;
	default:
		on_paused(dedup, domain, &row, now_ns);
		break;
	}
}

void vmt_dedup_reboot(struct vmt_dedup *dedup, const char *uuid, uint64_t now_ns)
{
	struct known_domain *domain = domain_of(dedup, uuid);
	bool again;

	if (!domain)
		return;
	again = domain->last_reset_ns && now_ns - domain->last_reset_ns < RESET_WINDOW_NS;
	if (again)
		return;
	domain->last_reset_ns = now_ns;
	push(dedup, uuid, "reset", "", now_ns, 0);
}

void vmt_dedup_other(struct vmt_dedup *dedup, const char *uuid, const char *name,
		     const char *detail, uint64_t now_ns)
{
	push(dedup, uuid, name, detail, now_ns, 0);
}

bool vmt_dedup_next(struct vmt_dedup *dedup, uint64_t now_ns, struct vmt_watch_event *event,
		    uint64_t *wait_ns)
{
	*wait_ns = UINT64_MAX;
	while (dedup->count) {
		const struct queued *q = &dedup->queue[dedup->head];

		if (!q->dropped && q->due_ns > now_ns) {
			*wait_ns = q->due_ns - now_ns;
			return false;
		}
		dedup->head = (dedup->head + 1) % QUEUE_LEN;
		dedup->count--;
		if (!q->dropped) {
			*event = q->event;
			return true;
		}
	}
	return false;
}
