// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PMU: AUX buffers as those of the kernel's intel_pt driver. Invariant: a CPU's output is open
 * (perf_aux_output_begin) exactly while an event runs on it and its buffer has room.
 */
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "standin.h"

#define CHUNK (64 * 1024) /* handed out at the latest after so many bytes */

struct buffer {
	void **pages;
	unsigned long size;
	unsigned long head; /* where the next byte goes, below size */
	bool overwrite;
};

struct output {
	struct perf_output_handle handle;
	struct perf_event *event; /* NULL: none runs */
	struct buffer *buffer;	  /* NULL: it is full */
	unsigned long written;	  /* since begin */
	unsigned long room;	  /* since begin, of a buffer that is not overwritten */
	bool fresh;
};
static DEFINE_PER_CPU(struct output, outputs);

/* ---- attributes ---- */

PMU_FORMAT_ATTR(pt, "config:0");
PMU_FORMAT_ATTR(tsc, "config:10");
PMU_FORMAT_ATTR(branch, "config:13");
PMU_FORMAT_ATTR(event, "config:31");
static struct attribute *format_attrs[] = { &format_attr_pt.attr, &format_attr_tsc.attr,
					    &format_attr_branch.attr, &format_attr_event.attr, NULL };
static const struct attribute_group format_group = { .name = "format", .attrs = format_attrs };

#define CAP(name, value) PMU_EVENT_ATTR_STRING(name, cap_##name, value)
CAP(max_subleaf, "1\n");
CAP(cr3_filtering, "0\n");
CAP(psb_cyc, "0\n");
CAP(ip_filtering, "0\n");
CAP(mtc, "1\n"); /* which also allows branch=0; there is no period to choose */
CAP(ptwrite, "0\n");
CAP(power_event_trace, "0\n");
CAP(event_trace, "1\n");
CAP(tnt_disable, "0\n");
CAP(topa_output, "1\n");
CAP(topa_multiple_entries, "1\n");
CAP(single_range_output, "1\n");
CAP(output_subsys, "0\n");
CAP(payloads_lip, "0\n");
CAP(num_address_ranges, "0\n");
CAP(mtc_periods, "0\n");
CAP(cycle_thresholds, "0\n");
CAP(psb_periods, "0\n");
#define CAP_ATTR(name) &cap_##name.attr.attr
static struct attribute *cap_attrs[] = { CAP_ATTR(max_subleaf),
					 CAP_ATTR(cr3_filtering),
					 CAP_ATTR(psb_cyc),
					 CAP_ATTR(ip_filtering),
					 CAP_ATTR(mtc),
					 CAP_ATTR(ptwrite),
					 CAP_ATTR(power_event_trace),
					 CAP_ATTR(event_trace),
					 CAP_ATTR(tnt_disable),
					 CAP_ATTR(topa_output),
					 CAP_ATTR(topa_multiple_entries),
					 CAP_ATTR(single_range_output),
					 CAP_ATTR(output_subsys),
					 CAP_ATTR(payloads_lip),
					 CAP_ATTR(num_address_ranges),
					 CAP_ATTR(mtc_periods),
					 CAP_ATTR(cycle_thresholds),
					 CAP_ATTR(psb_periods),
					 NULL };
static const struct attribute_group cap_group = { .name = "caps", .attrs = cap_attrs };

PMU_EVENT_ATTR_STRING(max_nonturbo_ratio, top_max_nonturbo_ratio, "20\n");
PMU_EVENT_ATTR_STRING(tsc_art_ratio, top_tsc_art_ratio, "2:1\n");
static struct attribute *top_attrs[] = { &top_max_nonturbo_ratio.attr.attr,
					 &top_tsc_art_ratio.attr.attr, NULL };
static const struct attribute_group top_group = { .attrs = top_attrs };

static const struct attribute_group *attr_groups[] = { &format_group, &cap_group, &top_group,
						       NULL };

/* ---- buffers ---- */

