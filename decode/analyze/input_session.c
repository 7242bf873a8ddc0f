// SPDX-License-Identifier: LGPL-2.1-or-later
/* The session document (docs/FORMAT.md) and marks: JSON from a file of anyone. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/input_private.h"
#include "decode/base/json_bound.h"

/* Bytes of a name: every line of a script may repeat it. The longest file name. */
#define NAME_MAX_BYTES 255u

/* A copy that is cut at the end of a character. */
static char *copy_name(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t len = strlen(text);

	if (len > NAME_MAX_BYTES) {
		len = NAME_MAX_BYTES;
		while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	return strndup(text, len);
}

/* NULL when it is no JSON object, or one with too many values. */
static json_t *parse_object(const uint8_t *json, size_t len)
{
	json_t *root = NULL;

	if (vmt_json_is_bounded(json, len))
		root = json_loadb((const char *)json, len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(root))
		return root;
	json_decref(root);
	return NULL;
}

/* The first text stays: it may have been handed out. */
static const char *keep_text(char **slot, const json_t *value)
{
	if (!*slot && json_is_string(value))
		*slot = copy_name(value);
	return *slot;
}

/* The same for a domain's XML, whole. */
static const char *keep_xml(char **slot, const json_t *value)
{
	if (!*slot && json_is_string(value))
		*slot = strdup(json_string_value(value));
	return *slot;
}

static uint64_t number(const json_t *value)
{
	json_int_t v = json_integer_value(value);

	return v > 0 ? (uint64_t)v : 0;
}

static void take_threads(struct vmt_input *in, const json_t *domain, uint32_t index)
{
	struct vmt_domain_info *info = &in->domains[index];
	const json_t *entry;
	unsigned int nr = 0;
	size_t i;

	json_array_foreach(json_object_get(domain, "vcpus"), i, entry)
	{
		uint64_t tid = number(json_object_get(entry, "tid"));
		uint64_t id = number(json_object_get(entry, "id"));

		nr++;
		if (tid && tid <= INT32_MAX && id <= INT32_MAX)
			input_vcpu(in, (uint32_t)tid, info->pid, index, (int)id);
	}
	if (nr > info->nr_vcpus)
		info->nr_vcpus = nr;
	json_array_foreach(json_object_get(domain, "threads"), i, entry)
	{
		uint64_t tid = number(json_object_get(entry, "tid"));

		if (tid && tid <= INT32_MAX)
			input_vcpu(in, (uint32_t)tid, info->pid, index, -1);
	}
}

/* A machine that libvirt does not know is called by its process, as everywhere in vmtrace. */
static const char *pid_label(char **slot, uint32_t pid)
{
	json_t *text = json_sprintf("pid %u", pid);
	const char *label = keep_text(slot, text);

	json_decref(text);
	return label;
}

static void take_domains(struct vmt_input *in, const json_t *array)
{
	const json_t *domain;
	size_t i;

	json_array_foreach(array, i, domain)
	{
		struct vmt_domain_info *info = &in->domains[i];

		if (i == INPUT_DOMAINS_MAX)
			break;
		info->name = keep_text(&in->domain_texts[i][0], json_object_get(domain, "name"));
		info->uuid = keep_text(&in->domain_texts[i][1], json_object_get(domain, "uuid"));
		info->xml = keep_xml(&in->domain_texts[i][2], json_object_get(domain, "xml"));
		if (!info->pid)
			info->pid = (uint32_t)number(json_object_get(domain, "pid"));
		if (!info->name && !info->uuid && info->pid)
			info->name = pid_label(&in->domain_texts[i][0], info->pid);
		if (i >= in->facts.nr_domains)
			in->facts.nr_domains = i + 1;
		take_threads(in, domain, (uint32_t)i);
	}
}

/* The last document has the final figure. */
static void take_recorder(struct vmt_input *in, const json_t *recorder)
{
	const json_t *cpu = json_object_get(recorder, "cpu_ns");

	if (!json_is_integer(cpu))
		return;
	in->facts.has_recorder_cpu = true;
	in->facts.recorder_cpu_ns = number(cpu);
	in->facts.recorder_exits = number(json_object_get(recorder, "exits"));
}

static void take_host(struct vmt_input *in, const json_t *host)
{
	const char *isa = json_string_value(json_object_get(host, "isa"));

	in->facts.host = keep_text(&in->host, json_object_get(host, "hostname"));
	in->facts.kernel = keep_text(&in->kernel, json_object_get(host, "kernel"));
	if (isa && !strcmp(isa, "vmx"))
		in->facts.isa = VMT_ISA_VMX;
	else if (isa && !strcmp(isa, "svm"))
		in->facts.isa = VMT_ISA_SVM;
}

void input_session(struct vmt_input *in, const uint8_t *json, size_t len)
{
	json_t *root = parse_object(json, len);
	const json_t *start;

	if (!root)
		return;
	if (!in->session_json) {
		in->session_json = malloc(len + 1);
		if (in->session_json) {
			memcpy(in->session_json, json, len);
			in->session_json[len] = '\0';
			in->facts.session_json = in->session_json;
		}
	}
	start = json_object_get(root, "start_ns");
	if (!in->facts.has_start && json_is_integer(start)) {
		in->facts.has_start = true;
		in->facts.start_ns = number(start);
	}
	in->facts.tool = keep_text(&in->tool, json_object_get(root, "tool"));
	take_host(in, json_object_get(root, "host"));
	take_recorder(in, json_object_get(root, "recorder"));
	take_domains(in, json_object_get(root, "domains"));
	vmt_pt_controls_take(&in->facts.pt_controls, json_object_get(root, "pt"));
	if (json_is_true(json_object_get(root, "has_switches"))) {
		in->facts.has_switches = true;
		vmt_join_has_switches(in->join);
	}
	json_decref(root);
}

static const char *known_name(const char *name)
{
	static const char *const names[] = { "capture-start",	"capture-stop",
					     "started",		"paused",
					     "resumed",		"reset",
					     "stopped",		"crashed",
					     "migrated-away",	"connection-lost",
					     "connection-back", "hotplug",
					     "trigger",		"thread-not-captured" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (name && !strcmp(name, names[i]))
			return names[i];
	}
	return "other";
}

static void pop_mark(struct vmt_input *in)
{
	vmt_join_mark(in->join, in->marks[0].time_ns, in->marks[0].domain, in->marks[0].name);
	in->nr_marks--;
	memmove(&in->marks[0], &in->marks[1], in->nr_marks * sizeof(in->marks[0]));
}

void input_mark(struct vmt_input *in, const uint8_t *json, size_t len)
{
	json_t *root = parse_object(json, len);
	struct input_mark mark;
	size_t at;

	if (!root)
		return;
	mark.time_ns = number(json_object_get(root, "time_ns"));
	mark.domain = (uint32_t)number(json_object_get(root, "domain"));
	mark.name = known_name(json_string_value(json_object_get(root, "name")));
	json_decref(root);
	if (!strcmp(mark.name, "capture-stop")) {
		in->facts.has_stop = true;
		in->facts.stop_ns = mark.time_ns;
	}
	if (in->nr_marks == INPUT_MARKS_MAX)
		pop_mark(in);
	for (at = in->nr_marks; at > 0 && in->marks[at - 1].time_ns > mark.time_ns; at--)
		in->marks[at] = in->marks[at - 1];
	in->marks[at] = mark;
	in->nr_marks++;
}

void input_marks_until(struct vmt_input *in, uint64_t time_ns)
{
	while (in->nr_marks && in->marks[0].time_ns <= time_ns)
		pop_mark(in);
}
