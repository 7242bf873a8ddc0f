// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: unknown is null, never 0; every document that is written is one that readers of
 * vmtrace-session/1 accept.
 */
#include "host/capture/document.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/json_bound.h"

#define DUMP_FLAGS (JSON_COMPACT | JSON_PRESERVE_ORDER)

static json_t *text_or_null(const char *text)
{
	json_t *value = text && *text ? json_string(text) : NULL;

	return value ? value : json_null();
}

static json_t *number_or_null(uint64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

static json_t *vcpus_of(const struct vmt_domain *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->nr_vcpus; i++) {
		const struct vmt_vcpu *v = &d->vcpus[i];
		json_t *one = json_object();

		json_object_set_new(one, "id", json_integer((json_int_t)v->id));
		json_object_set_new(one, "tid", number_or_null((uint64_t)v->tid));
		json_object_set_new(one, "source", text_or_null(v->tid ? v->tid_source : NULL));
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *threads_of(const struct vmt_domain *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->nr_helpers; i++) {
		json_t *one = json_object();

		json_object_set_new(one, "tid", json_integer(d->helpers[i].tid));
		json_object_set_new(one, "role", text_or_null(d->helpers[i].role));
		json_object_set_new(one, "name", text_or_null(d->helpers[i].name));
		json_array_append_new(list, one);
	}
	return list;
}

/* Who the domain is, without its threads. */
static json_t *identity_of(const struct vmt_domain *d)
{
	json_t *one = json_object();

	json_object_set_new(one, "name", text_or_null(d->name));
	json_object_set_new(one, "uuid", text_or_null(d->uuid));
	json_object_set_new(one, "pid", number_or_null((uint64_t)d->pid));
	json_object_set_new(one, "uri", text_or_null(d->uri));
	json_object_set_new(one, "type", text_or_null(d->type));
	json_object_set_new(one, "xml", text_or_null(d->xml));
	json_object_set_new(one, "tsc_khz", number_or_null(d->host_tsc_khz));
	return one;
}

static char *finish(json_t *doc)
{
	char *text = doc ? json_dumps(doc, DUMP_FLAGS) : NULL;

	json_decref(doc);
	return text;
}

static json_t *hex(uint64_t value)
{
	return json_sprintf("0x%llx", (unsigned long long)value);
}

static json_t *words_of(const uint32_t words[VMTRACE_VMX_WORDS])
{
	static const char *const names[VMTRACE_VMX_WORDS] = {
		[VMTRACE_VMX_SECONDARY] = "secondary",
		[VMTRACE_VMX_EXIT] = "exit",
		[VMTRACE_VMX_ENTRY] = "entry",
	};
	json_t *one = json_object();

	for (size_t i = 0; i < VMTRACE_VMX_WORDS; i++)
		json_object_set_new(one, names[i], hex(words[i]));
	return one;
}

static json_t *controls_of(const struct vmtrace_vmx_state *state)
{
	json_t *one = json_object();

	json_object_set_new(one, "tid", json_integer(state->tid));
	json_object_set_new(one, "before", words_of(state->before));
	json_object_set_new(one, "in_force", words_of(state->in_force));
	json_object_set_new(one, "after", words_of(state->after));
	json_object_set_new(one, "guest_rtit_ctl", hex(state->guest_ctl));
	json_object_set_new(one, "entries", json_integer((json_int_t)state->entries));
	json_object_set_new(one, "untraced", json_integer((json_int_t)state->untraced));
	json_object_set_new(one, "left", json_integer((json_int_t)state->left));
	json_object_set_new(one, "rewritten", json_integer((json_int_t)state->rewritten));
	return one;
}

static json_t *pt_of(const struct vmt_document_pt *pt)
{
	json_t *one = json_object(), *list = json_array();

	json_object_set_new(one, "mode", text_or_null(pt->mode));
	json_object_set_new(one, "means", text_or_null(pt->means));
	json_object_set_new(one, "privacy", text_or_null(pt->privacy));
	json_object_set_new(one, "conceal", json_boolean(pt->conceal));
	for (size_t i = 0; i < pt->nr_controls; i++)
		json_array_append_new(list, controls_of(&pt->controls[i]));
	json_object_set_new(one, "controls", list);
	return one;
}

char *vmt_document_live(const char *base_json, const struct vmt_document_facts *facts,
			const struct vmt_document_pt *pt, const struct vmt_domains *domains)
{
	json_t *doc = json_loads(base_json, 0, NULL), *list = json_array(), *clock = json_object(),
	       *recorder = json_object();

	json_object_set_new(clock, "tsc_convertible", json_boolean(facts->tsc_convertible));
	json_object_set_new(doc, "clock", clock);
	json_object_set_new(doc, "start_ns", number_or_null(facts->start_ns));
	json_object_set_new(doc, "has_switches", json_boolean(facts->has_switches));
	if (pt->recorded)
		json_object_set_new(doc, "pt", pt_of(pt));
	json_object_set_new(recorder, "cpu_ns", json_integer((json_int_t)facts->cpu_ns));
	json_object_set_new(recorder, "exits", json_integer((json_int_t)facts->exits));
	json_object_set_new(doc, "recorder", recorder);
	for (size_t i = 0; domains->items && i < domains->count; i++) {
		json_t *one = identity_of(&domains->items[i]);

		json_object_set_new(one, "vcpus", vcpus_of(&domains->items[i]));
		json_object_set_new(one, "threads", threads_of(&domains->items[i]));
		json_array_append_new(list, one);
	}
	json_object_set_new(doc, "domains", list);
	return finish(doc);
}

/* The live domain that a recorded one stands for: the same name, else the same place. */
static const struct vmt_domain *live_twin(const json_t *recorded, size_t index,
					  const struct vmt_domains *domains)
{
	const char *name = json_string_value(json_object_get(recorded, "name"));

	for (size_t i = 0; name && domains->items && i < domains->count; i++) {
		if (domains->items[i].name && !strcmp(domains->items[i].name, name))
			return &domains->items[i];
	}
	return domains->items && index < domains->count ? &domains->items[index] : NULL;
}

static json_t *replayed_domains(const json_t *recorded, const struct vmt_domains *domains)
{
	json_t *list = json_array();
	size_t count = json_array_size(recorded), live_count = domains->items ? domains->count : 0;

	for (size_t i = 0; i < count; i++) {
		json_t *one = json_deep_copy(json_array_get(recorded, i));
		const struct vmt_domain *live = live_twin(one, i, domains);

		if (live && json_is_object(one)) {
			json_object_set_new(one, "name", text_or_null(live->name));
			json_object_set_new(one, "uuid", text_or_null(live->uuid));
			json_object_set_new(one, "uri", text_or_null(live->uri));
			json_object_set_new(one, "xml", text_or_null(live->xml));
		}
		json_array_append_new(list, one);
	}
	for (size_t i = count; i < live_count; i++) {
		json_t *one = identity_of(&domains->items[i]);

		json_object_set_new(one, "vcpus", json_array());
		json_object_set_new(one, "threads", json_array());
		json_array_append_new(list, one);
	}
	return list;
}

/* A text out of a file of anyone; NULL when it is no JSON or has too many values. */
static json_t *parse(const void *json, size_t len)
{
	return vmt_json_is_bounded(json, len) ? json_loadb(json, len, 0, NULL) : NULL;
}

char *vmt_document_replay(const char *base_json, const char *recorded, size_t recorded_len,
			  const struct vmt_domains *domains)
{
	static const char *const kept[] = { "host", "clock", "start_ns", "has_switches", "pt" };
	json_t *doc = json_loads(base_json, 0, NULL);
	json_t *old = parse(recorded, recorded_len);

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		json_t *value = json_object_get(old, kept[i]);

		if (value)
			json_object_set(doc, kept[i], value);
	}
	json_object_set_new(doc, "domains",
			    replayed_domains(json_object_get(old, "domains"), domains));
	json_decref(old);
	return finish(doc);
}

