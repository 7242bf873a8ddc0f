// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What draining an AUX area of Intel PT costs, beside a loop that copies the same bytes out of the
 * same area, hashes them and writes them with 256 KiB a call. CPU time of both, user and system,
 * best of some rounds, alternating; the totals prove that the same bytes went through.
 * VMT_BENCH_MB: how much (256); argument: a folder of a tmpfs (/dev/shm).
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "decode/store/hash.h"
#include "host/capture/pt_ring.h"

#define ROUNDS	  7
#define AREA	  (16u << 20)
#define WATERMARK (1u << 20) /* what the kernel passes on at a time */
#define CALL	  (256u << 10)

struct bench {
	char path[256];
	uint64_t bytes;
	uint8_t *area, *copy;
	struct perf_event_mmap_page *page;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double cpu_seconds(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static double drain(const struct bench *b, uint64_t *stored)
{
	struct vmt_store_options options = { .force = true };
	struct vmt_pt_ring ring = { .page = b->page, .aux = b->area, .aux_bytes = AREA };
	struct vmt_pt_counts counts = { 0 };
	struct vmt_store_writer *w;
	double start = cpu_seconds();

	if (vmt_store_create(&w, b->path, &options, NULL) != 0)
		die(b->path);
	b->page->aux_head = b->page->aux_tail = 0;
	while (b->page->aux_head < b->bytes) {
		b->page->aux_head += WATERMARK;
		if (vmt_pt_ring_drain(&ring, vmt_pt_ring_head(&ring), w, &counts, NULL) != 0)
			die(b->path);
	}
	if (vmt_store_finish(w, NULL) != 0)
		die(b->path);
	*stored = counts.bytes;
	return cpu_seconds() - start;
}

static double copy(const struct bench *b, uint64_t *written, uint64_t *hash)
{
	double start = cpu_seconds();
	int fd;

	unlink(b->path);
	fd = open(b->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	*written = 0;
	while (*written < b->bytes) {
		memcpy(b->copy, b->area + (*written & (AREA - 1)), CALL);
		*hash += vmt_store_hash(b->copy, CALL);
		if (write(fd, b->copy, CALL) != (ssize_t)CALL)
			die(b->path);
		*written += CALL;
	}
	if (fd < 0 || fsync(fd) || close(fd))
		die(b->path);
	return cpu_seconds() - start;
}

int main(int argc, char **argv)
{
	const char *mb = getenv("VMT_BENCH_MB"), *folder = argc > 1 ? argv[1] : "/dev/shm";
	struct bench b = { .bytes = (mb ? strtoull(mb, NULL, 10) : 256) << 20,
			   .area = aligned_alloc(4096, AREA),
			   .copy = malloc(CALL),
			   .page = calloc(1, sizeof(*b.page)) };
	double own = 0, peer = 0;
	uint64_t stored = 0, written = 0, hash = 0, state = 1;

	if (access(folder, W_OK) != 0) {
		printf("pt_drain %s: skipped: not writable\n", folder);
		return 0;
	}
	if (!b.area || !b.copy || !b.page || !b.bytes)
		die("memory");
	for (size_t i = 0; i < AREA; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
		b.area[i] = (uint8_t)(state >> 56);
	}
	snprintf(b.path, sizeof(b.path), "%s/vmt-bench-drain-%d", folder, (int)getpid());
	for (int i = 0; i < ROUNDS; i++) {
		double t = drain(&b, &stored);

		own = !i || t < own ? t : own;
		t = copy(&b, &written, &hash);
		peer = !i || t < peer ? t : peer;
		if (stored != b.bytes || written != b.bytes)
			die("totals differ");
	}
	unlink(b.path);
	printf("pt_drain %s: %.3f CPU s, memcpy + hash + write %.3f CPU s, ratio %.2f, bytes %llu "
	       "(hash %llx)\n",
	       folder, own, peer, own / peer, (unsigned long long)stored, (unsigned long long)hash);
	free(b.area);
	free(b.copy);
	free(b.page);
	return 0;
}
