// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The one table of options: parser, --help, man pages and completion all read it. Global options
 * come first, up to the row `help`.
 */
#include "host/cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/capture/trigger.h"

static bool read_domain(struct vmt_cli *cli, const char *value, const char **why)
{
	if (cli->nr_domains == VMT_CLI_LIST_MAX || !*value) {
		*why = *value ? "at most 64 domains" : "a name, id or UUID";
		return false;
	}
	cli->domains[cli->nr_domains++] = value;
	return true;
}

static bool read_pid(struct vmt_cli *cli, const char *value, const char **why)
{
	char *end;
	uint64_t pid;

	*why = "a process id";
	if (!vmt_cli_number(value, &pid, &end) || *end || !pid || pid > 0x7fffffff)
		return false;
	*why = "at most 64 processes";
	if (cli->nr_pids == VMT_CLI_LIST_MAX)
		return false;
	cli->pids[cli->nr_pids++] = (pid_t)pid;
	return true;
}

static bool read_trigger(struct vmt_cli *cli, const char *value, const char **why)
{
	if (cli->nr_triggers == VMT_TRIGGERS_MAX) {
		*why = "at most 8 triggers";
		return false;
	}
	cli->triggers[cli->nr_triggers++] = value;
	return true;
}

/* "0,2-3" */
static bool read_vcpus(struct vmt_cli *cli, const char *value, const char **why)
{
	struct vmt_vcpu_set set = { { 0 } };
	const char *p = value;

	*why = "numbers and ranges from 0 to 1023 in C syntax, as in 0,2-3";
	do {
		char *end;
		uint64_t first, last;

		if (!vmt_cli_number(p, &first, &end))
			return false;
		last = first;
		if (*end == '-' && !vmt_cli_number(end + 1, &last, &end))
			return false;
		if (last < first || last >= VMT_VCPU_SET_MAX)
			return false;
		for (uint64_t n = first; n <= last; n++)
			vmt_vcpu_set_add(&set, n);
		p = end;
	} while (*p++ == ',');
	if (p[-1])
		return false;
	cli->vcpu_list = value;
	cli->vcpus = set;
	return true;
}

static bool read_format(struct vmt_cli *cli, const char *value, const char **why)
{
	static const char *const names[] = { "text", "json", "csv" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(value, names[i])) {
			cli->format = (enum vmt_out_format)i;
			cli->has_format = true;
			return true;
		}
	}
	*why = "text, json or csv";
	return false;
}

/* One end of --time: seconds with decimals, or N%. Empty: open. */
static bool read_time_end(const char *text, size_t len, bool *has, double *value, bool *percent)
{
	char copy[64], *end;

	*has = len != 0;
	if (!len)
		return true;
	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	errno = 0;
	*value = strtod(copy, &end);
	*percent = *end == '%';
	if (*percent)
		end++;
	return !errno && !*end && end != copy && *value >= 0 && *value < 1e10 &&
	       !(*percent && *value > 100);
}

static bool read_time(struct vmt_cli *cli, const char *value, const char **why)
{
	struct vmt_input_options *w = &cli->window;
	const char *comma = strchr(value, ',');
	bool from_percent = false, to_percent = false;

	*why = "A,B in seconds from the start (either may be left off), or N% (the first N "
	       "percent), or N%,M%";
	if (!comma) { /* N%: the first N percent */
		if (!read_time_end(value, strlen(value), &w->has_to, &w->to, &w->percent) ||
		    !w->percent)
			return false;
	} else {
		if (!read_time_end(value, (size_t)(comma - value), &w->has_from, &w->from,
				   &from_percent) ||
		    !read_time_end(comma + 1, strlen(comma + 1), &w->has_to, &w->to, &to_percent))
			return false;
		if (w->has_from && w->has_to && (from_percent != to_percent || w->to < w->from))
			return false;
		w->percent = from_percent || to_percent;
	}
	cli->time_text = value;
	return true;
}

static bool read_color(struct vmt_cli *cli, const char *value, const char **why)
{
	static const char *const names[] = { "auto", "always", "never" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(value, names[i])) {
			cli->color = i;
			return true;
		}
	}
	*why = "auto, always or never";
	return false;
}

static bool read_max_loss(struct vmt_cli *cli, const char *value, const char **why)
{
	char *end;

	errno = 0;
	cli->max_loss = strtod(value, &end);
	if (*end == '%')
		end++;
	*why = "a percentage from 0 to 100";
	if (errno || *end || end == value || !(cli->max_loss >= 0 && cli->max_loss <= 100))
		return false;
	cli->has_max_loss = true;
	return true;
}

