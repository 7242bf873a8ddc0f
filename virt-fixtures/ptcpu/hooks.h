// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_HOOKS_H
#define VMT_PTCPU_HOOKS_H
/* Where bochs-bin is changed and what is put there; place.c does it. */
#include <stddef.h>
#include <stdint.h>

/* An empty callback of the build (one RET) that becomes a jump. */
struct callback {
	const char *symbol;
	void *function;
};

/* A function whose first instructions become a jump; they are kept elsewhere. */
struct wrap {
	const char *symbol;
	void *function, *old; /* old: where the pointer to the original goes, NULL: replaced */
	uint8_t count, bytes[14];
	uint8_t ja_at; /* of a JA rel32 among them, 0: none */
};

/* A virtual function of the CPU model. */
struct slot {
	unsigned int slot;
	const char *symbol; /* that is expected in it */
	void *function, *old;
};

extern const struct callback hooks_callbacks[];
extern const struct wrap hooks_wraps[];
extern const struct slot hooks_slots[];
extern const size_t hooks_callback_count, hooks_wrap_count, hooks_slot_count;

#endif
