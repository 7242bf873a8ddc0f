// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A bare stream of one CPU. It is decoded on the way for what perf wants to know beforehand: the
 * attr, which says what kinds of packet there are, stands at the end of the file.
 */
#include <string.h>

#include "decode/export/perfdata_private.h"

#define PMU_TYPE    8u /* any dynamic one; PMU_MAPPINGS tells its name */
#define EVENT_ID    UINT64_C(1)
#define SAMPLE_TYPE UINT64_C(0x10087) /* IP|TID|TIME|CPU|IDENTIFIER */

/* RTIT_CTL bits, as the kernel's PMU takes them in its config. */
#define CONFIG_PT     (UINT64_C(1) << 0)
#define CONFIG_CYC    (UINT64_C(1) << 1)
#define CONFIG_PTW    (UINT64_C(1) << 12)
#define CONFIG_PWR    (UINT64_C(1) << 4)
#define CONFIG_MTC    (UINT64_C(1) << 9)
#define CONFIG_TSC    (UINT64_C(1) << 10)
#define CONFIG_BRANCH (UINT64_C(1) << 13)
#define CONFIG_EVENT  (UINT64_C(1) << 31)
#define MTC_FREQ_AT   14u

struct raw {
	struct vmt_perfdata_writer *w;
	struct vmt_diag *diag;
	struct vmt_pt_decoder *decoder;
	uint64_t config;
	bool has_tsc; /* of the piece */
	uint64_t tsc;
	struct export_trace trace;
};

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *packet)
{
	static const uint64_t shows[VMT_PT_TYPE_COUNT] = {
		[VMT_PT_TNT] = CONFIG_BRANCH,	  [VMT_PT_TNT_LONG] = CONFIG_BRANCH,
		[VMT_PT_TIP] = CONFIG_BRANCH,	  [VMT_PT_TIP_PGE] = CONFIG_BRANCH,
		[VMT_PT_TIP_PGD] = CONFIG_BRANCH, [VMT_PT_TSC] = CONFIG_TSC,
		[VMT_PT_MTC] = CONFIG_MTC,	  [VMT_PT_CYC] = CONFIG_CYC,
		[VMT_PT_PTW] = CONFIG_PTW,	  [VMT_PT_PWRE] = CONFIG_PWR,
		[VMT_PT_PWRX] = CONFIG_PWR,	  [VMT_PT_MWAIT] = CONFIG_PWR,
		[VMT_PT_EXSTOP] = CONFIG_PWR,	  [VMT_PT_CFE] = CONFIG_EVENT,
		[VMT_PT_EVD] = CONFIG_EVENT,
	};
	struct raw *r = context;

	(void)offset;
	(void)bytes;
	r->config |= shows[packet->type];
	if (packet->type == VMT_PT_TSC && !r->has_tsc) {
		r->has_tsc = true;
		r->tsc = packet->payload;
	}
}

/* ns = tsc * mult >> shift, as exactly as 32 bits of mult can be. */
static void set_time_conv(struct vmt_pt_info *info, uint64_t tsc_hz)
{
	const uint64_t ns_per_s = 1000000000;
	unsigned int shift = 32;

	if (!tsc_hz)
		return;
	while (shift && (ns_per_s << shift) / tsc_hz > UINT32_MAX)
		shift--;
	info->has_time_conv = true;
	info->time_shift = (uint16_t)shift;
	info->time_mult = (uint32_t)((ns_per_s << shift) / tsc_hz);
}

static int put_head(struct raw *r, const struct vmt_input_pt *pt)
{
	struct vmt_pt_info info = { .pmu_type = PMU_TYPE,
				    .tsc_num = pt->clock.tsc_num,
				    .art_den = pt->clock.art_den,
				    .nom_ratio = pt->clock.nom_ratio,
				    .per_cpu = true,
				    .event_trace = true };
	int err = vmt_perfdata_feature_text(r->w, VMT_PERFDATA_ARCH, "x86_64", r->diag);

	set_time_conv(&info, pt->clock.tsc_hz);
	if (!err && pt->cpu.known)
		err = export_cpuid(r->w, "GenuineIntel", pt->cpu.family, pt->cpu.model,
				   pt->cpu.stepping, r->diag);
	if (!err && info.has_time_conv)
		err = vmt_perfdata_time_conv(r->w, info.time_shift, info.time_mult, 0, r->diag);
	return err ? err : vmt_perfdata_pt_info(r->w, &info, VMT_PERFDATA_SWITCHES_NONE, r->diag);
}

static int put_pieces(struct raw *r, struct vmt_reader *reader)
{
	const uint8_t *bytes;
	int64_t got;
	int err = 0;

	while (!err && (got = vmt_reader_peek(reader, EXPORT_CHUNK, &bytes, r->diag)) != 0) {
		const size_t len = (size_t)got < EXPORT_CHUNK ? (size_t)got : EXPORT_CHUNK;

		if (got < 0)
			return (int)got;
		r->has_tsc = false;
		vmt_pt_decoder_feed(r->decoder, bytes, len);
		r->trace.aux.reference = r->tsc;
		err = export_trace_bytes(&r->trace, bytes, len);
		if (!err)
			err = vmt_reader_skip(reader, len, r->diag);
	}
	return err ? err : export_trace_end(&r->trace);
}

static int put_attr(struct raw *r, const struct vmt_input_pt *pt)
{
	const uint64_t id = EVENT_ID;
	const struct vmt_ring_attr attr = { .type = PMU_TYPE,
					    .config = r->config | (uint64_t)pt->clock.mtc_freq
									  << MTC_FREQ_AT,
					    .sample_type = SAMPLE_TYPE,
					    .flags = VMT_RING_FLAG_SAMPLE_ID_ALL };
	const struct vmt_perfdata_event event = { .attr = &attr, .ids = &id, .nr_ids = 1 };

	return vmt_perfdata_attr(r->w, &event, r->diag);
}

int export_raw(struct vmt_reader *reader, const struct vmt_input_pt *pt,
	       struct vmt_perfdata_writer *w, struct vmt_perfdata_totals *totals,
	       struct vmt_diag *diag)
{
	struct raw r = { .w = w,
			 .diag = diag,
			 .config = CONFIG_PT,
			 .trace = { .w = w, .diag = diag, .aux = { .tid = UINT32_MAX } } };
	const struct vmt_pt_decoder_options options = {
		.cpu = pt->cpu, .host_cpu = UINT32_MAX, .packet = on_packet, .context = &r
	};
	int err;

	r.decoder = vmt_pt_decoder_new(&options);
	if (!r.decoder)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot export the stream",
				    "memory is short");
	err = put_head(&r, pt);
	if (!err)
		err = put_pieces(&r, reader);
	if (!err)
		err = put_attr(&r, pt);
	vmt_pt_decoder_end(r.decoder);
	totals->ledger = vmt_pt_decoder_ledger(r.decoder);
	totals->trace_bytes = r.trace.aux.offset;
	vmt_pt_decoder_free(r.decoder);
	return err;
}
