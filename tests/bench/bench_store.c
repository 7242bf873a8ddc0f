// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How fast a .vmt is written and read, beside cp of the same bytes in the same run: a loop of read
 * and write with 1 MiB, as cp does, both with the fsync at the end that the store does. The best of
 * some rounds is shown; the totals prove that the same bytes went through.
 * VMT_BENCH_MB: how much (256); arguments: folders (/dev/shm and /tmp).
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "decode/store/store.h"
#include "tests/support/store_sample.h"

#define ROUNDS	    5
#define CHUNK	    (128u << 10) /* what a ring holds after 250 ms on a busy CPU */
#define PATTERN	    (8u << 20)
#define COPY_BUFFER (1u << 20)

struct bench {
	const char *folder;
	char path[256], copy_path[264];
	uint64_t payload; /* bytes of RECORDS to write */
	uint8_t *pattern; /* PATTERN bytes of records */
	uint8_t *buffer;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double write_store(const struct bench *b, bool compress)
{
	struct vmt_store_options options = { .compress = compress, .force = true };
	struct vmt_store_writer *w;
	double start = now();

	if (vmt_store_create(&w, b->path, &options, NULL) != 0)
		die(b->path);
	for (uint64_t done = 0; done < b->payload; done += CHUNK) {
		const uint8_t *from = b->pattern + done % PATTERN;
		/* Two parts, as a ring gives them when it wraps. */
		struct vmt_store_chunk chunk = {
			.type = VMT_CHUNK_RECORDS,
			.time_first_ns = done + 1,
			.time_last_ns = done + CHUNK,
			.nr_parts = 2,
			.parts = { { from, CHUNK / 4 }, { from + CHUNK / 4, CHUNK - CHUNK / 4 } }
		};

		if (vmt_store_append(w, &chunk, NULL) != 0)
			die(b->path);
	}
	if (vmt_store_finish(w, NULL) != 0)
		die(b->path);
	return now() - start;
}

static double read_store(const struct bench *b, uint64_t *payload)
{
	struct vmt_reader *reader;
	struct vmt_store_reader *store;
	struct vmt_item item;
	double start = now();

	*payload = 0;
	if (vmt_reader_open(&reader, b->path, NULL, NULL) != 0 ||
	    vmt_store_open(&store, reader, NULL) != 0)
		die(b->path);
	while (vmt_store_next(store, &item, NULL) == 1)
		if (item.type == VMT_ITEM_RECORDS)
			*payload += item.len;
	if (vmt_store_ledger(store).bytes_skipped || vmt_store_ledger(store).truncated)
		die("what was read back is damaged");
	vmt_store_close(store);
	return now() - start;
}

/* read and write, or read alone when to is NULL. */
static double copy_file(const struct bench *b, const char *to, uint64_t *bytes)
{
	double start = now();
	int in = open(b->path, O_RDONLY | O_CLOEXEC), out = -1;
	ssize_t n;

	*bytes = 0;
	if (to) {
		unlink(to);
		out = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	}
	if (in < 0 || (to && out < 0))
		die(b->path);
	while ((n = read(in, b->buffer, COPY_BUFFER)) > 0) {
		if (to && write(out, b->buffer, (size_t)n) != n)
			die(to);
		*bytes += (uint64_t)n;
	}
	close(in);
	if (to && (fsync(out) < 0 || close(out) < 0))
		die(to);
	return now() - start;
}

static void print_row(const struct bench *b, const char *what, double seconds, uint64_t bytes,
		      double peer_seconds, uint64_t peer_bytes, const char *peer)
{
	double speed = (double)bytes / seconds / 1e6;
	double peer_speed = (double)peer_bytes / peer_seconds / 1e6;

	printf("store %-10s %-24s %8.0f MB/s   %s %8.0f MB/s   ratio %.2f   bytes %llu\n",
	       b->folder, what, speed, peer, peer_speed, speed / peer_speed,
	       (unsigned long long)bytes);
}

struct best {
	double write, copy, read, read_peer;
	uint64_t file_bytes, payload;
};

static void keep_least(double *best, double seconds)
{
	if (*best == 0 || seconds < *best)
		*best = seconds;
}

static struct best run(const struct bench *b, bool compress)
{
	struct best best = { 0 };

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t bytes;
		struct stat st;

		unlink(b->path);
		keep_least(&best.write, write_store(b, compress));
		keep_least(&best.copy, copy_file(b, b->copy_path, &best.file_bytes));
		if (stat(b->copy_path, &st) < 0 || (uint64_t)st.st_size != best.file_bytes)
			die(b->copy_path);
		keep_least(&best.read, read_store(b, &best.payload));
		keep_least(&best.read_peer, copy_file(b, NULL, &bytes));
		if (best.payload != b->payload || bytes != best.file_bytes)
			die("totals differ");
	}
	unlink(b->path);
	unlink(b->copy_path);
	return best;
}

static void bench_folder(struct bench *b)
{
	struct best plain, zstd;

	snprintf(b->path, sizeof(b->path), "%s/vmt-bench-%d.vmt", b->folder, (int)getpid());
	snprintf(b->copy_path, sizeof(b->copy_path), "%s.copy", b->path);
	plain = run(b, false);
	print_row(b, "write", plain.write, b->payload, plain.copy, plain.file_bytes, "cp  ");
	print_row(b, "read", plain.read, plain.payload, plain.read_peer, plain.file_bytes, "read");
	zstd = run(b, true);
	print_row(b, "write zstd", zstd.write, b->payload, plain.copy, plain.file_bytes, "cp  ");
	print_row(b, "read zstd", zstd.read, zstd.payload, plain.read_peer, plain.file_bytes,
		  "read");
	printf("store %-10s payload %llu bytes in %llu bytes, compressed %llu\n", b->folder,
	       (unsigned long long)b->payload, (unsigned long long)plain.file_bytes,
	       (unsigned long long)zstd.file_bytes);
}

int main(int argc, char **argv)
{
	static const char *const folders[] = { "/dev/shm", "/tmp" };
	const char *mb = getenv("VMT_BENCH_MB");
	struct bench b = { .payload = (mb ? strtoull(mb, NULL, 10) : 256) << 20,
			   .pattern = malloc(PATTERN),
			   .buffer = malloc(COPY_BUFFER) };

	if (!b.pattern || !b.buffer || !b.payload)
		die("memory");
	vmt_sample_records(b.pattern, PATTERN / VMT_SAMPLE_RECORD, 1);
	for (int i = 0; i < (argc > 1 ? argc - 1 : 2); i++) {
		b.folder = argc > 1 ? argv[i + 1] : folders[i];
		if (access(b.folder, W_OK) == 0)
			bench_folder(&b);
		else
			printf("store %s: skipped: not writable\n", b.folder);
	}
	free(b.pattern);
	free(b.buffer);
	return 0;
}
