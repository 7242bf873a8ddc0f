// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace setup: what has to be set before a capture, and stays. */
#include <stdio.h>

#include "host/cli/cli.h"
#include "host/cli/text.h"
#include "host/probe/pt_mode_setup.h"

#define RELOAD "modprobe -r kvm_intel && modprobe kvm_intel"

static void put_json(const struct vmt_pt_mode_setup *setup)
{
	json_t *doc = json_object();

	json_object_set_new(doc, "schema", json_string("vmtrace-setup/1"));
	json_object_set_new(doc, "pt_mode", json_string(vmt_pt_mode_name(setup->mode)));
	json_object_set_new(doc, "pt_mode_now", json_string(vmt_pt_mode_name(setup->mode_now)));
	json_object_set_new(doc, "file", json_string(setup->file));
	json_object_set_new(doc, "reload",
			    setup->mode == setup->mode_now ? json_null() : json_string(RELOAD));
	vmt_text_put_json(stdout, doc, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
}

static void put_text(const struct vmt_pt_mode_setup *setup)
{
	printf("%s: options kvm_intel pt_mode=%u (%s)\n", setup->file, setup->mode,
	       vmt_pt_mode_name(setup->mode));
	if (setup->mode == setup->mode_now)
		puts("  it is in force already, and stays so");
	else
		puts("  in force once kvm_intel is loaded anew: " RELOAD);
}

int vmt_verb_setup(struct vmt_cli *cli)
{
	struct vmt_pt_mode_setup setup;
	struct vmt_diag diag = { 0 };

	if (!cli->setup_pt_mode)
		return vmt_cli_usage(cli, "nothing is to be set up",
				     "--pt-mode system or --pt-mode host-guest");
	if (cli->format == VMT_FORMAT_CSV)
		return vmt_cli_usage(cli, "there is no table to write as csv",
				     "use --format text or json");
	if (vmt_pt_mode_setup(&setup, cli->setup_pt_mode, NULL, &diag))
		return vmt_cli_fail(&diag);
	if (cli->format == VMT_FORMAT_JSON)
		put_json(&setup);
	else
		put_text(&setup);
	return VMT_STATUS_OK;
}
