"""Profiles of the kernel's TCP: settings under the names of the papers. A file for each family declares a `PROFILE` or
a tuple of them.

Read first: the kernel's Documentation/networking/ip-sysctl.rst; tcp(7); ip-route(8) for initcwnd and
quickack; the SLACP paper's section on TCP variants for `reference` and the `enhanced` ones.

Rules kept
- Every profile has a value for every setting here, so a new profile replaces the previous one completely. A setting
  that already has its value is not written: in a container /proc/sys may be read-only.
- The route selects the congestion control (congctl): outside the machine's first namespace the sysctl accepts only
  names in `tcp_allowed_congestion_control`, a list for the whole machine, which must not change.
- Settings are written inside the namespace only and read back; a setting that the kernel lacks is an error.

What Linux cannot be told of the papers' TCPs: docs/hosts.md, "Limits of Linux".

Left out: per-socket options of other programs; profiles of userspace TCPs (`hosts/tcp/profiles/`).
"""

import errno
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from common.registry import Registry
from hosts.errors import HostError
from hosts.kernel.namespaces import run_in
from hosts.tcp.profiles import USER_PROFILES, UserProfile

if TYPE_CHECKING:
    from pyroute2 import IPRoute

#: prefix of the names of userspace TCPs (hosts/tcp/profiles/)
USER_PREFIX = "user:"

#: the congestion control that hosts/kernel/bpf loads for a run
ELN_CONTROL = "fadelab_eln"

_MAIN_TABLE = 254  # linux/rtnetlink.h
_SYSCTL_DIR = Path("/proc/sys/net/ipv4")

