/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named situations of a vCPU's life: tests/golden/join/NAME.txt holds records in and events out,
 * with "---" between. The records are written as the kernel writes them into a ring, by the formats
 * of the kernel that the file names, and go through ring, rec and join.
 *
 *   kernel 6.18                       formats to use
 *   switches                          the session records all context switches
 *   thread TID DOMAIN VCPU            known to the session; VCPU -1: a helper
 *   TIME PID/TID CPU NAME FIELD=N...  a tracepoint; or NAME = out, out-preempted, in, lost N,
 *                                     lost-samples N, lost-of-thread N, throttle, unthrottle,
 *                                     lost-begin, lost-end N
 *   mark TIME DOMAIN NAME             the domain's life
 *
 * VMT_TEST_REGENERATE=1 writes what comes out in place of what is expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/kvm/join.h"
#include "tests/support/event_text.h"
#include "tests/support/stream.h"

#define MAX_VALUES 16
#define MAX_TEXT   65536

struct situation {
	char kernel[16];
	struct vmt_ring_set *set;
	struct vmt_catalog *catalog;
	struct vmt_join *join;
	char marks[16][64]; /* names that outlive the events */
	unsigned int nr_marks;
	char out[MAX_TEXT];
	size_t len;
};

static void add_line(struct situation *s, const char *line)
{
	int n = snprintf(s->out + s->len, sizeof(s->out) - s->len, "%s\n", line);

	assert_true(n > 0 && (size_t)n < sizeof(s->out) - s->len);
	s->len += (size_t)n;
}

static void on_event(void *context, const struct vmt_event *event)
{
	char text[1024];

	add_line(context, vmt_event_text(text, sizeof(text), event));
}

enum loss_part {
	WHOLE,
	BEGIN, /* the rec that opens the stretch of a loss, without the loss itself */
	END,
};

/* Takes what the stream holds apart and pushes it. */
static void push(struct situation *s, struct vmt_stream *stream, unsigned int rec_flags,
		 enum loss_part part)
{
	struct vmt_ring_record record;
	struct vmt_rec rec, begin;
	size_t at = 0;

	while (at < stream->len) {
		int size =
			vmt_ring_parse(s->set, stream->bytes + at, stream->len - at, &record, NULL);

		assert_true(size > 0);
		at += (size_t)size;
		assert_int_equal(vmt_rec_decode(s->catalog, &record, &rec), 1);
		rec.flags = (uint8_t)(rec.flags | rec_flags);
		if (part != WHOLE)
			vmt_rec_loss_begin(&rec, rec.time_ns, &begin);
		vmt_join_push(s->join, part == BEGIN ? &begin : &rec);
	}
	vmt_stream_free(stream);
}

static size_t parse_values(char *words, struct vmt_stream_value *values)
{
	size_t n = 0;
	char *save;

	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(word, '=');

		assert_non_null(equals);
		assert_true(n < MAX_VALUES);
		*equals = '\0';
		values[n++] = (struct vmt_stream_value){
			word, equals[1] == '-' ? (uint64_t)strtoll(equals + 1, NULL, 0)
					       : strtoull(equals + 1, NULL, 0)
		};
	}
	return n;
}

static void tracepoint(struct situation *s, const struct vmt_stream_at *at, const char *name,
		       char *words)
{
	struct vmt_stream_value values[MAX_VALUES];
	struct vmt_format format = vmt_stream_format(s->kernel, name);
	struct vmt_stream stream = { 0 };
	size_t n = parse_values(words, values);

	for (size_t i = 0; i < n; i++)
		if (!vmt_format_find(&format, values[i].field))
			fail_msg("%s of %s has no field %s", name, s->kernel, values[i].field);
	assert_true(vmt_catalog_add(s->catalog, &format) >= 0);
	vmt_stream_tracepoint(&stream, &format, at, values, n);
	push(s, &stream, 0, WHOLE);
}

