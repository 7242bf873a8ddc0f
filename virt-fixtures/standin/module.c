// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

#include <asm/cpufeature.h>

#include "standin.h"

static int __init standin_init(void)
{
	int err;

	if (boot_cpu_has(X86_FEATURE_INTEL_PT) || !boot_cpu_has(X86_FEATURE_SVM)) {
		pr_err("standin: only for a machine with SVM and without Intel PT\n");
		return -ENODEV;
	}
	err = standin_kvm_attach();
	if (err)
		return err;
	err = standin_pmu_register();
	if (err)
		standin_kvm_detach();
	return err;
}

static void __exit standin_exit(void)
{
	standin_kvm_detach();
	standin_pmu_unregister();
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A PMU named intel_pt that stands in for Intel PT in tests");
