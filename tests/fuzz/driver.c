// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs a fuzz target without libFuzzer: each file of the corpus folder as it is, each cut off at
 * some places, and with some bytes changed by a fixed random sequence. With --tap, one TAP line.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void mutate_and_run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	int rounds = size > 65536 ? 20 : 200;

	if (!copy)
		abort();
	for (int i = 0; i < rounds; i++) {
		size_t len = size;

		memcpy(copy, data, size);
		if (i % 4 == 0 && size)
			len = (size_t)(next_random() % size);
		for (uint64_t n = next_random() % 8; len && n > 0; n--)
			copy[next_random() % len] = (uint8_t)next_random();
		LLVMFuzzerTestOneInput(copy, len);
	}
	free(copy);
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(1u << 20);
	size_t size;

	if (!f || !data)
		abort();
	size = fread(data, 1, 1u << 20, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	mutate_and_run(data, size);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	const char *folder = argc > 2 ? argv[2] : argc > 1 ? argv[1] : "";
	DIR *dir = opendir(folder);
	int files = 0;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		files += run_file(path);
	}
	if (dir)
		closedir(dir);
	printf("1..1\n%sok 1 - %d corpus files with mutations\n", files ? "" : "not ", files);
	return files ? 0 : 1;
}
