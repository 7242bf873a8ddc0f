// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace decode pt: Intel PT packets of a file, a bare stream, the command line; the ledger. */
#include <ctype.h>
#include <string.h>

#include "decode/export/pt_packet.h"
#include "decode/export/pt_pebs.h"
#include "decode/pt/decoder.h"
#include "host/cli/decode.h"

#define PIECE_BYTES 65536u

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *packet)
{
	vmt_pt_lines_packet(context, offset, bytes, packet);
}

static void on_skipped(void *context, uint64_t offset, uint64_t len, const char *why)
{
	vmt_pt_lines_skipped(context, offset, len, why);
}

static void on_pebs(void *context, const struct vmt_pt_pebs_record *record, enum vmt_pt_mode mode)
{
	vmt_pt_lines_pebs(context, record, mode);
}

/* 16 for what is no hexadecimal digit. */
static unsigned int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (unsigned int)(at - digits) : 16;
}

/* Pairs of hexadecimal digits; blanks and 0x may stand between them. */
static int feed_hex(struct vmt_pt_decoder *decoder, const char *text, struct vmt_diag *diag)
{
	while (*text) {
		uint8_t byte;

		if (isspace((unsigned char)*text) || *text == ',') {
			text++;
			continue;
		}
		if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
			text += 2;
			continue;
		}
		if (digit(text[0]) > 15 || digit(text[1]) > 15)
			return vmt_diag_set(diag, VMT_E_USAGE, "--hex is no list of bytes",
					    "two hexadecimal digits a byte, as in '02 43 03'");
		byte = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
		vmt_pt_decoder_feed(decoder, &byte, 1);
		text += 2;
	}
	return 0;
}

static int feed_bare(struct vmt_pt_decoder *decoder, struct vmt_feed *feed, struct vmt_diag *diag)
{
	const uint8_t *bytes;
	int64_t n;

	while (!feed->out->sys_errno &&
	       (n = vmt_reader_peek(feed->reader, PIECE_BYTES, &bytes, diag)) != 0) {
		if (n < 0)
			return (int)n;
		vmt_pt_decoder_feed(decoder, bytes, (size_t)n);
		if (vmt_reader_skip(feed->reader, (uint64_t)n, diag))
			return diag->code;
	}
	return 0;
}

/* One stream that the options describe. */
static int decode_bare(struct vmt_feed *feed, struct vmt_pt_lines *lines, struct vmt_ledger *ledger,
		       struct vmt_diag *diag)
{
	const struct vmt_pt_cli *pt = &feed->cli->pt;
	const struct vmt_pt_decoder_options options = { .cpu = pt->cpu,
							.clock = pt->clock,
							.block = pt->block,
							.host_cpu = UINT32_MAX,
							.packet = on_packet,
							.skipped = on_skipped,
							.pebs = on_pebs,
							.context = lines };
	struct vmt_pt_decoder *decoder;
	int err;

	if (pt->has_only_cpu)
		return vmt_diag_set(diag, VMT_E_USAGE, "--cpu chooses in a file of several CPUs",
				    "a bare stream is that of one");
	decoder = vmt_pt_decoder_new(&options);
	if (!decoder)
		return vmt_diag_set(diag, VMT_E_NOMEM, "memory is short", "");
	vmt_pt_lines_begin(lines);
	err = pt->hex ? feed_hex(decoder, pt->hex, diag) : feed_bare(decoder, feed, diag);
	vmt_pt_decoder_end(decoder);
	*ledger = vmt_pt_decoder_ledger(decoder);
	vmt_pt_decoder_free(decoder);
	return err;
}

int vmt_decode_pt(struct vmt_feed *feed)
{
	const struct vmt_pt_cli *pt = &feed->cli->pt;
	struct vmt_pt_lines lines = { .out = feed->out,
				      .format = (enum vmt_script_format)feed->cli->format,
				      .errata = vmt_pt_errata_of(&pt->cpu) };
	struct vmt_diag diag = { 0 };
	struct vmt_ledger ledger = { 0 };
	int err;

	if (pt->has_flow)
		return vmt_decode_flow(feed);
	if (pt->nr_codes)
		return vmt_cli_usage(feed->cli, "--elf and --raw name code for --flow", NULL);
	err = pt->hex || pt->raw ? decode_bare(feed, &lines, &ledger, &diag)
				 : vmt_decode_pt_file(feed, &lines, &ledger, &diag);

	if (err)
		return vmt_cli_fail(&diag);
	vmt_pt_lines_ledger(&lines, &ledger);
	return vmt_feed_finish(feed, ledger, lines.packets);
}
