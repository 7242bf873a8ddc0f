// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Intel PT in a perf.data: AUXTRACE_INFO says how it was set up, AUXTRACE records hold it, one a
 * buffer that was drained. The trace of a moment may stand far behind the records of that moment,
 * so that the file is walked once for an index; trace bytes are stepped over, never read here.
 * Source: Linux, tools/perf/util/{auxtrace,intel-pt}.[ch], tools/lib/perf/include/perf/event.h.
 *
 * Invariant: the walk changes nothing but the index, what is known of PT, and features.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"
#include "decode/pt/errata.h"

#define MTC_FREQ_MAX	  15u /* RTIT_CTL.MTCFreq has four bits */
#define AUXTRACE_INTEL_PT 1u
#define PMU_DYNAMIC_FIRST 6u /* PERF_TYPE_MAX */
#define INFO_WORDS_MIN	  10u

/* Words of AUXTRACE_INFO (tools/perf/util/intel-pt.h). */
enum info_word {
	INFO_PMU_TYPE,
	INFO_TIME_SHIFT,
	INFO_TIME_MULT,
	INFO_TIME_ZERO,
	INFO_CAP_USER_TIME_ZERO,
	INFO_SNAPSHOT = 8,
	INFO_PER_CPU = 9,
	INFO_MTC_BIT = 10,
	INFO_MTC_FREQ_BITS = 11,
	INFO_TSC_CTC_N = 12,
	INFO_TSC_CTC_D = 13,
	INFO_NOM_RATIO = 15,
	INFO_FILTER_LEN = 16,
	INFO_FIXED,
};

static void set_time_conv(struct vmt_pt_info *info, uint64_t shift, uint64_t mult, uint64_t zero)
{
	if (info->has_time_conv || shift > 63 || !mult || mult > UINT32_MAX)
		return;
	info->has_time_conv = true;
	info->time_shift = (uint16_t)shift;
	info->time_mult = (uint32_t)mult;
	info->time_zero = zero;
}

static uint32_t small(uint64_t word)
{
	return word <= UINT32_MAX ? (uint32_t)word : 0;
}

/* The filter, padded to 8 with a NUL at least, and the word behind it. */
static int take_filter(struct vmt_perfdata *p, struct vmt_cursor *c, uint64_t len)
{
	const uint8_t *text = NULL;

	if (len) {
		if (len < vmt_cursor_left(c))
			text = vmt_cursor_take(c, ((size_t)len + 8) & ~(size_t)7);
		if (!text)
			return 0;
		p->filter = strndup((const char *)text, (size_t)len);
		if (!p->filter)
			return VMT_E_NOMEM;
		p->aux.info.filter = p->filter;
	}
	p->aux.info.event_trace = vmt_cursor_u64(c) == 1;
	return 0;
}

int perf_auxtrace_info(struct vmt_perfdata *p, const uint8_t *body, size_t len)
{
	struct vmt_cursor c = vmt_cursor_of(body, len);
	struct vmt_pt_info *info = &p->aux.info;
	uint64_t words[INFO_FIXED] = { 0 };
	size_t nr = len / 8;

	p->at.is_pt = vmt_cursor_u32(&c) == AUXTRACE_INTEL_PT;
	vmt_cursor_u32(&c);
	p->walk_due = p->walk_due || p->at.is_pt;
	if (!p->at.is_pt || p->aux.has_info || nr < 1 + INFO_WORDS_MIN)
		return 0;
	for (size_t i = 0; i < INFO_FIXED && i + 1 < nr; i++)
		words[i] = vmt_cursor_u64(&c);
	p->aux.has_info = true;
	info->pmu_type = small(words[INFO_PMU_TYPE]);
	if (words[INFO_CAP_USER_TIME_ZERO])
		set_time_conv(info, words[INFO_TIME_SHIFT], words[INFO_TIME_MULT],
			      words[INFO_TIME_ZERO]);
	info->snapshot = words[INFO_SNAPSHOT] != 0;
	info->per_cpu = words[INFO_PER_CPU] != 0;
	info->tsc_num = small(words[INFO_TSC_CTC_N]);
	info->art_den = small(words[INFO_TSC_CTC_D]);
	info->nom_ratio = small(words[INFO_NOM_RATIO]);
	p->mtc_bit = words[INFO_MTC_BIT];
	p->mtc_freq_bits = words[INFO_MTC_FREQ_BITS];
	return take_filter(p, &c, words[INFO_FILTER_LEN]);
}

/* u64 shift, mult, zero; the long form: cycles, mask, u8 cap_time_zero, cap_time_short, … */
void perf_time_conv(struct vmt_perfdata *p, const uint8_t *body, size_t len)
{
	if (len < 24 || (len >= 48 && !body[40]))
		return;
	set_time_conv(&p->aux.info, vmt_load_u64(body), vmt_load_u64(body + 8),
		      vmt_load_u64(body + 16));
}

/*
 * u64 nr; nr times id, idx, cpu, tid; perf since 5.19 adds nr times machine_pid, vcpu. Guest's
 * entries have the thread of the vCPU in tid.
 */
