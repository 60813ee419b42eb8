"""A TUN interface that receives the peer's TCP in place of the kernel: IP packets in, IP packets out.

    kernel's sockets (UDP, ICMP) ─┐                   ┌─ eth0 ─ ... ─ the peer
                                  ├─ kernel's routing ┤
    our TCP ── Tun ── tcp0 ───────┘                   └─ (TCP from the peer goes to tcp0)

Read first: the kernel's Documentation/networking/tuntap.rst; ip-rule(8); ip-sysctl.rst for accept_local.

Rules kept
- Our TCP has the host's own address: the peer, captures and scenarios do not notice a difference to the kernel's.
- A routing rule before the one for local addresses sends all TCP from the peer to the TUN. The kernel's TCP never gets
  such a segment, so it cannot answer with a RST; the kernel gets all other packets.
- `tcp_early_demux` is off, so that no packet reaches a socket before it is routed. A kernel socket with the same
  addresses and ports, which may be of a closed connection in TIME-WAIT, would get the segment, or the kernel would drop
  it on the way to the TUN (`ip_forward` forwards no packet that has a socket).
- Packets are unchanged except for the TTL, which forwarding decreases by one.
- The kernel's ring of packets for us (`txqueuelen`) holds many windows; `lost` counts packets that it still loses.
- Settings are changed in this namespace only, and `close` restores them. The rules of a killed process have no effect,
  since its TUN and route are gone; forwarding and `tcp_early_demux` stay as it has left them.

A base station that splits connections has a TUN, too (`TransitTun`): it gets all TCP that arrives on one interface, and
its packets are routed by their destinations.

Left out: IPv6, several peers.
"""

import errno
import os
import socket
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from common.closing import Closing
from hosts.errors import HostError
from hosts.kernel.probes import interface_counters_here
from hosts.kernel.tap import IFF_TUN, REFUSALS, configure, open_device, raise_if_gone

if TYPE_CHECKING:
    from pyroute2 import IPRoute

TUN_NAME = "tcp0"
#: of the kernel's ring (`txqueuelen`)
_RING_PACKETS = 10_000

_SETTINGS = Path("/proc/sys/net/ipv4")
_EARLY_DEMUX = "tcp_early_demux"
# linux/rtnetlink.h
_LOCAL_TABLE = 255
_LOCAL_ROUTE = 2
#: our routing table, and the order of rules: ours, then the one for local addresses, which is normally at 0
_TABLE = 7793
_RULE, _LOCAL_RULE_AFTER, _LOCAL_RULE = 1, 2, 0


