"""The shared advertised window: shares, edges that never move back, scales, and who counts."""

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


class Host:
    """The mobile host's side of one connection, behind a filter that others may share."""

    def __init__(
        self, filter_: SharedWindow, access: Access, port: int = 1, scale: int | None = 0, mss: int | None = MSS
    ) -> None:
        self.filter, self.access, self.scale, self.mss = filter_, access, scale, mss
        self.flow = Flow(1, 5001, 2, port)

    def _through(self, segment: Segment, now: int, *, from_host: bool) -> Segment:
        octets = isinstance(self.access, Octets)
        packet: Any = emit(segment) if octets else segment
        if from_host:
            self.filter.handle_to_link(packet, 0, now)
            passed = self.filter.poll_to_link()
        else:
            self.filter.handle_from_link(packet, 0, now)
            passed = self.filter.poll_from_link()
        assert passed is not None
        view = self.access.view(passed[0])
        assert view is not None
        return view

    def says(self, ack: int, window: int, now: int = 0, flags: int = ACK, **fields: Any) -> int:
        """Let the host acknowledge octets of the peer; return the window that leaves."""
        if flags & SYN:
            fields["syn"] = SynOptions(self.mss, self.scale)
        seq = ISS if flags & SYN else ISS + 1
        segment = Segment(self.flow, seq & MASK, (IRS + 1 + ack) & MASK, flags, window, **fields)
        return self._through(segment, now, from_host=True).window

    def hears(self, seq: int, length: int = 0, now: int = 0, flags: int = ACK, ack: int = 1, **fields: Any) -> None:
        """Let the peer's segment come."""
        payload = bytes(length) if length and isinstance(self.access, Octets) else None
        number, answered = (IRS + 1 + seq) & MASK, (ISS + ack) & MASK
        segment = Segment(self.flow.reversed(), number, answered, flags, 9, length, payload, **fields)
        assert self._through(segment, now, from_host=False).window == 9

    def open(self, now: int = 0) -> int:
        """The peer connects; return the window of the host's SYN."""
        window = self.says(0, 65_535, now, SYN | ACK)
        self.hears(0, now=now)
        return window


def make(access: Access, shared: int = SHARED, idle_s: float = 120) -> SharedWindow:
    return SharedWindow(access, shared, round(idle_s * SECOND))