char *vmt_document_mark(uint64_t time_ns, uint32_t domain, const char *name, const char *detail)
{
	json_t *doc = json_object();

	json_object_set_new(doc, "time_ns", number_or_null(time_ns));
	json_object_set_new(doc, "domain", json_integer(domain));
	json_object_set_new(doc, "name", text_or_null(name));
	json_object_set_new(doc, "detail", text_or_null(detail));
	return finish(doc);
}

bool vmt_document_mark_name(const void *json, size_t len, char *name, size_t size)
{
	json_t *doc = parse(json, len);
	const char *text = json_string_value(json_object_get(doc, "name"));
	bool ok = text && strlen(text) < size;

	if (ok)
		memcpy(name, text, strlen(text) + 1);
	json_decref(doc);
	return ok;
}

static uint64_t number_of(const void *json, size_t len, const char *key)
{
	json_t *doc = parse(json, len);
	json_int_t value = json_integer_value(json_object_get(doc, key));

	json_decref(doc);
	return value > 0 ? (uint64_t)value : 0;
}

uint64_t vmt_document_start_ns(const void *json, size_t len)
{
	return number_of(json, len, "start_ns");
}

uint64_t vmt_document_mark_time_ns(const void *json, size_t len)
{
	return number_of(json, len, "time_ns");
}
