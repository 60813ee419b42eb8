"""The hosts of a run, written once against a clock and a packet interface; no socket, no thread, no real time.

    agent.py      a host's workloads: beginnings, ends, reports and records
    streams.py    the two ends of a TCP transfer, over any TCP; own_tcp.py: over our TCP
    datagrams.py  the two ends of an on/off UDP flow
    content.py    the octets of a transfer, or only their number
    stack.py      the connections of one host's own TCP
    results.py    the reports of the two ends
    probe.py      records about TCP senders
    clock.py      the time, and calls at a time
    packets.py    takers of packets, and the datagrams of virtual time

Two drivers: `testbed/model` in virtual time, `hosts/agent_process.py` in real time with TUNs and the kernel's sockets.
"""
