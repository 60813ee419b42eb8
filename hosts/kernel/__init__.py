"""What is Linux's on a host: namespaces, TAP and TUN, sockets, probes, TCP profiles, eBPF."""
