// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Intel PT of a live capture. Invariant: a ring of Intel PT has its AUX area mapped from the moment
 * it is in live->rings, and gives it back before the ring itself.
 */
#include <stdlib.h>
#include <string.h>

#include "host/capture/live_state.h"
#include "host/capture/pt_kept.h"
#include "host/capture/synth.h"
#include "host/capture/vmx_module.h"

#define DATA_RING_BYTES	  (64u << 10) /* AUX, ITRACE_START, MMAP2, COMM of one thread or CPU */
#define AUX_MIN		  (64u << 10)
#define AUX_MAX		  (1u << 30)
#define AUX_WATERMARK_MAX (1u << 20) /* what the kernel may hold back */
#define DEFAULT_BYTES	  (64u << 20)

void vmt_live_size_pt(struct vmt_live *live, const struct vmt_live_setup *setup)
{
	uint64_t bytes = setup->pt_bytes ? setup->pt_bytes : DEFAULT_BYTES;
	size_t areas = 0;

	for (size_t i = 0; i < live->threads.count; i++)
		areas += live->threads.rows[i].is_vcpu;
	if (live->system_wide)
		areas = setup->nr_cpus;
	live->pt_aux_bytes = AUX_MIN;
	while (areas && live->pt_aux_bytes < AUX_MAX && live->pt_aux_bytes * 2 <= bytes / areas)
		live->pt_aux_bytes *= 2;
}

int vmt_live_map_pt(struct vmt_live *live, struct vmt_live_ring *ring, struct vmt_diag *diag)
{
	struct vmt_pt_ring *pt = calloc(1, sizeof(*pt));
	struct vmt_diag own = { 0 };

	if (!pt)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture",
				    "memory is short");
	pt->aux = vmt_perf_map_aux(live->ops, ring->leader, ring->ring.page, ring->ring.data_bytes,
				   live->pt_aux_bytes, live->pt_overwrite, &own);
	if (!pt->aux) {
		free(pt);
		if (diag && !diag->code)
			*diag = own;
		return (int)own.code;
	}
	pt->page = ring->ring.page;
	pt->aux_bytes = live->pt_aux_bytes;
	pt->overwrite = live->pt_overwrite;
	if (live->pt_privacy.keep) {
		pt->kept = vmt_pt_kept_new(&live->pt_privacy);
		if (!pt->kept) {
			live->ops->unmap(pt->aux, live->pt_aux_bytes);
			free(pt);
			return vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture",
					    "memory is short");
		}
	}
	pt->area =
		(struct vmt_aux_area){ .idx = ring->ring.stream,
				       .cpu = ring->tid ? VMT_AUX_NO_CPU : (uint32_t)ring->ring.cpu,
				       .tid = (uint32_t)ring->tid };
	ring->pt = pt;
	ring->ring.pt = pt;
	return 0;
}

void vmt_live_unmap_pt(struct vmt_live *live, struct vmt_live_ring *ring)
{
	if (!ring->pt)
		return;
	live->ops->unmap(ring->pt->aux, ring->pt->aux_bytes);
	vmt_pt_kept_free(ring->pt->kept);
	free(ring->pt);
	ring->pt = NULL;
	ring->ring.pt = NULL;
}

static int open_pt(struct vmt_live *live, pid_t tid, int cpu, struct vmt_diag *diag)
{
	struct vmt_perf_want want = vmt_live_want(live, VMT_LIVE_PT);
	size_t quarter = live->pt_aux_bytes / 4;
	int ring, err;

	want.pid = tid;
	want.cpu = cpu;
	want.aux_watermark = (uint32_t)(quarter < AUX_WATERMARK_MAX ? quarter : AUX_WATERMARK_MAX);
	ring = vmt_live_open_ring(live, VMT_LIVE_PT, want, DATA_RING_BYTES, diag);
	if (ring < 0 || !live->pt_filter[0])
		return ring;
	err = vmt_perf_filter(live->ops, live->rings[ring].leader, live->pt_filter, diag);
	return err ? err : ring;
}

int vmt_live_open_pt_cpu(struct vmt_live *live, int cpu, struct vmt_diag *diag)
{
	int ring = open_pt(live, -1, cpu, diag);

	return ring < 0 ? ring : 0;
}

