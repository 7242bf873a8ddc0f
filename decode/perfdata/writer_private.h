/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PERFDATA_WRITER_PRIVATE_H
#define VMT_PERFDATA_WRITER_PRIVATE_H

#include "decode/perfdata/writer.h"

#define WRITER_BUFFER	  (256u << 10)
#define WRITER_ATTR_LEN	  128u /* pipe mode takes no other, perf 6.1 no larger one */
#define WRITER_ATTRS_MAX  4096u
#define WRITER_HEADER_LEN 104u

/* Bytes that grow. */
struct writer_bytes {
	uint8_t *bytes;
	size_t len, cap;
};

struct writer_event {
	uint8_t attr[WRITER_ATTR_LEN];
	struct vmt_ring_attr ring;
	bool made; /* of its ring attr */
	uint64_t *ids;
	size_t nr_ids, cap_ids;
};

struct writer_format {
	char *system, *name, *text; /* system and name: empty when not known */
	size_t len;
	uint64_t id;
};

struct vmt_perfdata_writer {
	struct vmt_output file;
	uint8_t *buffer; /* bytes of the file that end at `at` */
	size_t buffered;
	uint64_t at; /* offset of the next byte */

	struct writer_event *events;
	size_t nr_events, cap_events;
	struct writer_format *formats;
	size_t nr_formats, cap_formats;
	struct writer_bytes features[VMT_PERFDATA_FEATURES];
	bool has_feature[VMT_PERFDATA_FEATURES];
	bool has_pt;
	uint32_t pt_type;

	uint64_t aux_at, aux_left, aux_size; /* of the AUXTRACE record that is being written */
	struct writer_bytes aux_rows;	     /* {offset, size of the header} of each */
};

/* The empty pads add_* take: false when memory is short. */
bool writer_add(struct writer_bytes *b, const void *bytes, size_t len);
bool writer_add_u32(struct writer_bytes *b, uint32_t v);
bool writer_add_u64(struct writer_bytes *b, uint64_t v);
/* u32 length with padding to 64, text, zeros. */
bool writer_add_string(struct writer_bytes *b, const char *text);

/* Writes through the buffer. */
int writer_put(struct vmt_perfdata_writer *w, const void *bytes, size_t len, struct vmt_diag *diag);
/* Zeros up to a multiple of 8 of the file's offset. */
int writer_pad(struct vmt_perfdata_writer *w, struct vmt_diag *diag);
int writer_flush(struct vmt_perfdata_writer *w, struct vmt_diag *diag);
/* Overwrites bytes that have been written. */
int writer_patch(struct vmt_perfdata_writer *w, uint64_t offset, const void *bytes, size_t len,
		 struct vmt_diag *diag);

/* writer_features.c: makes the features that were not told. */
int writer_make_features(struct vmt_perfdata_writer *w, struct vmt_diag *diag);

int writer_no_memory(struct vmt_diag *diag);

#endif
