// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant of the walk: path[0 .. end[depth]) names the elements that are open, as long as they
 * fit; `cut` is the first depth that did not.
 */
#include "host/domain/xml_walk.h"

#include <libxml/xmlreader.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decode/io/diagf.h"
#include "host/domain/hostfs.h"

struct vmt_xml_node {
	xmlTextReaderPtr reader;
};

struct open_path {
	char text[256];
	size_t end[VMT_XML_DEPTH_MAX + 1];
	int cut; /* -1: nothing was cut */
};

void vmt_text_copy(char *buf, size_t size, const char *text)
{
	snprintf(buf, size, "%s", text ? text : "");
	for (; *buf; buf++) {
		if ((unsigned char)*buf < ' ' || *buf == 127)
			*buf = '?';
	}
}

bool vmt_xml_attr(const struct vmt_xml_node *node, const char *name, char *buf, size_t size)
{
	xmlChar *value = xmlTextReaderGetAttribute(node->reader, (const xmlChar *)name);

	vmt_text_copy(buf, size, (const char *)value);
	if (!value)
		return false;
	xmlFree(value);
	return true;
}

bool vmt_xml_attr_u64(const struct vmt_xml_node *node, const char *name, uint64_t *value)
{
	char text[32];

	return vmt_xml_attr(node, name, text, sizeof(text)) &&
	       vmt_parse_uint(text, UINT64_MAX, value);
}

bool vmt_xml_attr_is(const struct vmt_xml_node *node, const char *name, const char *value)
{
	char text[64];

	return vmt_xml_attr(node, name, text, sizeof(text)) && !strcmp(text, value);
}

void vmt_text_append(char *list, size_t size, const char *format, ...)
{
	size_t used = strlen(list);
	va_list args;
	int n;

	if (used + 2 >= size)
		return;
	if (used)
		list[used++] = ' ';
	va_start(args, format);
	n = vsnprintf(list + used, size - used, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= size - used)
		list[used ? used - 1 : 0] = '\0';
}

/* Opens an element at a depth; its path, or NULL when it was cut. */
static const char *path_open(struct open_path *path, int depth, const char *name)
{
	size_t start = depth ? path->end[depth - 1] : 0;
	size_t len = name ? strlen(name) : 0;

	if (path->cut >= 0 && depth > path->cut)
		return NULL;
	path->cut = -1;
	if (start + len + 2 > sizeof(path->text)) {
		path->cut = depth;
		path->end[depth] = start;
		return NULL;
	}
	path->text[start] = '/';
	memcpy(path->text + start + 1, name ? name : "", len);
	path->end[depth] = start + 1 + len;
	path->text[path->end[depth]] = '\0';
	return path->text;
}

/* The path of the element that holds a text node at a depth. */
static const char *path_around(struct open_path *path, int depth)
{
	if (depth < 1 || (path->cut >= 0 && depth > path->cut))
		return NULL;
	path->text[path->end[depth - 1]] = '\0';
	return path->text;
}

static int visit(xmlTextReaderPtr reader, struct open_path *path, const struct vmt_xml_walk *walk,
		 struct vmt_diag *diag)
{
	const struct vmt_xml_node node = { .reader = reader };
	int depth = xmlTextReaderDepth(reader);
	const char *at;

	if (depth < 0 || depth > VMT_XML_DEPTH_MAX)
		return vmt_diag_printf(diag, VMT_E_LIMIT, 0, "domain XML has a dozen levels",
				       "XML nested deeper than %d levels", VMT_XML_DEPTH_MAX);
	switch (xmlTextReaderNodeType(reader)) {
	case XML_READER_TYPE_DOCUMENT_TYPE:
	case XML_READER_TYPE_ENTITY_REFERENCE:
	case XML_READER_TYPE_ENTITY:
		return vmt_diag_set(diag, VMT_E_DAMAGED, "XML with a document type or entities",
				    "libvirt never writes them: refused");
	case XML_READER_TYPE_ELEMENT:
		at = path_open(path, depth, (const char *)xmlTextReaderConstName(reader));
		if (at && walk->element)
			walk->element(walk->context, at, &node);
		return 0;
	case XML_READER_TYPE_TEXT:
	case XML_READER_TYPE_CDATA:
		at = path_around(path, depth);
		if (at && walk->text)
			walk->text(walk->context, at,
				   (const char *)xmlTextReaderConstValue(reader));
		return 0;
	default:
		return 0;
	}
}

struct parser_words {
	char text[120];
	int line;
};

static void keep_first_error(void *context, xmlErrorPtr error)
{
	struct parser_words *words = context;

	if (words->text[0] || !error || !error->message)
		return;
	snprintf(words->text, sizeof(words->text), "%s", error->message);
	words->text[strcspn(words->text, "\n")] = '\0';
	words->line = error->line;
}

int vmt_xml_walk(const char *xml, size_t len, const struct vmt_xml_walk *walk,
		 struct vmt_diag *diag)
{
	struct open_path path = { .cut = -1 };
	struct parser_words words = { .line = 0 };
	xmlTextReaderPtr reader;
	int more = 1, err = 0;

	if (len > VMT_XML_MAX)
		return vmt_diag_printf(diag, VMT_E_LIMIT, 0, "domain XML is some kilobytes long",
				       "XML of %zu bytes: at most %u are read", len, VMT_XML_MAX);
	reader = xmlReaderForMemory(xml, (int)len, NULL, "UTF-8",
				    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (!reader)
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for the XML reader", "");
	xmlTextReaderSetStructuredErrorHandler(reader, keep_first_error, &words);
	while (!err && (more = xmlTextReaderRead(reader)) == 1)
		err = visit(reader, &path, walk, diag);
	if (!err && more < 0)
		err = vmt_diag_printf(diag, VMT_E_DAMAGED, 0, words.text,
				      "XML is not well-formed (line %d)", words.line);
	xmlFreeTextReader(reader);
	return err;
}