#: Linux's own defaults, except that no connection inherits metrics from an earlier one, and wide buffers.
LINUX: Mapping[str, str] = MappingProxyType(
    {
        "tcp_sack": "1",
        "tcp_dsack": "1",
        "tcp_window_scaling": "1",
        "tcp_timestamps": "1",
        "tcp_recovery": "1",
        "tcp_early_retrans": "3",
        "tcp_frto": "2",
        "tcp_reordering": "3",
        "tcp_max_reordering": "300",
        "tcp_ecn": "2",
        "tcp_slow_start_after_idle": "1",
        "tcp_moderate_rcvbuf": "1",
        "tcp_no_metrics_save": "1",
        "tcp_no_ssthresh_metrics_save": "1",
        "tcp_rmem": "4096 131072 16777216",
        "tcp_wmem": "4096 65536 16777216",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpProfile:
    """One named TCP.

    `initcwnd` in segments (None: Linux's own, 10); `quickack`: the receiver acknowledges every segment;
    `delayed_ack`: our receivers delay ACKs from the first segment on.
    """

    name: str
    #: one line for people
    summary: str
    #: names below net.ipv4, the same in all profiles
    sysctls: Mapping[str, str]
    #: by its kernel name
    congestion_control: str = "reno"
    initcwnd: int | None = None
    quickack: bool = False
    delayed_ack: bool = False

    @property
    def with_mptcp(self) -> bool:
        """Whether MPTCP connections can have it: requests for delayed ACKs and ELN's eBPF do not reach subflows."""
        return not self.delayed_ack and self.congestion_control != ELN_CONTROL


PROFILES: Final = Registry("hosts.kernel.profiles", "PROFILE", TcpProfile)


def profile(name: str) -> TcpProfile:
    """Return the profile of a name; raises HostError with all names."""
    try:
        return PROFILES[name]
    except KeyError:
        raise HostError(f"no TCP profile {name!r}: choose from {', '.join(PROFILES)}") from None


def user_profile(name: str) -> UserProfile | None:
    """Return the userspace TCP user:NAME, or None for a name without the prefix; raises HostError as `profile` does."""
    if not name.startswith(USER_PREFIX):
        return None
    try:
        return USER_PROFILES[name.removeprefix(USER_PREFIX)]
    except KeyError:
        choices = ", ".join(USER_PREFIX + known for known in USER_PROFILES)
        raise HostError(f"no userspace TCP {name!r}: choose from {choices}") from None


def kernel_profile(name: str, receive_buffer: int | None = None) -> TcpProfile:
    """Return the kernel's settings on a host with this TCP; a userspace TCP leaves the kernel's idle.

    `receive_buffer` is in octets of payload; None: automatic. As for SO_RCVBUF (socket(7)) the kernel reserves twice
    as much memory. The resulting window depends on the fill of packets and is somewhat larger than `receive_buffer`.
    Raises HostError as `profile` does.
    """
    if user_profile(name) is not None:
        return PROFILES["reno"]
    chosen = profile(name)
    if receive_buffer is None:
        return chosen
    memory = 2 * receive_buffer
    fixed = {"tcp_moderate_rcvbuf": "0", "tcp_rmem": f"{min(4096, memory)} {memory} {memory}"}
    return replace(chosen, sysctls=MappingProxyType({**chosen.sysctls, **fixed}))


def apply(namespace: str, profile: TcpProfile) -> None:
    """Apply a profile to a host of a run: its sysctls and the attributes of its routes through gateways.

    Existing connections keep their settings. Raises HostError for a setting, a congestion control
    or a namespace that is missing, and when the kernel does not keep a written value.
    """
    run_in(namespace, lambda: _apply_here(profile, every_gateway=True))


def apply_settings(profile: TcpProfile) -> None:
    """Apply the sysctls of a profile to the caller's namespace, without its routes.

    Sockets must then set congestion control themselves. Raises HostError as `apply` does.
    """
    for name, value in profile.sysctls.items():
        _set(name, value, profile.name)


@contextmanager
def applied_here(profile: TcpProfile) -> Iterator[None]:
    """Apply a profile to the caller's namespace, until the context ends.

    Raises HostError as `apply` does. A caller that is killed leaves the settings behind.
    """
    before = _read_here()

    def restore() -> None:
        for name in profile.sysctls:
            _set(name, before[name], "the setting before")
        metrics = {name: value for name, value in before.items() if name not in profile.sysctls}
        _replace_default_route({name: value if name == "cc_algo" else int(value) for name, value in metrics.items()})

    try:
        _apply_here(profile)
        yield
    except BaseException:
        # report the first error
        with suppress(HostError):
            restore()
        raise
    restore()


def _apply_here(profile: TcpProfile, *, every_gateway: bool = False) -> None:
    apply_settings(profile)
    metrics: dict[str, int | str] = {"cc_algo": profile.congestion_control}
    if profile.initcwnd is not None:
        metrics["initcwnd"] = profile.initcwnd
    if profile.quickack:
        metrics["quickack"] = 1
    _replace_default_route(metrics, every_gateway=every_gateway)


def _set(name: str, value: str, why: str) -> None:
    path = _SYSCTL_DIR / name
    try:
        if path.read_text().split() == value.split():
            return
        path.write_text(value + "\n")
    except FileNotFoundError:
        raise HostError(f"this kernel has no sysctl net.ipv4.{name}; {why} needs it") from None
    except OSError as error:
        remedy = "; give it to the container as a sysctl" if error.errno == errno.EROFS else ""
        raise HostError(f"cannot set net.ipv4.{name} to {value}: {error.strerror}{remedy}") from None
    kept = path.read_text().split()
    if kept != value.split():
        raise HostError(f"net.ipv4.{name} stays {' '.join(kept)} where {why} needs {value}")


def _replace_default_route(metrics: dict[str, int | str], *, every_gateway: bool = False) -> None:
    """Give the default route these attributes, and with `every_gateway` the other routes through gateways, too."""
    from pyroute2 import IPRoute, NetlinkError  # imports take 200 ms, and some users need PROFILES only

    with IPRoute() as ip:
        routes = ip.get_default_routes(family=socket.AF_INET, table=_MAIN_TABLE)
        if not routes:
            raise HostError("the namespace has no default route to give initcwnd and congestion control to")
        if every_gateway:
            # with a second link, that to the far host on it
            far = ip.get_routes(family=socket.AF_INET, table=_MAIN_TABLE)
            routes = [*routes, *(route for route in far if route.get("gateway") and route.get("dst"))]
        for route in routes:
            same = {name: route.get(name) for name in ("gateway", "oif", "priority", "prefsrc", "proto")}
            wanted = {name: value for name, value in {**same, "metrics": metrics}.items() if value}
            target = f"{route.get('dst')}/{route['dst_len']}" if route.get("dst") else "default"
            try:
                ip.route("replace", dst=target, **wanted)
            except NetlinkError as error:
                if error.code != errno.EINVAL or "cc_algo" not in metrics:
                    raise HostError(f"cannot set {metrics} on the default route: {error.args[1]}") from None
                raise HostError(_missing_congestion_control(str(metrics["cc_algo"]))) from None
        kept = _default_route_metrics(ip)
    if kept != metrics:
        raise HostError(f"the default route keeps {kept} where {metrics} was set")


def _missing_congestion_control(wanted: str) -> str:
    available = (_SYSCTL_DIR / "tcp_available_congestion_control").read_text().split()
    return f"this kernel has no congestion control {wanted} (it has {', '.join(available)}): modprobe tcp_{wanted}"


def _default_route_metrics(ip: "IPRoute") -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for route in ip.get_default_routes(family=socket.AF_INET, table=_MAIN_TABLE):
        for name in ("cc_algo", "initcwnd", "quickack"):
            value = route.get(("metrics", name))
            if value is not None:
                found[name] = value
    return found


def _read_here() -> dict[str, str]:
    """The present values of all settings of profiles, and cc_algo, initcwnd, quickack of the default route."""
    from pyroute2 import IPRoute

    values = {name: " ".join((_SYSCTL_DIR / name).read_text().split()) for name in LINUX}
    with IPRoute() as ip:
        values |= {name: str(value) for name, value in _default_route_metrics(ip).items()}
    return values
