// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A bare Intel PT stream as an input. Its only clock is the TSC: nanoseconds are TSC units over the
 * rate, so that time 0 is the reset of the TSC.
 */
#include <string.h>

#include "decode/analyze/input_private.h"

#define PIECE_BYTES 65536u

static void on_event(void *context, const struct vmt_event *event)
{
	struct vmt_input *in = context;
	uint64_t hz = in->options.pt->clock.tsc_hz;
	struct vmt_event e = *event;

	if (hz && e.has & VMT_HAS_HOST_TSC) {
		e.time.host_ns = vmt_tsc_to_ns(e.host_tsc.host_tsc, hz);
		e.has |= VMT_HAS_TIME;
		if (!in->has_first)
			in->first_ns = e.time.host_ns;
		in->has_first = true;
		in->last_ns = e.time.host_ns;
	}
	if (hz && e.has & VMT_HAS_DURATION_TSC) {
		e.duration_ns = vmt_tsc_to_ns(e.duration_tsc, hz);
		e.has |= VMT_HAS_DURATION;
	}
	if (e.type == VMT_EVENT_LOSS)
		input_pt_count_loss(in, &e);
	input_event(in, &e);
}

static int name_domains(struct vmt_input *in, const struct vmt_input_pt *pt)
{
	for (size_t i = 0; i < pt->nr_names && i < INPUT_DOMAINS_MAX; i++) {
		in->domain_texts[i][0] = strdup(pt->names[i]);
		if (!in->domain_texts[i][0])
			return VMT_E_NOMEM;
		in->domains[i].name = in->domain_texts[i][0];
		in->facts.nr_domains = i + 1;
	}
	return 0;
}

int input_pt_open(struct vmt_input *in, struct vmt_reader *reader, struct vmt_diag *diag)
{
	const struct vmt_input_pt *pt = in->options.pt;
	const struct vmt_pt_decoder_options options = { .cpu = pt->cpu,
							.clock = pt->clock,
							.vms = pt->vms,
							.nr_vms = pt->nr_vms,
							.host_cpu = UINT32_MAX,
							.emit = on_event,
							.context = in };

	in->pt = vmt_pt_decoder_new(&options);
	if (!in->pt || name_domains(in, pt))
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the PT stream",
				    "memory is short");
	in->facts.format = "pt";
	in->facts.isa = VMT_ISA_VMX;
	in->raw = reader;
	return 0;
}

int input_pt_run(struct vmt_input *in, struct vmt_diag *diag)
{
	const uint8_t *bytes;
	int64_t n;
	int status;

	while ((n = vmt_reader_peek(in->raw, PIECE_BYTES, &bytes, diag)) > 0) {
		vmt_pt_decoder_feed(in->pt, bytes, (size_t)n);
		status = vmt_reader_skip(in->raw, (uint64_t)n, diag);
		if (status)
			return status;
	}
	vmt_pt_decoder_end(in->pt);
	in->facts.closed = true;
	in->facts.concealed = !vmt_pt_decoder_counts(in->pt).nonroot_seen;
	in->facts.has_concealed = !in->facts.concealed || in->options.pt->nr_vms;
	return n < 0 ? (int)n : 0;
}

struct vmt_join_counts input_pt_counts(const struct vmt_input *in)
{
	const struct vmt_pt_counts c = vmt_pt_decoder_counts(in->pt);

	return (struct vmt_join_counts){ .entries = c.entries,
					 .exits = c.exits,
					 .failed_entries = c.failed_entries };
}