/* THROTTLE and UNTHROTTLE: time, id, stream_id, then the trailer of a switch record. */
static void throttle(struct vmt_stream *stream, const struct vmt_stream_at *at, uint32_t type)
{
	const uint64_t body[] = { at->time_ns, at->id, 0 };
	const uint16_t misc = 0, size = 8 + sizeof(body) + 32;
	struct vmt_stream trailer = { 0 };

	vmt_stream_append(stream, &type, sizeof(type));
	vmt_stream_append(stream, &misc, sizeof(misc));
	vmt_stream_append(stream, &size, sizeof(size));
	vmt_stream_append(stream, body, sizeof(body));
	vmt_stream_switch(&trailer, at, 0, 0);
	vmt_stream_append(stream, trailer.bytes + 8, 32);
	vmt_stream_free(&trailer);
}

static void record(struct situation *s, const struct vmt_stream_at *at, char *name, char *rest)
{
	struct vmt_stream stream = { 0 };
	enum loss_part part = WHOLE;
	unsigned int flags = 0;

	if (!strcmp(name, "out") || !strcmp(name, "out-preempted") || !strcmp(name, "in")) {
		vmt_stream_switch(&stream, at, name[0] == 'o', name[3] == '-');
	} else if (!strcmp(name, "lost-samples")) {
		vmt_stream_lost_samples(&stream, at, strtoull(rest, NULL, 0));
	} else if (!strcmp(name, "lost-begin") || !strcmp(name, "lost-end")) {
		vmt_stream_lost(&stream, at, strtoull(rest, NULL, 0));
		part = name[5] == 'b' ? BEGIN : END;
	} else if (!strcmp(name, "lost") || !strcmp(name, "lost-of-thread")) {
		vmt_stream_lost(&stream, at, strtoull(rest, NULL, 0));
		flags = name[4] ? VMT_REC_OF_THREAD : 0;
	} else if (!strcmp(name, "throttle") || !strcmp(name, "unthrottle")) {
		throttle(&stream, at, name[0] == 't' ? VMT_RING_THROTTLE : VMT_RING_UNTHROTTLE);
	} else {
		tracepoint(s, at, name, rest);
		return;
	}
	push(s, &stream, flags, part);
}

static void mark(struct situation *s, uint64_t time_ns, uint32_t domain, const char *name)
{
	char *kept = s->marks[s->nr_marks++];

	assert_true(s->nr_marks <= 16);
	snprintf(kept, sizeof(s->marks[0]), "%s", name);
	vmt_join_mark(s->join, time_ns, domain, kept);
}

/* Cuts a leading word off, with the space behind it. */
static bool take_keyword(char **line, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*line, word, len) != 0 || (*line)[len] != ' ')
		return false;
	*line += len + 1;
	return true;
}

/* Cuts a number off, with the space or slash behind it. */
static uint64_t take_number(char **line)
{
	bool negative = **line == '-';
	char *end;
	uint64_t v = strtoull(*line + negative, &end, 0);

	if (end == *line + negative)
		fail_msg("no number: %s", *line);
	*line = *end ? end + 1 : end;
	return negative ? 0 - v : v;
}

/* Cuts a word off; what follows is left in *line. */
static char *take_word(char **line)
{
	char *word = *line, *space = strchr(word, ' ');

	*line = space ? space + 1 : word + strlen(word);
	if (space)
		*space = '\0';
	return word;
}

static void play_line(struct situation *s, char *line)
{
	struct vmt_stream_at at = { .id = 1 };
	uint32_t domain;
	char *name;

	if (line[0] == '#' || line[0] == '\0')
		return;
	if (!strcmp(line, "switches")) {
		vmt_join_has_switches(s->join);
	} else if (take_keyword(&line, "kernel")) {
		snprintf(s->kernel, sizeof(s->kernel), "%s", line);
	} else if (take_keyword(&line, "thread")) {
		at.tid = (uint32_t)take_number(&line);
		domain = (uint32_t)take_number(&line);
		assert_int_equal(vmt_join_thread(s->join, at.tid, domain, (int)take_number(&line)),
				 0);
	} else if (take_keyword(&line, "mark")) {
		at.time_ns = take_number(&line);
		domain = (uint32_t)take_number(&line);
		mark(s, at.time_ns, domain, line);
	} else {
		at.time_ns = take_number(&line);
		at.pid = (uint32_t)take_number(&line);
		at.tid = (uint32_t)take_number(&line);
		at.cpu = (uint32_t)take_number(&line);
		name = take_word(&line);
		record(s, &at, name, line);
	}
}

