"""The modelled medium of a scenario: builds channel models from the scenario's settings.

Every random generator is seeded by the run's seed and the direction's name, so the two directions draw independently
and a run can be repeated.
"""

from random import Random
from typing import Any

from channel.capacity import CAPACITY_MODELS, Capacity
from channel.delay import ExcessDelay
from channel.errors import ERROR_MODELS, ErrorModel
from channel.framing import Framing, aal5, aal5_llc, raw
from channel.hop import Hop
from common.sides import Side
from common.units import MS
from testbed.scenario.plugin_options import options_of
from testbed.scenario.schema import Direction, ErrorsPart

_FRAMINGS: dict[str, Framing] = {"raw": raw, "aal5": aal5, "aal5-llc": aal5_llc}


def make_rng(seed: int, *names: str) -> Random:
    """Return the random generator for one purpose of a run; equal seeds and names give equal numbers."""
    return Random(f"{seed}/{'/'.join(names)}")


def make_hop(direction: Direction, side: Side, seed: int, mac_buffer_bytes: int) -> Hop[Any]:
    """Return the hop for one direction of the medium. Raises ValueError (TraceError) in one line."""
    rng = make_rng(seed, "channel", side)
    excess = direction.excess_delay
    return Hop(
        capacity=make_capacity(direction, rng),
        framing=_FRAMINGS[direction.framing],
        errors=make_errors(direction.errors, rng),
        propagation_ns=round(direction.delay_ms * MS),
        buffer_bytes=mac_buffer_bytes,
        excess_delay=None if excess is None else ExcessDelay(excess.probability, round(excess.hold_ms * MS), rng),
        far_bytes=None if excess is None else excess.buffer_bytes,
    )


def make_capacity(direction: Direction, rng: Random) -> Capacity:
    """Return the capacity of a direction. Raises ValueError in one line."""
    model = CAPACITY_MODELS[direction.assignment.kind]
    return model.make(options_of(direction.assignment, model.options), direction.rate_bps, rng)


def make_errors(errors: ErrorsPart, rng: Random) -> ErrorModel:
    """Return the error model of a scenario. Raises ValueError (TraceError) in one line."""
    plugin = ERROR_MODELS[errors.model]
    return plugin.make(options_of(errors, plugin.options), rng)


def buffer_bytes(direction: Direction, frame_bytes: int, ip_queue_bytes: int, flow_control: bool) -> int:
    """Return the size of the MAC buffer for frames of up to `frame_bytes`.

    With flow control it holds two frames or 4 ms of the rate: the transmitter never runs dry, and retransmissions wait
    only briefly. Without flow control it is the only queue.
    """
    paced = direction.mac_buffer_bytes or max(2 * frame_bytes, direction.rate_bps // 8 * 4 // 1000)
    if flow_control:
        return paced
    return direction.bare_buffer_bytes or ip_queue_bytes + paced


def frame_ms(direction: Direction, frame_bytes: int) -> float:
    """Return the time to send a frame, in ms."""
    return frame_ns(direction, frame_bytes) / MS


def frame_ns(direction: Direction, frame_bytes: int) -> int:
    """Return the time to send a frame, in whole ns."""
    return _FRAMINGS[direction.framing](frame_bytes) * 1_000_000_000 // direction.rate_bps
