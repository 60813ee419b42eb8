"""The hosts of one run, each in a network namespace of its own.

    h1 --veth-- st ~~(TAP fl0 ... radio link ... TAP fl0)~~ bas --veth-- h2

and with a second link, for MPTCP, another pair of stations with a radio link of its own beside it:

    h1 --veth-- st2 ~~(TAP fl0 ... radio link ... TAP fl0)~~ bas2 --veth-- h2

Read first: network_namespaces(7), veth(4), ip-mptcp(8); docs/hosts.md for the addresses.

Rules kept
- Everything lives in namespaces made here; the machine's own links, routes and sysctls are never touched.
- `close` removes all of it, also after `up` failed half-way; a second `close` does nothing.
- The owner is on record (`hosts/kernel/ownership.py`) before the first namespace exists.
- Packets on the wire are real segments (`_configure_veth`), and stay in order (`hosts/kernel/packet_order.py`).

Left out: opening the TAPs, which station processes do (`hosts/kernel/tap.py`), and settings of TCP
(`hosts/kernel/profiles.py`).
"""

import os
import signal
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import IPv4Interface
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, get_args

from common import signals
from common.closing import Closing
from common.sides import HOSTS, Host, Station, peer_of
from hosts.errors import HostError
from hosts.kernel.namespaces import namespace_name, run_in
from hosts.kernel.ownership import Registry
from hosts.kernel.packet_order import keep_order
from hosts.kernel.tap import RING_PACKETS, TUN_DEVICE, TUN_MISSING, create_persistent

if TYPE_CHECKING:
    from pyroute2 import IPRoute

Role = Literal["h1", "st", "bas", "h2", "st2", "bas2"]
#: those of a run with one link
ROLES: tuple[Role, ...] = get_args(Role)[:4]
#: the stations of the second link
SECOND_STATIONS: Mapping[Station, Role] = {"st": "st2", "bas": "bas2"}
TAP_NAME = "fl0"
#: towards a host, in a station's namespace; towards the station, in a host's
VETH_NAME = "eth0"
_SECOND_VETH_NAME = "eth1"
#: MPTCP_PM_ADDR_FLAG_SIGNAL (linux/mptcp.h)
_SIGNAL = 1
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21  # linux/capability.h


class AddressPlan(NamedTuple):
    """Addresses of every interface (with prefix length)."""

    h1: IPv4Interface = IPv4Interface("10.77.1.2/24")
    st_lan: IPv4Interface = IPv4Interface("10.77.1.1/24")
    st_radio: IPv4Interface = IPv4Interface("10.77.9.1/30")
    bas_radio: IPv4Interface = IPv4Interface("10.77.9.2/30")
    bas_lan: IPv4Interface = IPv4Interface("10.77.2.1/24")
    h2: IPv4Interface = IPv4Interface("10.77.2.2/24")


#: of the second link
SECOND_ADDRESSES = AddressPlan(
    *(IPv4Interface(f"10.78.{end}") for end in ("1.2/24", "1.1/24", "9.1/30", "9.2/30", "2.1/24", "2.2/24"))
)


