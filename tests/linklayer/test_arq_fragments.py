"""Link ARQ and FEC with packets in fragments; times in ms. The rules that fragments do not touch are in test_arq.py."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linklayer.arq.code import Counting, ReedSolomon
from linklayer.arq.frames import Ack, Fragment, emit, parse
from linklayer.arq.sender import Cutter
from linklayer.link import FrameError
from linklayer.schemes.arq import FecOptions
from testbed.simulation import simulate
from tests.harness.arq_pair import Loses, Pair, arq
from tests.harness.model_runs import model

PACKETS = [bytes([number]) * (20 + number) for number in range(30)]


def fragments(data: int = 3, total: int = 4, **options: Any) -> dict[str, Any]:
    return {"cutter": Cutter(ReedSolomon(), data, total), "retries": 3, "in_order": True, **options}


def carried(pair: Pair, packets: list[bytes], until: int = 1000) -> list[tuple[int, bytes]]:
    """Hand over a packet every 2 ms; return the packets delivered, each with its time."""
    for number, packet in enumerate(packets):
        pair.run(2 * number)
        pair.give(packet)
    pair.run(until)
    return pair.got[1]


def loses(number: int, *places: int) -> Loses:
    """Loses the fragments of a packet at these places, counted over all its copies."""
    seen = iter(range(1 << 30))
    return lambda end, _, frame: isinstance(frame, Fragment) and frame.seq == number and next(seen) in places


# -- the code ------------------------------------------------------------------------------------------------


@given(st.binary(min_size=1, max_size=300), st.integers(1, 12), st.integers(0, 12), st.randoms(use_true_random=False))
def test_any_data_fragments_give_the_packet_again(packet: bytes, data: int, more: int, random: Random) -> None:
    cut = ReedSolomon().cut(packet, data, data + more)
    assert {len(fragment) for fragment in cut} == {-(-len(packet) // data)}
    chosen = random.sample(range(data + more), data)
    assert ReedSolomon().join(len(packet), data, {index: cut[index] for index in chosen}) == packet


@given(st.binary(min_size=1, max_size=300), st.integers(1, 12), st.integers(0, 12))
def test_packets_without_octets_have_fragments_of_the_same_length(packet: bytes, data: int, more: int) -> None:
    counted, real = (code.cut(packet, data, data + more) for code in (Counting(), ReedSolomon()))
    assert [len(fragment) for fragment in counted] == [len(fragment) for fragment in real]
    assert Counting().join(len(packet), data, dict(enumerate(counted))) is packet


# -- octets --------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 1), st.binary(min_size=1, max_size=90))
def test_emit_then_parse_gives_an_equal_fragment(session: int, number: int, channel: int, packet: bytes) -> None:
    for index, payload in enumerate(ReedSolomon().cut(packet, 3, 5)):
        fragment = Fragment(session, channel, number, number, 1, index, 3, 5, len(packet), payload)
        assert parse(emit(fragment)) == fragment
        assert fragment.nbytes == len(emit(fragment))


@pytest.mark.parametrize(
    ("index", "data", "total", "length", "payload"),
    [(4, 3, 4, 3, b"x"), (0, 5, 4, 5, b"x"), (0, 0, 4, 5, b"x"), (0, 1, 1, 9, b"x"), (0, 1, 1, 0, b"")],
    ids=["index", "more that suffice than there are", "none suffice", "length", "no octets"],
)
def test_a_fragment_that_cannot_be_is_refused(index: int, data: int, total: int, length: int, payload: bytes) -> None:
    with pytest.raises(FrameError, match=r"cannot be|is not one of|without octets"):
        parse(emit(Fragment(1, 0, 2, 2, 0, index, data, total, length, payload)))


# -- both ends -----------------------------------------------------------------------------------------------


def test_packets_cross_in_fragments() -> None:
    pair = Pair(**fragments())
    assert carried(pair, PACKETS) == [(2 * number + 1, packet) for number, packet in enumerate(PACKETS)]
    counters, far = pair.ends[0].counters(), pair.ends[1].counters()
    assert (counters.packets, counters.retransmissions, counters.fec_frames) == (30, 0, 30)
    assert (counters.useful_bytes, far.fec_repairs, far.duplicates) == (sum(map(len, PACKETS)), 0, 0)
    # one for each packet: the fragments behind enough of them ask for none
    assert sum(isinstance(frame, Ack) for _, frame in pair.sent[1]) == 30


def test_redundancy_repairs_as_many_fragments_as_there_are_of_it() -> None:
    pair = Pair(lambda end, _, frame: isinstance(frame, Fragment) and frame.index == frame.seq % 3, **fragments())
    assert [packet for _, packet in carried(pair, PACKETS)] == PACKETS
    assert (pair.ends[0].counters().retransmissions, pair.ends[1].counters().fec_repairs) == (0, 30)


def test_a_packet_of_too_few_fragments_goes_again_whole() -> None:
    pair = Pair(loses(2, 0, 1), **fragments(in_order=False))
    came_at = {packet: at for at, packet in carried(pair, PACKETS)}
    # handed over at 4 ms, again 40 ms later
    assert came_at.pop(PACKETS[2]) == 45
    assert came_at == {packet: 2 * number + 1 for number, packet in enumerate(PACKETS) if number != 2}
    assert pair.data_times().count((44, 2)) == 4
    assert pair.ends[0].counters().retransmissions == 1


@pytest.mark.parametrize("combine", [True, False])
def test_fragments_of_two_copies_count_together_or_not(combine: bool) -> None:
    # two of the first copy arrive and two of the second, other ones
    pair = Pair(loses(2, 0, 2, 5, 7), **fragments(combine=combine))
    assert [packet for _, packet in carried(pair, PACKETS)] == PACKETS
    assert pair.ends[0].counters().retransmissions == (1 if combine else 2)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_packet_is_given_up_after_its_last_copy(retries: int) -> None:
    pair = Pair(loses(1, *range(100)), **fragments(retries=retries))
    # the last one waits as long as the lost one may still come
    assert carried(pair, PACKETS[:3]) == [(1, PACKETS[0]), (5 + 40 * (retries + 1), PACKETS[2])]
    assert (pair.ends[0].poll_given_up(), pair.ends[0].poll_given_up()) == (PACKETS[1], None)
    counters = pair.ends[0].counters()
    assert (counters.retransmissions, counters.residual_losses) == (retries, 1)
    copies = [frame.copy for _, frame in pair.sent[0] if isinstance(frame, Fragment) and frame.seq == 1]
    assert copies == [copy for copy in range(retries + 1) for _ in range(4)]


def test_a_packet_whose_acknowledgement_was_lost_goes_again_and_is_acknowledged() -> None:
    pair = Pair(lambda end, number, _: end == 1 and number == 0, **fragments())
    assert carried(pair, PACKETS[:1]) == [(1, PACKETS[0])]
    assert [at for at, _ in pair.data_times()] == [0] * 4 + [40] * 4
    assert pair.ends[0].counters().residual_losses == 0


def test_without_retries_a_full_window_gives_the_oldest_up() -> None:
    end = arq(**fragments(data=1, total=1, retries=0, window=3))
    for number in range(5):
        assert end.wants_packet(0)
        end.handle_packet(PACKETS[number], 0)
        assert end.poll_frame(number) is not None
    assert [end.poll_given_up() for _ in range(3)] == [PACKETS[0], PACKETS[1], None]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.5), st.booleans(), st.integers(0, 4), st.integers(0, 2), st.integers(0, 3))
def test_every_packet_is_delivered_once_or_given_up(
    seed: int, loss: float, in_order: bool, data: int, more: int, retries: int
) -> None:
    """With no data fragments the packets stay whole."""
    air = Random(seed)
    options = {"in_order": in_order, "retries": retries}
    pair = Pair(lambda *_: air.random() < loss, **(fragments(data, data + more, **options) if data else options))
    delivered = [packet for _, packet in carried(pair, PACKETS)]
    given_up: list[Any] = []
    while (packet := pair.ends[0].poll_given_up()) is not None:
        given_up.append(packet)
    assert len(set(delivered)) == len(delivered)
    assert {*delivered, *given_up} == set(PACKETS)
    if in_order:
        assert delivered == sorted(delivered)
    assert loss or delivered == PACKETS


HOSTILE = st.builds(
    Fragment,
    *(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2)),
    *(st.integers(0, 3), st.integers(1, 3), st.just(4), st.integers(1, 60), st.binary(min_size=1, max_size=20)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(HOSTILE, max_size=60))
def test_no_fragment_makes_an_end_raise_or_deaf(frames: list[Fragment]) -> None:
    pair = Pair(**fragments())
    for frame in frames:
        pair.ends[1].handle_frame(frame, pair.now)
        pair.settle()
    assert [packet for _, packet in carried(pair, PACKETS)][-len(PACKETS) :] == PACKETS


# -- links in a run ------------------------------------------------------------------------------------------

UDP = {"kind": "onoff-udp", "rate_bps": 1_000_000, "off_ms": 0, "duration_s": 20}


def test_fec_alone_loses_the_packets_that_too_few_fragments_reach() -> None:
    # any 9 of 10 at a loss of 10 %: 1 - 0.9^10 - 10 0.1 0.9^9 = 0.264 of the packets are lost
    channel = {"rate_bps": 8_000_000, "up": {"per": 0.1}}
    up = simulate(model(link={"scheme": "fec"}, channel=channel, workloads=[UDP], seed=3)).link["up"]
    # 2500 packets: three standard deviations are 0.027
    assert up.residual_per == pytest.approx(0.264, abs=0.027)


def test_copies_that_stand_alone_save_all_but_the_packets_lost_four_times() -> None:
    link = {"scheme": "hybrid", "hybrid": {"resend_after_ms": 60, "combine": False}}
    channel = {"rate_bps": 8_000_000, "up": {"per": 0.2}}
    up = simulate(model(link=link, channel=channel, workloads=[UDP], seed=3)).link["up"]
    # any 9 of 10 at 20 %: 0.624 lost each time; 0.624^4 = 0.152, and three standard deviations 0.022
    assert up.residual_per == pytest.approx(0.152, abs=0.022)


# -- ends that do not agree ------------------------------------------------------------------------------------


def test_an_end_without_a_code_refuses_fragments() -> None:
    end = arq(1)
    end.handle_frame(Fragment(9, 0, 0, 0, 0, 0, 2, 3, 10, bytes(5)), 0)
    assert (end.counters().refused, end.poll_packet()) == (1, None)


@pytest.mark.parametrize(("data", "length", "octets"), [(3, 10, 4), (2, 9, 5)], ids=["another code", "another length"])
def test_fragments_of_another_packet_are_refused_and_spoil_nothing(data: int, length: int, octets: int) -> None:
    end = arq(1, **fragments(2, 3))
    first, second, _ = ReedSolomon().cut(b"ten octets", 2, 3)
    end.handle_frame(Fragment(9, 0, 0, 0, 0, 0, 2, 3, 10, first), 0)
    end.handle_frame(Fragment(9, 0, 0, 0, 0, 1, data, data + 1, length, bytes(octets)), 0)
    assert (end.counters().refused, end.poll_packet()) == (1, None)
    end.handle_frame(Fragment(9, 0, 0, 0, 0, 1, 2, 3, 10, second), 0)
    assert end.poll_packet() == (b"ten octets", 0)


def test_more_fragments_than_a_packet_has_cannot_be_needed() -> None:
    with pytest.raises(ValueError, match=r"^data_fragments is 5: must be fragments, 4, at most$"):
        FecOptions(fragments=4, data_fragments=5)
    assert FecOptions(fragments=4, data_fragments=4)
