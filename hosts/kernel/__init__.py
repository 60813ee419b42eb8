"""The parts of Linux on a host: namespaces, TAP and TUN, sockets, probes, TCP profiles, eBPF."""
