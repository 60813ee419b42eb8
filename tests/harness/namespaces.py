"""What the kernel says of a namespace: its settings of TCP and its counters."""

from pathlib import Path

from hosts.kernel.namespaces import run_in
from hosts.kernel.probes import _snmp_pairs, interface_counters_here
from hosts.kernel.profiles import _read_here


def read_back(namespace: str) -> dict[str, str]:
    """Return the values of all settings of profiles, and cc_algo, initcwnd, quickack of the default route."""
    return run_in(namespace, _read_here)


def tcp_counters(namespace: str) -> dict[str, int]:
    """Return the counters of `Tcp:` in /proc/net/snmp and of `TcpExt:` in /proc/net/netstat by their names."""

    def read() -> dict[str, int]:
        net = Path("/proc/thread-self/net")
        return _snmp_pairs((net / "snmp").read_text()) | _snmp_pairs((net / "netstat").read_text())

    return run_in(namespace, read)


def interface_counters(namespace: str) -> dict[str, dict[str, int]]:
    """Return rx/tx bytes, packets, errors and drops per interface."""
    return run_in(namespace, interface_counters_here)
