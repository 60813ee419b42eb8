"""Three drivers of a hop: one that wakes it at every deadline, one only for arrivals, and one that is always late."""

import random
from collections.abc import Callable
from typing import Any

from channel.capacity import Capacity
from channel.capacity.cra import ConstantRate
from channel.errors import ErrorModel
from channel.errors.none import NoErrors
from channel.framing import Framing, raw
from channel.hop import Arrival, Hop

MS = 1_000_000
SECOND = 1_000_000_000

#: (gap before the frame in ns, bytes of the frame)
Traffic = list[tuple[int, int]]


def make_hop(
    capacity: Capacity | None = None, framing: Framing = raw, error_model: ErrorModel | None = None, **changes: Any
) -> Hop[int]:
    """A hop whose other options are a quarter of a second and four packets, unless `changes` say otherwise."""
    usual: dict[str, Any] = {"propagation_ns": 250 * MS, "buffer_bytes": 6_000}
    errors = error_model or NoErrors()
    return Hop(capacity=capacity or ConstantRate(1_000_000), framing=framing, errors=errors, **usual | changes)


def drain(hop: Hop[int], now: int) -> list[Arrival[int]]:
    arrivals = []
    while (arrival := hop.poll_arrival(now)) is not None:
        assert arrival.arrived_at <= now
        arrivals.append(arrival)
    return arrivals


def drive_punctually(
    hop: Hop[int],
    frames: Traffic,
    check: Callable[[int], object] = lambda now: None,
    deadline: Callable[[Hop[int]], int | None] = Hop.next_deadline,
) -> tuple[list[Arrival[int]], list[bool]]:
    """Wake the hop at each of its deadlines, and call `check` then."""
    arrivals: list[Arrival[int]] = []
    accepted = []
    now = 0

    def run_until(limit: int | None) -> None:
        while (at := deadline(hop)) is not None and (limit is None or at <= limit):
            hop.handle_deadline(at)
            got = drain(hop, at)
            # Punctual driving hears every frame at the instant it is due.
            assert all(a.arrived_at == at for a in got)
            arrivals.extend(got)
            check(at)
            follower = deadline(hop)
            assert follower is None or follower > at

    for number, (gap, nbytes) in enumerate(frames):
        now += gap
        run_until(now)
        accepted.append(hop.handle_frame(number, nbytes, now))
    run_until(None)
    return arrivals, accepted


def drive_for_arrivals(hop: Hop[int], frames: Traffic) -> tuple[list[Arrival[int]], list[bool]]:
    """Wake the hop only when a frame may arrive: each is heard at the instant it is due all the same."""
    return drive_punctually(hop, frames, deadline=Hop.next_arrival)


def drive_late(hop: Hop[int], frames: Traffic, pokes: random.Random) -> tuple[list[Arrival[int]], list[bool]]:
    """Wake the hop only when a frame comes, and at instants that have nothing to do with its deadlines."""
    arrivals: list[Arrival[int]] = []
    accepted = []
    now = 0
    for number, (gap, nbytes) in enumerate(frames):
        if pokes.random() < 0.5:
            hop.handle_deadline(now + pokes.randint(0, gap))
        now += gap
        accepted.append(hop.handle_frame(number, nbytes, now))
        if pokes.random() < 0.5:
            arrivals.extend(drain(hop, now))
    while (at := hop.next_deadline()) is not None:
        now = max(now, at) + pokes.randint(0, 2 * SECOND)
        if pokes.random() < 0.5:
            hop.handle_deadline(now)
        arrivals.extend(drain(hop, now))
    return arrivals, accepted
