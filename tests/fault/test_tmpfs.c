// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A file system that is really full: a tmpfs of 1 MiB, mounted where nobody else sees it. Skipped
 * where this user may not mount.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/store_sample.h"

#define CHUNKS	   800u
#define NR_RECORDS 64u

static char folder[] = "/tmp/vmt-tmpfs-XXXXXX";
static char path[64];

static void a_file_that_fills_the_disk(bool compress)
{
	struct vmt_store_options options = { .compress = compress, .force = true };
	struct vmt_sample_options sample = { CHUNKS, NR_RECORDS, true };
	struct vmt_store_writer *w = vmt_sample_create(path, &options);
	struct vmt_store_reader *store;
	struct vmt_item item;
	uint64_t records = 0, lost = 0;
	struct stat st;

	vmt_sample_append(w, &sample);
	assert_true(vmt_store_totals(w).lost_records > 0);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	store = vmt_sample_open(path);
	while (vmt_store_next(store, &item, NULL) == 1) {
		if (item.type == VMT_ITEM_RECORDS)
			records += item.len / VMT_SAMPLE_RECORD;
		lost += item.lost_records;
	}
	assert_int_equal(vmt_store_ledger(store).bytes_skipped, 0);
	assert_false(vmt_store_ledger(store).truncated);
	vmt_store_close(store);
	assert_int_equal(records + lost, CHUNKS * NR_RECORDS);
	print_message("# %llu bytes, %llu records in it, %llu told to be lost\n",
		      (unsigned long long)st.st_size, (unsigned long long)records,
		      (unsigned long long)lost);
}

static void full_while_writing(void **state)
{
	(void)state;
	a_file_that_fills_the_disk(false);
	unlink(path);
}

static void full_while_compressing(void **state)
{
	(void)state;
	a_file_that_fills_the_disk(true);
	unlink(path);
}

/* Nothing but a name fits: the file is refused and leaves nothing behind. */
static void full_from_the_start(void **state)
{
	struct vmt_store_options options = { 0 };
	struct vmt_store_writer *w;
	struct vmt_diag diag = { 0 };
	static uint8_t zeros[1 << 20];
	char other[80];
	FILE *f;

	(void)state;
	snprintf(other, sizeof(other), "%s/other", folder);
	f = fopen(other, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(zeros, 1, sizeof(zeros), f), sizeof(zeros));
	fclose(f);
	assert_int_equal(vmt_store_create(&w, path, &options, &diag), VMT_E_FULL);
	assert_int_equal(diag.sys_errno, ENOSPC);
	assert_int_equal(access(path, F_OK), -1);
	unlink(other);
}

static bool mount_small(void)
{
	snprintf(path, sizeof(path), "%s/a.vmt", folder);
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", folder, "tmpfs", 0, "size=1m") == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_while_writing),
		cmocka_unit_test(full_while_compressing),
		cmocka_unit_test(full_from_the_start),
	};
	int failed = 0;

	if (!mkdtemp(folder))
		return 1;
	if (mount_small()) {
		failed = cmocka_run_group_tests(tests, NULL, NULL);
		umount(folder);
	} else {
		printf("1..1\nok 1 - a full disk # SKIP mounting a tmpfs: %s\n", strerror(errno));
	}
	rmdir(folder);
	return failed;
}
