// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LEN_MAX 64

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static int lower(char c)
{
	return tolower((unsigned char)c);
}

unsigned int vmt_name_distance(const char *a, const char *b)
{
	unsigned int rows[3][LEN_MAX + 1];
	size_t na = strnlen(a, LEN_MAX), nb = strnlen(b, LEN_MAX);
	unsigned int *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= nb; j++)
		last[j] = before[j] = (unsigned int)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned int *spare = before;

		now[0] = (unsigned int)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned int differ = lower(a[i - 1]) != lower(b[j - 1]);

			now[j] = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + differ);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]))
				now[j] = least(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[nb];
}

size_t vmt_near_names(char *buf, size_t size, const char *wanted, const char *const *names,
		      size_t count)
{
	unsigned int most = (unsigned int)(strnlen(wanted, LEN_MAX) / 3 + 1);
	size_t found = 0;

	buf[0] = '\0';
	for (unsigned int distance = 0; distance <= most; distance++) {
		for (size_t i = 0; i < count && found < 3; i++) {
			size_t used = strlen(buf);

			if (vmt_name_distance(wanted, names[i]) != distance ||
			    used + strlen(names[i]) + 3 > size)
				continue;
			snprintf(buf + used, size - used, "%s%s", found ? ", " : "", names[i]);
			found++;
		}
	}
	return found;
}
