// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant after vmt_image_seal: a scope holds pieces in the order of their addresses that do not
 * overlap, each between two neighbouring ends of sections; a piece holds its versions in the order
 * of their times, no two of one time. A look-up is two binary searches a scope.
 */
#include "decode/flow/image.h"

#include <stdlib.h>
#include <string.h>

struct section {
	uint64_t addr, last; /* of the last byte */
	uint64_t from;
	const uint8_t *bytes;
	uint32_t scope;
	uint32_t order; /* in which it was added */
};

struct version {
	uint64_t from;
	const uint8_t *bytes; /* of the piece's first byte */
};

struct piece {
	uint64_t addr, last;
	uint32_t first, nr; /* versions */
};

struct scope {
	struct vmt_image_space space;
	uint32_t first, nr; /* pieces */
};

struct vmt_image {
	struct section *sections;
	uint32_t nr_sections, cap_sections;
	struct scope scopes[VMT_IMAGE_SPACES_MAX];
	uint32_t nr_scopes;
	struct piece *pieces;
	uint32_t nr_pieces, cap_pieces;
	struct version *versions;
	uint32_t nr_versions, cap_versions;
};

struct vmt_image *vmt_image_new(void)
{
	return calloc(1, sizeof(struct vmt_image));
}

void vmt_image_free(struct vmt_image *image)
{
	if (!image)
		return;
	free(image->sections);
	free(image->pieces);
	free(image->versions);
	free(image);
}

static int short_of_memory(struct vmt_diag *diag)
{
	return vmt_diag_set(diag, VMT_E_NOMEM, "memory for code is short", "");
}

/* Room for one more in an array of `size` bytes an element. */
static bool grow(void *array, uint32_t *cap, uint32_t nr, size_t size)
{
	void **at = array, *bigger;
	uint32_t want = *cap ? *cap * 2 : 64;

	if (nr < *cap)
		return true;
	bigger = realloc(*at, want * size);
	if (!bigger)
		return false;
	*at = bigger;
	*cap = want;
	return true;
}

/* ---- adding ---- */

static bool same_space(const struct vmt_image_space *a, const struct vmt_image_space *b)
{
	return a->world == b->world && a->has_cr3 == b->has_cr3 && a->has_vmcs == b->has_vmcs &&
	       (!a->has_cr3 || a->cr3 == b->cr3) && (!a->has_vmcs || a->vmcs == b->vmcs);
}

/* VMT_IMAGE_SPACES_MAX: there are too many. Sections of one space tend to come together. */
static uint32_t scope_of(struct vmt_image *image, const struct vmt_image_space *space)
{
	for (uint32_t i = image->nr_scopes; i-- > 0;)
		if (same_space(&image->scopes[i].space, space))
			return i;
	if (image->nr_scopes == VMT_IMAGE_SPACES_MAX)
		return VMT_IMAGE_SPACES_MAX;
	image->scopes[image->nr_scopes] = (struct scope){ .space = *space };
	return image->nr_scopes++;
}

int vmt_image_add(struct vmt_image *image, const struct vmt_image_space *space, uint64_t addr,
		  const uint8_t *bytes, size_t len, uint64_t from, struct vmt_diag *diag)
{
	uint32_t scope;

	if (!len || len - 1 > UINT64_MAX - addr)
		return vmt_diag_set(diag, VMT_E_USAGE, "a section of code is no range of addresses",
				    "");
	scope = scope_of(image, space);
	if (scope == VMT_IMAGE_SPACES_MAX || image->nr_sections == VMT_IMAGE_SECTIONS_MAX)
		return vmt_diag_set(diag, VMT_E_LIMIT, "too many sections of code", "");
	if (!grow(&image->sections, &image->cap_sections, image->nr_sections,
		  sizeof(*image->sections)))
		return short_of_memory(diag);
	image->sections[image->nr_sections] = (struct section){
		.addr = addr,
		.last = addr + (len - 1),
		.from = from,
		.bytes = bytes,
		.scope = scope,
		.order = image->nr_sections,
	};
	image->nr_sections++;
	return 0;
}

/* ---- sealing ---- */

