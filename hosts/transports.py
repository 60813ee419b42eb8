"""The transports of the hosts' workloads beside TCP, made where a workload needs them.

Rule kept: what a transport needs is imported only then, so that everything else runs without its packages.
"""

from collections.abc import Iterable

from hosts.engine.context import Context
from hosts.engine.ports import OpenLog, UdpPorts
from hosts.engine.streams import Transport
from hosts.errors import HostError
from hosts.workloads import Workload
from hosts.workloads.quic import Quic


def further_transports(
    context: Context, ports: UdpPorts, workloads: Iterable[Workload], open_log: OpenLog | None = None
) -> dict[str, Transport]:
    """Return the transports that these workloads need beside TCP, by their names.

    `open_log`: None where a run has no folder. Raises HostError in one line, also for a package that is missing.
    """
    quic = [work for work in workloads if isinstance(work, Quic)]
    if not quic:
        return {}
    try:
        from hosts.quic.transport import QuicTransport
    except ModuleNotFoundError as error:
        raise HostError(
            f"workload quic needs the Python package {error.name}, which is not installed: ./fadelab doctor installs"
            " what requirements.lock has"
        ) from None
    return {Quic.transport: QuicTransport(context, ports, quic, open_log)}
