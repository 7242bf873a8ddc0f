# vmtrace: plain GNU make. `make help` lists the targets.
#   O=DIR     build out of tree (default build)     V=1       show commands
#   JOBS=N    compilers and tests at a time (default: one a core)
#   CC CFLAGS LDFLAGS respected                     SAN=1     ASan + UBSan
#   prefix DESTDIR for install
.DEFAULT_GOAL := all
SHELL := /bin/bash
srcdir := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
O ?= build
prefix ?= /usr/local
bindir ?= $(prefix)/bin
mandir ?= $(prefix)/share/man
completiondir ?= $(prefix)/share/bash-completion/completions
VERSION := 0.1.0
CC ?= gcc
AR ?= ar
CFLAGS ?= -O2 -g
V ?= 0
JOBS ?= $(shell nproc)
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' "$(1)" "$(2)")

WARN := -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wcast-qual -Wvla -Wformat=2 -Wundef -Wpointer-arith
WERROR ?= -Werror
PKGS := libvirt libvirt-qemu libxml-2.0 libzstd jansson libxxhash libelf
# Empty before `make deps` has run; the compiler then names the missing header.
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null || echo -lvirt -lvirt-qemu -lxml2 -lzstd -ljansson -lelf)
ifeq ($(SAN),1)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -DVMT_VERSION='"$(VERSION)"' -I$(srcdir) -MMD -MP $(WARN) \
	$(WERROR) $(patsubst -I%,-isystem%,$(PKG_CFLAGS)) $(SANFLAGS) $(COVFLAGS) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(SANFLAGS) $(COVFLAGS) $(LDFLAGS)

# ---- archives: one a folder, in link order (users first) ----
ARCHIVES := host/cli host/session host/capture host/probe host/domain decode/export decode/analyze \
	decode/symbols decode/perfdata decode/store decode/io decode/correlate decode/flow decode/rewrite decode/pt decode/insn decode/kvm \
	decode/ring decode/base vmx
