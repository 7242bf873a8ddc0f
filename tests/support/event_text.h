/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_EVENT_TEXT_H
#define VMT_SUPPORT_EVENT_TEXT_H

#include <stddef.h>

#include "decode/base/event.h"

/*
 * One line of text for an event, without a newline: its type, then every member that is known and
 * no other, so that two events are equal exactly when their lines are. Returns buf; size >= 1024.
 */
char *vmt_event_text(char *buf, size_t size, const struct vmt_event *event);

#endif
