/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_PT_OPTIONS_H
#define VMT_CLI_PT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "decode/export/pt_flow.h"
#include "decode/flow/image.h"
#include "decode/pt/clock.h"
#include "decode/pt/decoder.h"
#include "decode/pt/errata.h"

struct vmt_cli;

#define VMT_PT_NAME_MAX 64
#define VMT_CLI_VMS_MAX 64

#define VMT_CLI_CODES_MAX     64
#define VMT_CLI_CODE_PATH_MAX 4096

/* Code for the flow: --elf and --raw. */
struct vmt_pt_code {
	const char *path; /* path_len bytes of the argument */
	size_t path_len;  /* below VMT_CLI_CODE_PATH_MAX */
	bool is_elf, has_addr;
	uint64_t addr, from;
	struct vmt_image_space space;
};

/* What the command line says about a PT stream that does not say it itself. */
struct vmt_pt_cli {
	bool raw;	 /* --pt-raw: the input is the bare byte stream of one CPU */
	const char *hex; /* --hex: bytes from the command line */
	bool has_only_cpu;
	uint64_t only_cpu; /* --cpu: of a file with several */
	uint8_t block;	   /* --block: enum vmt_pt_block */
	struct vmt_pt_cpu cpu;
	struct vmt_pt_clock_params clock;
	uint32_t crystal_hz; /* CPUID.15H:ECX, 0 unknown */
	size_t nr_vms;
	struct vmt_pt_vm vms[VMT_CLI_VMS_MAX]; /* domain: index into names */
	size_t nr_names;
	char names[VMT_CLI_VMS_MAX][VMT_PT_NAME_MAX];
	bool has_flow;
	enum vmt_flow_detail flow; /* --flow */
	size_t nr_codes;
	struct vmt_pt_code codes[VMT_CLI_CODES_MAX];
	const char *given; /* an option that only a bare stream has a use for, NULL: none */
};

/*
 * TSC rate: as given, else crystal * EBX / EAX of CPUID leaf 15H, else max non-turbo ratio * 100
 * MHz; 0: not known.
 */
uint64_t vmt_pt_tsc_hz(const struct vmt_pt_cli *pt);

/* Opens a file of code. As vmt_reader_open; "-" is no file here. */
int vmt_pt_code_open(const struct vmt_pt_code *code, int *fd, struct vmt_diag *diag);

/* Readers of option arguments (struct vmt_option_row). */
bool vmt_pt_read_block(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_cpu_id(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_vm(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_mtc_freq(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_nom_ratio(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_tsc_hz(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_flow(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_elf(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_raw(struct vmt_cli *cli, const char *value, const char **why);
bool vmt_pt_read_cpuid_15h(struct vmt_cli *cli, const char *value, const char **why);

#endif
