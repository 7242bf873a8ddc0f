/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_TREE_H
#define VMT_SUPPORT_TREE_H

#include "host/domain/hostfs.h"

/*
 * A tree of files (virt-fixtures/proc-trees/NAME.tree) unpacked into a scratch folder, and the
 * places in it: proc, sys, run, dev, debug, tracing. Aborts when it cannot be done.
 */
struct vmt_tree {
	char root[64];
	char proc[96], sys[96], run[96], dev[96], debugfs[96], tracefs[96];
	struct vmt_hostfs fs;
};

void vmt_tree_unpack(struct vmt_tree *tree, const char *name);
void vmt_tree_remove(struct vmt_tree *tree);

/* A file of the tree: new text, made with its folders; NULL text removes it. */
void vmt_tree_write(const struct vmt_tree *tree, const char *path, const char *text);

#endif
