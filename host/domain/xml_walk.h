/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_XML_WALK_H
#define VMT_DOMAIN_XML_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

#define VMT_XML_MAX	  (4u << 20)
#define VMT_XML_DEPTH_MAX 64

/*
 * One pass over a document with libxml2's streaming reader: no network, no entities, no tree.
 * `element` is called for each start tag with its path ("/domain/clock/timer"), `text` for the text
 * directly inside an element (may come in pieces). Paths longer than 255 bytes are passed over.
 */
struct vmt_xml_node;
struct vmt_xml_walk {
	void (*element)(void *context, const char *path, const struct vmt_xml_node *node);
	void (*text)(void *context, const char *path, const char *text);
	void *context;
};

/*
 * VMT_E_LIMIT: above 4 MiB or 64 levels; VMT_E_DAMAGED: not well-formed (the parser's words in
 * diag), or with a document type, which libvirt never writes and which could declare entities.
 */
int vmt_xml_walk(const char *xml, size_t len, const struct vmt_xml_walk *walk,
		 struct vmt_diag *diag);

/* Copies an attribute, cut to size, control characters as '?'; false and "" when there is none. */
bool vmt_xml_attr(const struct vmt_xml_node *node, const char *name, char *buf, size_t size);
/* An attribute as a decimal number; false when there is none or it is something else. */
bool vmt_xml_attr_u64(const struct vmt_xml_node *node, const char *name, uint64_t *value);
/* Whether an attribute has this value. */
bool vmt_xml_attr_is(const struct vmt_xml_node *node, const char *name, const char *value);

/* Copies a text, cut to size, control characters as '?'. */
void vmt_text_copy(char *buf, size_t size, const char *text);

/* Appends a formatted word to a list separated by blanks, leaving out what does not fit. */
__attribute__((format(printf, 3, 4))) void vmt_text_append(char *list, size_t size,
							   const char *format, ...);

#endif