static int by_scope_and_addr(const void *a, const void *b)
{
	const struct section *x = a, *y = b;

	if (x->scope != y->scope)
		return x->scope < y->scope ? -1 : 1;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Sections that cover the piece under work, in the order of their times. */
struct cover {
	const struct section **sections;
	uint32_t nr, cap;
};

static bool cover_add(struct cover *c, const struct section *s)
{
	uint32_t at = c->nr;

	if (!grow(&c->sections, &c->cap, c->nr, sizeof(const struct section *)))
		return false;
	while (at &&
	       (c->sections[at - 1]->from > s->from ||
		(c->sections[at - 1]->from == s->from && c->sections[at - 1]->order > s->order))) {
		c->sections[at] = c->sections[at - 1];
		at--;
	}
	c->sections[at] = s;
	c->nr++;
	return true;
}

/* Drops what ends before addr; returns the first end of what is left. */
static uint64_t cover_trim(struct cover *c, uint64_t addr)
{
	uint64_t end = UINT64_MAX;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < c->nr; i++) {
		const struct section *s = c->sections[i];

		if (s->last < addr)
			continue;
		if (s->last < end)
			end = s->last;
		c->sections[nr++] = s;
	}
	c->nr = nr;
	return end;
}

static int emit_piece(struct vmt_image *image, const struct cover *c, uint64_t addr, uint64_t last,
		      struct vmt_diag *diag)
{
	struct piece piece = { .addr = addr, .last = last, .first = image->nr_versions };

	for (uint32_t i = 0; i < c->nr; i++) {
		const struct section *s = c->sections[i];

		if (i + 1 < c->nr && c->sections[i + 1]->from == s->from)
			continue;
		if (image->nr_versions == VMT_IMAGE_VERSIONS_MAX)
			return vmt_diag_set(diag, VMT_E_LIMIT, "sections of code overlap too often",
					    "");
		if (!grow(&image->versions, &image->cap_versions, image->nr_versions,
			  sizeof(*image->versions)))
			return short_of_memory(diag);
		image->versions[image->nr_versions++] =
			(struct version){ s->from, s->bytes + (addr - s->addr) };
		piece.nr++;
	}
	if (!grow(&image->pieces, &image->cap_pieces, image->nr_pieces, sizeof(*image->pieces)))
		return short_of_memory(diag);
	image->pieces[image->nr_pieces++] = piece;
	return 0;
}

/* Cuts the sections [i, end) of one scope, which are in the order of their addresses. */
static int cut_scope(struct vmt_image *image, uint32_t i, uint32_t end, struct cover *c,
		     struct vmt_diag *diag)
{
	uint64_t addr = 0;

	c->nr = 0;
	while (i < end || c->nr) {
		uint64_t last;
		int err;

		if (!c->nr)
			addr = image->sections[i].addr;
		for (; i < end && image->sections[i].addr == addr; i++)
			if (!cover_add(c, &image->sections[i]))
				return short_of_memory(diag);
		last = cover_trim(c, addr);
		if (i < end && image->sections[i].addr <= last)
			last = image->sections[i].addr - 1;
		err = emit_piece(image, c, addr, last, diag);
		if (err)
			return err;
		if (last == UINT64_MAX)
			break;
		addr = last + 1;
		cover_trim(c, addr);
	}
	return 0;
}

int vmt_image_seal(struct vmt_image *image, struct vmt_diag *diag)
{
	struct cover cover = { 0 };
	int err = 0;

	image->nr_pieces = image->nr_versions = 0;
	for (uint32_t s = 0; s < image->nr_scopes; s++)
		image->scopes[s].nr = 0;
	if (image->nr_sections)
		qsort(image->sections, image->nr_sections, sizeof(*image->sections),
		      by_scope_and_addr);
	for (uint32_t i = 0, end; i < image->nr_sections && !err; i = end) {
		struct scope *scope = &image->scopes[image->sections[i].scope];

		for (end = i + 1; end < image->nr_sections &&
				  image->sections[end].scope == image->sections[i].scope;
		     end++)
			;
		scope->first = image->nr_pieces;
		err = cut_scope(image, i, end, &cover, diag);
		scope->nr = image->nr_pieces - scope->first;
	}
	free(cover.sections);
	return err;
}

