/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every kind of transition between host and guest, from its packets (SDM vol. 3 33.5 and tables
 * 33-52 to 33-59) to its events. Each stream is decoded in one piece, byte by byte and in odd
 * pieces, with equal results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_events.h"

#define PSB_ROOT      "psb vmcs:1bff6a000 pip:0:10a2b000 cbr:23 mode:1 fup:ffffffffc0395030 psbend "
#define PSB_ROOT_OFF  "psb vmcs:1bff6a000 pip:0:10a2b000 cbr:23 psbend "
#define PSB_GUEST_OFF "psb vmcs:1bff6a000 pip:1:1234000 cbr:23 psbend "
#define ENTRY_CFE     "cfe+:VMENTRY fup:ffffffffc0395030 pip:1:1234000 tip:ffffffff81000100 "
#define ENTRY	      "pip:1:1234000 tip:ffffffff81000100 "
#define EXIT_IO                                                                                    \
	"evd:q:3f80008 evd:r:1e cfe:VMEXIT fup:ffffffff81000106 pip:0:10a2b000 "                   \
	"tip:ffffffffc0395040 "
#define EXIT "fup:ffffffff81000106 pip:0:10a2b000 tip:ffffffffc0395040 "

#define VM	  " vmcs=0x1bff6a000"
#define ENTRY_OUT "entry" VM " rip=0xffffffff81000100 cr3=0x1234000\n"
#define EXIT_OUT  "exit" VM " rip=0xffffffff81000106 cr3=0x1234000\n"
#define EXIT_IO_OUT                                                                                \
	"exit" VM " reason=30(IO_INSTRUCTION) key=port:0x3f8:in qual=0x3f80008 "                   \
	"rip=0xffffffff81000106 cr3=0x1234000\n"

struct row {
	const char *name, *stream, *events;
};

