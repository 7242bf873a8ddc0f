/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_JOIN_H
#define VMT_EXPORT_JOIN_H

#include <stddef.h>

#include "decode/analyze/input.h"
#include "decode/export/json.h"

/*
 * What the join of Intel PT and kvm_exit gave, in a sentence or two; buf at least 320 bytes. Empty
 * when there was nothing to join.
 */
char *vmt_join_text(char *buf, size_t size, const struct vmt_input_facts *facts);

/* The same as members of the open object. */
void vmt_json_join(struct vmt_json *json, const struct vmt_input_facts *facts);

#endif
