"""RFC 9332: the rules of the dual queue, each statement computed; times in ms."""

from collections.abc import Sequence
from random import Random

import pytest

from linklayer.queues import QueueContext
from linklayer.queues.dualpi2 import DualPi2, DualPi2Options
from tcpip.segment import ACK, CE, ECT0, ECT1, NOT_ECT, Flow, Segment
from tcpip.wire import emit, parse

MS = 1_000_000
FLOW = Flow(0x0A4D0102, 40_000, 0x0A4D0202, 5001)


def packet(ecn: int, number: int = 1, nbytes: int = 1500) -> Segment:
    return Segment(FLOW, number, 1, ACK, 700, nbytes - 40, ecn=ecn)


def queue(limit_bytes: int = 1 << 30, **options: float) -> DualPi2:
    context = QueueContext(rng=Random(1), packet_time_ns=MS, mtu_bytes=1500, limit_bytes=limit_bytes)
    return DualPi2(DualPi2Options(**options), context)  # type: ignore[arg-type]


def popped(found: DualPi2, now: float) -> Segment:
    taken = found.pop(round(now * MS))
    assert isinstance(taken, Segment)
    return taken


def standing(found: DualPi2, ecns: Sequence[int], wait_ms: int, steps: int) -> list[Segment]:
    """Let packets of each kind come every ms and one leave a ms, once `wait_ms` have passed; return those that left."""
    left = []
    for now in range(steps):
        for ecn in ecns:
            found.push(packet(ecn, now), now * MS)
        if now >= wait_ms:
            left += [popped(found, now) for _ in ecns]
    return left


def test_the_defaults_are_those_of_appendix_a() -> None:
    options = DualPi2Options()
    # A.1: RTT_max 100 ms, target 15 ms, Tupdate 16 ms; alpha = 0.1 Tupdate / RTT_max^2, beta = 0.3 / RTT_max, in Hz
    assert (options.target_ms, options.update_ms, options.coupling) == (15, 16, 2)
    assert options.alpha_hz == pytest.approx(0.1 * 0.016 / 0.1**2)
    assert options.beta_hz == pytest.approx(0.3 / 0.1, rel=0.07)
    assert options.step_ms == 1


@pytest.mark.parametrize(("ecn", "is_first"), [(NOT_ECT, False), (ECT0, False), (ECT1, True), (CE, True)])
def test_ect1_and_ce_go_to_l_and_all_else_to_c(ecn: int, is_first: bool) -> None:
    # section 2.3, and appendix A.1: "if (ecn(pkt) modulo 2 == 1)"
    found = queue()
    for each in (packet(NOT_ECT, 1), packet(ECT1, 2), packet(ecn, 3)):
        found.push(each, 0)
    order = [popped(found, 0).seq for _ in range(3)]
    assert (order.index(3) < order.index(1)) is is_first


def test_the_controller_is_pi_of_the_wait_in_c() -> None:
    # A.1: p' += alpha (curq - target) + beta (curq - prevq); p_CL = k p'; p_C = p'^2
    found, expected, before = queue(), 0.0, 0
    for now in range(400):
        # a packet comes each ms, and they leave in order: so many of them wait, and the oldest one so many ms
        wait = len(found) * MS
        found.push(packet(NOT_ECT, now), now * MS)
        # the oldest packet waits longer and longer
        if now % 2:
            found.pop(now * MS)
        if now and now % 16 == 0:
            expected += (0.16 * (wait - 15 * MS) + 3.2 * (wait - before)) / 1e9
            expected = max(expected, 0.0)
            before = wait
            assert found.p == pytest.approx(expected)
            assert found.p_c == pytest.approx(expected**2)
            assert found.p_cl == pytest.approx(2 * expected)
    # of two packets one leaves, or more with those that are dropped
    assert before > 100 * MS
    assert found.drops > 0


def test_the_controller_makes_up_for_updates_while_nothing_happens() -> None:
    often, seldom = queue(3000), queue(3000)
    for each in (often, seldom):
        each.push(packet(NOT_ECT), 0)
        each.push(packet(NOT_ECT), 0)
    for now in range(1, 500):
        # there is no room: the packets that wait stay the same
        assert not often.push(packet(NOT_ECT), now * MS)
    assert not seldom.push(packet(NOT_ECT), 499 * MS)
    assert often.p == seldom.p > 0


def test_the_classic_queue_is_held_at_its_target() -> None:
    # an arrival process that answers as Reno does: its rate is inverse to the root of what is notified
    found, now, credit = queue(), 0.0, 0.0
    came: list[float] = []
    waits = []
    for number in range(20_000):
        credit += min(0.045 / max(found.p_c, 1e-6) ** 0.5, 3.0)
        while credit >= 1:
            found.push(packet(NOT_ECT, number), round(now * MS))
            came.append(now)
            credit -= 1
        now += 1
        # packets leave in order: those that wait came last
        waits.append(now - came[-len(found)] if len(found) else 0)
        found.pop(round(now * MS))
    late = waits[10_000:]
    assert sum(late) / len(late) == pytest.approx(15, abs=4)


