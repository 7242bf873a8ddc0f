// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/domain/domain.h"
#include "host/domain/status_xml.h"
#include "host/domain/xml_walk.h"

static const char web01[] =
	"<domain type='kvm' id='3'>"
	"<name>web01</name><vcpu placement='static' current='2'>4</vcpu><iothreads>1</iothreads>"
	"<cputune><vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='1' cpuset='2-3,8'/></cputune>"
	"<os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>"
	"<features><acpi/><hyperv mode='custom'><relaxed state='on'/>"
	"<spinlocks state='on' retries='8191'/><vpindex state='off'/><stimer state='on'>"
	"<direct state='on'/></stimer></hyperv><kvm><hidden state='on'/></kvm><pmu state='off'/>"
	"</features>"
	"<cpu mode='custom' match='exact'><model fallback='allow'>Nehalem</model>"
	"<feature policy='require' name='invtsc'/><feature name='x2apic'/></cpu>"
	"<clock offset='utc'><timer name='rtc' tickpolicy='catchup'/>"
	"<timer name='tsc' frequency='2300000000' mode='native'/>"
	"<timer name='hpet' present='no'/></clock>"
	"<devices><channel type='unix'><source mode='bind' path='/other'/>"
	"<target type='virtio' name='org.qemu.guest_agent.0' state='connected'/>"
	"<alias name='channel0'/></channel>"
	"<channel type='unix'><source mode='bind' path='/run/web01.sock'/>"
	"<target type='virtio' name='org.vmtrace.agent.0' state='disconnected'/>"
	"<alias name='channel1'/></channel>"
	"<vsock model='virtio'><cid auto='no' address='42'/></vsock></devices></domain>";

static void facts_are_read(void **state)
{
	struct vmt_xml_facts f;

	(void)state;
	assert_int_equal(vmt_xml_read(web01, strlen(web01), &f, NULL), VMT_OK);
	assert_string_equal(f.domain_type, "kvm");
	assert_string_equal(f.machine, "pc-q35-7.2");
	assert_string_equal(f.cpu_mode, "custom");
	assert_string_equal(f.cpu_model, "Nehalem");
	assert_string_equal(f.features, "invtsc=require x2apic=require");
	assert_true(f.has_tsc_hz);
	assert_int_equal(f.tsc_hz, 2300000000u);
	assert_string_equal(f.clock_offset, "utc");
	assert_string_equal(f.timers, "rtc,tickpolicy=catchup tsc,mode=native,frequency=2300000000 "
				      "hpet,present=no");
	assert_string_equal(f.hyperv, "relaxed spinlocks=8191 stimer");
	assert_int_equal(f.nr_vcpus, 2);
	assert_int_equal(f.nr_iothreads, 1);
	assert_true(f.has_vsock);
	assert_int_equal(f.vsock_cid, 42);
	assert_true(f.has_agent_channel);
	assert_false(f.agent_connected);
	assert_string_equal(f.agent_path, "/run/web01.sock");
	assert_string_equal(f.agent_alias, "channel1");
	assert_true(f.pmu_off);
	assert_true(f.kvm_hidden);
	assert_string_equal(f.pinning, "0:0 1:2-3,8");
}

static void every_truncation_is_damaged(void **state)
{
	struct vmt_xml_facts f;

	(void)state;
	for (size_t len = 0; len < strlen(web01); len++) {
		struct vmt_diag diag = { .code = VMT_OK };

		assert_int_equal(vmt_xml_read(web01, len, &f, &diag), VMT_E_DAMAGED);
		assert_int_equal(diag.code, VMT_E_DAMAGED);
	}
}

static void a_document_type_is_refused(void **state)
{
	static const char *const texts[] = {
		"<!DOCTYPE domain><domain type='kvm'/>",
		"<!DOCTYPE domain SYSTEM 'file:///etc/passwd'><domain type='kvm'/>",
		"<!DOCTYPE d [<!ENTITY a 'x'>]><domain type='kvm'><name>&a;</name></domain>",
		"<!DOCTYPE d [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><domain>&a;</domain>",
		"<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>"
		"<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY e '&c;&c;&c;&c;&c;&c;&c;&c;'>"
		"<!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;'><!ENTITY g '&f;&f;&f;&f;&f;&f;&f;&f;'>]>"
		"<domain type='&g;'>&g;&g;&g;&g;&g;&g;&g;&g;</domain>",
	};
	struct vmt_xml_facts f;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct vmt_diag diag = { .code = VMT_OK };

		assert_int_equal(vmt_xml_read(texts[i], strlen(texts[i]), &f, &diag),
				 VMT_E_DAMAGED);
		assert_string_equal(f.domain_type, "");
	}
}

