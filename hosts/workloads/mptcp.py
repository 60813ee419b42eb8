"""Bulk transfers over the kernel's Multipath TCP."""

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from hosts.workloads import Port, WorkloadPlugin
from hosts.workloads.bulk import Bulk


@dataclass(frozen=True, slots=True, kw_only=True)
class Mptcp(Bulk):
    """One transfer over an MPTCP connection (RFC 8684), or `flows` parallel ones, limited as `bulk`. Live tiers only.

    The kernel's path manager adds a subflow over the second link, where the scenario has one, and its scheduler shares
    the octets out.
    """

    kind: ClassVar[str] = "mptcp"
    transport: ClassVar[str] = "mptcp"

    flow: str = "mptcp"
    port: Port = 5801

    @property
    @override
    def live_option(self) -> str:
        return "kind"


WORKLOAD = WorkloadPlugin(
    name=Mptcp.kind,
    summary="a transfer over Linux's MPTCP, or several parallel ones, limited as `bulk`; live tiers only",
    options=Mptcp,
    example={"bytes": 50_000},
    simulated=False,
)
