/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_RULES_H
#define VMT_ANALYZE_RULES_H

#include "decode/analyze/verdicts.h"

/*
 * The rules' functions (see struct vmt_rule) and their thresholds. Shares are of the wall time of
 * all vCPUs unless a rule says otherwise; `cores` is time by the length of the capture (1.0: one
 * vCPU did nothing else); rates are exits a second over the whole capture.
 */
/* rip-loop: one instruction has this share of a row's exits, the row this share of all exits ... */
#define LOOP_RIP_SHARE	 0.5
#define LOOP_EXITS_SHARE 0.1
#define LOOP_CORES_MIN	 0.05 /* ... or this much time ... */
#define LOOP_COUNT_MIN	 500u
#define LOOP_RATE_MIN	 1000.0
/* ... and, unless the rate alone is worth a warning or times are not known, at least this time */
#define LOOP_CORES_NOTE 0.01
#define LOOP_CORES_WARN 0.05
#define LOOP_RATE_WARN	10000.0
#define LOOP_CORES_CRIT 0.25
/* clocksource: reads of a slow clock, not told when rip-loop has told the row */
#define CLOCK_RATE_MIN	 500.0
#define CLOCK_CORES_WARN 0.02
/* halt-poll: share of the host CPU time that the vCPUs use, and of the wall time */
#define POLL_CPU_WARN  0.2
#define POLL_WALL_WARN 0.05
#define POLL_CPU_CRIT  0.5
#define POLL_WALL_CRIT 0.25
/* irq-storm: interrupts of one vector a second and vCPU */
#define IRQ_RATE_WARN 5000.0
#define IRQ_RATE_CRIT 20000.0
#define IRQ_COUNT_MIN 1000u
/* not-exits: exits and QEMU together take at most this of the time that is known */
#define NOT_EXITS_MAX	0.05
#define NOT_EXITS_KNOWN 0.5 /* of the wall time */
#define PREEMPTED_WARN	0.05
#define PREEMPTED_CRIT	0.25
#define USERSPACE_WARN	0.1
#define USERSPACE_CRIT	0.4
#define STOPPED_NOTE	0.01
#define RESIDUAL_NOTE	0.2
#define LOSS_WARN	0.001 /* of records or bytes */
#define LOSS_CRIT	0.05
#define FAULTS_WARN	0.1 /* cores, exits for second-level page faults */
#define PAUSE_RATE_WARN 5000.0
#define NESTED_NOTE	0.1 /* of exits */
#define TSC_RATE_WARN	1000.0
#define TSC_WRITE_WARN	10.0 /* a second ... */
#define TSC_WRITE_MIN	10u  /* ... and at least so many */

bool vmt_rule_pt_controls(const struct vmt_verdict_facts *f, unsigned int nth,
			  struct vmt_verdict *out, double *score);
bool vmt_rule_loop(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score);
bool vmt_rule_clock(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		    double *score);
bool vmt_rule_irq(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		  double *score);
bool vmt_rule_faults(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		     double *score);
bool vmt_rule_spin(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score);
bool vmt_rule_tsc_exits(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score);
bool vmt_rule_failed(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		     double *score);
bool vmt_rule_poll(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score);
bool vmt_rule_not_exits(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score);
bool vmt_rule_preempted(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score);
bool vmt_rule_userspace(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score);
bool vmt_rule_residual(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		       double *score);
bool vmt_rule_tsc_writes(const struct vmt_verdict_facts *f, unsigned int nth,
			 struct vmt_verdict *out, double *score);
bool vmt_rule_truncated(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score);
bool vmt_rule_loss(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score);
bool vmt_rule_nested(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		     double *score);
bool vmt_rule_concealed(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score);
bool vmt_rule_nothing(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		      double *score);

/* Time by the length of the capture; part of whole, 0 of nothing; NOTE below warn. */
double vmt_rule_cores(const struct vmt_verdict_facts *f, uint64_t ns);
double vmt_rule_ratio(uint64_t part, uint64_t whole);
enum vmt_severity vmt_rule_grade(double value, double warn, double critical);

/* "52,031 exits (5,203/s)" and what their time is. */
void vmt_rule_evidence(const struct vmt_verdict_facts *f, const struct vmt_row *row, char *buf,
		       size_t size);

#endif