static bool read_fail_on(struct vmt_cli *cli, const char *value, const char **why)
{
	static const char *const names[] = { "note", "warn", "critical" };

	for (size_t i = 0; i < 3; i++) {
		if (!strcmp(value, names[i])) {
			cli->fail_on = (enum vmt_severity)i;
			cli->has_fail_on = true;
			return true;
		}
	}
	*why = "note, warn or critical";
	return false;
}

static bool read_privacy(struct vmt_cli *cli, const char *value, const char **why)
{
	*why = "guest or host";
	cli->privacy = !strcmp(value, "guest")	? VMT_PRIVACY_GUEST
		       : !strcmp(value, "host") ? VMT_PRIVACY_HOST
						: VMT_PRIVACY_NONE;
	return cli->privacy != VMT_PRIVACY_NONE;
}

static bool read_frac(struct vmt_cli *cli, const char *value, const char **why)
{
	char *end;
	uint64_t frac;

	*why = "the number of fraction bits, 1 to 63 (48 on VMX, 32 on SVM)";
	if (!vmt_cli_number(value, &frac, &end) || *end || frac < 1 || frac > 63)
		return false;
	cli->frac = (unsigned int)frac;
	cli->has_frac = true;
	return true;
}

static bool read_mode(struct vmt_cli *cli, const char *value, const char **why)
{
	for (unsigned int m = 0; m < VMX_PT_MODES; m++) {
		if (!strcmp(value, vmx_pt_mode_name((enum vmx_pt_mode)m))) {
			cli->pt_mode = (enum vmx_pt_mode)m;
			return true;
		}
	}
	*why = "system, guest-only or host-only";
	return false;
}

#define AT(m)	   offsetof(struct vmt_cli, m)
#define CUSTOM(fn) VMT_OPT_CUSTOM, 0, 0, fn

