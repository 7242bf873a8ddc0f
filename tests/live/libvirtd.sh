# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by labs A and A2: a libvirtd of our own, without systemd, in a private mount namespace, so that
# nothing of the machine's /etc/libvirt, /run/libvirt and /var/lib/libvirt is touched or seen.
# Provides: W (scratch folder), tap_ok/tap_plan, start_libvirtd, stop_libvirtd, define_domain, poll.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
O=${O:-build}
case $O in /*) ;; *) O=$top/$O ;; esac
VMTRACE=${VMTRACE:-$O/vmtrace}
LAB_CACHE=${LAB_CACHE:-/tmp/vmtrace-lab-cache}
tap_count=0 tap_failed=0

skip_all() {
    echo "1..1"
    echo "ok 1 - $1 # SKIP $2"
    exit 0
}

# tap_ok NAME COMMAND...: one result; what the command printed is shown when it fails.
tap_ok() {
    local name=$1 output
    shift
    tap_count=$((tap_count + 1))
    if output=$("$@" 2>&1); then
        echo "ok $tap_count - $name"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $name"
        sed 's/^/# /' <<<"$output"
    fi
}
tap_plan() {
    echo "1..$tap_count"
    [ "$tap_failed" -eq 0 ]
}

# poll SECONDS COMMAND...: until it succeeds.
poll() {
    local tries=$(($1 * 10))
    shift
    while [ $tries -gt 0 ]; do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.1
        tries=$((tries - 1))
    done
    return 1
}

# Runs the lab again inside the namespace, with a hard timeout.
enter_lab() {
    local name=$1 seconds=$2 program
    [ -n "${LAB_INSIDE:-}" ] && return 0
    [ "$(id -u)" -eq 0 ] || skip_all "$name" "needs root"
    [ -x "$VMTRACE" ] || skip_all "$name" "$VMTRACE is not built"
    for program in libvirtd virsh qemu-system-x86_64 unshare jq; do
        command -v $program >/dev/null || skip_all "$name" "$program is not installed"
    done
    unshare -m true 2>/dev/null || skip_all "$name" "mount namespaces are not allowed here"
    W=$(mktemp -d /tmp/vmtrace-lab.XXXXXX)
    export LAB_INSIDE=1 W O VMTRACE
    timeout -k 10 "$seconds" unshare -m --propagation private "$0"
    local status=$?
    # What is left after the timeout: only processes that name our scratch folder.
    local pid
    for pid in /proc/[0-9]*; do
        tr '\0' ' ' <"$pid/cmdline" 2>/dev/null | grep -qF "$W" && kill -9 "${pid#/proc/}" 2>/dev/null
    done
    [ $status -eq 0 ] || tail -n 20 "$W/libvirtd.log" 2>/dev/null | sed 's/^/# /'
    rm -rf "$W"
    exit $status
}

private_folders() {
    mkdir -p "$W"/{etc,run,lib,cfg} "$LAB_CACHE"
    cp /etc/passwd "$W/passwd" && cp /etc/group "$W/group"
    grep -q '^libvirt-qemu:' "$W/group" || echo 'libvirt-qemu:x:64055:' >>"$W/group"
    grep -q '^libvirt-qemu:' "$W/passwd" ||
        echo 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin' >>"$W/passwd"
    mount --bind "$W/passwd" /etc/passwd && mount --bind "$W/group" /etc/group || return 1
    mkdir -p /etc/libvirt /run/libvirt /var/lib/libvirt /var/cache/libvirt
    mount --bind "$W/etc" /etc/libvirt && mount --bind "$W/run" /run/libvirt &&
        mount --bind "$W/lib" /var/lib/libvirt && mount --bind "$LAB_CACHE" /var/cache/libvirt
}

start_libvirtd() {
    printf '%s\n' 'user = "root"' 'group = "root"' 'dynamic_ownership = 0' 'remember_owner = 0' \
        'security_driver = "none"' 'cgroup_controllers = []' 'namespaces = []' 'stdio_handler = "file"' \
        >/etc/libvirt/qemu.conf
    printf '%s\n' 'auth_unix_rw = "none"' "log_outputs = \"2:file:$W/libvirtd.log\"" >"$W/libvirtd.conf"
    libvirtd -d -f "$W/libvirtd.conf" -p "$W/libvirtd.pid" >>"$W/libvirtd.out" 2>&1 || return 1
    poll 60 virsh -c qemu:///system version
}

stop_libvirtd() {
    local pid
    pid=$(cat "$W/libvirtd.pid" 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null
    poll 10 test ! -e "/proc/$pid" || kill -9 "$pid" 2>/dev/null
}

# define_domain TYPE CPU_XML: web01 that runs its firmware (SeaBIOS) and nothing else.
define_domain() {
    cat >"$W/web01.xml" <<EOF
<domain type='$1'>
  <name>web01</name>
  <uuid>4dea22b3-1d52-4d8f-a2a5-6f2c1b0c9a01</uuid>
  <memory unit='MiB'>64</memory>
  <vcpu>2</vcpu>
  <iothreads>1</iothreads>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  $2
  <features><acpi/></features>
  <clock offset='utc'/>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <serial type='file'><source path='$W/web01.serial'/></serial>
    <controller type='virtio-serial'/>
    <channel type='unix'>
      <source mode='bind' path='$W/web01.agent.sock'/>
      <target type='virtio' name='org.vmtrace.agent.0'/>
    </channel>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
  </devices>
</domain>
EOF
    virsh -q -c qemu:///system define "$W/web01.xml"
}
