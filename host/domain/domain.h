/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_DOMAIN_H
#define VMT_DOMAIN_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/diag.h"
#include "host/domain/hostfs.h"

/*
 * Virtual machines of this host: by libvirt, or by /proc alone for KVM processes that libvirt does
 * not know. Every fact carries the way by which it was found.
 */
struct vmt_vcpu {
	unsigned int id;	/* cpu-index, the n of "CPU n/KVM" */
	pid_t tid;		/* 0: not known */
	const char *tid_source; /* static text: "thread name", "debugfs", "status file", "cgroup",
				   "monitor" */
	int host_cpu;		/* -1: not known */
	bool has_offset, has_ratio;
	int64_t tsc_offset;
	uint64_t tsc_ratio;
	uint8_t tsc_frac;
	char affinity[64]; /* pinning by libvirt or sched_getaffinity, "" unknown */
};

struct vmt_helper { /* a thread that works for the domain */
	pid_t tid;
	char name[32];	  /* comm */
	const char *role; /* emulator, iothread, vhost, kvm-pit, worker */
};

struct vmt_domain {
	char *name; /* NULL for a --pid process */
	char uuid[40];
	int id;		/* libvirt's, -1 when not running */
	char state[24]; /* running, paused, shut off, … */
	char type[16];	/* kvm, qemu, test, … */
	char uri[256];
	pid_t pid; /* VMM, 0 unknown */
	const char
		*pid_source;   /* static text: "pid file", "status file", "command line", "--pid" */
	uint64_t pid_start;    /* start time of the process in clock ticks: tells a recycled pid */
	int vm_fd;	       /* descriptor of the kvm VM in the VMM, -1 unknown */
	char debugfs[300];     /* /sys/kernel/debug/kvm/<pid>-<fd>, "" when there is none */
	uint64_t host_tsc_khz; /* 0 unknown */
	bool has_agent;	       /* org.vmtrace.agent.0 channel, or vsock */
	bool agent_connected;
	char *xml; /* live XML, NULL unknown */
	size_t nr_vcpus, nr_helpers;
	struct vmt_vcpu *vcpus;
	struct vmt_helper *helpers;
	char note[256];		     /* why something is missing, "" */
	const struct vmt_hostfs *fs; /* as in the query; NULL: this host's */
};

struct vmt_domains {
	size_t count;
	struct vmt_domain *items;
};

struct vmt_domain_query {
	const char *uri;	  /* NULL: LIBVIRT_DEFAULT_URI, else libvirt's default */
	const char *const *names; /* name, id or UUID */
	size_t nr_names;
	bool all;	   /* also those that are shut off */
	const pid_t *pids; /* --pid */
	size_t nr_pids;
	bool use_monitor; /* query-cpus-fast over a read-write connection (taints the domain) */
	unsigned int deadline_ms;    /* per call, 0: 3000 */
	const struct vmt_hostfs *fs; /* NULL: this host's files; must outlive the domains */
};

/*
 * Finds the domains of the query (no names and no pids: all running). VMT_E_NOT_FOUND names the
 * missing one and lists near names; VMT_E_IO when libvirt cannot be reached, VMT_E_TIMEOUT when a
 * call takes longer than the deadline. The caller frees with vmt_domains_free.
 */
int vmt_domains_find(struct vmt_domains *out, const struct vmt_domain_query *query,
		     struct vmt_diag *diag);
void vmt_domains_free(struct vmt_domains *domains);

/*
 * Reads tids, helpers, offsets and ratios again (hotplug), from this host's files alone.
 * VMT_E_NOT_FOUND when the process is gone (also when its pid now belongs to another). A domain
 * without a process (libvirt's test driver) stays as it is.
 */
int vmt_domain_refresh(struct vmt_domain *domain, struct vmt_diag *diag);

/* ---- counters that cost no tracing ---- */
struct vmt_counter {
	int vcpu;      /* -1: of the whole VM */
	char name[48]; /* as KVM calls it: exits, halt_exits, …; libvirt's: time, wait, delay (ns)
			*/
	uint64_t value;
};
struct vmt_counters {
	size_t count;
	struct vmt_counter *items;
	const char *source; /* "libvirt", "debugfs" */
};
/*
 * By libvirt's domain statistics (QEMU's query-stats), else by debugfs. VMT_E_PERMISSION: debugfs
 * refuses them (EPERM under kernel lockdown); VMT_E_CAPABILITY: neither knows them; VMT_E_TIMEOUT.
 */
int vmt_domain_counters(const struct vmt_domain *domain, struct vmt_counters *out,
			struct vmt_diag *diag);
void vmt_counters_free(struct vmt_counters *counters);

/* ---- life of domains, while a session runs ---- */
struct vmt_watch;
struct vmt_watch_event {
	char uuid[40];	       /* "" for connection-lost and connection-back */
	const char *name;      /* started, paused, resumed, reset, stopped, crashed, migrated-away,
				  hotplug, agent-connected, agent-disconnected, connection-lost,
				  connection-back */
	const char *detail;    /* static text, "" when there is none */
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC when libvirt told it */
};

/*
 * Opens an own read-only connection with events and keepalive; it survives a restart of libvirtd
 * and tells what changed meanwhile (detail "while disconnected"). Open it in the process that uses
 * it (threads do not survive a fork). Errors as vmt_domains_find.
 */
int vmt_watch_open(struct vmt_watch **out, const char *uri, struct vmt_diag *diag);

/* The same over a read-write connection: also agent-connected and agent-disconnected. */
int vmt_watch_open_agent(struct vmt_watch **out, const char *uri, struct vmt_diag *diag);

/* Next event, de-duplicated: 1; 0 when there is none within timeout_ms. */
int vmt_watch_next(struct vmt_watch *watch, unsigned int timeout_ms, struct vmt_watch_event *event);
void vmt_watch_close(struct vmt_watch *watch);

/* ---- what findings quote from the XML ---- */
struct vmt_xml_facts {
	char domain_type[16]; /* kvm, qemu, test, … */
	char machine[64], cpu_mode[24], cpu_model[64];
	bool has_tsc_hz;
	uint64_t tsc_hz;
	char clock_offset[16], timers[200], hyperv[200], features[400];
	unsigned int nr_vcpus, nr_iothreads;
	bool has_vsock, has_agent_channel, agent_connected, pmu_off, kvm_hidden;
	uint32_t vsock_cid;
	char agent_path[128], agent_alias[32];
	char pinning[200];
};
/* libxml2 without network and entities; at most 4 MiB. VMT_E_DAMAGED, VMT_E_LIMIT. */
int vmt_xml_read(const char *xml, size_t len, struct vmt_xml_facts *out, struct vmt_diag *diag);

#endif
