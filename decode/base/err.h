/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_ERR_H
#define VMT_BASE_ERR_H

/*
 * The errors of every function that can fail: 0 or one of these. Iterators return 1 for an item,
 * 0 at the end, and one of these on failure.
 */
enum vmt_err {
	VMT_OK = 0,
	VMT_E_NOMEM = -1,	/* memory or a fixed table is exhausted */
	VMT_E_IO = -2,		/* the operating system refused: diag.sys_errno says why */
	VMT_E_TRUNCATED = -3,	/* the input ends inside an item */
	VMT_E_DAMAGED = -4,	/* checksum, magic or a length that cannot be */
	VMT_E_UNSUPPORTED = -5, /* well-formed, but not something this version reads or does */
	VMT_E_LIMIT = -6,	/* a bound against hostile input was reached */
	VMT_E_USAGE = -7,	/* the caller's or the user's arguments are wrong */
	VMT_E_NOT_FOUND = -8,	/* no such domain, event, symbol, file */
	VMT_E_PERMISSION = -9,	/* a capability, sysctl or file mode forbids it */
	VMT_E_CAPABILITY = -10, /* this host, kernel or domain lacks it */
	VMT_E_EXISTS = -11,	/* the output or the session is already there */
	VMT_E_TIMEOUT = -12,	/* a deadline passed */
	VMT_E_FULL = -13,	/* no space left, or a size limit was reached */
};

#endif
