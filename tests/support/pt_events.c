/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/pt_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/event_text.h"
#include "tests/support/pt_text.h"

#define TEXT_MAX 65536

struct sink {
	struct vmt_pt_result *result;
	size_t len;
};

static void take(void *context, const struct vmt_event *event)
{
	static const char source[] = " source=pt";
	struct sink *s = context;
	char line[1024], *at;

	vmt_event_text(line, sizeof(line), event);
	at = strstr(line, source);
	if (!at)
		abort();
	memmove(at, at + sizeof(source) - 1, strlen(at + sizeof(source) - 1) + 1);
	if (s->len + strlen(line) + 2 > TEXT_MAX)
		abort();
	s->len += (size_t)sprintf(s->result->events + s->len, "%s\n", line);
}

static void skipped(void *context, uint64_t offset, uint64_t len, const char *why)
{
	struct sink *s = context;
	char *to = s->result->skipped;
	size_t used = strlen(to), room = sizeof(s->result->skipped) - used;

	snprintf(to + used, room, "%llu+%llu %s;", (unsigned long long)offset,
		 (unsigned long long)len, why);
}

static void feed(struct vmt_pt_decoder *d, const char *text, size_t len, size_t piece)
{
	uint8_t bytes[16384];
	char *words = strndup(text, len);
	size_t n = vmt_pt_text(words, bytes, sizeof(bytes));

	free(words);
	for (size_t at = 0; at < n;) {
		size_t now = piece && piece < n - at ? piece : n - at;

		vmt_pt_decoder_feed(d, bytes + at, now);
		at += now;
	}
}

struct vmt_pt_result vmt_pt_events(const char *text, const struct vmt_pt_decoder_options *options,
				   size_t piece)
{
	struct vmt_pt_decoder_options o = *options;
	struct vmt_pt_result result = { .events = calloc(1, TEXT_MAX) };
	struct sink sink = { .result = &result };
	struct vmt_pt_decoder *d;

	o.emit = take;
	o.skipped = skipped;
	o.context = &sink;
	d = vmt_pt_decoder_new(&o);
	if (!d || !result.events)
		abort();
	while (*text) {
		const char *gap = strstr(text, " gap "), *seek = strstr(text, " seek ");
		const char *stop = !gap || (seek && seek < gap) ? seek : gap;

		feed(d, text, stop ? (size_t)(stop - text) : strlen(text), piece);
		if (!stop)
			break;
		if (stop == gap)
			vmt_pt_decoder_gap(d);
		else
			vmt_pt_decoder_seek(d);
		text = strchr(stop + 1, ' ');
	}
	vmt_pt_decoder_end(d);
	result.counts = vmt_pt_decoder_counts(d);
	result.ledger = vmt_pt_decoder_ledger(d);
	if (result.ledger.bytes_total != result.ledger.bytes_decoded + result.ledger.bytes_skipped)
		abort();
	vmt_pt_decoder_free(d);
	return result;
}
