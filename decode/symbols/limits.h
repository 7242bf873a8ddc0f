/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SYMBOLS_LIMITS_H
#define VMT_SYMBOLS_LIMITS_H

#include <stdint.h>

/* Bounds against hostile kallsyms text. */
#define VMT_KALLSYMS_BYTES_MAX	 (64u << 20)
#define VMT_KALLSYMS_SYMBOLS_MAX (4u << 20)
#define VMT_KALLSYMS_NAME_MAX	 128
#define VMT_KALLSYMS_REACH_MAX	 (1u << 20) /* bytes that a symbol covers at most */

/* And against hostile ELF files. */
#define VMT_ELF_HEAD_BYTES   (1u << 20) /* program headers are within these */
#define VMT_ELF_SEGMENTS_MAX 4096u
#define VMT_ELF_BYTES_MAX    (UINT64_C(1) << 30) /* code of one file */

#endif
