"""Looks at the kernel's networking, tried out in a child process with a network of its own."""

import ctypes
import fcntl
import json
import os
import struct
import subprocess
from collections.abc import Mapping
from functools import cache

from hosts.kernel import split_routes
from testbed.cli.doctor.look import RUNS, Look, Seen

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA  # linux/if_tun.h
_IFF_TAP_NO_PI = 0x0002 | 0x1000

#: qdiscs and the parameters `tc` insists on
_QDISCS = {
    "netem": ("delay", "1ms"),
    "tbf": ("rate", "1mbit", "burst", "10kb", "latency", "10ms"),
    "fq": (),
    "fq_codel": (),
}


@cache
def tried() -> Mapping[str, str]:
    """Try in a child process each permission of the kernel; return the fault of each, empty where it works.

    Things that were not tried are absent.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # this process must never return into the program that it is a copy of
        try:
            os.close(reader)
            os.write(writer, json.dumps(try_here()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    try:
        return {str(key): str(value) for key, value in json.loads(answer).items()}
    except ValueError:
        return {"namespace": "the child that tried it died"}


def try_here() -> dict[str, str]:
    """Enter a new network namespace and try things in it; see `tried`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        return {"namespace": os.strerror(ctypes.get_errno())}
    result = {"namespace": ""}
    try:
        with open("/dev/net/tun", "r+b", buffering=0) as tun:  # noqa: PTH123
            fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", b"doctor0", _IFF_TAP_NO_PI))
        result["tap"] = ""
    except OSError as error:
        result["tap"] = error.strerror or str(error)
    for kind, parameters in _QDISCS.items():
        command = ("tc", "qdisc", "replace", "dev", "lo", "root", kind, *parameters)
        try:
            made = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
            result[kind] = "" if made.returncode == 0 else made.stderr.strip() or "refused"
        except (OSError, subprocess.TimeoutExpired) as error:
            result[kind] = str(error)
    result["tproxy"] = split_routes.probe()
    return result


def _look(name: str, thing: str, works: str, remedy: str, *needed_for: str) -> Look:
    def look() -> Seen:
        fault = tried().get(thing, "not tried: no namespace")
        return Seen(not fault, fault or works)

    return Look(name, look, remedy, needed_for, forks=True)


def _qdiscs() -> Seen:
    lacking = [kind for kind in _QDISCS if tried().get(kind, "not tried: no namespace")]
    if not lacking:
        return Seen(True, ", ".join(_QDISCS))
    why = tried().get(lacking[0], "no namespace to try them in").splitlines()[0]
    modules = " ".join(f"sch_{kind}" for kind in lacking)
    return Seen(False, f"without {', '.join(lacking)}: {why}", f"start with sudo; `modprobe -a {modules}`")


LOOKS = (
    _look(
        "network namespaces",
        "namespace",
        "made one and left it",
        "start with sudo (a container needs --cap-add SYS_ADMIN); the kernel needs CONFIG_NET_NS",
        *RUNS,
    ),
    _look(
        "/dev/net/tun",
        "tap",
        "opened a TAP",
        "start with sudo; `modprobe tun` loads the driver (a container needs --device /dev/net/tun)",
        *RUNS,
    ),
    _look(
        "transparent proxy",
        "tproxy",
        "nftables' tproxy takes packets",
        "start with sudo; `apt-get install nftables`; the kernel needs CONFIG_NFT_TPROXY",
        "split",
    ),
    Look("queueing disciplines", _qdiscs, "", ("campaign",), forks=True),
)
