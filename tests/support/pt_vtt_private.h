/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_VTT_PRIVATE_H
#define VMT_SUPPORT_PT_VTT_PRIVATE_H

#include "tests/support/pt_vtt.h"

#define VMT_VTT_WORDS_MAX 80
#define VMT_VTT_NAMES_MAX 128

struct vmt_vtt_name {
	char name[32];
	uint64_t value;
};

/* One statement's words; each is used once, what is left over is an error. */
struct vmt_vtt_line {
	const char *words[VMT_VTT_WORDS_MAX];
	bool used[VMT_VTT_WORDS_MAX];
	size_t nr_words;
};

struct vmt_vtt_state {
	struct vmt_vtt *out;
	struct vmt_vtt_error *error;
	struct vmt_vtt_line line;
	struct vmt_vtt_name names[VMT_VTT_NAMES_MAX];
	size_t nr_names;
	size_t cap_packets;
	unsigned int item_bytes; /* of the open block; 0: none */
};

bool vmt_vtt_fail(struct vmt_vtt_state *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Words: the statement is word 0. Each reports its error itself. */
bool vmt_vtt_number(struct vmt_vtt_state *s, const char *text, uint64_t max, uint64_t *value);
bool vmt_vtt_position(struct vmt_vtt_state *s, size_t at, uint64_t max, uint64_t *value);
/* NULL when the word is missing; marks it used. */
const char *vmt_vtt_word(struct vmt_vtt_state *s, size_t at);
bool vmt_vtt_flag(struct vmt_vtt_state *s, const char *name);
/* name=N; *value stays when it is missing, which is an error if required. */
bool vmt_vtt_field(struct vmt_vtt_state *s, const char *name, bool required, uint64_t max,
		   uint64_t *value);

/* The statements that only the flow needs: code, filter and its settings. False with *known false:
 * no such statement. */
bool vmt_vtt_code_statement(struct vmt_vtt_state *s, bool *known);

/* The packet statements. False with *known false: no such statement. */
bool vmt_vtt_packet_statement(struct vmt_vtt_state *s, bool *known);

#endif
