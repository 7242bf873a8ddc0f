// SPDX-License-Identifier: LGPL-2.1-or-later
/* Domain XML and libvirt's status file from anyone: every text that comes out ends inside its room.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/domain/domain.h"
#include "host/domain/status_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENDS(text)                                                                                 \
	do {                                                                                       \
		if (!memchr(text, '\0', sizeof(text)))                                             \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vmt_status_xml status;
	struct vmt_diag diag = { .code = VMT_OK };
	struct vmt_xml_facts facts;
	int err = vmt_xml_read((const char *)data, size, &facts, &diag);

	if (err != (int)diag.code)
		abort();
	ENDS(facts.machine);
	ENDS(facts.cpu_model);
	ENDS(facts.timers);
	ENDS(facts.hyperv);
	ENDS(facts.features);
	ENDS(facts.agent_path);
	ENDS(facts.pinning);
	if (vmt_status_xml_read((const char *)data, size, &status, NULL) == VMT_OK &&
	    (status.nr_vcpus > VMT_STATUS_VCPUS_MAX || status.pid < 0))
		abort();
	return 0;
}