static const struct vmt_option_row rows[] = {
	{ "connect", 'c', "URI",
	  "libvirt connection (else LIBVIRT_DEFAULT_URI, else libvirt's default)",
	  "qemu:///system qemu:///session", VMT_OPT_TEXT, AT(uri), 0, NULL },
	{ "domain", 'd', "NAME|ID|UUID", "domain to work on (repeatable)", "@domain",
	  CUSTOM(read_domain) },
	{ "all", 0, NULL, "all domains, for list also those that are shut off", NULL, VMT_OPT_FLAG,
	  AT(all), 0, NULL },
	{ "pid", 0, "PID", "a KVM process that libvirt does not know (repeatable)", NULL,
	  CUSTOM(read_pid) },
	{ "vcpu", 0, "LIST", "only these vCPUs, as 0,2-3", NULL, CUSTOM(read_vcpus) },
	{ "input", 'i', "FILE", "capture to read: .vmt or perf.data; - is standard input", "@file",
	  VMT_OPT_TEXT, AT(input), 0, NULL },
	{ "output", 'o', "FILE", "file to write; - is standard output", "@file", VMT_OPT_TEXT,
	  AT(output), 0, NULL },
	{ "force", 0, NULL, "replace an existing output", NULL, VMT_OPT_FLAG, AT(force), 0, NULL },
	{ "format", 0, "FORMAT", "text, json or csv", "text json csv", CUSTOM(read_format) },
	{ "time", 0, "A,B", "only this part: seconds from the start, or N%", NULL,
	  CUSTOM(read_time) },
	{ "tsc", 0, NULL, "show times as host TSC where it is known", NULL, VMT_OPT_FLAG, AT(tsc),
	  0, NULL },
	{ "color", 0, "WHEN", "auto, always or never (NO_COLOR is respected)", "auto always never",
	  CUSTOM(read_color) },
	{ "verbose", 'v', NULL, "say more: how each fact was found", NULL, VMT_OPT_COUNT,
	  AT(verbose), 0, NULL },
	{ "quiet", 'q', NULL, "no warnings and no live line", NULL, VMT_OPT_FLAG, AT(quiet), 0,
	  NULL },
	{ "max-loss", 0, "PCT", "exit 6 when more of the bytes or records than this is lost", NULL,
	  CUSTOM(read_max_loss) },
	{ "fail-on", 0, "SEVERITY", "exit 10 at a finding of note, warn or critical and above",
	  "note warn critical", CUSTOM(read_fail_on) },
	{ "version", 0, NULL, "print the version", NULL, VMT_OPT_FLAG, 0, 0, NULL },
	{ "help", 'h', NULL, "print help, for a verb when one is given", NULL, VMT_OPT_FLAG, 0, 0,
	  NULL },
	/* the verbs' own */
	{ "backend", 0, "LIST", "auto (kvm,sched), a list of kvm,sched,pt, or replay:FILE",
	  "auto kvm kvm,sched kvm,pt kvm,sched,pt pt replay:", VMT_OPT_TEXT, AT(backend), 0, NULL },
	{ "buffer", 0, "SIZE", "memory for all rings together (default 64M)", NULL, VMT_OPT_SIZE,
	  AT(buffer_bytes), 0, NULL },
	{ "pt-buffer", 0, "SIZE", "memory for Intel PT of all threads together (default 64M)", NULL,
	  VMT_OPT_SIZE, AT(pt_buffer_bytes), 0, NULL },
	{ "pt-terms", 0, "NAME[=N],...",
	  "how Intel PT is set up, terms of the kernel's intel_pt/format on top of the default",
	  "mtc= cyc psb_period= noretcomp notnt pwr_evt ptw event=0", VMT_OPT_TEXT, AT(pt_terms), 0,
	  NULL },
	{ "filter", 0, "FILTER",
	  "Intel PT of some addresses: 'filter START/SIZE[@FILE]', 'stop START/SIZE', commas "
	  "between",
	  "filter stop tracestop", VMT_OPT_TEXT, AT(pt_filter), 0, NULL },
	{ "system-wide", 0, NULL, "Intel PT of every CPU instead of the vCPU threads", NULL,
	  VMT_OPT_FLAG, AT(system_wide), 0, NULL },
	{ "keep", 0, "TIME", "flight recorder: keep only the last TIME of records", NULL,
	  VMT_OPT_DURATION, AT(keep_ns), 0, NULL },
	{ "trigger", 0, "EXPR",
	  "snapshot of its own when EXPR holds (repeatable), as exits>50k/s for 200ms",
	  "exits> reason= p99( steal>", CUSTOM(read_trigger) },
	{ "before", 0, "TIME", "what a trigger's snapshot holds before it (default 10s)", NULL,
	  VMT_OPT_DURATION, AT(before_ns), 0, NULL },
	{ "after", 0, "TIME", "the same after it (default 2s)", NULL, VMT_OPT_DURATION,
	  AT(after_ns), 0, NULL },
	{ "limit", 0, "SIZE", "largest size of the file (default 4G)", NULL, VMT_OPT_SIZE,
	  AT(limit_bytes), 0, NULL },
	{ "duration", 0, "TIME", "stop after TIME (s, ms, us, ns, m, h; default s)", NULL,
	  VMT_OPT_DURATION, AT(duration_ns), 0, NULL },
	{ "compress", 0, NULL, "compress chunks with zstd", NULL, VMT_OPT_FLAG, AT(compress), 0,
	  NULL },
	{ "monitor", 0, NULL,
	  "ask QEMU's monitor for threads (needs a read-write connection, taints)", NULL,
	  VMT_OPT_FLAG, AT(use_monitor), 0, NULL },
	{ "by", 0, "LIST", "group rows by reason, key, rip, vcpu (default reason,key)",
	  "reason reason,key reason,rip reason,key,rip reason,vcpu", VMT_OPT_TEXT, AT(by), 0,
	  NULL },
	{ "bill", 0, NULL, "the time bill of each vCPU in full", NULL, VMT_OPT_FLAG, AT(bill), 0,
	  NULL },
	{ "storms", 0, NULL, "intervals in which the rate of a reason and key jumps", NULL,
	  VMT_OPT_FLAG, AT(storms), 0, NULL },
	{ "guest-kallsyms", 0, "FILE", "the guest's /proc/kallsyms, for symbols", "@file",
	  VMT_OPT_TEXT, AT(guest_kallsyms), 0, NULL },
	{ "type", 0, "LIST",
	  "only these events: "
	  "exit,entry,userspace,switch,wakeup,inject,tsc_write,note,mark,loss,gap",
	  "exit entry exit,entry exit,gap,loss mark", VMT_OPT_TEXT, AT(types), 0, NULL },
	{ "to", 0, "WHAT", "tsc: guest or host; export: perfdata or vmt", "guest host perfdata vmt",
	  VMT_OPT_TEXT, AT(to), 0, NULL },
	{ "offset", 0, "N", "TSC offset in guest units, signed", NULL, VMT_OPT_I64, AT(offset),
	  AT(has_offset), NULL },
	{ "mult", 0, "N", "TSC multiplier (default 1 << frac)", NULL, VMT_OPT_U64, AT(mult),
	  AT(has_mult), NULL },
	{ "frac", 0, "N", "fraction bits of the multiplier: 48 on VMX (default), 32 on SVM",
	  "48 32", CUSTOM(read_frac) },
	{ "privacy", 0, "SIDE",
	  "of Intel PT only this side reaches the file: no address of the other", "guest host",
	  CUSTOM(read_privacy) },
	{ "mode", 0, "MODE", "what Intel PT traces: system (default), guest-only, host-only",
	  "system guest-only host-only", CUSTOM(read_mode) },
	{ "conceal", 0, NULL, "nothing in the stream is to show VMX", NULL, VMT_OPT_FLAG,
	  AT(conceal), 0, NULL },
	{ "event-trace", 0, NULL, "with Event Trace: reason, qualification and vector of exits",
	  NULL, VMT_OPT_FLAG, AT(event_trace), 0, NULL },
	{ "vm-events-only", 0, NULL, "no branches: BranchEn=0", NULL, VMT_OPT_FLAG,
	  AT(vm_events_only), 0, NULL },
	{ "caps", 0, "FILE", "capabilities of another CPU instead of this one's", "@file",
	  VMT_OPT_TEXT, AT(caps), 0, NULL },
	{ "pt-mode", 0, "MODE", "pt_mode of kvm_intel: system or host-guest", "system host-guest",
	  VMT_OPT_TEXT, AT(setup_pt_mode), 0, NULL },
	{ "pt-raw", 0, NULL, "the input is the bare Intel PT byte stream of one CPU", NULL,
	  VMT_OPT_FLAG, AT(pt.raw), 0, NULL },
	{ "hex", 0, "BYTES", "decode these bytes instead of a file", NULL, VMT_OPT_TEXT, AT(pt.hex),
	  0, NULL },
	{ "cpu", 0, "N", "only the packets of this host CPU", NULL, VMT_OPT_U64, AT(pt.only_cpu),
	  AT(pt.has_only_cpu), NULL },
	{ "block", 0, "CONTEXT", "PEBS block that is open at the start: none, blk4, blk8",
	  "none blk4 blk8", CUSTOM(vmt_pt_read_block) },
	{ "flow", 0, "[=WHAT]",
	  "the instructions that ran, one a line: insn (default), block, or call with depth and "
	  "time",
	  "insn block call", CUSTOM(vmt_pt_read_flow) },
	{ "elf", 0, "FILE[@ADDR][,...]",
	  "code for --flow (repeatable): executable segments of an ELF file, whose first byte lies "
	  "at ADDR",
	  "@file", CUSTOM(vmt_pt_read_elf) },
	{ "raw", 0, "FILE@ADDR[,...]", "code for --flow (repeatable): the bytes of a file at ADDR",
	  "@file", CUSTOM(vmt_pt_read_raw) },
	{ "cpu-id", 0, "F/M/S", "processor, as 6/0x55/4: chooses the errata", NULL,
	  CUSTOM(vmt_pt_read_cpu_id) },
	{ "vm", 0, "VMCS,offset=N,...",
	  "a VM of the stream (repeatable): VMCS pointer or any; offset, mult, frac of its TSC; "
	  "name; vcpu",
	  NULL, CUSTOM(vmt_pt_read_vm) },
	{ "tsc-hz", 0, "N", "TSC ticks a second: gives times in ns", NULL,
	  CUSTOM(vmt_pt_read_tsc_hz) },
	{ "mtc-freq", 0, "N", "RTIT_CTL.MTCFreq of the stream, 0 to 15", NULL,
	  CUSTOM(vmt_pt_read_mtc_freq) },
	{ "nom-ratio", 0, "N", "maximum non-turbo ratio (MSR_PLATFORM_INFO bits 15:8)", NULL,
	  CUSTOM(vmt_pt_read_nom_ratio) },
	{ "cpuid-15h", 0, "EAX,EBX[,ECX]", "CPUID leaf 15H: TSC and crystal ratio, crystal in Hz",
	  NULL, CUSTOM(vmt_pt_read_cpuid_15h) },
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

const struct vmt_option_row *vmt_options(size_t *count)
{
	*count = NR_ROWS;
	return rows;
}

const struct vmt_option_row *vmt_option_find(const char *name, size_t len)
{
	for (size_t i = 0; i < NR_ROWS; i++) {
		if (strlen(rows[i].name) == len && !strncmp(rows[i].name, name, len))
			return &rows[i];
	}
	return NULL;
}

bool vmt_option_is_global(const struct vmt_option_row *row)
{
	return row <= vmt_option_find("help", 4);
}

bool vmt_verb_takes(const struct vmt_verb_row *verb, const struct vmt_option_row *option)
{
	const char *p = verb->options;
	size_t len = strlen(option->name);

	if (vmt_option_is_global(option))
		return true;
	for (; (p = strstr(p, option->name)); p += len) {
		if ((p == verb->options || p[-1] == ' ') && (!p[len] || p[len] == ' '))
			return true;
	}
	return false;
}
