// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace decode: the kinds of input that it takes apart, one file each (verb_decode_KIND.c). */
#include <string.h>

#include "host/cli/decode.h"

static const struct kind_row {
	const char *name;
	vmt_decode_fn *run;
} kinds[] = {
	{ "kvm", vmt_decode_kvm },
	{ "pt", vmt_decode_pt },
};

static const struct kind_row *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int vmt_verb_decode(struct vmt_cli *cli)
{
	const struct kind_row *kind = cli->nr_args == 1 ? kind_of(cli->args[0]) : NULL;
	struct vmt_feed feed;
	int status;

	if (!kind)
		return vmt_cli_usage(cli, "decode takes kvm or pt, and a file",
				     "vmtrace decode kvm FILE, vmtrace decode pt FILE");
	status = vmt_feed_open(&feed, cli);
	if (!status)
		status = kind->run(&feed);
	vmt_feed_close(&feed);
	return status;
}