static void depth_and_size_are_bounded(void **state)
{
	struct vmt_diag diag = { .code = VMT_OK };
	struct vmt_xml_facts f;
	char *big = malloc(VMT_XML_MAX + 1);
	size_t len = 0;

	(void)state;
	assert_non_null(big);
	for (int i = 0; i < 100000; i++)
		len += (size_t)sprintf(big + len, "<a>");
	assert_int_equal(vmt_xml_read(big, len, &f, &diag), VMT_E_LIMIT);
	memset(big, ' ', VMT_XML_MAX + 1);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_xml_read(big, VMT_XML_MAX + 1, &f, &diag), VMT_E_LIMIT);
	free(big);
}

/* Long names and long values are cut, others around them are read all the same. */
static void long_things_are_cut(void **state)
{
	static char xml[40000];
	struct vmt_xml_facts f;
	size_t n = 0;

	(void)state;
	n += (size_t)sprintf(xml + n, "<domain type='kvm'><");
	for (int i = 0; i < 3000; i++)
		n += (size_t)sprintf(xml + n, "x");
	n += (size_t)sprintf(xml + n, "><b/></");
	for (int i = 0; i < 3000; i++)
		n += (size_t)sprintf(xml + n, "x");
	n += (size_t)sprintf(xml + n, "><cpu mode='host-model'>");
	for (int i = 0; i < 500; i++)
		n += (size_t)sprintf(xml + n, "<feature name='feature%d'/>", i);
	n += (size_t)sprintf(xml + n, "</cpu></domain>");
	assert_int_equal(vmt_xml_read(xml, n, &f, NULL), VMT_OK);
	assert_string_equal(f.cpu_mode, "host-model");
	assert_true(strlen(f.features) < sizeof(f.features));
	assert_memory_equal(f.features, "feature0=require feature1=require", 33);
}

static void control_characters_are_replaced(void **state)
{
	static const char xml[] =
		"<domain type='k&#10;m'><cpu><model>a&#9;b</model></cpu></domain>";
	struct vmt_xml_facts f;

	(void)state;
	assert_int_equal(vmt_xml_read(xml, strlen(xml), &f, NULL), VMT_OK);
	assert_string_equal(f.domain_type, "k?m");
	assert_string_equal(f.cpu_model, "a?b");
}

static void the_status_file_is_read(void **state)
{
	static const char xml[] =
		"<domstatus state='running' pid='4711'><vcpus><vcpu id='0' pid='4720'/>"
		"<vcpu id='70000' pid='1'/><vcpu id='1' pid='x'/><vcpu id='2' pid='4722'/></vcpus>"
		"<domain type='kvm'><uuid>4dea22b3-1d52-4d8f-a2a5-6f2c1b0c9a01</uuid>"
		"<vcpus><vcpu id='3' enabled='yes'/></vcpus></domain></domstatus>";
	static struct vmt_status_xml s;

	(void)state;
	assert_int_equal(vmt_status_xml_read(xml, strlen(xml), &s, NULL), VMT_OK);
	assert_int_equal(s.pid, 4711);
	assert_string_equal(s.uuid, "4dea22b3-1d52-4d8f-a2a5-6f2c1b0c9a01");
	assert_int_equal(s.nr_vcpus, 2);
	assert_int_equal(s.vcpus[0].tid, 4720);
	assert_int_equal(s.vcpus[1].id, 2);
	assert_int_equal(s.vcpus[1].tid, 4722);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_are_read),
		cmocka_unit_test(every_truncation_is_damaged),
		cmocka_unit_test(a_document_type_is_refused),
		cmocka_unit_test(depth_and_size_are_bounded),
		cmocka_unit_test(long_things_are_cut),
		cmocka_unit_test(control_characters_are_replaced),
		cmocka_unit_test(the_status_file_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
