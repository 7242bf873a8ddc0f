// SPDX-License-Identifier: LGPL-2.1-or-later
/* The one table of verbs. */
#include <string.h>

#include "host/cli/options.h"

#define BARE_PT "pt-raw vm cpu-id tsc-hz mtc-freq nom-ratio cpuid-15h"
#define RECORDING                                                                                  \
	"backend buffer pt-buffer pt-terms filter system-wide vm-events-only mode conceal "        \
	"privacy keep trigger before after limit compress duration"

static const struct vmt_verb_row rows[] = {
	{ "list", "", "domains, their vCPU threads, TSC and what can be traced", "monitor", NULL,
	  vmt_verb_list, 0, 0, false, false,
	  "vmtrace list --all\nvmtrace list --format json | jq '.domains[].name'" },
	{ "doctor", "", "what this host and a domain allow: a line a check, with cause and cure",
	  "backend", NULL, vmt_verb_doctor, 0, 0, false, false,
	  "vmtrace doctor\nvmtrace doctor -d web01\nvmtrace doctor --backend kvm,pt" },
	{ "setup", "", "what a capture needs of the host and what stays beyond it", "pt-mode", NULL,
	  vmt_verb_setup, 0, 0, false, false, "vmtrace setup --pt-mode system" },
	{ "start", "", "start a capture in the background", RECORDING, NULL, vmt_verb_start, 0, 0,
	  false, false,
	  "vmtrace start --domain web01\nvmtrace start -d web01 --keep 30s\nvmtrace start --pid "
	  "4711 --limit 1G\nvmtrace start -d web01 --keep 30s --trigger 'exits>50k/s for 200ms' "
	  "--before 20s" },
	{ "stop", "[SESSION]", "stop a capture and print its summary", "", "@session",
	  vmt_verb_stop, 0, 1, false, false, "vmtrace stop\nvmtrace stop -d web01" },
	{ "status", "[SESSION]", "running captures: size, events, loss", "", "@session",
	  vmt_verb_status, 0, 1, false, false, "vmtrace status" },
	{ "snapshot", "[SESSION]", "copy what a running capture holds into a file of its own", "",
	  "@session", vmt_verb_snapshot, 0, 1, false, false,
	  "vmtrace snapshot -d web01 -o slow.vmt" },
	{ "record", "[-- COMMAND...]",
	  "capture in the foreground until Ctrl-C, --duration or COMMAND ends", RECORDING, NULL,
	  vmt_verb_record, 0, 0, false, true,
	  "vmtrace record -d web01 --duration 10s -o web01.vmt\nvmtrace record -d web01 -- ssh "
	  "web01 make test" },
	{ "report", "[FILE]", "where the time went, the findings, how far to trust them, the exits",
	  "by bill storms guest-kallsyms " BARE_PT, "@file", vmt_verb_report, 0, 1, true, false,
	  "vmtrace report\nvmtrace report web01.vmt --by reason,key,rip --guest-kallsyms kallsyms\n"
	  "vmtrace report -i perf.data --format json | jq .verdicts" },
	{ "script", "[FILE]", "events, one a line", "type guest-kallsyms " BARE_PT, "@file",
	  vmt_verb_script, 0, 1, true, false,
	  "vmtrace script web01.vmt --type exit,gap --time 1.5,2\nvmtrace script -i perf.data "
	  "--format json" },
	{ "decode", "kvm|pt [FILE]",
	  "records or packets one a line with offset and length, and the loss ledger",
	  "cpu hex block flow elf raw " BARE_PT, "kvm pt", vmt_verb_decode, 1, 2, true, false,
	  "vmtrace decode kvm web01.vmt\nvmtrace decode pt perf.data --cpu 3\nvmtrace decode "
	  "pt --pt-raw cpu0.pt\nvmtrace decode pt --flow=call --pt-raw cpu0.pt --elf "
	  "./hello\nvmtrace decode pt --hex "
	  "'02 43 03 04 06 08 0a 0c'" },
	{ "export", "[FILE]", "a capture in the format of another program, or one side of it",
	  "to privacy " BARE_PT, "@file", vmt_verb_export, 0, 1, true, false,
	  "vmtrace export --to perfdata web01.vmt -o web01.data\nvmtrace export --to perfdata "
	  "--pt-raw cpu0.pt --tsc-hz 2600000000 -o cpu0.data\nvmtrace export --to vmt --privacy "
	  "guest web01.vmt -o for-you.vmt" },
	{ "tsc", "convert VALUE... | show [FILE]",
	  "TSC offset and scaling: conversion both ways, recorded maps", "to offset mult frac",
	  "convert show", vmt_verb_tsc, 1, VMT_CLI_LIST_MAX, false, false,
	  "vmtrace tsc convert --to guest --offset -2995683791 --mult 140737488355328 2995838767\n"
	  "vmtrace tsc convert --to host -i web01.vmt --vcpu 0 99000000000\nvmtrace tsc show "
	  "web01.vmt" },
	{ "vmx", "plan", "VMX controls for a way of tracing, and the packets that follow",
	  "mode conceal event-trace vm-events-only caps mult frac", "plan", vmt_verb_vmx, 1, 1,
	  false, false,
	  "vmtrace vmx plan --mode guest-only --event-trace\nvmtrace vmx plan --mode system "
	  "--conceal --caps skylake-sp.caps" },
	{ "explain", "[WHAT...]",
	  "an exit reason, MSR, port, address, vector or hypercall in words", "",
	  "exit: msr: port: gpa: vec: user: cpuid: hypercall: hv: qual: cr:", vmt_verb_explain, 0,
	  VMT_CLI_LIST_MAX, false, false,
	  "vmtrace explain exit:48\nvmtrace explain msr:0x6e0 port:0x608 qual:30:0x3f80000" },
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

const struct vmt_verb_row *vmt_verbs(size_t *count)
{
	*count = NR_ROWS;
	return rows;
}

const struct vmt_verb_row *vmt_verb_find(const char *name)
{
	for (size_t i = 0; i < NR_ROWS; i++) {
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	}
	return NULL;
}