static const struct row rows[] = {
	/* ---- system-wide, Event Trace, BranchEn=1 ---- */
	{ "entry and exit with Event Trace", PSB_ROOT ENTRY_CFE "tnt:TNT " EXIT_IO,
	  ENTRY_OUT EXIT_IO_OUT },
	{ "VMXR before VMXQ",
	  PSB_ROOT ENTRY_CFE "evd:r:1e evd:q:3f80008 cfe:VMEXIT fup:ffffffff81000106 "
			     "pip:0:10a2b000 tip:ffffffffc0395040",
	  ENTRY_OUT EXIT_IO_OUT },
	{ "external interrupt, acknowledged",
	  PSB_ROOT ENTRY_CFE "evd:q:0 evd:r:1 cfe:VMEXIT_INTR:ec fup:ffffffff81000106 "
			     "pip:0:10a2b000 tip:ffffffffc0395040",
	  ENTRY_OUT "exit" VM " reason=1(EXTERNAL_INTERRUPT) key=vec:236 qual=0x0 vector=236 "
		    "rip=0xffffffff81000106 cr3=0x1234000\n" },
	{ "page fault that exits",
	  PSB_ROOT ENTRY_CFE "evd:q:7f00dead0000 evd:r:0 cfe:VMEXIT_INTR:e fup:ffffffff81000106 "
			     "pip:0:10a2b000 tip:ffffffffc0395040",
	  ENTRY_OUT "exit" VM " reason=0(EXCEPTION_NMI) key=vec:14 qual=0x7f00dead0000 vector=14 "
		    "rip=0xffffffff81000106 cr3=0x1234000\n" },
	{ "control register",
	  PSB_ROOT ENTRY_CFE "evd:q:3 evd:r:1c cfe:VMEXIT fup:ffffffff81000106 pip:0:10a2b000 "
			     "tip:ffffffffc0395040",
	  ENTRY_OUT "exit" VM " reason=28(CR_ACCESS) key=cr:3:w qual=0x3 rip=0xffffffff81000106 "
		    "cr3=0x1234000\n" },
	{ "EPT violation: the address is not in the packets",
	  PSB_ROOT ENTRY_CFE "evd:q:182 evd:r:30 cfe:VMEXIT fup:ffffffff81000106 pip:0:10a2b000 "
			     "tip:ffffffffc0395040",
	  ENTRY_OUT "exit" VM " reason=48(EPT_VIOLATION) qual=0x182 rip=0xffffffff81000106 "
		    "cr3=0x1234000\n" },
	{ "flags of the reason",
	  PSB_ROOT ENTRY_CFE "evd:q:0 evd:r:800000c cfe:VMEXIT fup:ffffffff81000106 "
			     "pip:0:10a2b000 tip:ffffffffc0395040",
	  ENTRY_OUT "exit" VM " reason=12(HLT) flags=0x8000000 qual=0x0 rip=0xffffffff81000106 "
		    "cr3=0x1234000\n" },
	{ "IP=1 with the branch's packets behind",
	  PSB_ROOT ENTRY_CFE "evd:q:3f80008 evd:r:1e cfe+:VMEXIT fup:ffffffff81000106 "
			     "pip:0:10a2b000 tip:ffffffffc0395040",
	  ENTRY_OUT EXIT_IO_OUT },
	{ "VMENTRY with IP=0 and no FUP",
	  PSB_ROOT "cfe:VMENTRY pip:1:1234000 tip:ffffffff81000100 " EXIT_IO,
	  ENTRY_OUT EXIT_IO_OUT },
	{ "MODE.Exec in the middle",
	  PSB_ROOT "cfe+:VMENTRY fup:ffffffffc0395030 pip:1:1234000 mode:2 tip:ffffffff81000100 "
		   "evd:q:3f80008 evd:r:1e cfe:VMEXIT fup:ffffffff81000106 pip:0:10a2b000 mode:1 "
		   "tip:ffffffffc0395040",
	  ENTRY_OUT EXIT_IO_OUT },
	{ "no reason without EVD",
	  PSB_ROOT ENTRY_CFE "cfe:VMEXIT fup:ffffffff81000106 pip:0:10a2b000 "
			     "tip:ffffffffc0395040",
	  ENTRY_OUT EXIT_OUT },
	{ "an exit as the first thing seen",
	  "evd:q:3f80008 evd:r:1e cfe+:VMEXIT "
	  "fup:ffffffff81000106 pip:0:10a2b000",
	  "exit reason=30(IO_INSTRUCTION) key=port:0x3f8:in qual=0x3f80008 "
	  "rip=0xffffffff81000106\n" },
	{ "CFE.VMEXIT when ContextEn rises: IP=0, no FUP",
	  PSB_ROOT_OFF "cfe:VMEXIT mode:1 pge:ffffffffc0395040 tnt:T", "exit" VM "\n" },
	{ "CTL.OS=0: no PIP",
	  "psb cbr:23 mode:1 fup:400000 psbend cfe+:VMENTRY fup:401000 pgd:- evd:q:0 evd:r:c "
	  "cfe:VMEXIT pge:401003",
	  "entry\nexit reason=12(HLT) qual=0x0\n" },

	/* ---- no Event Trace ---- */
	{ "NR edges with branches", PSB_ROOT "tnt:NT " ENTRY "tnt:TNT " EXIT "tnt:N",
	  ENTRY_OUT EXIT_OUT },
	{ "interrupts of guest and host are no exits",
	  PSB_ROOT "fup:ffffffffc0395032 tip:ffffffffc0100000 " ENTRY
		   "fup:ffffffff81000200 tip:ffffffff81800000 tnt:T tip:ffffffff81000200 " EXIT,
	  ENTRY_OUT EXIT_OUT },
	{ "MOV CR3 in the guest",
	  PSB_ROOT ENTRY "pip:1:5678000 tnt:T fup:ffffffff81000106 pip:0:10a2b000 "
			 "tip:ffffffffc0395040",
	  ENTRY_OUT "exit" VM " rip=0xffffffff81000106 cr3=0x5678000\n" },
	{ "BranchEn=0: PIP alone",
	  "psb vmcs:1bff6a000 pip:0:10a2b000 cbr:23 psbend pip:1:1234000 "
	  "pip:0:10a2b000 pip:1:1234000 pip:0:10a2b000",
	  "entry" VM " cr3=0x1234000\nexit" VM " cr3=0x1234000\n"
	  "entry" VM " cr3=0x1234000\nexit" VM " cr3=0x1234000\n" },
	{ "BranchEn=0 with Event Trace",
	  PSB_ROOT_OFF "cfe+:VMENTRY fup:ffffffffc0395030 pip:1:1234000 evd:q:3f80008 evd:r:1e "
		       "cfe+:VMEXIT fup:ffffffff81000106 pip:0:10a2b000 cfe+:VMENTRY "
		       "fup:ffffffffc0395030 pip:1:1234000",
	  "entry" VM " cr3=0x1234000\n" EXIT_IO_OUT "entry" VM " cr3=0x1234000\n" },
	{ "filters keep branches out: entry and exit by NR",
	  PSB_ROOT "tip:ffffffffc0000000 pgd:ffffffffc0000100 pip:1:1234000 pip:0:10a2b000 mode:1 "
		   "pge:ffffffffc0395040",
	  "entry" VM " cr3=0x1234000\nexit" VM " cr3=0x1234000\n" },
	{ "an address filter in the guest",
	  PSB_ROOT_OFF "pip:1:1234000 mode:1 pge:ffffffff81000100 tnt:T fup:ffffffff81000106 "
		       "pip:0:10a2b000 pgd:ffffffffc0395040 pip:1:1234000 "
		       "pge:ffffffff81000100",
	  ENTRY_OUT EXIT_OUT ENTRY_OUT },

	/* ---- several VMs ---- */
	{ "two VMs by VMCS",
	  PSB_ROOT ENTRY EXIT "vmcs:2aa000000 pip:1:7777000 tip:1000 fup:1006 pip:0:10a2b000 "
			      "tip:ffffffffc0395040 vmcs:1bff6a000 " ENTRY,
	  ENTRY_OUT EXIT_OUT "entry vmcs=0x2aa000000 rip=0x1000 cr3=0x7777000\n"
			     "exit vmcs=0x2aa000000 rip=0x1006 cr3=0x7777000\n" ENTRY_OUT },
	{ "a VMCS that was cleared", PSB_ROOT "raw:02c8ffffffffff " ENTRY,
	  "entry rip=0xffffffff81000100 cr3=0x1234000\n" },

	/* ---- the guest alone ---- */
	{ "guest-only with PIP",
	  PSB_GUEST_OFF "cbr:23 pip:1:1234000 mode:1 pge:ffffffff81000100 tnt:T "
			"fup:ffffffff81000106 pip:0:10a2b000 pgd:- cbr:23 pip:1:1234000 mode:1 "
			"pge:ffffffff81000106 tnt:T",
	  ENTRY_OUT EXIT_OUT "entry" VM " rip=0xffffffff81000106 cr3=0x1234000\n" },
	{ "guest-only without PIP at the transitions",
	  PSB_GUEST_OFF "mode:1 pge:ffffffff81000100 tnt:T fup:ffffffff81000106 pgd:- cbr:23 "
			"mode:1 pge:ffffffff81000106 tnt:T fup:ffffffff81000200 pgd:-",
	  ENTRY_OUT EXIT_OUT "entry" VM " rip=0xffffffff81000106 cr3=0x1234000\n"
			     "exit" VM " rip=0xffffffff81000200 cr3=0x1234000\n" },
	{ "guest-only with Event Trace",
	  PSB_GUEST_OFF "mode:1 pge:ffffffff81000100 tnt:T evd:q:3f80008 evd:r:1e cfe:VMEXIT "
			"fup:ffffffff81000106 pgd:- cbr:23 mode:1 pge:ffffffff81000106 tnt:T",
	  ENTRY_OUT EXIT_IO_OUT "entry" VM " rip=0xffffffff81000106 cr3=0x1234000\n" },
	{ "guest-only, a PSB+ at an entry",
	  PSB_GUEST_OFF
	  "mode:1 pge:ffffffff81000100 tnt:T fup:ffffffff81000106 pgd:- " PSB_GUEST_OFF
	  "mode:1 pge:ffffffff81000106 tnt:T",
	  ENTRY_OUT EXIT_OUT "entry" VM " rip=0xffffffff81000106 cr3=0x1234000\n" },
	{ "guest-only, all concealed: nothing is invented",
	  "psb pip:0:1234000 cbr:23 mode:1 psbend pge:ffffffff81000100 tnt:T pip:0:5678000 "
	  "fup:ffffffff81000106 pgd:- cbr:23 mode:1 pge:ffffffff81000106 tnt:T "
	  "fup:ffffffff81000200 pgd:- mode:1 pge:ffffffff81000200",
	  "" },
	{ "system-wide, concealed guest",
	  PSB_ROOT
	  "tip:ffffffff81000100 tnt:T fup:ffffffff81000106 tip:ffffffffc0395040 pip:0:99000 "
	  "tnt:T",
	  "" },
	{ "user code alone: FUP and TIP.PGD are no exit",
	  "psb cbr:23 mode:1 fup:400000 psbend tnt:T fup:400010 pgd:- pge:400010 tnt:T", "" },
	{ "an SMI in a guest of a system-wide trace is no exit",
	  PSB_ROOT ENTRY
	  "fup:ffffffff81000104 pgd:- cbr:23 mode:1 pge:ffffffff81000104 tnt:T " EXIT,
	  ENTRY_OUT EXIT_OUT },

	/* ---- entries that fail ---- */
	{ "late failure with Event Trace",
	  PSB_ROOT "cfe+:VMENTRY fup:ffffffffc0395030 pip:1:1234000 cbr:23 mode:1 pip:0:10a2b000 "
		   "tip:ffffffffc0395040 tnt:T " ENTRY_CFE,
	  "exit" VM " cr3=0x1234000 failed-entry\n" ENTRY_OUT },
	{ "late failure, branches alone",
	  PSB_ROOT "pip:1:1234000 pip:0:10a2b000 tip:ffffffffc0395040 tnt:T " ENTRY EXIT,
	  "exit" VM " cr3=0x1234000 failed-entry\n" ENTRY_OUT EXIT_OUT },
	{ "late failure with its reason",
	  PSB_ROOT "cfe+:VMENTRY fup:ffffffffc0395030 pip:1:1234000 evd:q:0 evd:r:80000021 "
		   "cfe:VMEXIT fup:ffffffff81000100 pip:0:10a2b000 tip:ffffffffc0395040",
	  "exit" VM " reason=33(INVALID_STATE) flags=0x80000000 qual=0x0 cr3=0x1234000 "
	  "failed-entry\n" },
	{ "early failure falls through", PSB_ROOT "tip:ffffffffc0395033 tnt:T", "" },
	{ "VM entry that switches tracing off (SKD022)",
	  PSB_ROOT "fup:ffffffffc0395030 pip:1:1234000 pgd:- cbr:23 mode:1 pip:0:10a2b000 "
		   "pge:ffffffffc0395040",
	  "entry" VM " cr3=0x1234000\nexit" VM "\n" },
	{ "VMX abort: the TIP never comes",
	  PSB_ROOT ENTRY "fup:ffffffff81000106 pip:0:10a2b000 " PSB_ROOT_OFF, ENTRY_OUT EXIT_OUT },

	/* ---- SMM ---- */
	{ "SMI and RSM in a guest",
	  PSB_ROOT ENTRY_CFE "cfe:SMI fup:ffffffff81000104 pgd:- cfe:RSM cbr:23 mode:1 "
			     "pge:ffffffff81000104 tnt:T " EXIT_IO,
	  ENTRY_OUT "note" VM " name=pt_smi rip=0xffffffff81000104 cr3=0x1234000\n"
		    "note" VM " name=pt_rsm cr3=0x1234000\n" EXIT_IO_OUT },
	{ "SMM VM exit from the guest, and the return to it",
	  PSB_ROOT ENTRY_CFE "cfe:SMI evd:q:0 evd:r:6 cfe:VMEXIT fup:ffffffff81000104 "
			     "vmcs:3000000 pip:0:5000 tip:a000 tnt:T vmcs:1bff6a000 cfe:RSM "
			     "cfe+:VMENTRY fup:a100 pip:1:1234000 tip:ffffffff81000104",
	  ENTRY_OUT "note" VM " name=pt_smi rip=0xffffffff81000104 cr3=0x1234000\n"
		    "exit" VM " reason=6(OTHER_SMI) qual=0x0 rip=0xffffffff81000104 cr3=0x1234000\n"
		    "note name=pt_rsm\n"
		    "entry" VM " rip=0xffffffff81000104 cr3=0x1234000\n" },
	{ "SMM VM exit from root operation, and the return to it",
	  PSB_ROOT "cfe:SMI evd:q:0 evd:r:20000006 cfe:VMEXIT fup:ffffffffc0395034 vmcs:3000000 "
		   "pip:0:5000 tip:a000 tnt:T vmcs:1bff6a000 cfe:RSM cfe+:VMENTRY fup:a100 "
		   "pip:0:10a2b000 tip:ffffffffc0395034 " ENTRY_CFE,
	  "note name=pt_smi\nnote name=pt_smm_exit\nnote name=pt_rsm\nnote "
	  "name=pt_smm_return\n" ENTRY_OUT },

	/* ---- events ---- */
	{ "interrupts, exceptions and returns of a guest",
	  PSB_ROOT ENTRY_CFE "cfe:INTR:ec fup:ffffffff81000104 tip:ffffffff81800000 cfe+:IRET "
			     "fup:ffffffff81800010 tip:ffffffff81000104 evd:p:7f0012345678 "
			     "cfe:INTR:e fup:ffffffff81000108 tip:ffffffff81800020",
	  ENTRY_OUT "note" VM
		    " name=pt_intr key=vec:236 vector=236 rip=0xffffffff81000104 cr3=0x1234000\n"
		    "note" VM " name=pt_iret rip=0xffffffff81800010 cr3=0x1234000\n"
		    "note" VM " name=pt_page_fault key=vec:14 vector=14 rip=0xffffffff81000108 "
		    "cr3=0x1234000 value=139638282147448\n" },
	{ "BranchEn=0: an event of its own",
	  PSB_ROOT_OFF "cfe+:INTR:3 fup:401000 cfe+:INIT "
		       "fup:fff0 cfe:SIPI:9f cfe+:SHUTDOWN "
		       "fup:2",
	  "note name=pt_intr key=vec:3 vector=3\nnote name=pt_init\n"
	  "note name=pt_sipi key=vec:159 vector=159\nnote name=pt_shutdown\n" },
	{ "user interrupts, and the newest types",
	  PSB_ROOT ENTRY_CFE "cfe+:UINTR:5 fup:401000 cfe+:UIRET fup:402000 cfe+:SWINTR:80 "
			     "fup:403000 cfe+:SYSCALL fup:404000",
	  ENTRY_OUT "note" VM " name=pt_uintr key=vec:5 vector=5 rip=0x401000 cr3=0x1234000\n"
		    "note" VM " name=pt_uiret rip=0x402000 cr3=0x1234000\n"
		    "note" VM " name=pt_swintr key=vec:128 vector=128 rip=0x403000 cr3=0x1234000\n"
		    "note" VM " name=pt_syscall rip=0x404000 cr3=0x1234000\n" },
	{ "a reserved CFE takes its FUP along",
	  PSB_ROOT ENTRY_CFE "raw:02139f00 fup:ffffffff81000101 pip:1:1234000 " EXIT_IO,
	  ENTRY_OUT EXIT_IO_OUT },
	{ "an injected page fault behind the entry",
	  PSB_ROOT ENTRY_CFE "evd:p:1000 cfe+:INTR:e fup:ffffffff81000100 tip:ffffffff81800000",
	  ENTRY_OUT "note" VM " name=pt_page_fault key=vec:14 vector=14 rip=0xffffffff81000100 "
		    "cr3=0x1234000 value=4096\n" },
	{ "STI: MODE.Exec takes a FUP",
	  PSB_ROOT ENTRY "mode:5 fup:ffffffff81000102 tnt:T fup:ffffffff81000106 pip:0:10a2b000 "
			 "tip:ffffffffc0395040",
	  ENTRY_OUT EXIT_OUT },
	{ "PTWRITE, power and TSX packets take their FUPs",
	  PSB_ROOT ENTRY "raw:029201020304 fup:1 raw:02c22000000001000000 raw:02228034 raw:02e2 "
			 "fup:2 raw:02a22108000000 raw:9921 fup:3 raw:9920 fup:4 raw:026384 "
			 "raw:0400000000 raw:02b3 fup:5 raw:d98002 fup:6 " EXIT,
	  ENTRY_OUT EXIT_OUT },
	{ "a TSX abort is a branch",
	  PSB_ROOT ENTRY "raw:9922 fup:ffffffff81000110 tip:ffffffff81000200 tnt:T " EXIT,
	  ENTRY_OUT EXIT_OUT },

	/* ---- losses ---- */
	{ "overflow in the guest, still the guest",
	  PSB_ROOT ENTRY "ovf fup:ffffffff81000300 tnt:T pip:1:9999000 tnt:T "
			 "fup:ffffffff81000106 pip:0:10a2b000 tip:ffffffffc0395040",
	  ENTRY_OUT "loss name=overflow\nexit rip=0xffffffff81000106 cr3=0x9999000\n" },
	{ "a change across an overflow is a gap",
	  PSB_ROOT ENTRY "ovf fup:ffffffffc0000000 tnt:T pip:0:10a2b000 tnt:T " ENTRY,
	  ENTRY_OUT "loss name=overflow\ngap\nentry rip=0xffffffff81000100 cr3=0x1234000\n" },
	{ "an exit across an overflow that a PSB+ settles", PSB_ROOT ENTRY "ovf " PSB_ROOT "tnt:T",
	  ENTRY_OUT "loss name=overflow\ngap\n" },
	{ "an exit behind an overflow that hid the entry",
	  PSB_ROOT "ovf fup:ffffffff81000300 " EXIT_IO,
	  "loss name=overflow\ngap\nexit reason=30(IO_INSTRUCTION) key=port:0x3f8:in "
	  "qual=0x3f80008 rip=0xffffffff81000106\n" },
	{ "two losses on end, the world from before the first counts",
	  PSB_ROOT ENTRY "ovf ovf pip:0:10a2b000",
	  ENTRY_OUT "loss name=overflow\n"
		    "loss name=overflow\ngap\n" },
	{ "OVF inside an exit",
	  PSB_ROOT ENTRY_CFE "evd:q:3f80008 evd:r:1e cfe:VMEXIT ovf "
			     "pip:0:10a2b000",
	  ENTRY_OUT "exit" VM " reason=30(IO_INSTRUCTION) key=port:0x3f8:in qual=0x3f80008 "
		    "cr3=0x1234000\nloss name=overflow\n" },
	{ "OVF and TIP.PGD (APL11)", PSB_ROOT ENTRY "ovf pgd:- pip:1:1234000",
	  ENTRY_OUT "loss name=overflow\n" },
	{ "OVF ends PSB+", "psb vmcs:1bff6a000 pip:0:10a2b000 ovf pip:1:1234000",
	  "loss name=overflow\ngap\n" },
	{ "a gap between buffers", PSB_ROOT ENTRY " gap " EXIT_IO,
	  ENTRY_OUT "loss name=aux-gap\nexit reason=30(IO_INSTRUCTION) key=port:0x3f8:in "
		    "qual=0x3f80008 rip=0xffffffff81000106\n" },
	{ "damage, and on at the next PSB", PSB_ROOT ENTRY "raw:ad00112233 " PSB_ROOT ENTRY,
	  ENTRY_OUT "loss name=undecodable value=5\ngap\n" ENTRY_OUT },

	/* ---- what is concealed ---- */
	{ "with Event Trace, a guest's MOV to CR3 behind an entry that was concealed",
	  PSB_ROOT ENTRY_CFE EXIT_IO "tnt:T pip:1:9999000 tnt:T " EXIT_IO,
	  ENTRY_OUT EXIT_IO_OUT "gap\nexit" VM " reason=30(IO_INSTRUCTION) key=port:0x3f8:in "
				"qual=0x3f80008 rip=0xffffffff81000106 cr3=0x9999000\n" },
	{ "the host's MOV to CR3 behind an exit that was concealed",
	  PSB_ROOT ENTRY "tnt:T fup:ffffffff81000106 tip:ffffffffc0395040 tnt:T pip:0:5000 tnt:T",
	  ENTRY_OUT "gap\n" },
	{ "the same where a TIP follows",
	  PSB_ROOT ENTRY "fup:ffffffff81000106 pgd:7000 pip:0:5000 tip:ffffffffc0395048",
	  ENTRY_OUT "gap\n" },
	{ "a guest's MOV to CR3 and no TIP is no entry", PSB_ROOT "tnt:T pip:1:9999000 tnt:T " EXIT,
	  "gap\nexit" VM " rip=0xffffffff81000106 cr3=0x9999000\n" },
	{ "VMPTRLD shows that the CPU is in root operation",
	  PSB_ROOT ENTRY "tnt:T vmcs:2000000 tip:ffffffffc0395048 " ENTRY,
	  ENTRY_OUT "gap\nentry vmcs=0x2000000 rip=0xffffffff81000100 cr3=0x1234000\n" },
	{ "packets go on behind an entry that switched them off, and no PIP tells",
	  PSB_ROOT "pip:1:1234000 pgd:- cbr:23 pge:ffffffffc0395040 tnt:T",
	  "entry" VM " cr3=0x1234000\ngap\n" },
	{ "an entry that fails behind a loss",
	  PSB_ROOT "ovf pip:1:1234000 pip:0:5000 tip:ffffffffc0395040",
	  "loss name=overflow\ngap\nexit cr3=0x1234000 failed-entry\n" },
	{ "a PSB+ that says another world than the stream",
	  PSB_ROOT ENTRY "tnt:T " PSB_ROOT "tnt:T", ENTRY_OUT "gap\n" },
};

static struct vmt_pt_decoder_options options_of(void)
{
	return (struct vmt_pt_decoder_options){ .host_cpu = UINT32_MAX };
}

static unsigned int check(const struct row *row, size_t piece)
{
	const struct vmt_pt_decoder_options options = options_of();
	struct vmt_pt_result r = vmt_pt_events(row->stream, &options, piece);

	unsigned int wrong = strcmp(r.events, row->events) != 0;

	if (wrong)
		print_error("%s, pieces of %zu:\n%s--- wanted\n%s\n", row->name, piece, r.events,
			    row->events);
	free(r.events);
	return wrong;
}

static void transitions(void **state)
{
	static const size_t pieces[] = { 0, 1, 3, 7 };
	unsigned int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++)
			wrong += check(&rows[i], pieces[k]);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transitions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
