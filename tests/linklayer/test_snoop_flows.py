"""The ACKs that the base station's filter lets pass, and the beginning, end and limits of its flows.

Read first: `test_snoop_repair.py`; RFC 9293 sections 3.8.4 (keep-alives) and 3.8.6.1 (zero-window probes). Packets are
octets and objects.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.sequence import MASK
from linklayer.filters.snoop_cache import Limits
from tcpip.access import Access, Objects
from tcpip.segment import ACK, FIN, PSH, RST, SYN, Flow, Segment, SynOptions
from tests.harness.base_station import DATA, MS, SECOND, SIZE, by_access, by_first
from tests.harness.snooping import by_aware, by_scheme, flowing, fresh, is_aware, snoop

# -- ACKs that pass ------------------------------------------------------------------------------------------


@by_access
@by_aware
@pytest.mark.parametrize(
    "fields",
    [
        *({"flags": flags} for flags in (ACK | FIN, ACK | RST, RST, ACK | SYN, SYN, 0)),
        *({"window": window} for window in (0, 499, 700)),
        *({"size": size} for size in (1, 1000)),
    ],
    ids=str,
)
def test_acks_that_are_no_dupacks_pass_during_a_repair(access: Access, scheme: str, fields: dict[str, int]) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4, 5)
    assert s.ack(1, times=2) == [False] * 2
    assert s.ack(1, **fields) == [True]
    assert s.ack(0) == [True]
    assert s.repaired == [1]


@by_access
@by_aware
def test_data_of_the_mobile_host_acknowledges_and_asks_for_nothing(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    assert s.ack(1, size=10, times=4) == [True] * 4
    assert s.repaired == []
    s.ack(1, times=2)
    s.wait(20 * MS)
    assert s.ack(3, size=10) == [True]
    assert s.repaired == [1, 3]


@by_access
@by_scheme
@by_first
def test_dupacks_of_a_loss_in_the_wired_network_pass_beside_one_on_the_air(
    access: Access, scheme: str, first: int
) -> None:
    s = flowing(access, scheme, first=first)
    # 2 is lost on the air, 5 never reached the base station
    s.send(1, 2, 3, 4, 6, 7)
    s.ack(2)
    assert s.ack(2, times=4) == [not is_aware(scheme)] * 4
    assert s.ack(5) == [True]
    s.send(8, 9, 10)
    assert s.ack(5, times=2) == [True] * 2
    assert s.ack(5, (6, 8)) == [True]
    # one guess per hole
    assert s.guesses() == [(2, "corruption"), (5, "congestion")]
    assert s.wait(5 * SECOND) == []
    assert s.repaired == [2]


@by_access
@by_aware
def test_retransmission_of_the_sender_passes_and_so_do_its_dupacks(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    s.ack(1, times=3)
    s.wait(150 * MS)
    s.send(1, flags=ACK | PSH)
    assert s.ack(1) == [True]
    # its timer begins with it
    assert s.wait(199 * MS) == []
    assert s.wait(MS) == [1]


@by_access
@by_aware
def test_retransmission_of_a_segment_never_seen_is_repaired_when_it_is_lost(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 3, 4)
    s.ack(2, times=3)
    s.send(2)
    s.send(5, 6)
    s.ack(2, times=3)
    assert s.wait(3 * SECOND)[:1] == [2]
    assert s.ack(7) == [True]


@by_access
@by_scheme
@pytest.mark.parametrize("size", [0, 1, SIZE])
def test_closed_window_stops_the_timer_and_answers_to_probes_pass(access: Access, scheme: str, size: int) -> None:
    """RFC 9293 section 3.8.6.1: a connection whose probes are answered stays open, for ever if need be."""
    s = flowing(access, scheme)
    s.send(1)
    assert s.ack(1, window=0) == [True]
    for _ in range(4):
        s.send(1 if size else 1 - 1 / SIZE, size=size)
        assert s.ack(1, window=0) == [True]
        assert s.wait(60 * SECOND) == []
    # the window opens: what the probe has left of the cache is repaired
    assert s.ack(1, window=500) == [True]
    assert s.wait(200 * MS) == [1]


@by_access
@by_scheme
def test_answers_to_keepalives_and_old_segments_pass(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2)
    s.ack(3)
    for place, size in ((3 - 1 / SIZE, 1), (3 - 1 / SIZE, 0), (1, SIZE), (2, SIZE)):
        s.send(place, size=size)
        assert s.ack(3) == [True]
        assert snoop(s).held_bytes == 0
        assert s.wait(75 * SECOND) == []


@by_access
@by_aware
def test_acks_that_pass_do_not_show_segments_under_repair(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    # 3 was lost on its way here, 2 and 6 on the hop
    s.send(1, 2, 4, 5, 6, 7, 8)
    s.ack(2, (4, 6), times=2)
    s.wait(20 * MS)
    cases: list[tuple[int, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]] = [
        # a hole at the acknowledgement: nothing beyond is shown, an answer to a duplicate is
        (2, ((4, 6),), ()),
        (2, ((1, 2), (4, 6)), ((1, 2),)),
        # now the wired network's hole is first: blocks between it and the next hole are shown
        (3, ((4, 6),), ((4, 6),)),
        (3, ((7, 8), (4, 6)), ((4, 6),)),
        (6, (), ()),
    ]
    for place, blocks, shown in cases:
        leaves = s.view(s.from_link(s.acknowledgement(place, *blocks, size=10)))
        assert leaves.sack == tuple((s.number(left), s.number(right)) for left, right in shown)


@by_access
@by_scheme
def test_ack_of_octets_never_sent_changes_nothing(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    assert [s.ack(place) for place in (9, 1_000_000, -1000)] == [[True]] * 3
    s.ack(1, times=2)
    assert s.repaired == [1]


@by_access
@by_scheme
def test_acks_of_flows_never_seen_pass_and_leave_nothing(access: Access, scheme: str) -> None:
    s = fresh(access, scheme)
    for port in range(100):
        s.flow = Flow(DATA.source, port + 1, DATA.destination, DATA.destination_port)
        assert s.ack(port) == [True]
    assert s.filter.next_deadline() is None
    assert len(snoop(s)._cache.flows) == 0


# -- the beginning and the end of a flow ---------------------------------------------------------------------


@by_access
@by_aware
def test_first_dupacks_of_a_connection_are_held_back(access: Access, scheme: str) -> None:
    """The window of a SYN-ACK has another scale: an ACK that repeats its number is a dupack."""
    s = fresh(access, scheme)
    s.send(-1 / SIZE, size=0, flags=SYN, syn=SynOptions(1460, 7))
    assert s.ack(0, flags=SYN | ACK, window=65_535) == [True]
    s.send(0, 1, 2, 3)
    assert s.ack(0, times=3) == [False] * 3
    assert s.repaired == [0]
    assert s.ack(4) == [True]


@by_access
@by_scheme
def test_new_connection_of_the_same_name_begins_anew(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3)
    s.first = 0x5000_0001
    s.send(-1 / SIZE, size=0, flags=SYN, syn=SynOptions(1460, 7, True))
    assert s.ack(0, flags=SYN | ACK, syn=SynOptions(1460, 7, True)) == [True]
    assert s.wait(60 * SECOND) == []
    s.send(0)
    assert s.ack(1) == [True]
    s.send(1, 2, 3, 4)
    s.ack(1, times=3)
    assert s.repaired == [1]


@by_access
@by_aware
def test_forged_syn_makes_no_dupack_of_a_new_ack(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3)
    s.send(2 - 1 / SIZE, size=0, flags=SYN, syn=SynOptions(1460))
    s.send(4, 5)
    assert s.ack(2) == [True]


@by_access
@by_scheme
@pytest.mark.parametrize(
    ("side", "flags"),
    [("ip", SYN), ("ip", SYN | ACK), ("ip", RST | ACK), ("link", SYN), ("link", RST | ACK), ("link", RST)],
)
def test_new_connection_or_reset_forgets_the_flow(access: Access, scheme: str, side: str, flags: int) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    if side == "ip":
        s.send(7, size=0, flags=flags)
    else:
        assert s.ack(1, flags=flags) == [True]
    assert snoop(s).held_bytes == 0
    assert s.wait(60 * SECOND) == []
    assert s.filter.next_deadline() is None


@by_access
@by_scheme
def test_fin_is_repaired_and_its_ack_ends_the_flow(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, size=0, flags=ACK | FIN)
    assert s.wait(200 * MS) == [1]
    assert s.ack(1 + 1 / SIZE, flags=ACK | FIN) == [True]
    assert snoop(s).held_bytes == 0
    s.send(1 + 1 / SIZE, size=0)
    assert s.ack(1) == [True]
    assert s.wait(60 * SECOND) == []


@by_access
@by_scheme
def test_flow_whose_fin_is_acknowledged_leaves_its_place_to_others(access: Access, scheme: str) -> None:
    s = fresh(access, scheme, limits=Limits(flows=2))
    closing, open_flow, new = (Flow(1, port, 2, 80) for port in (1, 2, 3))
    s.flow = open_flow
    s.send(0)
    s.flow = closing
    s.send(0, flags=ACK | FIN)
    s.ack(1 + 1 / SIZE)
    s.flow = new
    s.send(5)
    # both are still repaired
    assert s.wait(SECOND) == [0, 5]


@by_access
@by_scheme
def test_flows_do_not_disturb_each_other(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    other = Flow(DATA.source, DATA.source_port, DATA.destination, DATA.destination_port + 1)
    s.send(1, 2, 3, 4)
    s.ack(1)
    s.flow = other
    s.send(1, 2, 4, 5)
    assert s.ack(3, times=3) == [True] * 3
    s.flow = DATA
    s.ack(1)
    assert s.repaired == [1]
    assert s.ack(5) == [True]
    s.flow = other
    assert s.ack(6) == [True]
    assert s.wait(60 * SECOND) == []


# -- segments cut anew, soft state, limits -------------------------------------------------------------------


@by_access
@by_scheme
def test_octets_cut_anew_replace_the_segments_they_overlap(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    # the sender puts two and a half into one (as segmentation offload does)
    (large,) = s.send(1, size=2500)
    before = s.filter.counters.retransmitted_bytes
    assert s.wait(200 * MS)[:1] == [1]
    assert s.filter.counters.retransmitted_bytes - before >= len(large)
    s.ack(3.5)
    # the half that was cut away is not here
    assert s.ack(3.5, times=2) == [True] * 2
    s.ack(5)
    assert snoop(s).held_bytes == 0


@by_access
@by_scheme
@pytest.mark.parametrize("place", [1.0, 1.3])
def test_large_segment_that_has_arrived_in_part_is_repaired_whole(access: Access, scheme: str, place: float) -> None:
    s = flowing(access, scheme)
    s.send(1, size=60_000)
    s.send(61, 62)
    s.ack(place, times=3)
    assert s.repaired == [1]


@by_access
@by_scheme
def test_station_that_has_forgotten_everything_goes_on_with_what_it_sees(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    s.restart()
    s.send(5, 6, 7)
    # an older hole is not in its cache
    assert s.ack(2, times=3) == [True] * 3
    s.ack(5, times=3)
    assert s.repaired == [5]


@by_access
@by_scheme
def test_station_that_has_forgotten_everything_believes_the_first_ack(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    s.restart()
    # the sender's timer
    s.send(1)
    s.ack(5)
    assert snoop(s).held_bytes == 0
    s.send(5, 6)
    assert s.ack(5, times=2) == [not is_aware(scheme)] * 2
    assert s.repaired == [5]


@by_access
@by_scheme
def test_cache_has_limits_per_flow_and_in_all(access: Access, scheme: str) -> None:
    limits = Limits(flows=3, flow_bytes=5000, total_bytes=8000, packet_overhead_bytes=100)
    s = fresh(access, scheme, limits=limits, first=0)
    for port in range(1, 6):
        s.flow = Flow(DATA.source, port, DATA.destination, DATA.destination_port)
        for place in range(10):
            s.send(place)
            assert snoop(s).held_bytes <= limits.total_bytes
            assert len(snoop(s)._cache.flows) <= limits.flows
    flows = {flow.flow.source_port: flow for flow in snoop(s)._cache.flows.values()}
    assert snoop(s).held_bytes == sum(flow.nbytes for flow in flows.values())
    # four of 1140 each fit into 5000; the earliest are kept: they are asked for first
    assert flows[5].nbytes == 4 * 1140
    assert [held.left for held in flows[5].held] == [place * SIZE for place in range(4)]


@by_access
def test_silent_flows_go_when_another_one_comes(access: Access) -> None:
    s = flowing(access)
    s.now += Limits().idle_ns
    s.flow = Flow(DATA.source, 99, DATA.destination, DATA.destination_port)
    s.send(0)
    assert list(snoop(s)._cache.flows) == [s.flow]


@by_access
def test_flow_poisoned_by_forged_segments_recovers(access: Access) -> None:
    s = flowing(access)
    # forged data far ahead, and an ACK of it
    s.send(901)
    s.ack(901)
    place = 1 + Limits().misfits
    s.send(*range(1, place))
    s.send(place, place + 1, place + 2)
    s.ack(place, times=3)
    assert s.repaired == [place]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["ll", "snoop-smart"]), st.integers(0, 2**32), st.lists(st.integers(0, 3), max_size=80))
def test_nothing_makes_the_filter_hold_more_than_its_limits(scheme: str, seed: int, kinds: list[int]) -> None:
    limits = Limits(flows=4, flow_bytes=6000, total_bytes=10_000, misfits=4)
    s = fresh(Objects(), scheme, limits)
    rng = Random(seed)

    def number() -> int:
        return rng.choice((rng.getrandbits(32), rng.randrange(5000), MASK - rng.randrange(3000)))

    for kind in kinds:
        flow = Flow(1, rng.randrange(6), 2, 80)
        s.wait(rng.choice((0, MS, 300 * MS)))
        flags = rng.getrandbits(8) if rng.random() < 0.2 else ACK
        window, length = rng.choice((0, 500)), rng.choice((0, 1, 1000, 65_000)) if kind else 0
        blocks = tuple((number(), number()) for _ in range(rng.randrange(4)))
        segment = Segment(flow if kind else flow.reversed(), number(), number(), flags, window, length, sack=blocks)
        if kind:
            s.from_ip(segment)
        else:
            s.from_link(segment)
        assert snoop(s).held_bytes <= limits.total_bytes
        assert snoop(s).held_bytes == sum(flow.nbytes for flow in snoop(s)._cache.flows.values())
        for known in snoop(s)._cache.flows.values():
            assert all(one.right <= other.left for one, other in zip(known.held, known.held[1:], strict=False))
            assert known.nbytes == sum(len(held.packet) + limits.packet_overhead_bytes for held in known.held)