class Tun(Closing):
    """The open TUN of the current namespace through which all TCP from and to `peer` goes.

    `descriptor` as in `open_device`. Raises HostError when the peer is not an address, or rights, a route or a setting
    are missing.
    """

    def __init__(self, peer: str, *, descriptor: int | None = None) -> None:
        try:
            IPv4Address(peer)
        except ValueError:
            raise HostError(f"peer {peer!r} is no IPv4 address") from None
        self._open(peer, descriptor)

    def _open(self, source: str, descriptor: int | None = None) -> None:
        from pyroute2 import IPRoute, NetlinkError  # 200 ms to import

        self.name = TUN_NAME
        #: packets that the kernel refused
        self.refused = 0
        #: the peer or the interface from which TCP comes
        self._source = source
        #: the settings changed here, as they were
        self._before: dict[Path, str] = {}
        self._fd = open_device(TUN_NAME, IFF_TUN, descriptor)
        try:
            with IPRoute() as ip:
                #: our address (None: all addresses), and the MTU of the path to the peer
                self.address, self.mtu = self._route(ip)
        except (NetlinkError, OSError) as error:
            self.close()
            raise HostError(f"cannot lead TCP from {source} to TUN {TUN_NAME}: {error.args[1]}") from None
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._fd

    def read(self) -> bytes | None:
        """Return the next IP packet, or None."""
        try:
            return os.read(self._fd, 65535)
        except BlockingIOError:
            return None
        except OSError as error:
            raise_if_gone("TUN", self.name, error)
            raise

    def write(self, packet: bytes) -> bool:
        """Pass one IP packet to the kernel; False when the kernel refuses it."""
        try:
            os.write(self._fd, packet)
        except OSError as error:
            raise_if_gone("TUN", self.name, error)
            if error.errno not in REFUSALS:
                raise
            self.refused += 1
            return False
        return True

    @property
    def lost(self) -> int:
        """Packets lost between the kernel and this process, because one of them was too slow."""
        return interface_counters_here()[self.name]["tx_dropped"] + self.refused

    def close(self) -> None:
        """Restore the settings and remove the interface; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            from pyroute2 import IPRoute

            with IPRoute() as ip:
                self._restore_rules(ip)
            for path, value in self._before.items():
                # an interface may have gone, and its settings with it
                with suppress(FileNotFoundError):
                    path.write_text(value)

    def _route(self, ip: "IPRoute") -> tuple[str | None, int]:
        """Route TCP to the TUN; return our address, if any, and the MTU of the path."""
        [route] = ip.route("get", dst=self._source)
        if route.get("type") == _LOCAL_ROUTE:
            raise HostError(f"{self._source} is an address of this host: the peer must be another one")
        [link] = ip.get_links(route.get("oif"))
        mtu: int = link.get("mtu")
        self._configure(ip, mtu)
        self._let_pass(link.get("ifname"))
        self._restore_rules(ip)
        ip.rule("add", priority=_LOCAL_RULE_AFTER, table=_LOCAL_TABLE)
        ip.rule("add", priority=_RULE, table=_TABLE, src=self._source, src_len=32, ip_proto=socket.IPPROTO_TCP)
        ip.rule("delete", priority=_LOCAL_RULE, table=_LOCAL_TABLE)
        return str(route.get("prefsrc")), mtu

    def _configure(self, ip: "IPRoute", mtu: int) -> None:
        configure(self.name, mtu, _RING_PACKETS)
        [tun] = ip.link_lookup(ifname=self.name)
        ip.route("add", family=socket.AF_INET, dst="default", oif=tun, table=_TABLE)

    def _restore_rules(self, ip: "IPRoute") -> None:
        """Remove our rules, or those of a killed process, and put the rule for local addresses first again."""
        if not _count_rules(ip, _LOCAL_RULE):
            ip.rule("add", priority=_LOCAL_RULE, table=_LOCAL_TABLE)
        for priority in (_RULE, _LOCAL_RULE_AFTER):
            _remove_rules(ip, priority)

    def _let_pass(self, way_out: str) -> None:
        """Allow packets from the TUN to the peer and back, although they have an address of this host."""
        self._set_own("accept_local", "1", of_container="conf/default/accept_local")
        self._set_own("forwarding", "1", of_container="ip_forward")
        self._set(f"conf/{way_out}/forwarding", "1", of_container="ip_forward")
        # a strict reverse-path check would expect our own address on the loopback; the larger of both values holds
        if max((_SETTINGS / "conf" / scope / "rp_filter").read_text().strip() for scope in ("all", self.name)) == "1":
            self._set_own("rp_filter", "2", of_container="conf/default/rp_filter")
        self._set(_EARLY_DEMUX, "0", of_container=_EARLY_DEMUX)

    def _set_own(self, name: str, value: str, of_container: str) -> None:
        """Make a setting of the TUN itself, which ends with it."""
        self._change(f"conf/{self.name}/{name}", value, of_container)

    def _set(self, setting: str, value: str, of_container: str) -> None:
        """Make a setting of the namespace until `close`."""
        before = self._change(setting, value, of_container)
        if before is not None:
            self._before[_SETTINGS / setting] = before

    def _change(self, setting: str, value: str, of_container: str) -> str | None:
        """Write a setting; return its value before, or None when it has this value already.

        `of_container` is the setting that a container must have from its start where it cannot write this one.
        """
        path = _SETTINGS / setting
        before = path.read_text()
        if before.strip() == value:
            return None
        try:
            path.write_text(f"{value}\n")
        except OSError as error:
            remedy = f"give {_sysctl(of_container)}={value} to the container as a sysctl"
            if error.errno != errno.EROFS:
                remedy = "run with sudo or as root"
            raise HostError(f"cannot set {_sysctl(setting)} to {value}: {error.strerror}; {remedy}") from None
        return before


class TransitTun(Tun):
    """The open TUN of the current namespace, a router's, which gets all TCP that arrives on `interface`.

    The kernel's sockets towards the other host have the addresses and ports of the segments that come here. Raises
    HostError when rights or the interface are missing.
    """

    def __init__(self, interface: str) -> None:
        self._open(interface)

    def _route(self, ip: "IPRoute") -> tuple[str | None, int]:
        found = ip.link_lookup(ifname=self._source)
        if not found:
            raise HostError(f"there is no interface {self._source} to take TCP from")
        mtu: int = ip.get_links(found[0])[0].get("mtu")
        self._configure(ip, mtu)
        self._restore_rules(ip)
        ip.rule("add", priority=_RULE, table=_TABLE, iifname=self._source, ip_proto=socket.IPPROTO_TCP)
        self._set(_EARLY_DEMUX, "0", of_container=_EARLY_DEMUX)
        return None, mtu

    def _restore_rules(self, ip: "IPRoute") -> None:
        _remove_rules(ip, _RULE)


def _sysctl(setting: str) -> str:
    return f"net.ipv4.{setting.replace('/', '.')}"


def _count_rules(ip: "IPRoute", priority: int) -> int:
    # a rule of priority 0 has no such attribute
    return sum((rule.get("priority") or 0) == priority for rule in ip.get_rules(family=socket.AF_INET))


def _remove_rules(ip: "IPRoute", priority: int) -> None:
    for _ in range(_count_rules(ip, priority)):
        ip.rule("delete", priority=priority)
