/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a PT stream of which one side is kept. The first byte chooses side, processor and
 * what is known; the second the size of the pieces, on which the output does not depend. The output
 * is packets all through, its CR3s are of that side, and no address is in it that no packet of the
 * input had.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/pt/decoder.h"
#include "decode/rewrite/privacy.h"

#define INPUT_MAX   8192u
#define ADDRESS_MAX (2 * INPUT_MAX)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct output {
	uint8_t *bytes;
	size_t len, cap;
};

static void append(void *context, const uint8_t *bytes, size_t len)
{
	struct output *out = context;

	if (out->len + len > out->cap) {
		out->cap = 2 * (out->len + len);
		out->bytes = realloc(out->bytes, out->cap);
		if (!out->bytes)
			abort();
	}
	memcpy(out->bytes + out->len, bytes, len);
	out->len += len;
}

static struct output run(const struct vmt_rewrite_options *options, const uint8_t *bytes,
			 size_t len, size_t piece)
{
	struct vmt_rewrite_options o = *options;
	struct vmt_rewrite_counts counts;
	struct output out = { 0 };
	struct vmt_rewrite *r;

	o.write = append;
	o.context = &out;
	r = vmt_rewrite_new(&o);
	if (!r)
		abort();
	for (size_t at = 0, n; at < len; at += n) {
		n = piece < len - at ? piece : len - at;
		vmt_rewrite_feed(r, bytes + at, n);
		vmt_rewrite_flush(r);
	}
	vmt_rewrite_end(r);
	counts = vmt_rewrite_counts(r);
	if (counts.bytes_in != len || counts.bytes_out != out.len)
		abort();
	vmt_rewrite_free(r);
	return out;
}

static uint64_t addresses[ADDRESS_MAX];
static size_t nr_addresses;

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *p)
{
	const bool guest = *(const bool *)context;

	(void)offset;
	(void)bytes;
	if (p->has_ip && !p->ip_unsure)
		addresses[nr_addresses++] = p->ip;
	if (p->type == VMT_PT_PIP && p->nr == guest)
		addresses[nr_addresses++] = ~p->address;
}

static int order(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void must_have(uint64_t address)
{
	if (!bsearch(&address, addresses, nr_addresses, sizeof(address), order))
		abort();
}

/* IPs, and CR3s of the kept side in their complement. */
static void collect(const struct vmt_rewrite_options *options, const uint8_t *bytes, size_t len,
		    bool guest)
{
	const struct vmt_pt_decoder_options o = {
		.cpu = options->cpu, .host_cpu = UINT32_MAX, .packet = on_packet, .context = &guest
	};
	struct vmt_pt_decoder *d = vmt_pt_decoder_new(&o);

	if (!d)
		abort();
	nr_addresses = 0;
	vmt_pt_decoder_feed(d, bytes, len);
	vmt_pt_decoder_end(d);
	vmt_pt_decoder_free(d);
	qsort(addresses, nr_addresses, sizeof(addresses[0]), order);
}

static void check(const struct output *out, bool guest)
{
	struct vmt_pt_reader reader = vmt_pt_reader_of(out->bytes, out->len);
	struct vmt_pt_packet p;
	int status;

	while ((status = vmt_pt_next(&reader, &p, NULL)) == 1) {
		if (p.ip_unsure || (p.type == VMT_PT_PIP && p.nr != guest))
			abort();
		if (p.has_ip)
			must_have(p.ip);
		if (p.type == VMT_PT_PIP)
			must_have(~p.address);
	}
	if (status)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t models[] = { 0, 0x3d, 0x5e, 0x55, 0x97, 0x5c, 0x8f, 0x7e };
	struct vmt_cursor c = vmt_cursor_of(data, size < INPUT_MAX ? size : INPUT_MAX);
	const uint8_t flags = vmt_cursor_u8(&c);
	const size_t piece = 1 + vmt_cursor_u8(&c) % 40, len = vmt_cursor_left(&c);
	const bool guest = flags & 1;
	const struct vmt_rewrite_options options = {
		.keep = guest ? VMT_PRIVACY_GUEST : VMT_PRIVACY_HOST,
		.cpu = { models[flags >> 5] != 0, 6, models[flags >> 5], 1 },
		.event_trace = flags & 2,
		.from_any_psb = flags & 4,
		.context_filtered = flags & 8,
		.key = 1,
	};
	struct output whole = run(&options, c.pos, len, len ? len : 1);
	struct output pieces = run(&options, c.pos, len, piece);

	if (whole.len != pieces.len || (whole.len && memcmp(whole.bytes, pieces.bytes, whole.len)))
		abort();
	collect(&options, c.pos, len, guest);
	check(&whole, guest);
	free(whole.bytes);
	free(pieces.bytes);
	return 0;
}
