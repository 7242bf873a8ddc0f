// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/replay_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/store/store.h"
#include "tests/support/stream.h"

static const char session[] =
	"{\"schema\":\"vmtrace-session/1\",\"tool\":\"vmtrace test\",\"session\":\"s-1\","
	"\"backend\":\"kvm,sched\",\"host\":{\"hostname\":\"there\",\"kernel\":\"6.18.0\","
	"\"cpu\":null,\"vendor\":\"GenuineIntel\",\"cpus\":8,\"isa\":\"vmx\"},"
	"\"clock\":{\"tsc_convertible\":false},\"start_ns\":1000000000,\"start_realtime_ns\":1,"
	"\"has_switches\":true,\"domains\":[{\"name\":\"recorded\",\"uuid\":null,\"pid\":4700,"
	"\"uri\":null,\"type\":\"kvm\",\"xml\":null,\"tsc_khz\":null,"
	"\"vcpus\":[{\"id\":0,\"tid\":4711,\"source\":\"thread name\"}],\"threads\":[]}]}";

static void check(int err)
{
	if (err) {
		fprintf(stderr, "replay sample: error %d\n", err);
		abort();
	}
}

static void write_head(struct vmt_store_writer *w, const struct vmt_machine *m)
{
	const struct vmt_format *formats;
	size_t count = vmt_machine_formats(m, &formats);

	check(vmt_store_session(w, session, NULL));
	for (size_t i = 0; i < count; i++) {
		struct vmt_ring_attr attr = vmt_stream_attr(formats[i].id);
		uint64_t id = i + 1;
		size_t len;
		char *text = vmt_stream_format_text("6.18", formats[i].name, &len);

		check(vmt_store_format(w, text, NULL));
		check(vmt_store_attr(w, &attr, &id, 1, NULL));
		free(text);
	}
}

static void write_mark(struct vmt_store_writer *w, const char *name, uint64_t time_ns)
{
	char json[160];

	snprintf(json, sizeof(json),
		 "{\"time_ns\":%llu,\"domain\":0,\"name\":\"%s\",\"detail\":null}",
		 (unsigned long long)time_ns, name);
	check(vmt_store_mark(w, json, time_ns, NULL));
}

void replay_sample_write(const char *path, unsigned int rounds, uint64_t round_ns)
{
	const uint64_t each_ns = round_ns / REPLAY_SAMPLE_ROUND_EXITS;
	const struct vmt_machine_exit exit = { .pid = 4700,
					       .tid = REPLAY_SAMPLE_TID,
					       .cpu = 1,
					       .isa = 1,
					       .reason = 30,
					       .rip = 0x1007,
					       .info1 = 0x3f80000,
					       .gap_ns = each_ns / 2,
					       .guest_ns = each_ns - each_ns / 2 };
	struct vmt_store_options options = { .force = true };
	struct vmt_store_writer *w;
	struct vmt_stream stream = { 0 };
	struct vmt_machine *m = vmt_machine_new("6.18", &stream);

	check(vmt_store_create(&w, path, &options, NULL));
	write_head(w, m);
	write_mark(w, "capture-start", 1000000000);
	for (unsigned int i = 0; i < rounds; i++) {
		struct vmt_store_chunk chunk = { .type = VMT_CHUNK_RECORDS,
						 .stream = 1,
						 .cpu = 1,
						 .time_first_ns =
							 vmt_machine_now(m, REPLAY_SAMPLE_TID),
						 .nr_parts = 1 };

		stream.len = 0;
		for (unsigned int k = 0; k < REPLAY_SAMPLE_ROUND_EXITS; k++)
			vmt_machine_run(m, &exit);
		chunk.time_last_ns = vmt_machine_now(m, REPLAY_SAMPLE_TID);
		chunk.parts[0] = (struct vmt_store_part){ stream.bytes, stream.len };
		check(vmt_store_append(w, &chunk, NULL));
		check(vmt_store_round(w, chunk.time_last_ns, NULL));
		if (i == rounds / 2)
			write_mark(w, "paused", chunk.time_last_ns);
	}
	write_mark(w, "capture-stop", vmt_machine_now(m, REPLAY_SAMPLE_TID));
	check(vmt_store_finish(w, NULL));
	vmt_machine_free(m);
	vmt_stream_free(&stream);
}
