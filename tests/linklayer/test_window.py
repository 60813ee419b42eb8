"""The shared advertised window: shares, edges that never move back, scales, and who counts.

A script has steps, with `;` between. Connections of the mobile host are named by numbers:

    1 open 4000        the peer connects; the host's SYN-ACK leaves with this window
    1 syn 4000         the host's SYN-ACK alone; `1 answered 1`: the peer acknowledges so many numbers from it on;
                       `1 refused 1`: with a RST whose own number is wrong
    1 acks 500 4000    the host acknowledges so many octets with its whole buffer, and this window leaves
    1 acks 500 7 7     the same, with a window of 7 offered
    1 fin 500          the peer's FIN comes, behind so many octets
    1 resets           the host's RST; `1 reset 0`: the peer's, with this number
    +10ms              so much time passes
    count 1            so many connections are open
"""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.sequence import MASK
from common.units import MS, SECOND
from linklayer.filters.window import MAX_FLOWS, MAX_OPENING, SharedWindow
from tcpip.access import Access, Objects, Octets
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Option, Segment, SynOptions
from tcpip.wire import emit
from tests.harness.base_station import by_access

SHARED, MSS = 8000, 1000
#: a number just before the wrap, so that all of it wraps
ISS, IRS = 2**32 - 700, 2**32 - 1500
WHOLE = 65_535


class Hosts:
    """The mobile host's side of its connections, behind a filter."""

    def __init__(self, access: Access, *, shared: int = SHARED, idle_s: float = 120, scale: int = 0) -> None:
        self.filter = SharedWindow(access, shared, round(idle_s * SECOND))
        self.access, self.scale, self.now = access, scale, 0

    def _through(self, segment: Segment, *, from_host: bool) -> Segment:
        packet: Any = emit(segment) if isinstance(self.access, Octets) else segment
        handle, poll = (
            (self.filter.handle_to_link, self.filter.poll_to_link)
            if from_host
            else (self.filter.handle_from_link, self.filter.poll_from_link)
        )
        handle(packet, 0, self.now)
        passed = poll()
        assert passed is not None
        view = self.access.view(passed[0])
        assert view is not None
        return view

    def says(self, port: int, ack: int, window: int = WHOLE, flags: int = ACK, **fields: Any) -> int:
        """Let the host acknowledge octets of the peer; return the window that leaves."""
        if flags & SYN:
            fields["syn"] = SynOptions(MSS, self.scale)
        number = ISS if flags & SYN else ISS + 1
        flow = Flow(1, 5001, 2, port)
        segment = Segment(flow, number & MASK, (IRS + 1 + ack) & MASK, flags, window, **fields)
        return self._through(segment, from_host=True).window

    def hears(self, port: int, seq: int, length: int = 0, flags: int = ACK, ack: int = 1, **fields: Any) -> None:
        """Let the peer's segment come."""
        payload = bytes(length) if length and isinstance(self.access, Octets) else None
        number, answered = (IRS + 1 + seq) & MASK, (ISS + ack) & MASK
        segment = Segment(Flow(2, port, 1, 5001), number, answered, flags, 9, length, payload, **fields)
        assert self._through(segment, from_host=False).window == 9

    def open(self, port: int) -> int:
        """The peer connects; return the window of the host's SYN."""
        window = self.says(port, 0, flags=SYN | ACK)
        self.hears(port, 0)
        return window

    def play(self, script: str) -> None:
        for step in script.split("; "):
            match [int(word) if word.lstrip("-").isdigit() else word for word in step.split()]:
                case ["count", int(count)]:
                    assert len(self.filter._open) == count, step
                case [str(time)]:
                    self.now += int(time.strip("+ms")) * MS
                case [int(port), "open", window]:
                    assert self.open(port) == window, step
                case [int(port), "syn", window]:
                    assert self.says(port, 0, flags=SYN | ACK) == window, step
                case [int(port), "acks", int(ack), *said, window]:
                    assert self.says(port, ack, *said) == window, step  # type: ignore[arg-type]
                case [int(port), "resets"]:
                    self.says(port, 0, 0, RST)
                case [int(port), "answered", int(ack)]:
                    self.hears(port, 0, ack=ack)
                case [int(port), "refused", int(ack)]:
                    self.hears(port, 9, ack=ack, flags=RST | ACK)
                case [int(port), "fin", int(nbytes)]:
                    self.hears(port, 0, nbytes, FIN | ACK)
                case [int(port), "reset", int(seq)]:
                    self.hears(port, seq, flags=RST)
                case _:
                    raise AssertionError(step)


