"""The radio of stations that share a carrier: on an invented transceiver."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest

from flowgraphs.access import AccessCounts
from flowgraphs.transceiver import DeviceCounters
from hosts.messages import Transmissions
from telemetry.records import AccessRecord
from testbed.errors import FadelabError
from testbed.live.one_carrier_radio import OneCarrierRadio
from tests.harness.scenarios import scenario
from tests.harness.scripted_hop import BOUND_NS, DELAY_NS, MS, frames_of, scripted_hop

OCCUPANCY_NS = 10 * MS
AIRTIME_NS = 3 * MS
NO_GAIN_SET = 30.0


@dataclass
class Receiver:
    gain_db: float = NO_GAIN_SET
    gain_range_db: tuple[float, float] = (0.0, 60.0)

    def set_gain(self, gain_db: float) -> None:
        self.gain_db = gain_db


@dataclass
class Transceiver:
    """Keeps frames until `leave`."""

    held: deque[bytes] = field(default_factory=deque)
    left: int = 0
    counts: AccessCounts = field(default_factory=AccessCounts)
    rx: Receiver = field(default_factory=Receiver)
    forgotten: int = 0
    peak: float = -30.0

    def send(self, frame: bytes) -> None:
        self.held.append(frame)

    def leave(self, frames: int) -> None:
        for _ in range(frames):
            self.held.popleft()
        self.left += frames

    def departed(self) -> int:
        return self.left

    def airtime_ns(self, nbytes: int) -> int:
        return AIRTIME_NS

    def access_counts(self) -> AccessCounts:
        return self.counts

    def take_spans(self) -> list[tuple[float, float]]:
        return [(1.0, 1.5)]

    def take_lag_s(self) -> float:
        return 0.002

    def forget_noise(self) -> None:
        self.forgotten += 1

    def check(self) -> None: ...

    def counters(self) -> DeviceCounters:
        return DeviceCounters()

    def peak_dbfs(self) -> float:
        return self.peak

    def receive(self) -> None:
        return None


def radio(*, shared_clock: bool = True, automatic_gain: bool = False) -> tuple[OneCarrierRadio, Transceiver]:
    transceiver: Any = Transceiver()
    hop = scripted_hop((), buffer=100_000, delay_ns=DELAY_NS)
    return OneCarrierRadio(
        hop,
        transceiver,
        max_frame_bytes=1500,
        late_bound_ns=BOUND_NS,
        automatic_gain=automatic_gain,
        occupancy_ns=OCCUPANCY_NS,
        link="up",
        shared_clock=shared_clock,
    ), transceiver


def test_radio_holds_the_frames_of_one_access() -> None:
    onair, transceiver = radio()
    for frame in frames_of([1000] * 8):
        assert onair.send(frame, 0)
    now = 10_000 * MS
    onair.handle_deadline(now)
    assert len(transceiver.held) == OCCUPANCY_NS // AIRTIME_NS
    assert not onair.has_room()
    # nothing is due: the transceiver's descriptor wakes the loop when frames leave
    deadline = onair.next_deadline()
    assert deadline is not None
    assert deadline > now
    transceiver.leave(2)
    onair.handle_deadline(now)
    assert len(transceiver.held) == 3
    transceiver.leave(3)
    onair.handle_deadline(now)
    assert len(transceiver.held) == 3
    assert onair.has_room()


def test_records_count_from_the_runs_start() -> None:
    onair, transceiver = radio()
    transceiver.counts = AccessCounts(5, 4, 0.5, 1.0, 3)
    onair.begin(0)
    transceiver.counts = AccessCounts(15, 6, 0.75, 3.0, 4)
    assert list(onair.take_records(0, 7)) == [
        Transmissions(spans_s=((1.0, 1.5),)),
        AccessRecord(
            time_ns=7,
            link="up",
            bursts=10,
            deferrals=2,
            backoff_ms=250.0,
            airtime_ms=2000.0,
            collisions_heard=1,
            lag_ms=2.0,
        ),
    ]


def test_times_of_devices_with_clocks_of_their_own_are_not_told() -> None:
    onair, _ = radio(shared_clock=False)
    assert [type(record) for record in onair.take_records(0, 0)] == [AccessRecord]


def test_noise_is_measured_anew_after_a_change_of_gain() -> None:
    onair, transceiver = radio(automatic_gain=True)
    transceiver.peak = -80.0
    now = 0
    while transceiver.rx.gain_db == NO_GAIN_SET:
        now += 50 * MS
        onair.handle_deadline(now)
    assert transceiver.forgotten == 0
    onair.handle_deadline(now + 50 * MS)
    assert transceiver.forgotten == 1


@pytest.mark.parametrize(
    ("radio_options", "fault"),
    [
        ({"access": "lbt"}, "access is for one carrier: set up_hz and down_hz to the same frequency"),
        ({"up_hz": 2.41e9}, "or both access lbt"),
        ({"up_hz": 2.41e9, "access": {"slot_us": 500, "lead_us": 500}}, "slot_us is 500: must be more than lead_us"),
        ({"up_hz": 2.41e9, "access": {"slots": 5}}, "slots"),
    ],
)
def test_scenarios_that_share_no_carrier_are_refused(radio_options: dict[str, Any], fault: str) -> None:
    with pytest.raises((FadelabError, ValueError), match=fault):
        scenario(radio=radio_options)