class Network(Closing):
    """The four namespaces of a run, with links, addresses and routes; six with a second link.

    `mtu` is in octets of the IP packet and holds for every link, so TCP's MSS is `mtu` - 40.
    """

    def __init__(
        self,
        run: str,
        *,
        mtu: int = 1500,
        second_link: bool = False,
        registry: Registry | None = None,
    ) -> None:
        if mtu < 68:
            raise HostError(f"mtu {mtu} is below IPv4's minimum of 68")
        self.run = run
        self.mtu = mtu
        self.addresses = AddressPlan()
        self._second_link = second_link
        roles = (*ROLES, *SECOND_STATIONS.values()) if second_link else ROLES
        self.namespaces: dict[Role, str] = {role: namespace_name(run, role) for role in roles}
        self._registry = registry or Registry()
        self._claimed = False

    def up(self) -> None:
        """Create and configure the namespaces.

        Raises HostError when rights, /dev/net/tun or kernel support are missing, or the run exists already;
        everything made so far is removed again.
        """
        check_machine()
        self._registry.claim(self.run, self.namespaces.values())
        self._claimed = True
        try:
            # pyroute2 forks, and what a signal raises in Python's hooks of a fork is lost
            with signals.waiting(signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._build()
        except BaseException as error:
            self.close()
            if isinstance(error, HostError) or not isinstance(error, Exception):
                raise
            raise HostError(f"cannot set up network {self.run}: {error}") from error

    def close(self) -> None:
        """Remove the namespaces and everything in them; idempotent."""
        if not self._claimed:
            return
        for name in self.namespaces.values():
            self._registry.remove_namespace(name)
        self._registry.release(self.run)
        self._claimed = False

    def add_child(self, pid: int) -> None:
        """Record a child process, so that `clean` ends it if this run is killed."""
        self._registry.add_child(self.run, pid)

    def address(self, host: Host) -> str:
        """Return a host's IPv4 address."""
        return self.host_addresses(host)[0]

    def host_addresses(self, host: Host) -> tuple[str, ...]:
        """Return a host's IPv4 address on each link."""
        plans = (self.addresses, SECOND_ADDRESSES) if self._second_link else (self.addresses,)
        return tuple(str(getattr(plan, host).ip) for plan in plans)

    def add_paths(self, sender: Host) -> None:
        """Let MPTCP connections that a host opens have a second subflow, over the second link.

        The receiving host tells the sender of its address there, to which the sender's path manager connects; the
        routes do the rest. Raises HostError where the kernel has no MPTCP.
        """
        receiver = peer_of(sender)
        announced = str(getattr(SECOND_ADDRESSES, receiver).ip)
        for host, accepted, own in ((sender, 1, None), (receiver, 0, announced)):
            run_in(self.namespaces[host], partial(_set_path_manager, accepted, own))

    def __enter__(self) -> Self:
        self.up()
        return self

    def _build(self) -> None:
        from pyroute2 import netns  # imports take 200 ms, which processes that only `enter` do without

        for name in self.namespaces.values():
            netns.create(name)
        for role in self.namespaces:
            self._inside(role, self._prepare)
        for host in HOSTS:
            run_in(self.namespaces[host], lambda: Path("/proc/sys/net/ipv4/ip_forward").write_text("0\n"))
        self._join(self.addresses, "st", "bas", VETH_NAME)
        if self._second_link:
            self._join(SECOND_ADDRESSES, SECOND_STATIONS["st"], SECOND_STATIONS["bas"], _SECOND_VETH_NAME)

    def _join(self, plan: AddressPlan, st: Role, bas: Role, veth: str) -> None:
        """Join the hosts by one link, whose interfaces are `veth` there."""
        self._inside("h1", lambda ip: self._host(ip, plan.h1, plan.st_lan, plan.h2, self.namespaces[st], veth))
        self._inside("h2", lambda ip: self._host(ip, plan.h2, plan.bas_lan, plan.h1, self.namespaces[bas], veth))
        self._inside(st, lambda ip: self._router(ip, plan.st_lan, plan.st_radio, plan.bas_radio, plan.h2))
        self._inside(bas, lambda ip: self._router(ip, plan.bas_lan, plan.bas_radio, plan.st_radio, plan.h1))

    def _inside(self, role: Role, work: Callable[["IPRoute"], None]) -> None:
        def body() -> None:
            from pyroute2 import IPRoute

            with IPRoute() as ip:
                work(ip)

        run_in(self.namespaces[role], body)

    def _prepare(self, ip: "IPRoute") -> None:
        # IPv6 would put router solicitations and neighbour discovery on the radio link.
        for knob, value in (
            ("ipv6/conf/all/disable_ipv6", 1),
            ("ipv6/conf/default/disable_ipv6", 1),
            # a closed network needs no reverse-path check
            ("ipv4/conf/all/rp_filter", 0),
            ("ipv4/conf/default/rp_filter", 0),
            ("ipv4/ip_forward", 1),
        ):
            path = Path("/proc/sys/net") / knob
            if path.exists():
                path.write_text(f"{value}\n")
        ip.link("set", index=1, state="up")

    def _host(
        self,
        ip: "IPRoute",
        own: IPv4Interface,
        gateway: IPv4Interface,
        far_host: IPv4Interface,
        router: str,
        veth: str,
    ) -> None:
        peer = {"ifname": VETH_NAME, "net_ns_fd": router}
        ip.link("add", ifname=veth, kind="veth", peer=peer)
        self._configure_veth(ip, own, veth)
        # the default route is the first link's
        target = "default" if veth == VETH_NAME else str(far_host.network)
        ip.route("add", dst=target, gateway=str(gateway.ip))

    def _router(
        self,
        ip: "IPRoute",
        lan: IPv4Interface,
        radio: IPv4Interface,
        far_radio: IPv4Interface,
        far_host: IPv4Interface,
    ) -> None:
        self._configure_veth(ip, lan)
        create_persistent(TAP_NAME)
        index = ip.link_lookup(ifname=TAP_NAME)[0]
        # a station with TCP of its own makes single segments, too
        ip.link("set", index=index, mtu=self.mtu, txqlen=RING_PACKETS, arp=False, gso_max_segs=1)
        ip.link("set", index=index, state="up")
        ip.addr("add", index=index, address=str(radio.ip), prefixlen=radio.network.prefixlen)
        ip.route("add", dst=str(far_host.network), gateway=str(far_radio.ip), oif=index)

    def _configure_veth(self, ip: "IPRoute", address: IPv4Interface, name: str = VETH_NAME) -> None:
        """Address, MTU and real segments on one end of a veth.

        A veth passes TCP's bundles of up to 64 KB unsegmented. Captures, queue lengths and counts would show
        one "packet" for dozens, and a bundle would reach the TAP's ring as a burst. With gso_max_segs 1 the
        sending TCP builds single segments, and a forwarded bundle is segmented at this device.
        """
        index = ip.link_lookup(ifname=name)[0]
        keep_order(name)
        ip.link("set", index=index, mtu=self.mtu, gso_max_segs=1)
        ip.link("set", index=index, state="up")
        ip.addr("add", index=index, address=str(address.ip), prefixlen=address.network.prefixlen)
        segments = ip.get_links(index)[0].get("gso_max_segs")
        if segments != 1:
            raise HostError(f"the kernel keeps gso_max_segs {segments} on a veth: single segments need Linux 6.1")


def _set_path_manager(accepted: int, announced: str | None) -> None:
    """Allow MPTCP connections of this namespace one more subflow, to at most so many addresses that the peer announces.

    Raises HostError.
    """
    from pyroute2 import MPTCP, NetlinkError

    enabled = Path("/proc/sys/net/mptcp/enabled")
    if not enabled.exists():
        raise HostError("this kernel has no MPTCP (CONFIG_MPTCP): leave out second_link and workloads of kind mptcp")
    enabled.write_text("1\n")
    try:
        with MPTCP() as manager:
            manager.limits("set", subflows=1, add_addr_accepted=accepted)
            if announced is not None:
                manager.endpoint("add", addr=announced, flags=_SIGNAL)
    except NetlinkError as error:
        raise HostError(f"cannot set MPTCP's path manager: {error.args[1]}") from None


def add_address(interface: str, address: str) -> None:
    """Give an interface of the current namespace an IPv4 address, as in 10.0.0.1/24. Raises HostError."""
    from pyroute2 import IPRoute, NetlinkError

    try:
        wanted = IPv4Interface(address)
    except ValueError:
        raise HostError(f"{address!r} is no IPv4 address with its prefix length, as in 10.0.0.1/24") from None
    with IPRoute() as ip:
        try:
            [index] = ip.link_lookup(ifname=interface)
            ip.addr("replace", index=index, address=str(wanted.ip), prefixlen=wanted.network.prefixlen)
        except NetlinkError as error:
            raise HostError(f"cannot give {interface} the address {address}: {error.args[1]}") from None


def check_machine() -> None:
    """Raise HostError when this process cannot make namespaces and TAPs."""
    capabilities = _capabilities()
    wanted = 1 << _CAP_NET_ADMIN | 1 << _CAP_SYS_ADMIN
    if capabilities & wanted != wanted:
        if os.geteuid() != 0:
            raise HostError("network namespaces need root: run with sudo or as root")
        raise HostError("network namespaces need CAP_NET_ADMIN and CAP_SYS_ADMIN: start the container with them")
    if not TUN_DEVICE.exists():
        raise HostError(TUN_MISSING)


def _capabilities() -> int:
    """Return the effective capabilities of this process, one bit each."""
    return int(Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0], 16)
