"""A frame's fate becomes a row of the trace and a loss."""

from types import SimpleNamespace
from typing import Any

import pytest

from channel.errors import ERASED, INTACT, Verdict
from channel.hop import Arrival
from channel.replay import Outcome
from linklayer.link import FrameError
from testbed.results.frame_fates import OBJECTS, FrameFates, FrameView


class Reporter:
    """Keeps the losses that it is told."""

    def __init__(self, repairs: bool) -> None:
        self.repairs = repairs
        self.told: list[tuple[Any, int]] = []

    def taken(self, packet: Any, at: int) -> None:
        self.told.append((packet, at))


def arrival(verdict: Verdict, payload: str = "packet") -> Arrival[Any]:
    return Arrival(SimpleNamespace(nbytes=100, payload=payload), verdict, 1000, 1500)


def fates(repairs: bool = False, **options: Any) -> tuple[FrameFates, Reporter]:
    reporter: Any = Reporter(repairs)
    return FrameFates(OBJECTS, lambda nbytes: 3 * nbytes, loss_reporter=reporter, **options), reporter


def test_a_row_begins_when_its_frame_did() -> None:
    rows: list[tuple[int, int, Outcome]] = []
    trace: Any = SimpleNamespace(write=lambda *row: rows.append(row))
    found, _ = fates(trace=trace)
    found.handle(arrival(INTACT))
    found.write(arrival(ERASED))
    assert rows == [(700, 100, Outcome.OK), (700, 100, Outcome.MISSED)]


@pytest.mark.parametrize(("repairs", "told"), [(False, [("packet", 1500)]), (True, [])])
def test_a_lost_frame_is_a_lost_packet_where_nothing_repairs_it(repairs: bool, told: list[Any]) -> None:
    found, reporter = fates(repairs)
    found.handle(arrival(INTACT))
    found.handle(arrival(ERASED))
    assert reporter.told == told
    assert found.needed is not repairs


def test_a_frame_of_another_scheme_is_no_loss() -> None:
    def refused(frame: Any) -> Any:
        raise FrameError("not ours")

    found = FrameFates(FrameView(len, refused, hash), lambda nbytes: 0)
    reporter: Any = Reporter(repairs=False)
    found.loss_reporter = reporter
    found.handle(Arrival(b"frame", ERASED, 0, 1))
    assert reporter.told == []


def test_repeats_are_counted_where_packets_repeat() -> None:
    found, _ = fates(repeats=True)
    for verdict in (INTACT, INTACT, ERASED):
        found.handle(arrival(verdict))
    assert (found.lost_packets.repeats, found.lost_packets.spared) == (1, 1)
    without, _ = fates()
    without.handle(arrival(INTACT))
    without.handle(arrival(INTACT))
    assert without.lost_packets.repeats == 0
