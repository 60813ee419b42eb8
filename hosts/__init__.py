"""Hosts: network namespaces, TAP interfaces, TCP profiles, workloads and probes."""
