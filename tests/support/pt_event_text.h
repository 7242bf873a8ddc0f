/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_EVENT_TEXT_H
#define VMT_SUPPORT_PT_EVENT_TEXT_H

#include <stddef.h>

#include "decode/base/event.h"

/*
 * One line for an event of a PT stream, without a newline: type, name, then each member that is
 * known as NAME=VALUE: reason, flags, qual, vector, key, value, rip, cr3, vmcs, domain, vcpu,
 * tsc=N~ERROR (host TSC; no ~ERROR: exact, ~?: no bound), duration (host TSC); failed-entry. CPU
 * and thread are left out. Returns buf; size >= 512.
 */
char *vmt_pt_event_text(char *buf, size_t size, const struct vmt_event *event);

#endif