@by_access
def test_connections_offer_equal_shares(access: Access) -> None:
    filter_ = make(access)
    hosts = [Host(filter_, access, port) for port in range(4)]
    for number, host in enumerate(hosts, 1):
        # four segments at first
        assert host.open() == min(4 * MSS, SHARED // number)
    assert len(filter_._open) == 4
    for host in hosts:
        assert host.says(20_000, 65_535) == SHARED // 4


#: octets shared, scale; what the host acknowledges, the windows it says, and those that leave
ALONE = {
    "it grows with what has come": (SHARED, 0, [0, 1000, 2000, 5000], [65_535] * 4, [4000, 5000, 6000, 8000]),
    "it never grows beyond the host's": (SHARED, 0, [9000] * 4, [5000, 8001, 0, 7999], [5000, 8000, 0, 7999]),
    "it is scaled where both SYNs say so": (SHARED, 7, [20_000], [512], [SHARED >> 7]),
    "scaled it holds a full segment": (100, 9, [5000], [65_535], [2]),
}


@by_access
@pytest.mark.parametrize(("shared", "scale", "acks", "said", "left"), ALONE.values(), ids=ALONE)
def test_window_of_one_connection(
    access: Access, shared: int, scale: int, acks: list[int], said: list[int], left: list[int]
) -> None:
    host = Host(make(access, shared), access, scale=scale)
    # that of a SYN is not scaled
    assert host.open() == min(4000, max(shared, MSS))
    assert [host.says(*each) for each in zip(acks, said, strict=True)] == left


@by_access
def test_right_edge_stays_when_a_share_gets_smaller(access: Access) -> None:
    filter_ = make(access)
    first, second = Host(filter_, access), Host(filter_, access, 2)
    first.open()
    assert first.says(10_000, 65_535) == 8000
    second.open()
    # its edge is at 18000 until its half lies behind it
    assert [first.says(ack, 65_535) for ack in (10_000, 12_000, 14_000, 15_000)] == [8000, 6000, 4000, 4000]


@by_access
def test_share_is_a_full_segment_at_least(access: Access) -> None:
    filter_ = make(access, shared=1500)
    hosts = [Host(filter_, access, port) for port in range(3)]
    for host in hosts:
        host.open()
    assert [host.says(5000, 65_535) for host in hosts] == [MSS] * 3


@by_access
def test_closed_connections_give_their_share_back(access: Access) -> None:
    filter_ = make(access)
    hosts = [Host(filter_, access, port) for port in range(4)]
    for host in hosts:
        host.open()
    # the host has acknowledged a FIN behind 500 octets
    hosts[0].hears(0, 500, flags=FIN | ACK)
    assert hosts[0].says(500, 65_535) > 0
    assert len(filter_._open) == 4
    hosts[0].says(501, 65_535)
    assert len(filter_._open) == 3
    # a RST of the host's, and one of the peer's with the exact number
    hosts[1].says(0, 0, flags=RST)
    hosts[2].hears(1, flags=RST)
    assert len(filter_._open) == 2
    hosts[2].hears(0, flags=RST)
    assert len(filter_._open) == 1
    assert hosts[3].says(9000, 65_535) == SHARED


@by_access
def test_answer_within_the_first_window_opens(access: Access) -> None:
    filter_ = make(access)
    for port, ack in enumerate((1, 65_536, 65_537, 0)):
        host = Host(filter_, access, port)
        host.says(0, 65_535, flags=SYN | ACK)
        host.hears(0, ack=ack)
    assert len(filter_._open) == 2


@by_access
def test_idle_connection_counts_again_with_its_next_segment(access: Access) -> None:
    filter_ = make(access, idle_s=1)
    idle, busy = Host(filter_, access), Host(filter_, access, 2)
    idle.open()
    busy.open()
    assert idle.says(20_000, 65_535, 10 * MS) == SHARED // 2
    assert busy.says(20_000, 65_535, 900 * MS) == SHARED // 2
    assert busy.says(24_000, 65_535, 1010 * MS) == SHARED
    assert idle.says(28_000, 65_535, 1020 * MS) == SHARED // 2
    assert len(filter_._open) == 2


@by_access
def test_peer_that_does_not_scale_is_not_taken_for_one_that_does(access: Access) -> None:
    for peer, expected in ((SynOptions(MSS, 3), SHARED >> 7), (SynOptions(MSS), SHARED)):
        host = Host(make(access), access, scale=7)
        # the host connects
        assert host.says(0, 65_535, flags=SYN) == 4000
        host.hears(-1, flags=SYN | ACK, syn=peer)
        assert host.says(20_000, 65_535) == expected


@by_access
def test_blind_syn_flood_takes_nothing_from_open_connections(access: Access) -> None:
    filter_ = make(access)
    host = Host(filter_, access)
    host.open()
    for port in range(100, 100 + 2 * MAX_OPENING):
        flooded = Host(filter_, access, port)
        # the host answers, and who has forged the SYN does not know its number
        flooded.says(0, 65_535, flags=SYN | ACK)
        flooded.hears(0, ack=-70_000)
        flooded.hears(0, ack=0)
    assert len(filter_._open) == 1
    assert host.says(9000, 65_535) == SHARED


@by_access
def test_repeated_syn_keeps_an_open_connection(access: Access) -> None:
    filter_ = make(access)
    host = Host(filter_, access)
    host.open()
    assert host.says(0, 65_535, flags=SYN | ACK) == 4000
    assert len(filter_._open) == 1


@by_access
def test_numbers_that_jump_back_do_not_lift_the_limit(access: Access) -> None:
    host = Host(make(access), access)
    host.open()
    assert [host.says(ack, 65_535) for ack in (10_000, -60_000)] == [SHARED, SHARED]


@by_access
def test_connection_met_midway_passes_unchanged(access: Access) -> None:
    filter_ = make(access)
    host = Host(filter_, access)
    assert host.says(0, 65_535) == 65_535
    assert len(filter_._open) == 0


@by_access
def test_signed_segment_passes_unchanged(access: Access) -> None:
    host = Host(make(access), access)
    host.open()
    assert host.says(9000, 65_535, extra=(Option(19, bytes(16)),)) == 65_535


def test_flows_are_bounded_and_the_latest_stay() -> None:
    access = Objects()
    filter_ = make(access)
    for port in range(2 * MAX_FLOWS):
        Host(filter_, access, port).open()
    assert len(filter_._open) == MAX_FLOWS
    assert Host(filter_, access, 2 * MAX_FLOWS - 1).says(9000, 65_535) < 65_535
    assert Host(filter_, access, 0).says(9000, 65_535) == 65_535


@given(
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6000), st.integers(0, 65_535)), max_size=60),
)
def test_right_edges_never_move_back(scale: int, steps: list[tuple[int, int, int]]) -> None:
    """Several connections whose ACKs advance: an edge is as far as the host's own, or never moves left."""
    access = Objects()
    filter_ = make(access)
    hosts = [Host(filter_, access, port, scale=scale) for port in range(4)]
    acks, edges = [0] * 4, [0] * 4
    opened: set[int] = set()
    for number, advance, window in steps:
        host = hosts[number]
        if number not in opened:
            opened.add(number)
            edges[number] = host.open()
        acks[number] += min(advance, edges[number] - acks[number])
        left = host.says(acks[number], window)
        edge = acks[number] + (left << scale)
        assert left <= window
        # only the host itself may take back what it has offered
        assert edge >= edges[number] or left == window
        assert left << scale <= SHARED + (1 << scale)
        edges[number] = max(edges[number], edge)
