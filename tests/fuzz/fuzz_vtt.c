/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a .vtt text. What is refused names a line of the text; what is assembled without
 * raw bytes comes back from the packet layer packet by packet, with the same values.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_vtt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const uint8_t *data, size_t size, const struct vmt_vtt_error *error)
{
	unsigned int lines = 1;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (!error->line || error->line > lines || !error->what[0])
		abort();
}

static void check_packets(const struct vmt_vtt *vtt)
{
	struct vmt_pt_reader r = vmt_pt_reader_of(vtt->stream.bytes, vtt->stream.len);
	struct vmt_pt_packet packet;
	char text[96];

	for (size_t i = 0; i < vtt->nr_packets; i++) {
		const size_t offset = (size_t)(r.pos - r.begin);
		const int status = vmt_pt_next(&r, &packet, NULL);

		if (vtt->is_cut && status != 1) {
			if (status == VMT_E_DAMAGED)
				abort();
			return;
		}
		if (status != 1 || offset != vtt->packets[i].offset)
			abort();
		if (strcmp(vmt_pt_packet_text(text, sizeof(text), &packet), vtt->packets[i].text) !=
		    0)
			abort();
	}
	if (r.pos != r.end)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmt_vtt_error error;
	struct vmt_vtt vtt;
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	if (!vmt_vtt_assemble(text, size, &vtt, &error))
		check_error(data, size, &error);
	else if (!vtt.has_raw)
		check_packets(&vtt);
	vmt_vtt_free(&vtt);
	free(text);
	return 0;
}