int perf_id_index(struct vmt_perfdata *p, const uint8_t *body, size_t len, struct vmt_item *item)
{
	uint64_t nr = len >= 8 ? vmt_load_u64(body) : 0;
	size_t n = 0;

	if (!nr || nr > (len - 8) / 48)
		return 0;
	if (!p->links)
		p->links = malloc(UINT16_MAX / 48 * sizeof(*p->links));
	if (!p->links)
		return VMT_E_NOMEM;
	for (size_t i = 0; i < nr; i++) {
		const uint8_t *entry = body + 8 + 32 * i, *guest = body + 8 + 32 * nr + 16 * i;
		uint64_t tid = vmt_load_u64(entry + 24), pid = vmt_load_u64(guest);
		uint64_t vcpu = vmt_load_u64(guest + 8);

		if (!pid || pid > INT32_MAX || !tid || tid > INT32_MAX || vcpu > INT32_MAX)
			continue;
		p->links[n++] = (struct vmt_vcpu_link){ .machine_pid = (uint32_t)pid,
							.vcpu = (uint32_t)vcpu,
							.tid = (uint32_t)tid };
	}
	if (!n)
		return 0;
	*item = (struct vmt_item){ .type = VMT_ITEM_VCPU_LINK,
				   .offset = vmt_reader_offset(p->reader),
				   .data = (const uint8_t *)p->links,
				   .len = n * sizeof(*p->links) };
	return 1;
}

/* ---- AUXTRACE: u64 size, offset, reference; u32 idx, tid, cpu, 0; `size` bytes follow ---- */

static int take_trace(struct vmt_perfdata *p, const struct vmt_aux_area *area,
		      struct vmt_item *item)
{
	p->at.ledger.bytes_skipped -= p->extent.len;
	p->at.ledger.bytes_decoded += p->extent.len;
	if (p->walking && p->extent.len && vmt_aux_build_add(&p->build, area, &p->extent) < 0)
		return VMT_E_NOMEM;
	item->type = VMT_ITEM_AUX;
	item->aux = &p->extent;
	item->aux_idx = area->idx;
	item->aux_cpu = area->cpu;
	item->aux_tid = area->tid;
	item->aux_thread = p->extent_thread;
	return 1;
}

int perf_auxtrace(struct vmt_perfdata *p, const uint8_t *record, size_t len, struct vmt_item *item,
		  struct vmt_diag *diag)
{
	struct vmt_cursor c = vmt_cursor_of(record + 8, len - 8);
	uint64_t size = vmt_cursor_u64(&c), done;
	struct vmt_aux_area area = { 0 };
	int status;

	if (size > INT64_MAX)
		return perf_skip_rest(p, item, "damaged", diag);
	p->extent = (struct vmt_aux_extent){ .aux_offset = vmt_cursor_u64(&c) };
	p->extent.reference = vmt_cursor_u64(&c);
	area.idx = vmt_cursor_u32(&c);
	area.tid = vmt_cursor_u32(&c);
	area.cpu = vmt_cursor_u32(&c);
	p->extent_thread = area.tid;
	if (area.cpu != VMT_AUX_NO_CPU || area.tid == UINT32_MAX)
		area.tid = 0;
	perf_loss_item(p, item, "auxtrace", 0);
	status = vmt_reader_skip(p->reader, len, diag);
	if (status)
		return status;
	perf_count(p, len, 0);
	p->extent.at = vmt_reader_offset(p->reader);
	status = perf_skip_some(p, size, &done, diag);
	if (status)
		return status;
	p->extent.len = done;
	p->at.cut_off = done < size;
	if (p->at.is_pt)
		return take_trace(p, &area, item);
	if (p->at.cut_off)
		return perf_end_truncated(p, item, done);
	item->lost_bytes = done;
	return 1;
}

/* ---- the walk ---- */

bool perf_has_pmu_events(const struct vmt_perfdata *p)
{
	for (size_t i = 0; i < p->nr_attrs; i++) {
		if (p->attrs[i].attr.type >= PMU_DYNAMIC_FIRST)
			return true;
	}
	return p->feature_bits[0] >> PERF_FEATURE_AUXTRACE & 1;
}

/* Where AUX records say that the trace was stopped. */
static int note_cuts(struct vmt_perfdata *p, const struct vmt_ring_set *set, const uint8_t *bytes,
		     size_t len)
{
	int status = 0;

	for (size_t at = 0; !status && at + 8 <= len; at += vmt_load_u16(bytes + at + 6)) {
		struct vmt_ring_record r;
		struct vmt_ring_aux aux;
		struct vmt_aux_cut cut;

		if (vmt_load_u32(bytes + at) != VMT_RING_AUX ||
		    vmt_ring_parse(set, bytes + at, len - at, &r, NULL) <= 0 ||
		    !vmt_ring_aux_of(&r, &aux) || !(aux.flags & VMT_RING_AUX_TRUNCATED))
			continue;
		cut = (struct vmt_aux_cut){ .aux_offset = aux.aux_offset + aux.aux_size,
					    .cpu = r.has_cpu ? r.cpu : VMT_AUX_NO_CPU,
					    .tid = r.tid };
		status = vmt_aux_build_cut(&p->build, &cut);
	}
	return status;
}

