# SPDX-License-Identifier: LGPL-2.1-or-later
# A libvirtd of a lab's own, without systemd, in a private mount namespace: nothing of the machine's
# /etc/libvirt, /run/libvirt and /var/lib/libvirt is touched or seen. Sourced after lib.sh by labs A
# and A2. $S is a scratch folder under /tmp (paths of sockets are short), $W keeps the logs.

# enter_namespace NAME: starts the lab again inside; returns there, with lab_begin done.
enter_namespace() {
    lab_begin "$1"
    need libvirtd virsh qemu-system-x86_64 unshare jq
    need_vmtrace
    [ "$(id -u)" -eq 0 ] || skip_all "needs root"
    if [ -z "${LAB_NAMESPACE:-}" ]; then
        unshare -m true 2>/dev/null || skip_all "mount namespaces are not allowed here"
        trap - EXIT
        LAB_NAMESPACE=1 exec unshare -m --propagation private "$0"
    fi
    S=$(mktemp -d /tmp/vmtrace-lab.XXXXXX)
    trap leave_namespace EXIT
    private_folders >"$W/mount.log" 2>&1 || skip_all "bind mounts: $(tail -n 1 "$W/mount.log")"
    export VMTRACE_RUNTIME_DIR=$S/sessions LIBVIRT_DEFAULT_URI=qemu:///system
    unset XDG_RUNTIME_DIR
}

leave_namespace() {
    "$VMTRACE" stop -q >/dev/null 2>&1
    end_domain
    stop_libvirtd
    cp "$S/libvirtd.log" "$W/libvirtd.log" 2>/dev/null
    lab_cleanup
    rm -rf --one-file-system "$S" # the namespace and its mounts end with this process
}

private_folders() {
    local d
    mkdir -p "$S"/{etc,run,lib,sessions} "${LAB_CACHE:=/tmp/vmtrace-lab-cache}"
    cp /etc/passwd /etc/group "$S"
    # libvirtd asks for this user even when it runs everything as root.
    grep -q '^libvirt-qemu:' "$S/group" || echo 'libvirt-qemu:x:64055:' >>"$S/group"
    grep -q '^libvirt-qemu:' "$S/passwd" ||
        echo 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin' >>"$S/passwd"
    mkdir -p /etc/libvirt /run/libvirt /var/lib/libvirt /var/cache/libvirt || return 1
    for d in "passwd /etc/passwd" "group /etc/group" "etc /etc/libvirt" "run /run/libvirt" \
        "lib /var/lib/libvirt"; do
        mount --bind "$S/${d% *}" "${d#* }" || return 1
    done
    mount --bind "$LAB_CACHE" /var/cache/libvirt # what QEMU can do is asked once (8 s)
}

start_libvirtd() {
    printf '%s\n' 'user = "root"' 'group = "root"' 'dynamic_ownership = 0' 'remember_owner = 0' \
        'security_driver = "none"' 'cgroup_controllers = []' 'namespaces = []' 'stdio_handler = "file"' \
        >/etc/libvirt/qemu.conf
    printf '%s\n' 'auth_unix_rw = "none"' "log_outputs = \"2:file:$S/libvirtd.log\"" >"$S/libvirtd.conf"
    libvirtd -d -f "$S/libvirtd.conf" -p "$S/libvirtd.pid" >>"$W/libvirtd.out" 2>&1 || return 1
    poll 60 virsh version
}

libvirtd_pid() { cat "$S/libvirtd.pid" 2>/dev/null; }

stop_libvirtd() {
    local pid
    pid=$(libvirtd_pid) || return 0
    kill "$pid" 2>/dev/null
    poll 10 test ! -e "/proc/$pid" || kill -9 "$pid" 2>/dev/null
    rm -f "$S/libvirtd.pid"
}

# QEMU outlives libvirtd: it is ended by the pid that libvirt wrote down.
end_domain() {
    local pid
    pid=$(cat /run/libvirt/qemu/web01.pid 2>/dev/null) || return 0
    virsh -q destroy web01 >/dev/null 2>&1
    [ -n "$pid" ] && grep -qa "guest=web01" "/proc/$pid/cmdline" 2>/dev/null && kill -9 "$pid"
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

# check DESCRIPTION COMMAND...: a test; what the command printed is shown when it fails.
check() {
    local description=$1
    shift
    timeout 60 "$@" >"$W/check.out" 2>&1
    local status=$?
    ok $status "$description"
    [ $status -eq 0 ] || head -n 30 "$W/check.out" | sed 's/^/#   /'
    return $status
}

# list_value JQ_EXPRESSION: of the last list_json.
list_json() { timeout 20 "$VMTRACE" list --format json "$@" >"$W/list.json" 2>"$W/list.err"; }
list_value() { jq -r "$1" "$W/list.json" 2>/dev/null; }

# define_domain TYPE CPU_XML: web01, which runs its firmware (SeaBIOS) and nothing else.
define_domain() {
    cat >"$S/web01.xml" <<EOF
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
    <serial type='file'><source path='$S/web01.serial'/></serial>
    <controller type='virtio-serial'/>
    <channel type='unix'>
      <source mode='bind' path='$S/web01.agent.sock'/>
      <target type='virtio' name='org.vmtrace.agent.0'/>
    </channel>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
  </devices>
</domain>
EOF
    virsh -q define "$S/web01.xml"
}
