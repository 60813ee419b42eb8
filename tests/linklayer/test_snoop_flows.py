"""The ACKs that the base station's filter lets pass, and the beginning, end and limits of its flows.

Read first: `test_snoop_repair.py`; RFC 9293 sections 3.8.4 (keep-alives) and 3.8.6.1 (zero-window probes). Packets are
octets and objects.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.sequence import MASK
from common.units import MS
from linklayer.filters.snoop_cache import Limits
from tcpip.access import Access, Objects
from tcpip.segment import ACK, Flow, Segment
from tests.harness.base_station import DATA, SIZE, by_first, by_script
from tests.harness.snooping import SnoopStation, by_aware, flowing

#: what begins a connection: its number is the one before place 0
SYN = "> -0.001+0(flags=SYN)  < 0(flags=SYN|ACK,window=65535)  "

# -- ACKs that pass ------------------------------------------------------------------------------------------


@by_aware
@pytest.mark.parametrize(
    "field",
    [
        *(f"flags={flags}" for flags in ("ACK|FIN", "ACK|RST", "RST", "ACK|SYN", "SYN", "0")),
        *("window=0", "window=499", "window=700", "size=1", "size=1000"),
    ],
)
def test_acks_that_are_no_dupacks_pass_during_a_repair(access: Access, scheme: str, field: str) -> None:
    flowing(access, scheme).play(f"> 1 2 3 4 5  < 1-x2  = 1  < 1({field}) 0")


@by_first
@by_script(
    {
        "data of the mobile host acknowledges and asks for nothing": (
            "> 1 2 3 4  < 1(size=10)x4  =  < 1-x2  = 1  +20ms  < 3(size=10)  = 3"
        ),
        # 2 is lost on the air, 5 never reached the base station; one guess per hole
        "dupacks of a loss in the wired network, beside one on the air": (
            "> 1 2 3 4 6 7  < 2 2-x4  = 2  < 5  > 8 9 10  < 5x2 5[6:8]  ? 2:corruption 5:congestion  +5s"
        ),
        # its timer begins with it
        "dupacks of the sender's retransmission": ("> 1 2 3 4  < 1-x3  = 1  +150ms  > 1(flags=ACK|PSH)  < 1  @200ms 1"),
        "a retransmission of a segment never seen, which is lost": "> 1 3 4  < 2x3  > 2 5 6  < 2x3  @200ms 2  < 7",
        "answers to keep-alives and old segments": (
            "> 1 2  < 3  > 2.999+0.001  < 3  +75s  > 2.999+0  < 3  +75s  > 1  < 3  +75s  > 2  < 3  +75s  rest"
        ),
        "ACKs of octets never sent": "> 1 2 3 4  < 9 1000000 -1000 1-x2  = 1",
        "a new ACK behind a forged SYN": "> 1 2 3  > 1.999+0(flags=SYN)  > 4 5  < 2",
        "the end of a connection": (
            "> 1+0(flags=ACK|FIN)  @200ms 1  < 1.001(flags=ACK|FIN)  > 1.001+0  < 1  +60s  rest"
        ),
        "a large segment that has not arrived": "> 1+60 61 62  < 1-x3  = 1",
        "a large segment that has arrived in part": "> 1+60 61 62  < 1.3 1.3-x2  = 1",
        # an older hole is not in its cache
        "a station that has forgotten all knows no older hole": "> 1 2 3 4  restart  > 5 6 7  < 2x3  < 5 5-x2  = 5",
        # the first segment is the sender's retransmission, by its timer
        "a station that has forgotten all believes the first ACK": ("> 1 2 3 4  restart  > 1  < 5  > 5 6  < 5-x2  = 5"),
    }
)
def test_acks_that_pass(access: Access, scheme: str, first: int, script: str) -> None:
    flowing(access, scheme, first=first).play(script)


@pytest.mark.parametrize("probe", ["0.999+0", "1+0.001", "1"])
def test_closed_window_stops_the_timer_and_answers_to_probes_pass(access: Access, scheme: str, probe: str) -> None:
    """RFC 9293 section 3.8.6.1: a connection whose probes are answered stays open, for ever if need be."""
    answered = f"  > {probe}  < 1(window=0)  +60s"
    # the window opens: what the probe has left of the cache is repaired
    flowing(access, scheme).play("> 1  < 1(window=0)" + 4 * answered + "  < 1  @200ms 1")


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


def test_acks_of_flows_never_seen_pass_and_leave_nothing(access: Access, scheme: str) -> None:
    s = SnoopStation(access, scheme)
    for port in range(100):
        s.flow = Flow(DATA.source, port + 1, DATA.destination, DATA.destination_port)
        assert s.ack(port) == [True]
    assert s.filter.next_deadline() is None
    assert len(s.filter._cache.flows) == 0


# -- the beginning and the end of a flow ---------------------------------------------------------------------


def test_first_dupacks_of_a_connection_are_held_back(access: Access, scheme: str) -> None:
    """The window of a SYN-ACK has another scale: an ACK that repeats its number is a dupack."""
    SnoopStation(access, scheme).play(SYN + "> 0 1 2 3  < 0-x3  = 0  < 4")


def test_new_connection_of_the_same_name_begins_anew(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.play("> 1 2 3")
    s.first = 0x5000_0001
    s.play(SYN + "+60s  > 0  < 1  > 1 2 3 4  < 1-x3  = 1")


@pytest.mark.parametrize(
    "word",
    [
        *(f"> 7+0(flags={flags})" for flags in ("SYN", "SYN|ACK", "RST|ACK")),
        *(f"< 1(flags={flags})" for flags in ("SYN", "RST|ACK", "RST")),
    ],
)
def test_new_connection_or_reset_forgets_the_flow(access: Access, scheme: str, word: str) -> None:
    s = flowing(access, scheme)
    s.play(f"> 1 2 3 4  {word}")
    assert s.filter._cache.nbytes == 0
    # only a SYN of the data's sender begins another
    assert len(s.filter._cache.flows) == ("> " in word and "SYN" in word)
    s.play("+60s  rest")


def test_flow_whose_fin_is_acknowledged_leaves_its_place_to_others(access: Access, scheme: str) -> None:
    s = SnoopStation(access, scheme, limits=Limits(flows=2))
    # the second one closes, and both others are still repaired
    for port, script in enumerate(("> 0", "> 0(flags=ACK|FIN)  < 1.001", "> 5  +1s  = 0 5")):
        s.flow = Flow(1, port, 2, 80)
        s.play(script)


def test_flows_do_not_disturb_each_other(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    other = Flow(DATA.source, DATA.source_port, DATA.destination, DATA.destination_port + 1)
    s.play("> 1 2 3 4  < 1-")
    s.flow = other
    s.play("> 1 2 4 5  < 3x3")
    s.flow = DATA
    s.play("< 1-  = 1  < 5")
    s.flow = other
    s.play("< 6  +60s")


# -- segments cut anew, soft state, limits -------------------------------------------------------------------


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
    assert s.filter._cache.nbytes == 0


def test_cache_has_limits_per_flow_and_in_all(access: Access, scheme: str) -> None:
    limits = Limits(flows=3, cache_bytes=5000, total_bytes=8000, packet_overhead_bytes=100)
    s = SnoopStation(access, scheme, limits=limits, first=0)
    for port in range(1, 6):
        s.flow = Flow(DATA.source, port, DATA.destination, DATA.destination_port)
        for place in range(10):
            s.send(place)
            assert s.filter._cache.nbytes <= limits.total_bytes
            assert len(s.filter._cache.flows) <= limits.flows
    flows = {flow.flow.source_port: flow for flow in s.filter._cache.flows.values()}
    assert s.filter._cache.nbytes == sum(flow.nbytes for flow in flows.values())
    # four of 1140 each fit into 5000; the earliest are kept: they are asked for first
    assert flows[5].nbytes == 4 * 1140
    assert [held.left for held in flows[5].held] == [place * SIZE for place in range(4)]


def test_silent_flows_go_when_another_one_comes(access: Access) -> None:
    s = flowing(access)
    s.now += Limits().idle_ns
    s.flow = Flow(DATA.source, 99, DATA.destination, DATA.destination_port)
    s.send(0)
    assert list(s.filter._cache.flows) == [s.flow]


def test_flow_poisoned_by_forged_segments_recovers(access: Access) -> None:
    s = flowing(access)
    # forged data far ahead, and an ACK of it
    s.play("> 901  < 901")
    place = 1 + Limits().misfits
    s.send(*range(1, place))
    s.play(f"> {place} {place + 1} {place + 2}  < {place} {place}-x2  = {place}")


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["ll", "snoop-smart"]), st.integers(0, 2**32), st.lists(st.integers(0, 3), max_size=80))
def test_nothing_makes_the_filter_hold_more_than_its_limits(scheme: str, seed: int, kinds: list[int]) -> None:
    limits = Limits(flows=4, cache_bytes=6000, total_bytes=10_000, misfits=4)
    s = SnoopStation(Objects(), scheme, limits)
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
        assert s.filter._cache.nbytes <= limits.total_bytes
        assert s.filter._cache.nbytes == sum(flow.nbytes for flow in s.filter._cache.flows.values())
        for known in s.filter._cache.flows.values():
            assert all(one.right <= other.left for one, other in zip(known.held, known.held[1:], strict=False))
            assert known.nbytes == sum(len(held.packet) + limits.packet_overhead_bytes for held in known.held)
