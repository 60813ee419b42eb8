"""A TAP interface for a station process: IP packets in, IP packets out.

Read first: the kernel's Documentation/networking/tuntap.rst; netdevice(7) for the ioctls.

Rules kept
- Packets are unchanged; only the 14-byte Ethernet header is removed and added.
- No call blocks. `read` returns None when no packet waits; `write` returns False when the kernel refuses a packet, and
  counts it.
- IFF_NOARP: no ARP crosses the link; every written frame is addressed to the interface itself, so the kernel accepts
  it.

Left out: addresses and routes (`hosts/kernel/network.py` sets them on the persistent interface, so that they survive
a station's restart), multi-queue, vnet headers. Without vnet headers the kernel segments a
forwarded TSO/GSO packet before it enters the ring, which holds `txqueuelen` packets. A full ring drops packets, so it
must hold the largest burst between two reads (a window, for TCP).
"""

import errno
import fcntl
import os
import socket
import stat
import struct
from array import array
from pathlib import Path

from common.closing import Closing
from hosts.errors import HostError

TUN_DEVICE = Path("/dev/net/tun")
TUN_MISSING = "/dev/net/tun is missing: modprobe tun, or start the container with --device /dev/net/tun"
#: the environment variable that names an open descriptor of /dev/net/tun
TUN_FD_VARIABLE = "FADELAB_TUN_FD"

# linux/if_tun.h, linux/sockios.h, linux/if.h
_TUNSETIFF = 0x400454CA
_TUNSETPERSIST = 0x400454CB
IFF_TUN, IFF_TAP = 0x0001, 0x0002
_IFF_NO_PI = 0x1000
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_SIOCGIFMTU, _SIOCSIFMTU = 0x8921, 0x8922
_SIOCGIFHWADDR = 0x8927
_SIOCSIFTXQLEN = 0x8943
_SIOCETHTOOL, _ETHTOOL_GLINK = 0x8946, 0xA
_IFF_UP, _IFF_NOARP = 0x1, 0x80

ETHERNET_BYTES = 14
#: of the kernel's ring in front of a TAP (`txqueuelen`)
RING_PACKETS = 1000
_ETHERTYPES = {4: b"\x08\x00", 6: b"\x86\xdd"}
#: errors by which the kernel refuses a packet; all others are faults of the program
REFUSALS = frozenset({errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EINVAL, errno.EIO, errno.EMSGSIZE})
#: by which it says that the interface has been removed, with its namespace or by a person
GONE = frozenset({errno.EBADFD, errno.ENODEV, errno.ENXIO})
#: the user of each kind of interface
_USERS = {"TAP": "station", "TUN": "host"}
#: major and minor number of /dev/net/tun (linux/miscdevice.h)
_TUN_NUMBERS = (10, 200)


def ethernet_headers(mac: bytes) -> tuple[bytes | None, ...]:
    """Return the header for a packet, by the packet's first octet; None for an unknown IP version."""
    return tuple(mac + mac + _ETHERTYPES[octet >> 4] if octet >> 4 in _ETHERTYPES else None for octet in range(256))


def is_ip(frame: bytes) -> bool:
    """Whether an Ethernet frame carries IPv4 or IPv6."""
    return frame[12:14] in (b"\x08\x00", b"\x86\xdd") and len(frame) > ETHERNET_BYTES


class Tap(Closing):
    """One open TAP interface of the current namespace, created if necessary.

    `mtu` in octets of the IP packet (None: leave it), `descriptor` as in `open_device`.
    Raises HostError.
    """

    def __init__(self, name: str = "fl0", *, mtu: int | None = None, descriptor: int | None = None) -> None:
        self.name = name
        #: received frames without an IP packet
        self.non_ip_dropped = 0
        #: packets that the kernel refused
        self.refused = 0
        self._fd = open_device(name, IFF_TAP, descriptor)
        try:
            mac, self.mtu = configure(name, mtu, RING_PACKETS)
        except OSError as error:
            os.close(self._fd)
            raise HostError(f"cannot set up TAP {name}: {error.strerror}") from None
        self._headers = ethernet_headers(mac)
        self._read_bytes = max(self.mtu, 1500) + ETHERNET_BYTES + 4

    def fileno(self) -> int:
        """Return the descriptor to wait on; when readable, `read` may still return None."""
        return self._fd

    def read(self) -> bytes | None:
        """Return the next IP packet, or None."""
        while True:
            try:
                frame = os.read(self._fd, self._read_bytes)
            except BlockingIOError:
                return None
            except OSError as error:
                raise_if_gone("TAP", self.name, error)
                raise
            if is_ip(frame):
                return frame[ETHERNET_BYTES:]
            self.non_ip_dropped += 1

    def write(self, packet: bytes) -> bool:
        """Pass one packet to the kernel; False when it is not IP or the kernel refuses it."""
        header = self._headers[packet[0]] if packet else None
        if header is not None:
            try:
                os.writev(self._fd, (header, packet))
                return True
            except OSError as error:
                raise_if_gone("TAP", self.name, error)
                if error.errno not in REFUSALS:
                    raise
        self.refused += 1
        return False

    def close(self) -> None:
        """Close the interface; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def raise_if_gone(kind: str, name: str, error: OSError) -> None:
    """Raise HostError when the kernel's error says that an open TAP or TUN (`kind`) is gone."""
    if error.errno in GONE:
        raise HostError(f"{kind} {name} was removed while it was in use: no packet can enter or leave") from None


