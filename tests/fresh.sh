#!/bin/bash
# A fresh machine as a command: the README's command in a minimal Debian 12, on a clone of this checkout's last commit.
#
#   sudo tests/fresh.sh [--keep] [--no-cache] [--in FOLDER] [demo|test|shell] [ARGS...]
#
#   --keep        leaves the machine's folder, and says how to enter it again
#   --no-cache    makes the minimal Debian anew, which .build/fresh otherwise keeps for the month
#   --in FOLDER   enters a machine that --keep left, and brings its clone up to date
#
# The command (`test`, unless said) gets ARGS, and its exit status is ours. It runs in namespaces of its own, with which
# everything but the folder ends. Its preparation (`./fadelab COMMAND --help` installs what is missing) and `shell` have
# this machine's network, and reach the registries as this machine does: by its apt sources, proxies, certificates and
# pip configuration. The command itself has a loopback interface and nothing else.
# shellcheck disable=SC2317 # functions that a trap calls
set -euo pipefail

SELF=$(readlink -f -- "${BASH_SOURCE[0]}")
ROOT=${SELF%/tests/*}
CACHE=$ROOT/.build/fresh
SUITE=bookworm
PLACE=/srv/fadelab # of the clone; other users may enter it, unlike root's home

say() { printf 'fresh: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 2
}

# Lines `SUITE URI` of Debian 12 in this machine's apt sources, if it is one.
sources() {
    # shellcheck disable=SC2016 # apt-get's variables
    apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk -v suite="$SUITE" '$2 == "main" && $1 ~ "^" suite "(-updates|-security)?$" && !seen[$0]++ { print $1, $3 }'
}

make_base() {
    local mirror proxy=
    mirror=$(sources | awk -v suite="$SUITE" '$1 == suite && !n++ { print $2 }')
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    say "making a minimal Debian 12 …"
    if ! env ${proxy:+"http_proxy=$proxy"} debootstrap --variant=minbase --include=git,ca-certificates \
        "$SUITE" "$WORK/base" ${mirror:+"$mirror"} >"$WORK/log" 2>&1; then
        tail -n 15 -- "$WORK/log" | sed 's/^/    /' >&2
        die "debootstrap failed"
    fi
    mkdir -p -- "$CACHE"
    rm -f -- "$CACHE"/*.tar
    tar -C "$WORK/base" --numeric-owner -cf "$1.new" .
    mv -- "$1.new" "$1"
    rm -rf -- "$WORK/base"
    say "made a minimal Debian 12 after $SECONDS s"
}

# How this machine reaches the registries, and nothing else of it.
copy_configuration() {
    local list file
    list=$(sources | sed 's/\(.*\) \(.*\)/deb \2 \1 main/')
    [[ ! $list ]] || printf '%s\n' "$list" >"$MACHINE/etc/apt/sources.list"
    apt-config dump | grep -E '^Acquire::(https?|ForceIPv|Retries|Check-)' >"$MACHINE/etc/apt/apt.conf.d/90host" || true
    for file in /etc/{resolv.conf,hosts,pip.conf,apt/auth.conf,apt/auth.conf.d}; do
        [[ ! -e $file ]] || cp -rpL --parents -- "$file" "$MACHINE"
    done
    [[ ! -e ~/.config/pip/pip.conf ]] || install -D -- ~/.config/pip/pip.conf "$MACHINE/root/.config/pip/pip.conf"
    find /usr/local/share/ca-certificates -name '*.crt' -exec cp -- {} "$MACHINE/usr/local/share/ca-certificates/" \;
    chroot "$MACHINE" update-ca-certificates >/dev/null 2>&1
}

end() {
    local init
    trap '' INT TERM HUP
    if [[ $CHILD ]]; then
        # All processes of the machine end with its first, for which unshare waits.
        init=$(tr -d ' ' <"/proc/$CHILD/task/$CHILD/children") || init=
        kill -KILL "${init:-$CHILD}" 2>/dev/null || true
        wait "$CHILD" || true
    fi
    if [[ $GROUP ]]; then
        find "$GROUP" -depth -type d -exec rmdir {} \;
        umount "$WORK/cgroup"
    fi
    rm -rf --one-file-system -- "$WORK"
    if [[ ! $KEEP ]]; then
        rm -rf --one-file-system -- "$MACHINE"
    else
        say "kept $MACHINE; to enter it: $SELF --in $MACHINE shell"
    fi
}

# The first process: makes the folder the root, a mount point as on a real machine, and runs the command.
within() {
    local one
    cd -- "$MACHINE"
    mount --bind . .
    cd -- "$MACHINE"
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup || true
    mount -t bpf bpf sys/fs/bpf || true
    mount -t tmpfs -o mode=755 none dev
    mkdir dev/{net,pts,shm}
    for one in null zero full random urandom tty net/tun; do
        [[ ! -e /dev/$one ]] || { : >"dev/$one" && mount --bind "/dev/$one" "dev/$one"; }
    done
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
    mount -t tmpfs -o mode=1777 none dev/shm
    for one in pts/ptmx:ptmx /proc/self/fd:fd /proc/self/fd/{0:stdin,1:stdout,2:stderr}; do
        ln -s "${one%:*}" "dev/${one#*:}"
    done
    mount -t tmpfs -o mode=755 none run
    mount -t tmpfs -o mode=1777 none tmp
    # The kernel's modules are the real machine's.
    [[ ! -d /lib/modules ]] || { mkdir -p lib/modules && mount --bind -o ro /lib/modules lib/modules; }
    hostname fresh
    pivot_root . mnt
    cd -- "$PLACE"
    hash -r
    umount -l /mnt
    # Descriptor 8 is the network of the real machine, to which the command has no way.
    if [[ $1 == shell ]]; then
        nsenter --net=/proc/self/fd/8 /bin/bash "${@:2}"
    else
        nsenter --net=/proc/self/fd/8 ./fadelab "$1" --help >/dev/null
        say "prepared after $SECONDS s"
        ip link set lo up
        one=0
        ./fadelab "$@" 8<&- || one=$?
        say "./fadelab $* ended after $SECONDS s, preparation included"
        return "$one"
    fi
}

((EUID == 0)) || die "needs root: run with sudo or as root"
# This script's mounts end with it.
[[ ${FADELAB_FRESH:-} ]] || FADELAB_FRESH=1 exec unshare --mount -- "$SELF" "$@"
if [[ $FADELAB_FRESH == within ]]; then
    MACHINE=$1
    unset FADELAB_FRESH
    within "${@:2}"
    exit
fi
KEEP='' ANEW='' MACHINE='' GROUP='' CHILD=''
while [[ ${1:-} == --* ]]; do
    case $1 in
    --keep) KEEP=1 ;;
    --no-cache) ANEW=1 ;;
    --in) KEEP=1 MACHINE=$(readlink -e -- "${2:-}") || die "no folder ${2:-}" && shift ;;
    *) die "unknown option $1; see the head of $SELF" ;;
    esac
    shift
done
(($#)) || set -- test
[[ $1 =~ ^(demo|test|shell)$ ]] || die "$1: must be demo, test or shell"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"

WORK=$(mktemp -d /var/tmp/fadelab-fresh-work-XXXXXX)
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
if [[ ! $MACHINE ]]; then
    MACHINE=$(mktemp -d /var/tmp/fadelab-fresh-XXXXXX)
    BASE=$CACHE/$SUITE-$(date +%Y-%m).tar
    [[ -r $BASE && ! $ANEW ]] || make_base "$BASE"
    tar -C "$MACHINE" -xpf "$BASE"
    copy_configuration
    git clone -q --no-local -- "$ROOT" "$MACHINE$PLACE"
else
    git -C "$MACHINE$PLACE" fetch -q -- "$ROOT" HEAD
    git -C "$MACHINE$PLACE" checkout -q FETCH_HEAD
fi
[[ ! $(git -C "$ROOT" status --porcelain) ]] || say "uncommitted changes of the checkout stay out"
# A control group of its own, so that the machine sees no other groups, nor leaves its own behind.
mkdir -- "$WORK/cgroup"
if mount -t cgroup2 none "$WORK/cgroup" 2>/dev/null; then
    GROUP=$WORK/cgroup/fresh-$$
    mkdir -- "$GROUP"
fi
mapfile -t REGISTRIES < <(env | grep -iE '^(PIP_[A-Z_]*|(https?|no|all)_proxy)=' || true)
say "$* on a fresh machine, commit $(git -C "$MACHINE$PLACE" log -1 --format='%h, %s')"
(
    [[ ! $GROUP ]] || printf '%s\n' "$BASHPID" >"$GROUP/cgroup.procs"
    # Of the environment only what a login sets. --default-signal: background jobs of a script are deaf to Ctrl-C.
    exec env --default-signal=INT,QUIT -i "${REGISTRIES[@]}" HOME=/root TERM="${TERM:-dumb}" FADELAB_FRESH=within \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        unshare --mount --pid --fork --uts --ipc --net --cgroup "$SELF" "$MACHINE" "$@" 8</proc/self/ns/net
) <&0 &
CHILD=$!
STATUS=0
wait "$CHILD" || STATUS=$?
CHILD=
exit "$STATUS"
