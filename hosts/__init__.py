"""Hosts: network namespaces, TAP interfaces, TCP profiles, workloads and probes."""

import common  # noqa: F401 (finds the compiled cores)
