#!/usr/bin/env bash
# The main job on an embedded capture: a domain of libvirt's test driver, its recorded exits replayed at
# their own pace through start, status, stop and report.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-build}
case $O in /*) ;; *) O=$top/$O ;; esac
demo=$O/demo
rm -rf "$demo" && mkdir -p "$demo"
VMTRACE_RUNTIME_DIR=$(mktemp -d)
export VMTRACE_RUNTIME_DIR VMT_TOP=$top
export LIBVIRT_DEFAULT_URI=test://$top/virt-fixtures/libvirt/node-web01.xml
trap '"$O/vmtrace" stop -q >/dev/null 2>&1 || true; rm -rf "$VMTRACE_RUNTIME_DIR"' EXIT
step() {
    local shown=$*
    printf '\n$ %s\n' "${shown//$demo\//}"
    shift
    "$O/vmtrace" "$@"
}

"$O/tests/tools/gen_capture" "$demo/recorded.vmt"
"$O/tests/tools/gen_capture" --kallsyms "$demo/kallsyms"
step vmtrace list
step vmtrace start --domain web01 --backend "replay:$demo/recorded.vmt" -o "$demo/web01.vmt"
sleep 2
step vmtrace status
sleep 3
step vmtrace stop --domain web01
step vmtrace report "$demo/web01.vmt" --guest-kallsyms "$demo/kallsyms"