src = $(sort $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/$(1)/*.c)))
obj = $(patsubst %.c,$(O)/%.o,$(1))
MAIN_SRC := host/cli/main.c
lib = $(O)/lib/lib$(subst /,-,$(patsubst decode/%,%,$(1))).a
LIBS := $(foreach a,$(ARCHIVES),$(if $(filter-out $(MAIN_SRC),$(call src,$(a))),$(call lib,$(a))))

define archive_rule
$(call lib,$(1)): $(call obj,$(filter-out $(MAIN_SRC),$(call src,$(1))))
	$$(call say,AR,$$@)
	$$(Q)mkdir -p $$(@D) && rm -f $$@ && $$(AR) rcs $$@ $$^
endef
$(foreach a,$(ARCHIVES),$(eval $(call archive_rule,$(a))))

$(O)/%.o: $(srcdir)/%.c
	$(call say,CC,$*.c)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -c $< -o $@

$(O)/vmtrace: $(call obj,$(MAIN_SRC)) $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(PKG_LIBS)

# ---- tests: each file is a program that speaks TAP ----
# Tests named test_*_libipt compare with libipt where it is installed, and are skipped elsewhere.
IPT_LIBS := $(shell printf '\043include <intel-pt.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo -lipt)
# The same with test_*_zydis and bench_insn, and Zydis.
ZYDIS_LIBS := $(shell printf '\043include <Zydis/Zydis.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo -lZydis)
TEST_SRC := $(foreach d,unit prop golden fault,$(filter tests/$(d)/test_%,$(call src,tests/$(d))))
TEST_BIN := $(patsubst %.c,$(O)/%,$(TEST_SRC))
# An archive: a program gets only what it uses.
SUPPORT := $(O)/tests/support/libsupport.a
FUZZ_SRC := $(filter tests/fuzz/fuzz_%,$(call src,tests/fuzz))
FUZZ_BIN := $(patsubst %.c,$(O)/%,$(FUZZ_SRC))
FUZZ_CLANG := $(patsubst tests/fuzz/%.c,$(O)/libfuzzer/%,$(FUZZ_SRC))
BENCH_SRC := $(filter tests/bench/bench_%,$(call src,tests/bench))
BENCH_BIN := $(patsubst %.c,$(O)/%,$(BENCH_SRC))

$(SUPPORT): $(call obj,$(call src,tests/support))
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(TEST_BIN): $(O)/%: $(O)/%.o $(SUPPORT) $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(SUPPORT) -Wl,--start-group $(LIBS) -Wl,--end-group $(PKG_LIBS) -lcmocka -lpthread
$(filter %_libipt,$(TEST_BIN)) $(filter %/bench_pt,$(BENCH_BIN)): PKG_LIBS += $(IPT_LIBS)
$(filter %_zydis,$(TEST_BIN)): PKG_LIBS += $(ZYDIS_LIBS)
$(FUZZ_BIN): $(O)/%: $(O)/%.o $(O)/tests/fuzz/driver.o $(SUPPORT) $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(O)/tests/fuzz/driver.o $(SUPPORT) -Wl,--start-group $(LIBS) -Wl,--end-group $(PKG_LIBS)
$(O)/tests/bench/bench_flow: PKG_LIBS += $(IPT_LIBS)
$(BENCH_BIN): $(O)/%: $(O)/%.o $(SUPPORT) $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(SUPPORT) -Wl,--start-group $(LIBS) -Wl,--end-group $(PKG_LIBS)
$(filter %/bench_insn,$(BENCH_BIN)): PKG_LIBS += $(ZYDIS_LIBS)

# ---- the emulated CPU with Intel PT: a library for bochs-bin, see virt-fixtures/ptcpu ----
PTCPU := $(O)/ptcpu.so
PTCPU_OBJ := $(patsubst %.c,$(O)/%.pic.o,$(call src,virt-fixtures/ptcpu))
$(O)/%.pic.o: $(srcdir)/%.c
	$(call say,CC,$*.c)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@
$(PTCPU): $(PTCPU_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $^

# ---- the kernel module of vmx/kmod, for the running kernel or KDIR's ----
.PHONY: kmod
kmod:
	@$(MAKE) --no-print-directory -C $(srcdir)/vmx/kmod OUT=$(abspath $(O))/kmod

# A make of its own, parallel even where this one is not.
SUBMAKE = $(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS)) --no-print-directory -f $(srcdir)/Makefile
.PHONY: all demo check check-unit check-mutation check-labs lint format-check format check-layers check-docs bench \
	fuzz coverage install uninstall dist deps clean help
all: $(O)/vmtrace man

# ---- documentation from the option table ----
GEN := $(O)/tests/tools/gen_docs
$(GEN): $(O)/tests/tools/gen_docs.o $(LIBS)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(PKG_LIBS)
MAN_IN := $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/docs/man/*.in))
MAN := $(patsubst docs/man/%.in,$(O)/man/%,$(MAN_IN))
.PHONY: man
man: $(MAN) $(O)/completion/vmtrace
$(O)/man/%: $(srcdir)/docs/man/%.in $(GEN)
	$(Q)mkdir -p $(@D) && $(GEN) man $* <$< >$@.tmp && mv $@.tmp $@
$(O)/completion/vmtrace: $(GEN)
	$(Q)mkdir -p $(@D) && $(GEN) completion >$@.tmp && mv $@.tmp $@

deps:
	@$(srcdir)/tests/tools/deps.sh build

demo: deps
	@$(SUBMAKE) O=$(O) all $(O)/tests/tools/gen_capture
	@O=$(O) $(srcdir)/tests/tools/demo.sh
TOOLS := $(addprefix $(O)/tests/tools/,gen_capture gen_perfdata gen_ptdata gen_ptfleet gen_ptvmt measure ptcpu_controls)
$(TOOLS): %: %.o $(SUPPORT) $(LIBS)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(SUPPORT) -Wl,--start-group $(LIBS) -Wl,--end-group $(PKG_LIBS)

check:
	@$(srcdir)/tests/tools/deps.sh check
	@$(SUBMAKE) O=$(O) check-unit
.PHONY: test-programs
test-programs: all $(TEST_BIN) $(FUZZ_BIN) $(BENCH_BIN) $(TOOLS)
check-unit: test-programs
	@$(SUBMAKE) O=$(O)-san SAN=1 CFLAGS="-O1 -g" test-programs
	@O=$(O) SANO=$(O)-san JOBS=$(JOBS) $(srcdir)/tests/tools/run-tests.sh
	@$(SUBMAKE) O=$(O) check-mutation

# The programs that read fixtures must notice each planted fault.
MUTATION := $(addprefix $(abspath $(O))/tests/golden/,test_vtt.o test_flow_vtt.o test_ptcpu.o)
check-mutation: $(TEST_BIN)
	@MUTATE_CC='$(CC) $(ALL_CFLAGS) -UVMT_VERSION' \
		MUTATE_LD='$(abspath $(SUPPORT)) -Wl,--start-group $(abspath $(LIBS)) -Wl,--end-group $(PKG_LIBS) -lcmocka' \
		$(srcdir)/tests/mutation/run.sh $(MUTATION)

check-labs: all $(PTCPU) $(O)/tests/tools/ptcpu_controls $(addprefix $(O)/tests/golden/,test_ptcpu test_ptcpu_libipt test_ptcpu_flow)
	@$(srcdir)/tests/tools/deps.sh labs
	@O=$(O) $(srcdir)/tests/live/run-labs.sh

lint: check-docs
	@$(srcdir)/tests/lint/lint.sh
format-check:
	@cd $(srcdir) && git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format --dry-run -Werror
format:
	@cd $(srcdir) && git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i
check-layers: $(LIBS)
	@O=$(O) $(srcdir)/tests/lint/check-layers.sh
check-docs: all
	@O=$(O) $(srcdir)/tests/lint/check-docs.sh

bench: all $(BENCH_BIN) $(TOOLS)
	@$(srcdir)/tests/tools/deps.sh bench
	@O=$(O) $(srcdir)/tests/bench/run-bench.sh

# libFuzzer: everything is compiled once more, with clang, into one archive.
FUZZ_SECONDS ?= 60
FUZZ_DIR := $(O)/libfuzzer
FUZZ_SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_FLAGS := -std=c11 -D_GNU_SOURCE -DVMT_VERSION='"$(VERSION)"' -I$(srcdir) $(PKG_CFLAGS) -O1 -g -w -MMD -MP
FUZZ_OBJ := $(patsubst %.c,$(FUZZ_DIR)/%.o,$(foreach a,$(ARCHIVES),$(filter-out $(MAIN_SRC),$(call src,$(a)))) \
	$(call src,tests/support))
$(FUZZ_DIR)/%.o: $(srcdir)/%.c
	$(call say,CLANG,$*.c)
	$(Q)mkdir -p $(@D) && clang $(FUZZ_FLAGS) $(FUZZ_SAN) -fsanitize=fuzzer-no-link -c $< -o $@
$(FUZZ_DIR)/libvmtrace.a: $(FUZZ_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(FUZZ_CLANG): $(FUZZ_DIR)/%: $(FUZZ_DIR)/tests/fuzz/%.o $(FUZZ_DIR)/libvmtrace.a
	$(call say,LD,$@)
	$(Q)clang $(FUZZ_SAN) -fsanitize=fuzzer $^ -o $@ $(PKG_LIBS) $(IPT_LIBS) $(ZYDIS_LIBS)
fuzz:
	@$(srcdir)/tests/tools/deps.sh fuzz
	@$(SUBMAKE) O=$(O) $(FUZZ_CLANG)
	@O=$(O) $(srcdir)/tests/tools/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_CLANG)

coverage:
	@$(SUBMAKE) O=$(O)-cov COVFLAGS=--coverage CFLAGS="-O0 -g" test-programs
	@O=$(O)-cov $(srcdir)/tests/tools/run-tests.sh
	@O=$(O)-cov $(srcdir)/tests/tools/coverage.sh

install: all
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(mandir)/man5 $(DESTDIR)$(completiondir)
	install -m 755 $(O)/vmtrace $(DESTDIR)$(bindir)/vmtrace
	for m in $(MAN); do install -m 644 $$m $(DESTDIR)$(mandir)/man$${m##*.}/; done
	install -m 644 $(O)/completion/vmtrace $(DESTDIR)$(completiondir)/vmtrace
uninstall:
	rm -f $(DESTDIR)$(bindir)/vmtrace $(DESTDIR)$(completiondir)/vmtrace
	for m in $(notdir $(MAN)); do rm -f $(DESTDIR)$(mandir)/man$${m##*.}/$$m; done
dist:
	cd $(srcdir) && mkdir -p $(abspath $(O)) && git archive --prefix=vmtrace-$(VERSION)/ HEAD | gzip -9n >$(abspath $(O))/vmtrace-$(VERSION).tar.gz
clean:
	rm -rf $(O) $(O)-san $(O)-cov
help:
	@echo "all demo check check-mutation check-labs lint format-check format check-layers bench fuzz coverage install uninstall dist deps kmod clean"

-include $(shell find $(O) -name '*.d' 2>/dev/null)
