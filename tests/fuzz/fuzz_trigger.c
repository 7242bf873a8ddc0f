// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Triggers: any text is refused with an offset inside it, or understood; what is understood takes
 * any records, and any times, without growing or looping.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "host/capture/trigger_watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char exit_format[] =
	"name: kvm_exit\nID: 7\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\n"
	"\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 isa;\toffset:12;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"\"\n";
static const char entry_format[] =
	"name: kvm_entry\nID: 8\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\nprint fmt: \"\"\n";

/* Records of 12 bytes: what, thread, reason, time. */
static void feed(const struct vmt_trigger *trigger, const uint8_t *data, size_t size)
{
	struct vmt_trigger_watch *w;
	struct vmt_trigger_hit hit;

	if (vmt_trigger_watch_new(&w, trigger, 1, NULL))
		abort();
	vmt_trigger_watch_format(w, exit_format, sizeof(exit_format) - 1);
	vmt_trigger_watch_format(w, entry_format, sizeof(entry_format) - 1);
	for (; size >= 12; data += 12, size -= 12) {
		uint64_t time_ns = vmt_load_u64(data + 4);
		uint8_t raw[16] = { data[0] & 1 ? 7 : 8 };

		raw[8] = data[2];
		raw[12] = data[3] % 3;
		if (data[0] & 2)
			vmt_trigger_watch_switch(w, data[1], time_ns, data[0] & 4, data[0] & 8);
		else
			vmt_trigger_watch_sample(w, data[1], time_ns, raw, data[0] >> 4 ? 16 : 9);
		if (data[0] & 128)
			vmt_trigger_watch_check(w, time_ns);
		if (vmt_trigger_watch_take(w, &hit) &&
		    strncmp(hit.detail, trigger->text, strlen(trigger->text)) != 0)
			abort();
	}
	vmt_trigger_watch_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = size ? data[0] : 0;
	struct vmt_trigger trigger;
	struct vmt_diag diag = { 0 };
	char text[256];

	if (!size)
		return 0;
	if (len > size - 1)
		len = size - 1;
	memcpy(text, data + 1, len);
	text[len] = '\0';
	if (vmt_trigger_parse(text, &trigger, &diag)) {
		if (diag.code != VMT_E_USAGE || !diag.has_offset || diag.offset > strlen(text))
			abort();
		return 0;
	}
	if (trigger.for_ns < VMT_TRIGGER_FOR_MIN_NS || trigger.for_ns > VMT_TRIGGER_FOR_MAX_NS)
		abort();
	feed(&trigger, data + 1 + len, size - 1 - len);
	return 0;
}
