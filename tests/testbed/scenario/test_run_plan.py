"""The medium that a plan makes of a scenario."""

from typing import Any

import pytest

from channel.errors import Fate
from channel.framing import aal5
from channel.hop import Arrival, Hop
from common.sides import SIDES, Side
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import HopPlan, make_rng
from tests.harness.scenarios import scenario

MS = 1_000_000


def medium(side: Side = "up", seed: int = 1, **channel: Any) -> HopPlan:
    return resolve(scenario(channel=channel, seed=seed)).stations[side].hop


def arrivals(hop: Hop[int], frames: int, nbytes: int = 1000) -> list[Arrival[int]]:
    """Send frames one after another; how each arrives."""
    now, found = 0, []
    for frame in range(frames):
        assert hop.handle_frame(frame, nbytes, now)
        while (arrival := hop.poll_arrival(now)) is None:
            now = hop.next_deadline() or now
        found.append(arrival)
    return found


def fates(hop: Hop[int], frames: int = 400) -> list[Fate]:
    return [arrival.verdict.fate for arrival in arrivals(hop, frames)]


def test_framing_takes_its_time() -> None:
    cells = medium(rate_bps=128_000, framing="aal5")
    # 32 cells
    assert cells.frame_ns(1484) == aal5(1484) * 1_000_000_000 // 128_000 == 106 * MS
    hop = cells.make(10_000)
    hop.handle_frame("frame", 1484, 0)
    assert abs((hop.next_deadline() or 0) - cells.frame_ns(1484)) <= 1


@pytest.mark.parametrize(
    ("channel", "flow_control", "expected"),
    [
        ({}, True, 2 * 1534),
        ({"rate_bps": 20_000_000}, True, 10_000),
        ({}, False, 64_000 + 2 * 1534),
        ({"mac_buffer_bytes": 5000}, True, 5000),
        ({"mac_buffer_bytes": 5000}, False, 69_000),
        ({"bare_buffer_bytes": 7000}, True, 2 * 1534),
        ({"bare_buffer_bytes": 7000}, False, 7000),
    ],
)
def test_buffer_sizes(channel: dict[str, Any], flow_control: bool, expected: int) -> None:
    assert medium(**channel).buffer_bytes[flow_control] == expected


def test_the_seed_and_the_direction_fix_every_verdict() -> None:
    draws: list[tuple[Side, int]] = [("up", 5), ("up", 5), ("up", 6), ("down", 5)]
    first, again, other_seed, other_way = (fates(medium(side, seed, per=0.3).make(10_000)) for side, seed in draws)
    assert first == again
    assert first not in (other_seed, other_way)
    assert set(first) > {Fate.INTACT}


def test_directions_differ_where_they_are_told_to() -> None:
    channel: dict[str, Any] = {"per": 1, "down": {"rate_bps": 1_000_000, "delay_ms": 1, "errors": "none"}}
    up, down = (medium(side, **channel).make(10_000) for side in SIDES)
    assert set(fates(up, 20)) == {Fate.ERASED}
    assert set(fates(down, 20)) == {Fate.INTACT}
    down.handle_frame(0, 125, 10**12)
    assert down.next_deadline() == 10**12 + MS


def test_excess_delay_holds_frames() -> None:
    hop = medium(excess_delay={"probability": 1, "hold_ms": 40}, delay_ms=10).make(10_000)
    hop.handle_frame(0, 250, 0)
    hop.handle_deadline(MS)
    assert hop.next_deadline() == 51 * MS


@pytest.mark.parametrize("kind", ["rbdc", "vbdc"])
def test_assigned_capacity_comes_after_the_request(kind: str) -> None:
    hop = medium(rate_bps=128_000, delay_ms=0, assignment={"kind": kind}).make(10_000)
    assert arrivals(hop, 1, 100)[0].sent_at > 500 * MS


def test_generators_have_names() -> None:
    names: list[tuple[int, str]] = [(1, "up"), (1, "up"), (1, "down"), (2, "up")]
    first, again, *others = (make_rng(seed, "link", name).random() for seed, name in names)
    assert first == again
    assert first not in others