#: what the filter or the host has of its own, and a script
SCRIPTS: Mapping[str, tuple[dict[str, Any], str]] = {
    # four segments at first
    "connections offer equal shares": (
        {},
        "1 open 4000; 2 open 4000; 3 open 2666; 4 open 2000; count 4; 1 acks 20000 2000; 2 acks 20000 2000; "
        "3 acks 20000 2000; 4 acks 20000 2000",
    ),
    "a window grows with what has come": (
        {}, "1 open 4000; 1 acks 0 4000; 1 acks 1000 5000; 1 acks 2000 6000; 1 acks 5000 8000",
    ),
    "a window never grows beyond the host's": (
        {}, "1 open 4000; 1 acks 9000 5000 5000; 1 acks 9000 8001 8000; 1 acks 9000 0 0; 1 acks 9000 7999 7999",
    ),
    # that of a SYN is not
    "a window is scaled where both SYNs say so": ({"scale": 7}, "1 open 4000; 1 acks 20000 512 62"),
    "a scaled window holds a full segment": ({"shared": 100, "scale": 9}, "1 open 1000; 1 acks 5000 2"),
    # its edge is at 18000 until its half lies behind it
    "a right edge stays when a share gets smaller": (
        {},
        "1 open 4000; 1 acks 10000 8000; 2 open 4000; 1 acks 10000 8000; 1 acks 12000 6000; 1 acks 14000 4000; "
        "1 acks 15000 4000",
    ),
    "a share is a full segment at least": (
        {"shared": 1500},
        "1 open 1500; 2 open 1000; 3 open 1000; 1 acks 5000 1000; 2 acks 5000 1000; 3 acks 5000 1000",
    ),
    # a FIN that the host has acknowledged, a RST of the host's, and one of the peer's with the exact number
    "closed connections give their share back": (
        {},
        "1 open 4000; 2 open 4000; 3 open 2666; 4 open 2000; 1 fin 500; 1 acks 500 3500; count 4; 1 acks 501 3499; "
        "count 3; 2 resets; 3 reset 1; count 2; 3 reset 0; count 1; 4 acks 9000 8000",
    ),
    "an answer within the first window opens": (
        {},
        "1 syn 4000; 1 answered 1; 2 syn 4000; 2 answered 65536; 3 syn 2666; 3 answered 65537; 4 syn 2000; "
        "4 answered 0; count 2",
    ),
    "an answer that resets opens nothing": ({}, "1 syn 4000; 1 refused 1; count 0"),
    "an idle connection counts again with its next segment": (
        {"idle_s": 1},
        "1 open 4000; 2 open 4000; +10ms; 1 acks 20000 4000; +890ms; 2 acks 20000 4000; +110ms; 2 acks 24000 8000; "
        "+10ms; 1 acks 28000 4000; count 2",
    ),
    "a SYN without an answer counts until it is idle for too long": (
        {"idle_s": 1}, "1 syn 4000; 2 syn 4000; +900ms; 3 syn 2666; +101ms; 4 syn 4000; 4 answered 1; count 1",
    ),
    "a repeated SYN keeps an open connection": ({}, "1 open 4000; 1 syn 4000; count 1"),
    "numbers that jump back do not lift the limit": ({}, "1 open 4000; 1 acks 10000 8000; 1 acks -60000 8000"),
    "a connection met midway passes unchanged": ({}, "1 acks 0 65535; count 0"),
}  # fmt: skip


@by_access
@pytest.mark.parametrize(("own", "script"), SCRIPTS.values(), ids=SCRIPTS)
def test_window(access: Access, own: dict[str, Any], script: str) -> None:
    Hosts(access, **own).play(script)


@by_access
@pytest.mark.parametrize(("peer", "window"), [(SynOptions(MSS, 3), SHARED >> 7), (SynOptions(MSS), SHARED)])
def test_peer_that_does_not_scale_is_not_taken_for_one_that_does(access: Access, peer: SynOptions, window: int) -> None:
    hosts = Hosts(access, scale=7)
    # the host connects
    assert hosts.says(1, 0, flags=SYN) == 4000
    hosts.hears(1, -1, flags=SYN | ACK, syn=peer)
    assert hosts.says(1, 20_000) == window


@by_access
def test_blind_syn_flood_takes_nothing_from_open_connections(access: Access) -> None:
    hosts = Hosts(access)
    hosts.open(1)
    for port in range(100, 100 + 2 * MAX_OPENING):
        # the host answers, and who has forged the SYN does not know its number
        hosts.says(port, 0, flags=SYN | ACK)
        hosts.hears(port, 0, ack=-70_000)
        hosts.hears(port, 0, ack=0)
    hosts.play("count 1; 1 acks 9000 8000")


@by_access
def test_signed_segment_passes_unchanged(access: Access) -> None:
    hosts = Hosts(access)
    hosts.open(1)
    assert hosts.says(1, 9000, extra=(Option(19, bytes(16)),)) == WHOLE


def test_flows_are_bounded_and_the_latest_stay() -> None:
    hosts = Hosts(Objects())
    for port in range(2 * MAX_FLOWS):
        hosts.open(port)
    assert len(hosts.filter._open) == MAX_FLOWS
    assert hosts.says(2 * MAX_FLOWS - 1, 9000) < WHOLE
    assert hosts.says(0, 9000) == WHOLE


@given(
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6000), st.integers(0, 65_535)), max_size=60),
)
def test_right_edges_never_move_back(scale: int, steps: list[tuple[int, int, int]]) -> None:
    """Several connections whose ACKs advance: an edge is as far as the host's own, or never moves left."""
    hosts = Hosts(Objects(), scale=scale)
    acks, edges = [0] * 4, [0] * 4
    opened: set[int] = set()
    for port, advance, window in steps:
        if port not in opened:
            opened.add(port)
            edges[port] = hosts.open(port)
        acks[port] += min(advance, edges[port] - acks[port])
        left = hosts.says(port, acks[port], window)
        edge = acks[port] + (left << scale)
        assert left <= window
        # only the host itself may take back what it has offered
        assert edge >= edges[port] or left == window
        assert left << scale <= SHARED + (1 << scale)
        edges[port] = max(edges[port], edge)
