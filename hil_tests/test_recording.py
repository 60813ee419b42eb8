"""What a run has recorded gives again what it heard: the IQ by the demodulator, the trace on tier emulated."""

from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import pytest

from channel.replay import Outcome
from channel.trace import read_trace
from flowgraphs.phy import Received, SequenceGaps
from flowgraphs.phys import make_phy
from flowgraphs.recording import Recording
from hil_tests.bench import Bench
from testbed.exports.source import timeline_of
from tests.harness.live_runs import folder_of
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.radio]

#: some frames of QPSK are lost
LOSSY_DB = 11.2
#: how many frames may come while a station ends: one on the air, one behind it, one being taken
CLOSING_FRAMES = 3


class Decoded(NamedTuple):
    """What identifies a frame among those of a receiver."""

    sample: int
    sequence: int
    crc_ok: bool


@pytest.fixture(scope="module")
def run(bench: Bench) -> Path:
    scenario = bench.scenario(bench.at_snr(LOSSY_DB), workloads=[{"kind": "bulk", "bytes": 100_000}])
    options = scenario.radio.model_copy(update={"record": True})
    result = bench.run(scenario.model_copy(update={"radio": options, "capture": True}))
    assert result.intact
    return folder_of(result)


def decode_again(recording: Recording) -> list[Received]:
    assert recording.phy is not None
    phy = make_phy(recording.phy, rate_sps=recording.rate_sps, **recording.phy_options)
    return list(phy.decode(recording.blocks()))


@pytest.mark.parametrize("side", ["up", "down"])
def test_recorded_samples_decode_to_the_frames_heard_live(run: Path, side: str) -> None:
    recording = Recording.read(run / f"iq-{side}")
    live = [
        Decoded(about["core:sample_start"], about["fadelab:sequence"], about["fadelab:crc_ok"])
        for about in recording.annotations
    ]
    again = [Decoded(frame.sample, frame.sequence, frame.crc_ok) for frame in decode_again(recording)]
    assert len(live) > 50
    assert again[: len(live)] == live
    # the receiver may stop before the file does
    assert len(again) <= len(live) + CLOSING_FRAMES


@pytest.mark.parametrize("side", ["up", "down"])
def test_recorded_samples_give_the_traces_outcomes(run: Path, side: str) -> None:
    trace = read_trace(run / f"trace-{side}.parquet")
    gaps = SequenceGaps()
    outcomes = []
    for frame in decode_again(Recording.read(run / f"iq-{side}")):
        outcomes += [Outcome.MISSED] * gaps.handle(frame.sequence)
        outcomes.append(Outcome.OK if frame.crc_ok else Outcome.PAYLOAD)
    assert Outcome.OK in trace.outcome
    assert side == "down" or set(trace.outcome) != {Outcome.OK}
    # the recording begins before the run, and what comes while the station ends is in no trace
    ends = range(len(outcomes) - CLOSING_FRAMES, len(outcomes) + 1)
    assert list(trace.outcome) in [outcomes[end - len(trace) : end] for end in ends]


@pytest.mark.parametrize("side", ["up", "down"])
def test_exported_samples_are_those_of_the_captured_frames(run: Path, side: str) -> None:
    recording = Recording.read(run / f"iq-{side}")
    assert recording.phy is not None
    phy = make_phy(recording.phy, rate_sps=recording.rate_sps, **recording.phy_options)
    heard = [
        (frame, frame.samples) for frame in timeline_of(run).frames if frame.side == side and frame.samples is not None
    ]
    assert len(heard) > 50
    assert [samples.start for _, samples in heard] == sorted(samples.start for _, samples in heard)
    for frame, samples in heard:
        assert samples.count == phy.frame_samples(frame.nbytes), frame
    # a whole frame is one that the station has taken; while it ends, it takes no more
    wrong = [frame.number for frame, samples in heard[:-CLOSING_FRAMES] if samples.crc_ok != (frame.fate == "ok")]
    assert wrong == []


def test_a_trace_of_the_radio_replays_on_tier_emulated(bench: Bench, run: Path) -> None:
    source = run / "trace-up.parquet"
    replayed = bench.run(
        bench.scenario(
            tier="emulated",
            channel={"up": {"errors": {"model": "trace", "path": str(source), "by": "index"}}},
            workloads=[{"kind": "bulk", "bytes": 100_000}],
        )
    )
    found = read_trace(folder_of(replayed) / "trace-up.parquet").outcome
    assert replayed.intact
    assert len(found) > 50
    assert list(found) == list(islice(cycle(read_trace(source).outcome), len(found)))
