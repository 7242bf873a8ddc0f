// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names, symbols and events of any bytes through every format of the script and the text report:
 * no control byte leaves, and every JSON line is JSON.
 */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/export/report_export.h"
#include "decode/export/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char sink[1u << 20];
static size_t sink_len;

static ssize_t take(int fd, const struct iovec *iov, int n)
{
	size_t len = iov[0].iov_len;

	(void)fd;
	(void)n;
	if (len > sizeof(sink) - sink_len)
		abort();
	memcpy(sink + sink_len, iov[0].iov_base, len);
	sink_len += len;
	return (ssize_t)len;
}

static const struct vmt_io_ops ops = { .writev = take };
static char name[64], symbol[64];

static const char *find_symbol(void *context, uint64_t rip, uint64_t *offset)
{
	(void)context;
	*offset = rip & 0xff;
	return symbol;
}

static void check_bytes(void)
{
	for (size_t i = 0; i < sink_len; i++) {
		unsigned char c = (unsigned char)sink[i];

		if ((c < 0x20 && c != '\n') || c == 0x7f)
			abort();
	}
}

static void check_lines(void)
{
	for (size_t at = 0; at < sink_len;) {
		const char *end = memchr(sink + at, '\n', sink_len - at);
		json_t *line;

		if (!end)
			abort();
		line = json_loadb(sink + at, (size_t)(end - sink) - at, JSON_REJECT_DUPLICATES,
				  NULL);
		if (!json_is_object(line))
			abort();
		json_decref(line);
		at = (size_t)(end - sink) + 1;
	}
}

/* The bytes as event members, so that every branch is reached by some input. */
static struct vmt_event event_of(const uint8_t *data, size_t size)
{
	struct vmt_event e;
	uint8_t bytes[sizeof(e)] = { 0 };

	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	e = (struct vmt_event){ .type = (enum vmt_event_type)(bytes[0] % VMT_EVENT_TYPE_COUNT),
				.source = (enum vmt_source)(bytes[1] % 4),
				.isa = (enum vmt_isa)(bytes[2] % 3),
				.nested = bytes[3] & 1,
				.failed_entry = bytes[3] & 2,
				.concealed_rip = bytes[3] & 4,
				.switch_in = bytes[3] & 8,
				.preempted = bytes[3] & 16,
				.name = bytes[3] & 32 ? name : NULL,
				.key = { .kind = (enum vmt_key_kind)(bytes[4] % 12),
					 .access = (enum vmt_access)(bytes[5] % 4) } };
	memcpy(&e.has, bytes + 8, sizeof(e.has));
	memcpy(&e.time, bytes + 12, sizeof(e.time));
	memcpy(&e.reason, bytes + 20, sizeof(e.reason));
	memcpy(&e.reason_flags, bytes + 24, sizeof(e.reason_flags));
	memcpy(&e.key.number, bytes + 28, sizeof(e.key.number));
	memcpy(&e.key.sub, bytes + 36, sizeof(e.key.sub));
	memcpy(&e.duration_ns, bytes + 40, sizeof(e.duration_ns));
	memcpy(&e.guest_rip, bytes + 48, sizeof(e.guest_rip));
	memcpy(&e.value, bytes + 56, sizeof(e.value));
	memcpy(&e.vcpu, bytes + 64, sizeof(e.vcpu));
	memcpy(&e.userspace_part_ns, bytes + 68, sizeof(e.userspace_part_ns));
	e.time.host_ns >>= 1; /* jansson reads integers of 63 bits */
	e.duration_ns >>= 2;
	e.userspace_part_ns >>= 2;
	e.value = (int64_t)((uint64_t)e.value >> 1);
	return e;
}

static void write_script(struct vmt_out *out, const struct vmt_input_facts *facts,
			 enum vmt_script_format format, const struct vmt_event *event)
{
	struct vmt_script s = {
		.out = out, .format = format, .facts = facts, .symbol = find_symbol
	};

	sink_len = 0;
	vmt_out_init(out, 1000, &ops);
	vmt_script_begin(&s);
	vmt_script_event(&s, event);
	vmt_out_flush(out);
	check_bytes();
	if (format == VMT_SCRIPT_JSON)
		check_lines();
}

static void write_report(struct vmt_out *out, const struct vmt_input_facts *facts,
			 const struct vmt_event *event)
{
	struct vmt_report_options options = { .by = "reason,key,vcpu", .storms = true };
	struct vmt_report_view view = { .width = 80, .bill = true, .storms = true };
	struct vmt_report_builder *b = vmt_report_new(&options);
	struct vmt_ledger ledger = { 0 };
	const struct vmt_report *r;

	if (!b)
		return;
	vmt_report_event(b, event);
	vmt_report_event(b, event);
	r = vmt_report_finish(b, facts, ledger, find_symbol, NULL);
	if (r) {
		json_t *doc;

		sink_len = 0;
		vmt_out_init(out, 1000, &ops);
		vmt_report_text(out, r, &view);
		vmt_report_csv(out, r, &view);
		vmt_out_flush(out);
		check_bytes();
		sink_len = 0;
		vmt_report_json(out, r);
		vmt_out_flush(out);
		/* Sums may have 64 bits, jansson's integers 63. */
		doc = json_loadb(sink, sink_len, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL,
				 NULL);
		if (!json_is_object(doc))
			abort();
		json_decref(doc);
	}
	vmt_report_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vmt_out out;
	size_t half = size / 2, text = half < sizeof(name) ? half : sizeof(name) - 1;
	struct vmt_domain_info domain = { .name = name, .uuid = symbol, .nr_vcpus = 1 };
	struct vmt_input_facts facts = {
		.format = "vmt", .host = name, .kernel = symbol, .nr_domains = 1, .domains = &domain
	};
	struct vmt_event event = event_of(data, half);

	memset(name, 0, sizeof(name));
	memcpy(name, data + half, text);
	memset(symbol, 0, sizeof(symbol));
	for (size_t i = 0; i < text; i++)
		symbol[i] = (char)data[size - 1 - i];
	for (int format = 0; format < 3; format++)
		write_script(&out, &facts, (enum vmt_script_format)format, &event);
	write_report(&out, &facts, &event);
	return 0;
}