def test_l_marks_at_the_coupled_likelihood() -> None:
    # section 2.1: p_CL = k sqrt(p_C), while L itself has no queue
    found = queue(alpha_hz=1e-9, beta_hz=1e-9)
    found.p, found.p_cl, found.p_c = 0.1, 0.2, 0.01
    marked = 0
    for number in range(20):
        found.push(packet(NOT_ECT, number), 0)
    for now in range(1000):
        found.push(packet(ECT1, now), now * MS)
        marked += popped(found, now).ecn == CE
        found.push(packet(NOT_ECT, now), now * MS)
        found.pop(now * MS)
    # `recur` is exact, but for the first
    assert abs(marked - 200) <= 1
    assert abs(found.drops - 10) <= 1


def test_l_marks_all_that_has_waited_longer_than_the_step_with_a_packet_behind() -> None:
    found = queue()
    for number in range(4):
        found.push(packet(ECT1, number), 0)
    assert popped(found, 1).ecn == ECT1
    assert popped(found, 1.1).ecn == CE
    assert popped(found, 1.2).ecn == CE
    # A.2, Th_len of 1 packet: not the last one, which no queue is behind
    assert popped(found, 1.3).ecn == ECT1


def test_c_has_its_share_while_l_always_waits() -> None:
    found = queue(classic_share=0.1, alpha_hz=1e-9, beta_hz=1e-9, step_ms=1e6)
    for number in range(2000):
        found.push(packet(ECT1, number), 0)
        found.push(packet(NOT_ECT, number), 0)
    kinds = [popped(found, 0).ecn for _ in range(1000)]
    assert kinds.count(NOT_ECT) == pytest.approx(100, abs=1)


def test_classic_ecn_is_marked_and_the_rest_dropped() -> None:
    found = queue()
    left = standing(found, (ECT0,), 40, 1000)
    assert found.drops == 0
    assert 0 < found.marks == sum(each.ecn == CE for each in left)
    other = queue()
    standing(other, (NOT_ECT,), 40, 1000)
    assert (other.drops > 0, other.marks) == (True, 0)


@pytest.mark.parametrize(("ecn", "p"), [(ECT1, 0.6), (ECT0, 0.55)])
def test_overload_drops_what_could_be_marked(ecn: int, p: float) -> None:
    # A.2: k p' has reached 1; p'^2 has reached 1 / k^2
    found = queue(alpha_hz=1e-9, beta_hz=1e-9)
    found.p, found.p_cl, found.p_c = p, 2 * p, p * p
    for number in range(1002):
        found.push(packet(ecn, number), 0)
    left = 0
    while len(found) > 2:
        left += found.pop(0) is not None
    assert 1000 - left == found.drops == pytest.approx(1000 * p * p, abs=2)


@pytest.mark.parametrize(("ecn", "fate"), [(NOT_ECT, NOT_ECT), (ECT0, CE), (ECT1, CE)])
def test_a_packet_is_not_dropped_with_less_than_two_behind_it(ecn: int, fate: int) -> None:
    """As in Linux (net/sched/sch_dualpi2.c): a link that takes a second for each packet lost each ACK for ever."""
    found = queue()
    for now in range(0, 60_000, 2000):
        found.push(packet(ecn, now, nbytes=52), now * MS)
        left = popped(found, now + 1000)
    assert (found.drops, left.ecn) == (0, fate)
    assert found.p_c == 1


@pytest.mark.parametrize("ecn", [ECT1, ECT0])
def test_a_flood_without_response_is_held_at_the_target_by_drops_in_either_queue(ecn: int) -> None:
    # A.2: "the Base AQM will keep the L queue to the Classic target (default 15 ms) by shedding L packets"
    found, came, waits = queue(), 0, []
    for now in range(20_000):
        # of three packets the link takes two
        for _ in range(1 + now % 2):
            found.push(packet(ecn, now), now * MS)
            came += 1
        waits.append(now - popped(found, now).seq)
    late = waits[10_000:]
    assert sum(late) / len(late) == pytest.approx(15, abs=4)
    assert found.drops / came == pytest.approx(1 / 3, rel=0.05)


def test_the_limit_is_that_of_both_queues() -> None:
    found = queue(limit_bytes=3000)
    assert [found.push(packet(ecn), 0) for ecn in (ECT1, NOT_ECT, ECT1)] == [True, True, False]
    assert (len(found), found.nbytes, found.drops) == (2, 3000, 1)


def test_octets_of_l4s_are_marked_with_a_right_checksum() -> None:
    found = queue()
    octets = emit(Segment(FLOW, 1, 1, ACK, 700, 1000, bytes(1000), ecn=ECT1))
    for _ in range(2):
        found.push(octets, 0)
    left = found.pop(2 * MS)
    assert isinstance(left, bytes)
    # the parser checks both checksums
    assert parse(left).ecn == CE
    assert left[20:] == octets[20:]


def test_a_queue_without_any_limit_is_refused() -> None:
    context = QueueContext(rng=Random(1), packet_time_ns=MS)
    with pytest.raises(ValueError, match=r"^a queue needs limit_bytes, limit_packets or both$"):
        DualPi2(DualPi2Options(limit_packets=None), context)
    DualPi2(DualPi2Options(limit_packets=1), context)