static void play(struct situation *s, char *text)
{
	struct vmt_ring_attr attr = vmt_stream_attr(0);
	struct vmt_join_counts c;
	const uint64_t id = 1;
	char line[256], *save;

	snprintf(s->kernel, sizeof(s->kernel), "6.18");
	s->set = vmt_ring_set_new();
	s->catalog = vmt_catalog_new();
	s->join = vmt_join_new(s->catalog, on_event, s);
	assert_true(s->set && s->catalog && s->join);
	assert_int_equal(vmt_ring_set_add(s->set, &attr, &id, 1), 0);
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		play_line(s, l);
	vmt_join_flush(s->join);
	c = vmt_join_counts(s->join);
	snprintf(line, sizeof(line),
		 "counts entries=%" PRIu64 " exits=%" PRIu64 " failed=%" PRIu64
		 " unmatched-exits=%" PRIu64 " unmatched-entries=%" PRIu64 " untracked=%" PRIu64,
		 c.entries, c.exits, c.failed_entries, c.unmatched_exits, c.unmatched_entries,
		 c.untracked);
	add_line(s, line);
	vmt_join_free(s->join);
	vmt_catalog_free(s->catalog);
	vmt_ring_set_free(s->set);
}

static char *read_file(const char *path, size_t *len)
{
	char *text = malloc(MAX_TEXT);
	FILE *f = fopen(path, "rb");

	assert_true(f && text);
	*len = fread(text, 1, MAX_TEXT - 1, f);
	fclose(f);
	text[*len] = '\0';
	return text;
}

static void write_file(const char *path, const char *input, const char *output)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	fprintf(f, "%s---\n%s", input, output);
	assert_int_equal(fclose(f), 0);
}

static void situation(void **state)
{
	const char *path = *state;
	struct situation *s = calloc(1, sizeof(*s));
	size_t len;
	char *text = read_file(path, &len), *middle = strstr(text, "---\n"), *input;

	assert_non_null(s);
	assert_true(middle || getenv("VMT_TEST_REGENERATE"));
	if (middle)
		*middle = '\0';
	input = strdup(text);
	assert_non_null(input);
	play(s, text);
	if (getenv("VMT_TEST_REGENERATE"))
		write_file(path, input, s->out);
	else
		assert_string_equal(middle + 4, s->out);
	free(input);
	free(text);
	free(s);
}

static int is_text(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 4 && !strcmp(entry->d_name + len - 4, ".txt");
}

int main(void)
{
	const char *top = getenv("VMT_TOP");
	char folder[1024];
	struct dirent **names;
	struct CMUnitTest *tests;
	int n, failed;

	snprintf(folder, sizeof(folder), "%s/tests/golden/join", top ? top : ".");
	n = scandir(folder, &names, is_text, alphasort);
	if (n < 40)
		return 1;
	tests = calloc((size_t)n, sizeof(*tests));
	if (!tests)
		abort();
	for (int i = 0; i < n; i++) {
		char *path = NULL;

		if (asprintf(&path, "%s/%s", folder, names[i]->d_name) < 0)
			abort();
		tests[i].name = names[i]->d_name;
		tests[i].test_func = situation;
		tests[i].initial_state = path;
	}
	failed = _cmocka_run_group_tests("join", tests, (size_t)n, NULL, NULL);
	for (int i = 0; i < n; i++) {
		free(tests[i].initial_state);
		free(names[i]);
	}
	free(names);
	free(tests);
	return failed;
}
