/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_TRIGGER_H
#define VMT_CAPTURE_TRIGGER_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

/*
 * A trigger's text:
 *
 *	exits>N/s           exits of all vCPUs
 *	reason=NAME>N/s     exits of one reason, by its name (EPT_MISCONFIG, npf) or number
 *	pP(NAME)>TIME       percentile P (1 to 99) of the time from an exit of the reason to the
 *	                    next entry
 *	steal>N%            time for which a vCPU is ready but another thread runs
 *
 * each with `for TIME` behind it or without; blanks may stand between the parts. N may have
 * decimals and k, M or G (powers of 1000); TIME is a number with ns, us, ms, s or m.
 */
enum vmt_trigger_kind {
	VMT_TRIGGER_EXITS,
	VMT_TRIGGER_REASON,
	VMT_TRIGGER_PERCENTILE,
	VMT_TRIGGER_STEAL,
};

#define VMT_TRIGGER_NO_REASON UINT32_MAX
#define VMT_TRIGGER_TEXT_MAX  80u /* characters */
#define VMT_TRIGGERS_MAX      8u  /* of a session */

struct vmt_trigger {
	enum vmt_trigger_kind kind;
	uint32_t vmx_reason, svm_reason; /* VMT_TRIGGER_NO_REASON: not of this kind of CPU */
	unsigned int percentile;
	uint64_t limit;	 /* exits a second, ns, or thousandths of a percent; must be exceeded */
	uint64_t for_ns; /* as written, else 100 ms of rates, 1 s of percentiles, 200 ms of steal */
	char text[VMT_TRIGGER_TEXT_MAX + 1];
};

#define VMT_TRIGGER_FOR_MIN_NS UINT64_C(4000000)
#define VMT_TRIGGER_FOR_MAX_NS UINT64_C(60000000000)

/* VMT_E_USAGE: diag has the offset into the text, and says what is expected there. */
int vmt_trigger_parse(const char *text, struct vmt_trigger *out, struct vmt_diag *diag);

#endif
