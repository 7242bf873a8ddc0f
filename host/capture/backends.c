// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/capture/backends.h"

#include <string.h>

#include "decode/io/diagf.h"

#define REPLAY_PREFIX "replay:"

int vmt_backends_parse(const char *text, struct vmt_backends *out, struct vmt_diag *diag)
{
	*out = (struct vmt_backends){ 0 };
	if (!text || !strcmp(text, "auto")) {
		out->kvm = out->sched = true;
		return 0;
	}
	if (!strncmp(text, REPLAY_PREFIX, sizeof(REPLAY_PREFIX) - 1)) {
		out->replay = text + sizeof(REPLAY_PREFIX) - 1;
		return *out->replay ? 0
				    : vmt_diag_set(diag, VMT_E_USAGE, "no file to replay",
						   "write --backend replay:FILE");
	}
	while (*text) {
		size_t len = strcspn(text, ",");

		if (len == 3 && !memcmp(text, "kvm", 3))
			out->kvm = true;
		else if (len == 5 && !memcmp(text, "sched", 5))
			out->sched = true;
		else if (len == 2 && !memcmp(text, "pt", 2))
			out->pt = true;
		else if (len == 3 && !memcmp(text, "pmu", 3))
			return vmt_diag_printf(diag, VMT_E_CAPABILITY, 0,
					       "this version captures with kvm, sched and pt",
					       "no backend %.*s", (int)len, text);
		else
			return vmt_diag_printf(diag, VMT_E_USAGE, 0,
					       "it is auto, a list of kvm, sched and pt, or "
					       "replay:FILE",
					       "unknown backend '%.*s'", (int)len, text);
		text += len + (text[len] == ',');
	}
	return out->kvm || out->sched || out->pt
		       ? 0
		       : vmt_diag_set(diag, VMT_E_USAGE, "no backend is named",
				      "it is auto, a list of kvm, sched and pt, or replay:FILE");
}