/* ---- looking up ---- */

static unsigned int narrowness(const struct vmt_image_space *space)
{
	return (space->has_cr3 ? 4u : 0) + (space->has_vmcs ? 2u : 0) +
	       (space->world != VMT_IMAGE_ANY);
}

static bool holds(const struct vmt_image_space *s, const struct vmt_image_context *c)
{
	if (s->world != VMT_IMAGE_ANY && (s->world == VMT_IMAGE_GUEST) != c->nonroot)
		return false;
	if (s->has_cr3 && !(c->has_cr3 && c->cr3 == s->cr3))
		return false;
	return !s->has_vmcs || (c->has_vmcs && c->vmcs == s->vmcs);
}

struct vmt_image_view vmt_image_view_of(const struct vmt_image *image,
					const struct vmt_image_context *context)
{
	struct vmt_image_view view = { .nr = 0 };

	/* At most one of each narrowness holds: the array never is too short. */
	for (uint32_t i = 0; i < image->nr_scopes && view.nr < VMT_IMAGE_SCOPES_MAX; i++) {
		uint16_t at = view.nr;

		if (!holds(&image->scopes[i].space, context))
			continue;
		while (at && narrowness(&image->scopes[view.scopes[at - 1]].space) <
				     narrowness(&image->scopes[i].space)) {
			view.scopes[at] = view.scopes[at - 1];
			at--;
		}
		view.scopes[at] = (uint16_t)i;
		view.nr++;
	}
	return view;
}

/* The first piece of a scope that does not end before addr; NULL: none. */
static const struct piece *piece_at(const struct vmt_image *image, const struct scope *scope,
				    uint64_t addr)
{
	uint32_t low = scope->first, high = scope->first + scope->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (image->pieces[middle].last < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < scope->first + scope->nr ? &image->pieces[low] : NULL;
}

/* The version at a time, and the time of the next one. */
static const struct version *version_at(const struct vmt_image *image, const struct piece *piece,
					uint64_t time, uint64_t *next)
{
	uint32_t low = piece->first, high = piece->first + piece->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (image->versions[middle].from <= time)
			low = middle + 1;
		else
			high = middle;
	}
	*next = low < piece->first + piece->nr ? image->versions[low].from : UINT64_MAX;
	return low > piece->first ? &image->versions[low - 1] : NULL;
}

bool vmt_image_find(const struct vmt_image *image, const struct vmt_image_view *view, uint64_t addr,
		    uint64_t time, struct vmt_image_span *out)
{
	uint64_t last = UINT64_MAX, until = UINT64_MAX;

	for (uint16_t i = 0; i < view->nr; i++) {
		const struct piece *piece = piece_at(image, &image->scopes[view->scopes[i]], addr);
		const struct version *version;
		uint64_t next;

		if (!piece)
			continue;
		if (piece->addr > addr) { /* what is wider reaches to where this one begins */
			if (piece->addr - 1 < last)
				last = piece->addr - 1;
			continue;
		}
		version = version_at(image, piece, time, &next);
		if (piece->last < last)
			last = piece->last;
		if (next < until)
			until = next;
		if (!version)
			continue;
		out->bytes = version->bytes + (addr - piece->addr);
		out->len = (size_t)(last - addr) + 1;
		out->from = version->from;
		out->until = until;
		return true;
	}
	return false;
}

size_t vmt_image_read(const struct vmt_image *image, const struct vmt_image_view *view,
		      uint64_t addr, uint64_t time, uint8_t *buf, size_t len, const uint8_t **at,
		      uint64_t *from, uint64_t *until)
{
	struct vmt_image_span span;
	size_t done = 0;

	*from = 0;
	*until = UINT64_MAX;
	*at = buf;
	while (done < len && addr + done >= addr &&
	       vmt_image_find(image, view, addr + done, time, &span)) {
		size_t n = span.len < len - done ? span.len : len - done;

		if (span.from > *from)
			*from = span.from;
		if (span.until < *until)
			*until = span.until;
		if (n == len) {
			*at = span.bytes;
			return n;
		}
		memcpy(buf + done, span.bytes, n);
		done += n;
	}
	return done;
}
