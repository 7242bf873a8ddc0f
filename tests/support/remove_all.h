/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_REMOVE_ALL_H
#define VMT_SUPPORT_REMOVE_ALL_H

/* Removes a folder and all that is in it: 0, or -1 and errno. */
int vmt_remove_all(const char *top);

#endif
