// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options of the instruction flow: --flow, and the code that --elf and --raw name. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "decode/io/diagf.h"
#include "host/cli/cli.h"
#include "host/cli/options.h"
#include "host/cli/pt_options.h"

bool vmt_pt_read_flow(struct vmt_cli *cli, const char *value, const char **why)
{
	static const char *const names[] = {
		[VMT_FLOW_INSN] = "insn", [VMT_FLOW_BLOCK] = "block", [VMT_FLOW_CALL] = "call"
	};

	*why = "insn, block or call";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (*value && strcmp(value, names[i]) != 0)
			continue;
		cli->pt.has_flow = true;
		cli->pt.flow = (enum vmt_flow_detail)i;
		return true;
	}
	return false;
}

/* Where the code is to be seen: what follows a comma. */
static bool read_place(struct vmt_pt_code *code, const char *text, size_t len)
{
	static const struct {
		const char *name;
		uint8_t world;
	} worlds[] = { { "host", VMT_IMAGE_HOST }, { "guest", VMT_IMAGE_GUEST } };
	static const char *const names[] = { "cr3=", "vmcs=", "from=" };
	uint64_t *values[] = { &code->space.cr3, &code->space.vmcs, &code->from };
	char *end;

	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		if (len == strlen(worlds[i].name) && !memcmp(text, worlds[i].name, len)) {
			code->space.world = worlds[i].world;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const size_t n = strlen(names[i]);

		if (len <= n || memcmp(text, names[i], n) != 0)
			continue;
		code->space.has_cr3 = code->space.has_cr3 || i == 0;
		code->space.has_vmcs = code->space.has_vmcs || i == 1;
		return vmt_cli_number(text + n, values[i], &end) && end == text + len;
	}
	return false;
}

static bool read_code(struct vmt_cli *cli, const char *value, bool is_elf, const char **why)
{
	struct vmt_pt_code code = { .path = value, .is_elf = is_elf };
	const char *comma = strchr(value, ','), *at = NULL;
	size_t len = comma ? (size_t)(comma - value) : strlen(value);
	char *end;

	*why = is_elf ? "FILE[@ADDR] and, each behind a comma, host, guest, cr3=N, vmcs=N, from=TSC"
		      : "FILE@ADDR and, each behind a comma, host, guest, cr3=N, vmcs=N, from=TSC";
	while (comma) {
		const char *next = strchr(comma + 1, ',');
		const size_t n = next ? (size_t)(next - comma - 1) : strlen(comma + 1);

		if (!read_place(&code, comma + 1, n))
			return false;
		comma = next;
	}
	for (size_t i = 0; i < len; i++)
		if (value[i] == '@')
			at = value + i;
	if (at && vmt_cli_number(at + 1, &code.addr, &end) && end == value + len) {
		code.has_addr = true;
		len = (size_t)(at - value);
	}
	if (!len || len >= VMT_CLI_CODE_PATH_MAX || (!is_elf && !code.has_addr))
		return false;
	code.path_len = len;
	if (cli->pt.nr_codes == VMT_CLI_CODES_MAX) {
		*why = "at most 64 files of code";
		return false;
	}
	cli->pt.codes[cli->pt.nr_codes++] = code;
	return true;
}

bool vmt_pt_read_elf(struct vmt_cli *cli, const char *value, const char **why)
{
	return read_code(cli, value, true, why);
}

bool vmt_pt_read_raw(struct vmt_cli *cli, const char *value, const char **why)
{
	return read_code(cli, value, false, why);
}

int vmt_pt_code_open(const struct vmt_pt_code *code, int *fd, struct vmt_diag *diag)
{
	char path[VMT_CLI_CODE_PATH_MAX];

	memcpy(path, code->path, code->path_len);
	path[code->path_len] = '\0';
	do
		*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	while (*fd < 0 && errno == EINTR);
	if (*fd < 0)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot open %s",
				       path);
	return 0;
}
