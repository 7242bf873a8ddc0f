// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/session/info.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define TEXT(member)                                                                               \
	{                                                                                          \
#member, offsetof(struct vmt_session_info, member),                                \
			sizeof(((struct vmt_session_info *)0)->member)                             \
	}
#define NUMBER(member)                                                                             \
	{                                                                                          \
#member, offsetof(struct vmt_session_info, member), 0                              \
	}

/* Every member but pid. size 0: a uint64_t. */
static const struct member {
	const char *name;
	size_t offset, size;
} members[] = {
	TEXT(id),
	TEXT(file),
	TEXT(domains),
	TEXT(state),
	TEXT(backend),
	TEXT(end_reason),
	TEXT(last_error),
	NUMBER(start_realtime_ns),
	NUMBER(elapsed_ns),
	NUMBER(file_bytes),
	NUMBER(records),
	NUMBER(exits),
	NUMBER(lost_records),
	NUMBER(bytes_per_minute),
	NUMBER(keep_ns),
	NUMBER(kept_bytes),
	NUMBER(kept_records),
	NUMBER(kept_exits),
	NUMBER(unknown_losses),
	NUMBER(pt_bytes),
	NUMBER(pt_truncated),
	NUMBER(pt_partial),
	NUMBER(pt_collisions),
	NUMBER(pt_unstored),
	NUMBER(cpu_ns),
	TEXT(triggers),
	NUMBER(triggered),
	NUMBER(snapshots),
	TEXT(last_snapshot),
};

#define NR_MEMBERS (sizeof(members) / sizeof(members[0]))

char *vmt_info_to_json(const struct vmt_session_info *info)
{
	json_t *doc = json_object();
	char *text;

	json_object_set_new(doc, "pid", json_integer(info->pid));
	for (size_t i = 0; i < NR_MEMBERS; i++) {
		const char *at = (const char *)info + members[i].offset;
		json_t *value;
		uint64_t number;

		if (members[i].size) {
			value = json_string(at);
			if (!value) /* not UTF-8: a file name may be anything */
				value = json_string("?");
		} else {
			memcpy(&number, at, sizeof(number));
			value = json_integer((json_int_t)number);
		}
		json_object_set_new(doc, members[i].name, value);
	}
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	return text;
}

bool vmt_info_from_json(const char *text, size_t len, struct vmt_session_info *info)
{
	json_t *doc = json_loadb(text, len, 0, NULL);

	memset(info, 0, sizeof(*info));
	if (!json_is_object(doc)) {
		json_decref(doc);
		return false;
	}
	info->pid = (pid_t)json_integer_value(json_object_get(doc, "pid"));
	for (size_t i = 0; i < NR_MEMBERS; i++) {
		const json_t *value = json_object_get(doc, members[i].name);
		char *at = (char *)info + members[i].offset;
		uint64_t number = (uint64_t)json_integer_value(value);

		if (members[i].size)
			snprintf(at, members[i].size, "%s",
				 json_is_string(value) ? json_string_value(value) : "");
		else
			memcpy(at, &number, sizeof(number));
	}
	json_decref(doc);
	return true;
}

bool vmt_info_has_domain(const struct vmt_session_info *info, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = info->domains; *at;) {
		size_t part = strcspn(at, ",");

		if (part == len && !memcmp(at, name, len))
			return true;
		at += part + (at[part] == ',');
	}
	return false;
}