def create_persistent(name: str) -> None:
    """Make a TAP in the current namespace that exists without an open descriptor.

    Raises HostError.
    """
    descriptor = open_device(name, IFF_TAP)
    try:
        fcntl.ioctl(descriptor, _TUNSETPERSIST, 1)
    except OSError as error:
        raise HostError(f"cannot create TAP {name}: {error.strerror}") from None
    finally:
        os.close(descriptor)


def inherited_device() -> int | None:
    """Return the descriptor of /dev/net/tun in FADELAB_TUN_FD; None when the variable is not set or empty.

    Where only root may open the device, root opens it for a process of an ordinary user (docker/service).
    Raises HostError when the number is no open descriptor of that device.
    """
    text = os.environ.get(TUN_FD_VARIABLE, "")
    if not text:
        return None
    try:
        status = os.fstat(int(text))
        known = stat.S_ISCHR(status.st_mode) and (os.major(status.st_rdev), os.minor(status.st_rdev)) == _TUN_NUMBERS
    except (ValueError, OverflowError, OSError):
        known = False
    if not known:
        raise HostError(f"{TUN_FD_VARIABLE}={text} is no open descriptor of {TUN_DEVICE}: unset it, or open the device")
    return int(text)


def open_device(name: str, kind: int, descriptor: int | None = None) -> int:
    """Open a TAP or a TUN (`kind`), created if necessary; return its descriptor.

    It belongs to the current network namespace, or to that in which `descriptor`, an open and unused /dev/net/tun, was
    opened. The interface takes ownership of `descriptor`, which is closed on failure. Raises HostError.
    """
    what = "TAP" if kind == IFF_TAP else "TUN"
    if descriptor is None:
        descriptor = _open_tun_device()
    else:
        os.set_blocking(descriptor, False)
        os.set_inheritable(descriptor, False)
    try:
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), kind | _IFF_NO_PI))
    except OSError as error:
        os.close(descriptor)
        if error.errno == errno.EBUSY:
            raise HostError(f"{what} {name} is already open: end the other {_USERS[what]} on it") from None
        raise HostError(f"cannot create {what} {name}: {error.strerror}; run with sudo or as root") from None
    return descriptor


def _open_tun_device() -> int:
    try:
        return os.open(TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise HostError(TUN_MISSING) from None
    except OSError as error:
        raise HostError(f"cannot open {TUN_DEVICE}: {error.strerror}; run with sudo or as root") from None


def configure(name: str, mtu: int | None, txqueuelen: int) -> tuple[bytes, int]:
    """Bring the interface up; returns its MAC address and MTU. Raises OSError."""

    def request(code: int, layout: str = "24x", *values: int) -> bytes:
        ifreq = struct.pack("16s" + layout, name.encode(), *values)
        return fcntl.ioctl(control, code, ifreq)[16:]

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        if mtu is not None:
            request(_SIOCSIFMTU, "i20x", mtu)
        # also resizes the ring in which the kernel queues packets for us
        request(_SIOCSIFTXQLEN, "i20x", txqueuelen)
        flags: int = struct.unpack_from("H", request(_SIOCGIFFLAGS))[0]
        request(_SIOCSIFFLAGS, "H22x", flags | _IFF_UP | _IFF_NOARP)
        # opening a TAP gives it a carrier, but the kernel starts its queue later, from a work item, and drops packets
        # until then; a query of the link state starts it now (linkwatch_sync_dev)
        link = array("I", [_ETHTOOL_GLINK, 0])
        request(_SIOCETHTOOL, "P16x", link.buffer_info()[0])
        mac = request(_SIOCGIFHWADDR)[2:8]
        mtu_now: int = struct.unpack_from("i", request(_SIOCGIFMTU))[0]
        return mac, mtu_now