static int walk(struct vmt_perfdata *p, const struct vmt_ring_set *set, struct vmt_diag *diag)
{
	struct vmt_item item;
	int status;

	while ((status = vmt_perfdata_next(p, &item, diag)) > 0) {
		if (item.type == VMT_ITEM_RECORDS && note_cuts(p, set, item.data, item.len))
			return VMT_E_NOMEM;
	}
	return status;
}

static int walk_and_return(struct vmt_perfdata *p, const struct vmt_ring_set *set,
			   struct vmt_diag *diag)
{
	const struct perf_place start = p->at;
	const uint64_t offset = vmt_reader_offset(p->reader);
	const bool inside = p->zstd != NULL; /* a zstd stream has begun: it cannot be read twice */
	int status, built;

	p->at.next_attr = p->nr_attrs;
	p->at.next_text = p->nr_texts;
	p->at.packed_broken = p->at.packed_broken || inside;
	p->walking = true;
	status = walk(p, set, diag);
	built = vmt_aux_build_finish(&p->build);
	p->walking = false;
	if (!inside && p->zstd)
		ZSTD_DCtx_reset(p->zstd, ZSTD_reset_session_only);
	p->at = start;
	p->tell_limit = p->aux.lost_extents != 0;
	if (status || built)
		return status ? status : built;
	return vmt_reader_seek(p->reader, offset, diag);
}

int perf_aux_walk(struct vmt_perfdata *p, struct vmt_diag *diag)
{
	struct vmt_ring_set *set;
	int status = vmt_reader_spool(p->reader, &p->spool_lost, diag);

	if (status)
		return status;
	p->walked = true;
	p->build.index = &p->aux;
	set = vmt_ring_set_new();
	for (size_t i = 0; set && i < p->nr_attrs; i++)
		vmt_ring_set_add(set, &p->attrs[i].attr, p->attrs[i].ids, p->attrs[i].nr_ids);
	status = set ? walk_and_return(p, set, diag) : VMT_E_NOMEM;
	vmt_ring_set_free(set);
	if (status == VMT_E_NOMEM)
		vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the file", "memory is short");
	return status;
}

int perf_aux_losses(struct vmt_perfdata *p, struct vmt_item *item)
{
	if (p->walking)
		return 0;
	if (p->spool_lost) {
		perf_loss_item(p, item, "spool-full", p->spool_lost);
		perf_count(p, 0, p->spool_lost);
		p->spool_lost = 0;
		return 1;
	}
	if (p->tell_limit) {
		perf_loss_item(p, item, "aux-limit", p->aux.lost_bytes);
		p->tell_limit = false;
		return 1;
	}
	return 0;
}

/* ---- the index ---- */

static int read_extent(void *source, const struct vmt_aux_extent *extent, uint64_t from,
		       uint8_t *out, size_t len, size_t *done, struct vmt_diag *diag)
{
	struct vmt_perfdata *p = source;

	*done = 0;
	if (from > extent->len || len > extent->len - from)
		return vmt_diag_at(diag, VMT_E_TRUNCATED, extent->at + extent->len,
				   "a buffer of trace ends too early", "an error in the program");
	return vmt_reader_read_at(p->reader, extent->at + from, out, len, done, diag);
}

static void set_config(struct vmt_perfdata *p)
{
	struct vmt_pt_info *info = &p->aux.info;
	const uint64_t bits = p->mtc_freq_bits;

	for (size_t i = 0; i < p->nr_attrs; i++) {
		uint64_t freq;

		if (p->attrs[i].attr.type != info->pmu_type)
			continue;
		info->config = p->attrs[i].attr.config;
		freq = bits ? (info->config & bits) >> __builtin_ctzll(bits) : 0;
		info->has_mtc_freq = bits && (info->config & p->mtc_bit) && freq <= MTC_FREQ_MAX;
		if (info->has_mtc_freq)
			info->mtc_freq = (uint8_t)freq;
		return;
	}
}

const struct vmt_aux_index *vmt_perfdata_aux(struct vmt_perfdata *p)
{
	const char *cpuid = vmt_perfdata_feature(p, "CPUID");
	struct vmt_pt_info *info = &p->aux.info;
	struct vmt_pt_cpu cpu;

	if (cpuid && !info->has_cpu_id && vmt_pt_cpu_parse(cpuid, &cpu)) {
		info->has_cpu_id = true;
		info->family = cpu.family;
		info->model = cpu.model;
		info->stepping = cpu.stepping;
	}
	if (p->aux.has_info && !info->config)
		set_config(p);
	p->aux.read = read_extent;
	p->aux.source = p;
	return &p->aux;
}

void perf_aux_free(struct vmt_perfdata *p)
{
	vmt_aux_index_free(&p->aux);
	free(p->filter);
	free(p->links);
}
