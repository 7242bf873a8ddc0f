/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_TESTS_SUPPORT_ZYDIS_PEER_H
#define VMT_TESTS_SUPPORT_ZYDIS_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "decode/insn/insn.h"

/* The answers of vmt_insn_decode, given by Zydis; users link -lZydis. */
struct zydis_peer;

/* NULL without memory. `minimal`: Zydis' fastest mode, which checks fewer encodings. */
struct zydis_peer *zydis_peer_new(enum vmt_insn_mode mode, bool minimal);
void zydis_peer_free(struct zydis_peer *peer);

/* As vmt_insn_decode. */
int zydis_peer_decode(const struct zydis_peer *peer, const uint8_t *bytes, size_t len,
		      struct vmt_insn *out);

/* What Zydis calls the instruction, or the error that it gives; for messages. */
const char *zydis_peer_name(const struct zydis_peer *peer, const uint8_t *bytes, size_t len);

#endif
