"""What packet captures on both sides of a base station show: which dupacks came over the air, and which went on.

The air's capture is the station's own (`capture: true`), with what the channel did to each frame; the LAN's is taken by
a packet socket on the veth to h2: what is there has passed the base station.
"""

import os
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from common.sequence import MASK, precedes
from hosts.errors import HostError
from hosts.kernel.namespaces import NETNS_DIR, PREFIX, run_in
from hosts.kernel.network import VETH_NAME
from telemetry.pcapng import Direction, PcapngWriter
from tests.harness.tshark import rows

_FIELDS = (
    "frame.time_epoch", "frame.comment", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len",
    "tcp.window_size", "tcp.flags",
)  # fmt: skip
#: linux/if_ether.h, and the registry of link-layer header types
_ETH_P_ALL, _LINKTYPE_ETHERNET = 3, 1
_SNAPLEN = 65_536
#: asm-generic/socket.h; beyond net.core.rmem_max
_SO_RCVBUFFORCE, _BUFFER_BYTES = 33, 32 << 20
_POLL_S = 0.02
#: FIN, SYN, RST
_NO_DUPACK = 0b111


@contextmanager
def lan_capture(path: Path) -> Iterator[None]:
    """Capture what passes between base station and h2 in the next run of this process."""
    stop = threading.Event()

    def capture() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as wire:
            wire.settimeout(_POLL_S)
            # holds a whole run's packets: none is dropped while a busy machine lets this thread wait
            wire.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            while VETH_NAME not in {name for _, name in socket.if_nameindex()}:
                if stop.wait(_POLL_S):
                    return
            wire.bind((VETH_NAME, _ETH_P_ALL))
            while not stop.is_set():
                try:
                    octets, (_, _, kind, *_) = wire.recvfrom(_SNAPLEN)
                except OSError:
                    # nothing came, or the interface is not up yet or has gone with its run
                    continue
                leaves = kind == socket.PACKET_OUTGOING
                writer.packet(
                    interface,
                    time.time_ns(),
                    # the frame check that a packet socket does not show
                    octets + zlib.crc32(octets).to_bytes(4, "little"),
                    direction=Direction.OUTBOUND if leaves else Direction.INBOUND,
                    comment="to h2" if leaves else "from h2",
                )

    writer = PcapngWriter(path, application="fadelab tests")
    interface = writer.interface(_LINKTYPE_ETHERNET, name=VETH_NAME, description="base station to h2")

    def find() -> None:
        while not stop.wait(_POLL_S):
            for found in NETNS_DIR.glob(f"{PREFIX}{os.getpid()}-*-bas"):
                # it may not be ready to be entered yet
                with suppress(HostError):
                    run_in(found.name, capture)
                    return

    thread = threading.Thread(target=find)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        writer.close()


@dataclass(frozen=True, slots=True)
class Seen:
    at: float
    comment: str
    from_port: int
    seq: int
    ack: int
    length: int
    window: int
    flags: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one connection with data towards the mobile end."""

    #: data segments the channel took
    lost: int
    #: dupacks that came over the air to the base station, and that it passed on
    dupacks_heard: int
    dupacks_passed: int
    #: those of the latter for a segment that the channel had taken and that was not acknowledged yet
    passed_during_repair: int
    #: the largest window the mobile host offered, in octets
    window: int


def evidence(air: Path, lan: Path, port: int) -> Evidence:
    """Read both captures of a transfer from h2 to `port` of h1; `air` is the base station's."""
    on_air, on_lan = _segments(air, port), _segments(lan, port)
    data = [each for each in on_air if each.from_port != port and each.length]
    lost = [each for each in data if "by the channel" in each.comment]
    heard = [each for each in on_air if each.from_port == port]
    passed = [each for each in on_lan if each.from_port == port]
    during = [
        dupack
        for dupack in _dupacks(passed)
        if any(each.at <= dupack.at and (dupack.ack - each.seq) & MASK < each.length for each in lost)
    ]
    return Evidence(
        lost=len(lost),
        dupacks_heard=len(_dupacks(heard)),
        dupacks_passed=len(_dupacks(passed)),
        passed_during_repair=len(during),
        window=max(each.window for each in passed),
    )


def _dupacks(acks: list[Seen]) -> list[Seen]:
    """RFC 5681 section 2: no data, no SYN or FIN, the window and the highest acknowledgement of the one before."""
    found: list[Seen] = []
    last: Seen | None = None
    for each in acks:
        if last is not None and precedes(each.ack, last.ack):
            # overtaken
            continue
        same = last is not None and each.ack == last.ack and each.window == last.window
        if same and not each.length and not each.flags & _NO_DUPACK:
            found.append(each)
        last = each
    return found


def _segments(path: Path, port: int) -> list[Seen]:
    where = f"tcp.port == {port}"
    more = ("-d", f"tcp.port=={port},data")
    found = []
    for row in rows(path, *_FIELDS, where=where, more=more):
        numbers = [int(row[field][0], 0) for field in _FIELDS[2:]]
        from_port, _, seq, ack, length, window, flags = numbers
        comment = row.get("frame.comment", [""])[0]
        found.append(Seen(float(row["frame.time_epoch"][0]), comment, from_port, seq, ack, length, window, flags))
    return found
