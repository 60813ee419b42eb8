"""What a receiver makes of the frames it hears, on a clock of the test's."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channel.replay import Outcome, Trace
from channel.trace import read_trace
from flowgraphs.gaps import Lost, SampleGaps
from flowgraphs.phy import Received
from telemetry.records import PhyRecord
from testbed.live.receiver_stats import ReceiverStats
from testbed.results.frame_trace import FrameTrace
from tests.harness.records import recorded

OK, PAYLOAD, MISSED, UNKNOWN = Outcome
RATE_SPS = 1e6
US = 1000
#: when the stream's first sample was received
STREAM_AT = 10**15


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def frame(sequence: int, *, sample: int | None = None, nbytes: int = 100, crc_ok: bool = True, **seen: Any) -> Received:
    """A frame of 500 samples, by its number 1000 samples after the one before."""
    at = 1000 * sequence if sample is None else sample
    return Received(bytes(nbytes), crc_ok, sequence, at, 500, **seen)


def traced(path: Path, heard: list[tuple[Received, int]]) -> tuple[ReceiverStats, Trace]:
    """Hear frames, each so long (ns) after its last sample was received."""
    clock = Clock()
    with FrameTrace(path, link="up", producer="test") as trace:
        stats = ReceiverStats("up", RATE_SPS, trace, clock)
        stats.begin(STREAM_AT)
        for received, delay_ns in heard:
            clock.now = STREAM_AT + (received.sample + received.nsamples) * US + delay_ns
            stats.handle_frame(received, Lost())
    return stats, read_trace(path)


def test_a_record_has_the_means_of_its_interval() -> None:
    stats = ReceiverStats("down", RATE_SPS, None)
    stats.handle_frame(frame(0, mode="bpsk", snr_db=10.0, evm_db=-20.0, cfo_hz=100.0, rssi_db=-20.0), Lost())
    stats.handle_frame(frame(1, snr_db=13.0, evm_db=-26.0, cfo_hz=-300.0, crc_ok=False), Lost())
    assert stats.handle_frame(frame(4, snr_db=16.0, mode="qam16"), Lost()) == 2
    means = {"snr_db": 13.0, "evm_db": -23.0, "cfo_hz": -100.0, "rssi_dbfs": -20.0}
    assert stats.take_record(7) == recorded(PhyRecord, time_ns=7, link="down", per=3 / 5, mode="qam16", **means)
    # the gap to the frame before lies in the interval of the one after
    stats.handle_frame(frame(6, snr_db=5.0), Lost())
    assert stats.take_record(8) == recorded(PhyRecord, time_ns=8, link="down", snr_db=5.0, per=0.5)
    assert (stats.corrupted, stats.missed) == (1, 3)


def test_an_interval_without_frames_knows_nothing() -> None:
    stats = ReceiverStats("up", RATE_SPS, None)
    assert stats.take_record(1) == recorded(PhyRecord, time_ns=1, link="up")


def test_missed_frames_stand_between_their_neighbours(tmp_path: Path) -> None:
    heard = [frame(0, nbytes=60), frame(1, crc_ok=False, nbytes=70, snr_db=4.5, cfo_hz=25.0), frame(4, nbytes=80)]
    stats, trace = traced(tmp_path / "trace", [(received, 0) for received in heard])
    assert trace.outcome == [OK, PAYLOAD, MISSED, MISSED, OK]
    assert trace.time_ns == [0, 1_000 * US, 2_000 * US, 3_000 * US, 4_000 * US]
    # a frame nobody heard is as long as the one before
    assert trace.nbytes == [60, 70, 70, 70, 80]
    assert trace.snr_db == [None, 4.5, None, None, None]
    assert trace.cfo_hz == [None, 25.0, None, None, None]
    assert (stats.corrupted, stats.missed) == (1, 2)


def test_times_are_the_streams_by_the_soonest_delivery(tmp_path: Path) -> None:
    delays_ns = [300 * US, 40 * US, 900 * US, 40 * US]
    _, trace = traced(tmp_path / "trace", [(frame(n), delay_ns) for n, delay_ns in enumerate(delays_ns)])
    assert trace.time_ns == [300 * US, 1_040 * US, 2_040 * US, 3_040 * US]


def test_times_do_not_go_back_when_a_delivery_was_sooner(tmp_path: Path) -> None:
    first, second = frame(0), frame(2, sample=600)
    _, trace = traced(tmp_path / "trace", [(first, 5_000 * US), (second, 0)])
    assert trace.outcome == [OK, MISSED, OK]
    assert trace.time_ns == [5_000 * US] * 3


def test_frames_lost_with_samples_are_unknown_and_later_times_hold(tmp_path: Path) -> None:
    """The device loses 3300 samples from sample 1600 on, and with them frames 2 to 4."""
    gaps = SampleGaps(RATE_SPS)
    gaps.handle(1600, (1600 + 3300) / RATE_SPS)
    clock, missed = Clock(), {}
    with FrameTrace(tmp_path / "trace", link="up", producer="test") as trace:
        stats = ReceiverStats("up", RATE_SPS, trace, clock)
        stats.begin(STREAM_AT)
        for number in (0, 1, 5, 7):
            on_air = 1000 * number
            received = frame(number, sample=on_air - (3300 if number > 1 else 0))
            # the first frame of all is delivered soonest
            clock.now = STREAM_AT + (on_air + 500 + number) * US
            missed[number] = stats.handle_frame(received, gaps.before(received.sample, received.sample + 500))
    rows = read_trace(tmp_path / "trace")
    assert rows.outcome == [OK, OK, UNKNOWN, UNKNOWN, UNKNOWN, OK, MISSED, OK]
    assert rows.time_ns == [1000 * US * number for number in range(8)]
    assert missed == {0: 0, 1: 0, 5: 0, 7: 1}
    assert (stats.corrupted, stats.missed) == (0, 1)
    assert stats.take_record(1).per == 1 / 5


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50_000 * US), st.booleans()), min_size=1, max_size=40),
    st.integers(0, 2**32 - 1),
)
def test_every_frame_has_its_row_in_order(
    tmp_path_factory: pytest.TempPathFactory, heard: list[tuple[int, int, bool]], first: int
) -> None:
    """With any gaps, deliveries and damage, and sequence numbers that begin again at 2^32."""
    frames, position = [], 0
    expected: list[Outcome] = []
    for index, (gap, delay_ns, crc_ok) in enumerate(heard):
        missed = gap if index else 0
        position += missed + 1
        expected += [MISSED] * missed + [OK if crc_ok else PAYLOAD]
        sequence = (first + position) % 2**32
        frames.append((frame(sequence, sample=1000 * position, crc_ok=crc_ok), delay_ns))
    stats, trace = traced(tmp_path_factory.mktemp("trace") / "trace", frames)
    assert trace.outcome == expected
    assert stats.missed == expected.count(MISSED)
    assert stats.corrupted == expected.count(PAYLOAD)
    # never before a frame's first sample came, never after all that was delivered by then
    rows = [at for at, outcome in zip(trace.time_ns, trace.outcome, strict=True) if outcome is not MISSED]
    latest = 0
    for at, (received, delay_ns) in zip(rows, frames, strict=True):
        latest = max(latest, (received.sample + received.nsamples) * US + delay_ns)
        assert received.sample * US <= at <= latest