static void *setup_aux(struct perf_event *event, void **pages, int nr_pages, bool overwrite)
{
	struct buffer *b = kzalloc(sizeof(*b), GFP_KERNEL);

	if (!b)
		return NULL;
	b->pages = pages;
	b->size = (unsigned long)nr_pages << PAGE_SHIFT;
	b->overwrite = overwrite;
	return b;
}

static void free_aux(void *aux)
{
	kfree(aux);
}

static void copy_in(struct buffer *b, const u8 *bytes, unsigned int len)
{
	while (len) {
		unsigned long offset = b->head & ~PAGE_MASK;
		unsigned int n = min_t(unsigned int, len, PAGE_SIZE - offset);

		memcpy(b->pages[b->head >> PAGE_SHIFT] + offset, bytes, n);
		b->head = (b->head + n) % b->size;
		bytes += n;
		len -= n;
	}
}

/* ---- output: interrupts are off ---- */

static void begin(struct output *o)
{
	struct buffer *b = perf_aux_output_begin(&o->handle, o->event);

	o->buffer = b;
	o->written = 0;
	o->fresh = true;
	if (!b)
		return;
	if (!b->overwrite)
		b->head = o->handle.head % b->size;
	o->room = o->handle.size;
}

static void end(struct output *o)
{
	struct buffer *b = o->buffer;

	if (!b)
		return;
	o->buffer = NULL;
	if (b->overwrite)
		o->handle.head = b->head;
	perf_aux_output_end(&o->handle, b->overwrite ? b->size : o->written);
}

/* PADs to the end of the room: a group is whole, or its buffer is full. */
static void pad(struct output *o)
{
	static const u8 pads[STANDIN_GROUP_MAX];

	copy_in(o->buffer, pads, o->room - o->written);
	o->written = o->room;
}

bool standin_running(bool *fresh)
{
	const struct output *o = this_cpu_ptr(&outputs);

	*fresh = o->fresh;
	return o->event && o->buffer;
}

void standin_write(const struct standin_group *group)
{
	struct output *o = this_cpu_ptr(&outputs);
	struct buffer *b = o->buffer;

	if (!b->overwrite && o->room - o->written < group->len) {
		pad(o);
		perf_aux_output_flag(&o->handle, PERF_AUX_FLAG_TRUNCATED);
		end(o);
		begin(o); /* without room the kernel disables the event */
		return;
	}
	copy_in(b, group->bytes, group->len);
	o->written += group->len;
	o->fresh = false;
	if (b->overwrite || (o->written < CHUNK && o->written < o->room / 2))
		return;
	end(o);
	begin(o);
}

/* ---- events ---- */

static int event_init(struct perf_event *event)
{
	return event->attr.type == event->pmu->type ? 0 : -ENOENT;
}

static void event_start(struct perf_event *event, int mode)
{
	struct output *o = this_cpu_ptr(&outputs);

	event->hw.state = PERF_HES_STOPPED;
	o->event = event;
	begin(o);
	if (o->buffer)
		event->hw.state = 0;
	else
		o->event = NULL;
}

static void event_stop(struct perf_event *event, int mode)
{
	struct output *o = this_cpu_ptr(&outputs);

	event->hw.state = PERF_HES_STOPPED;
	if (o->event != event)
		return;
	end(o);
	o->event = NULL;
}

static int event_add(struct perf_event *event, int mode)
{
	event->hw.state = PERF_HES_STOPPED;
	if (!(mode & PERF_EF_START))
		return 0;
	event_start(event, 0);
	return event->hw.state == PERF_HES_STOPPED ? -EINVAL : 0;
}

static void event_del(struct perf_event *event, int mode)
{
	event_stop(event, PERF_EF_UPDATE);
}

static void event_read(struct perf_event *event)
{
}

static struct pmu standin_pmu = {
	.module = THIS_MODULE,
	.capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE,
	.attr_groups = attr_groups,
	.task_ctx_nr = perf_sw_context,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
	.setup_aux = setup_aux,
	.free_aux = free_aux,
};

int standin_pmu_register(void)
{
	return perf_pmu_register(&standin_pmu, "intel_pt", -1);
}

void standin_pmu_unregister(void)
{
	perf_pmu_unregister(&standin_pmu);
}