/* Lets the kernel module set the VMX controls of a thread. */
static int add_controls(struct vmt_live *live, pid_t tid, struct vmt_diag *diag)
{
	if (live->controls < 0)
		return 0;
	if (live->nr_controlled == live->cap_controlled) {
		const size_t cap = live->cap_controlled ? live->cap_controlled * 2 : 16;
		pid_t *bigger = realloc(live->controlled, cap * sizeof(*bigger));

		if (!bigger)
			return vmt_diag_set(diag, VMT_E_NOMEM, "cannot follow a thread",
					    "memory is short");
		live->controlled = bigger;
		live->cap_controlled = cap;
	}
	live->controlled[live->nr_controlled++] = tid;
	return vmt_vmx_module_add(live->ops, live->controls, tid, diag);
}

int vmt_live_open_pt_thread(struct vmt_live *live, const struct vmt_domains *domains,
			    const struct vmt_thread *thread, struct vmt_diag *diag)
{
	struct vmt_diag own = { 0 };
	int ring;

	if (!live->pt_type || !thread->is_vcpu)
		return 0;
	ring = add_controls(live, thread->tid, diag);
	if (ring || live->system_wide)
		return ring;
	ring = open_pt(live, thread->tid, -1, &own);
	if (ring == VMT_E_NOT_FOUND) /* it has ended meanwhile */
		return 0;
	if (ring < 0) {
		if (diag && !diag->code)
			*diag = own;
		return ring;
	}
	if (thread->domain < domains->count && domains->items[thread->domain].pid > 0)
		live->rings[ring].pt->area.pid = (uint32_t)domains->items[thread->domain].pid;
	return 0;
}

/*
 * The kernel disables an event whose area is full, at once or a moment after it has told so:
 * enabling at every drain does not miss that moment, and costs nothing where the event runs.
 */
int vmt_live_drain_pt(struct vmt_live *live, struct vmt_live_ring *ring,
		      struct vmt_capture_counts *counts, uint64_t head, struct vmt_diag *diag)
{
	int err, enabled;

	if (ring->pt->overwrite)
		return ring->ended ? vmt_pt_ring_snapshot(ring->pt, counts->last_ns, live->store,
							  &counts->pt, diag)
				   : 0;
	err = vmt_pt_ring_drain(ring->pt, head, live->store, &counts->pt, diag);
	enabled = live->enabled && !ring->ended
			  ? vmt_perf_enable(live->ops, ring->leader, err ? NULL : diag)
			  : 0;

	return err ? err : enabled;
}

int vmt_live_write_existing(struct vmt_live *live, const struct vmt_domains *domains,
			    struct vmt_diag *diag)
{
	if (!live->pt_id)
		return 0;
	if (!live->synth_stream)
		live->synth_stream = live->next_stream++;
	return vmt_synth_domains(domains, live->pt_id, live->synth_stream,
				 live->pt_privacy.keep != VMT_PRIVACY_GUEST, live->store, diag);
}

int vmt_live_snapshot(struct vmt_live *live, uint64_t now_ns, struct vmt_capture_counts *counts,
		      struct vmt_diag *diag)
{
	int first_err = 0;

	for (size_t i = 0; live->pt_overwrite && i < live->nr_rings; i++) {
		struct vmt_live_ring *ring = &live->rings[i];
		int err, enabled = 0;

		if (ring->leader < 0 || !ring->pt)
			continue;
		if (live->enabled)
			vmt_perf_disable(live->ops, ring->leader);
		err = vmt_pt_ring_snapshot(ring->pt, now_ns, live->store, &counts->pt,
					   first_err ? NULL : diag);
		if (live->enabled)
			enabled = vmt_perf_enable(live->ops, ring->leader, err ? NULL : diag);
		err = err ? err : enabled;
		first_err = first_err ? first_err : err;
	}
	return first_err;
}

size_t vmt_live_controls(const struct vmt_live *live, struct vmtrace_vmx_state *out, size_t max)
{
	size_t nr = 0;

	for (size_t i = 0; i < live->nr_controlled && nr < max; i++)
		nr += vmt_vmx_module_read(live->ops, live->controls, live->controlled[i], &out[nr]);
	return nr;
}
