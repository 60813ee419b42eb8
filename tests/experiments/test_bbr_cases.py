"""The test cases of BBR's draft: their path, and what is made of their numbers. Seeds are stated where runs are.

`tests/conformance/test_papers.py` has the rules of all papers.
"""

from collections.abc import Callable
from itertools import pairwise
from math import inf

import pytest

from common.units import MS, SECOND
from experiments.bbr_cases import PAPER, jobs
from experiments.bbr_cases.cases import CASES
from experiments.bbr_cases.flow import AckPath, Flow, Path
from experiments.bbr_cases.tables import expected
from hosts.engine.packets import taker
from hosts.tcp.growth.bbr3 import State
from hosts.tcp.profiles import USER_PROFILES
from tcpip.segment import ACK, Segment
from tcpip.segment import Flow as Direction
from testbed.errors import FadelabError
from testbed.model.virtual_clock import VirtualClock
from testbed.papers.results import CellResult, Results
from testbed.papers.statements import Figure

_FLOW = Direction(1, 2, 3, 4)


def segment(seq: int = 0) -> Segment:
    """A packet of 1500 octets."""
    return Segment(_FLOW, seq, 0, ACK, 0, length=1460)


def arrivals(
    offer: Callable[[VirtualClock, Path], None], *, rate_bps: float = 12e6, buffer_bytes: float = inf
) -> list[tuple[int, int]]:
    """Return when each packet arrives (ns), and its number."""
    clock = VirtualClock()
    seen: list[tuple[int, int]] = []
    to = taker(lambda packet: seen.append((clock.now, packet.seq)))
    path = Path(clock, to, rate_bps=rate_bps, delay_ns=10 * MS, buffer_bytes=buffer_bytes)
    offer(clock, path)
    clock.run()
    return seen


def test_all_22_cases_of_the_appendix_are_there_each_with_its_steps() -> None:
    # appendix A of draft-ietf-ccwg-bbr-06 has sections A.1 to A.22
    assert sorted(CASES) == [f"a{number:02}" for number in range(1, 23)]
    for case in CASES.values():
        assert case.title
        assert case.numbers
        for number in case.numbers:
            assert all(1 <= int(step) <= 5 for step in number.step.split(","))
            assert expected(number)


def test_packets_leave_the_bottleneck_at_its_rate_and_what_does_not_fit_is_lost() -> None:
    # 1500 octets take a millisecond; one is under way or waits, and the buffer holds four
    def burst(clock: VirtualClock, path: Path) -> None:
        for number in range(6):
            path.take(segment(number))
        assert path.lost == 2

    assert arrivals(burst, buffer_bytes=6000) == [((11 + n) * MS, n) for n in range(4)]


def test_a_change_of_rate_holds_for_what_waits() -> None:
    def slow_down(clock: VirtualClock, path: Path) -> None:
        for number in range(3):
            path.take(segment(number))
        path.rate_bps /= 10

    # the first is on its way already
    assert [at for at, _ in arrivals(slow_down)] == [11 * MS, 21 * MS, 31 * MS]


def test_the_policer_passes_its_burst_and_its_rate_and_no_more() -> None:
    def offer(clock: VirtualClock, path: Path) -> None:
        # 750 kB/s of tokens, half of what comes; the bucket has ten packets
        path.policer = 750_000, 15_000
        for number in range(4000):
            clock.at(number * MS, lambda n: path.take(segment(n)), number)

    got = 1500 * len(arrivals(offer))
    assert 15_000 + 750_000 * 3.999 - 1500 <= got <= 15_000 + 750_000 * 4


def test_held_packets_are_passed_by_others() -> None:
    def offer(clock: VirtualClock, path: Path) -> None:
        path.hold = lambda packet: 5 * MS if packet.seq == 1 else 0
        for number in range(4):
            path.take(segment(number))

    assert arrivals(offer) == [(11 * MS, 0), (13 * MS, 2), (14 * MS, 3), (17 * MS, 1)]


def test_acks_of_an_aggregating_path_leave_together() -> None:
    clock = VirtualClock()
    path, seen = AckPath(clock, 4 * MS), list[int]()
    path.to, path.batch_ns = taker(lambda packet: seen.append(clock.now)), 30 * MS
    for at in (0, 1, 29, 30, 31):
        clock.at(at * MS, path.take, segment())
    clock.run()
    assert seen == [4 * MS, *[34 * MS] * 3, 64 * MS]


def test_an_application_that_writes_at_a_rate_sends_at_it() -> None:
    flow = Flow(USER_PROFILES["bbr3"].config, seed=1, rate_bps=10e6, rtt_ns=40 * MS)
    flow.write_at(250_000)
    flow.after(1)
    before = flow.connection.bytes_acked
    flow.after(4)
    assert flow.connection.bytes_acked - before == pytest.approx(1_000_000, rel=0.01)
    flow.write_at(0)
    flow.after(1)
    assert flow.delivery.inflight == 0
    flow.write_all()
    flow.after(2)
    before = flow.connection.bytes_acked
    flow.after(2)
    # 1448 of 1500 octets are payload
    assert flow.connection.bytes_acked - before == pytest.approx(2 * flow.payload_rate, rel=0.05)
    assert flow.payload_rate == pytest.approx(1_250_000 * 1448 / 1500)


def test_what_is_seen_of_the_model_is_a_course_of_states() -> None:
    flow = Flow(USER_PROFILES["bbr3"].config, seed=1, rate_bps=10e6, rtt_ns=40 * MS)
    flow.write_all()
    flow.after(12)
    assert [flow.seen[0].before, flow.seen[-1].state] == [State.STARTUP, flow.bbr.state]
    for one, other in pairwise(flow.seen):
        assert one.state is other.before
        assert one.at < other.at <= 13 * SECOND
    assert {State.DRAIN, State.PROBE_BW_CRUISE, State.PROBE_BW_UP, State.PROBE_RTT} <= {
        each.state for each in flow.seen
    }


def test_a_case_that_does_not_get_there_meets_none_of_its_numbers() -> None:
    for statement in PAPER.statements:
        for _, *bounds in statement.cases:
            values = [bound.value for bound in bounds if isinstance(bound, Figure)]
            assert not all(condition(inf, *values) for condition in statement.conditions)


@pytest.mark.slow
def test_each_number_of_a_replication_is_in_the_drafts_range() -> None:
    # seed 2001, on which nothing was chosen. A bound of ours need not hold in each replication
    runs = {name: jobs.Run(name, jobs.values([]))(2001) for name in CASES}
    cells = tuple(CellResult(cell, 2001, (cell.sample(runs[cell.case[0]]),)) for cell in PAPER.cells)
    found = PAPER.findings(Results(PAPER.name, cells))
    assert len(found) == len(PAPER.cells)
    drafts = [each for each in found if "ours" not in each.statement.place]
    assert {each.statement.name for each in drafts if not each.hits} == {"a04/rounds_10", "a06/updated"}
    assert len(drafts) > 40


@pytest.mark.parametrize(
    "setting", ["profile=modern", "rate_mbps=0", "rate_mbps=fast", "least_rtt_ms=200", "most_rtt_ms=true", "seconds=3"]
)
def test_settings_out_of_range_are_refused(setting: str) -> None:
    with pytest.raises(FadelabError, match=setting.split("=")[0]):
        jobs.values([setting])


def test_without_detection_of_spurious_losses_their_cases_are_not_met() -> None:
    # seed 1; SACK's recovery has no D-SACK, and takes nothing back
    numbers = jobs.Run("a18", jobs.values(["profile=sack-bbr3"]))(1).counts
    assert (numbers["found"], numbers["restored"]) == (0, 0)
