"""Recordings in SigMF, and the frames and channel traces that come out of them."""

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sigmf
from gnuradio import blocks, gr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from channel.replay import Outcome
from channel.trace import read_trace
from flowgraphs.phy import Received, Samples
from flowgraphs.phys.ofdm.modem import Modulator, OfdmPhy
from flowgraphs.recording import Recording, RecordingError, data_path, finish, meta_path, write_trace
from tests.harness.awgn import air
from tests.harness.bursts import Mailbox
from tests.harness.recordings import write

pytestmark = pytest.mark.slow

STARTED = datetime(2026, 3, 4, 5, 6, 7, 891_000, UTC)
ABOUT: dict[str, Any] = {
    "rate_sps": 2e6,
    "frequency_hz": 2.45e9,
    "started": STARTED,
    "hardware": "type=vusrp,serial=V1",
}
PHY = OfdmPhy(2e6)

parts = st.floats(-1, 1, width=32)
samples_of_any_kind = arrays(np.complex64, st.integers(0, 200), elements=st.builds(complex, parts, parts))


def some_samples(count: int = 1000) -> Samples:
    rng = np.random.default_rng(1)
    return (0.2 * rng.standard_normal(2 * count, np.float32)).view(np.complex64)


def received(sequence: int, sample: int = 0, *, nbytes: int = 100, crc_ok: bool = True, **figures: Any) -> Received:
    return Received(bytes(nbytes), crc_ok, sequence, sample, 800, **figures)


# half a step, and float32's own rounding
@pytest.mark.parametrize(("datatype", "error"), [("cf32_le", 0), ("ci16_le", 0.5 / 32_767 + 2**-23)])
@given(samples=samples_of_any_kind)
def test_samples_come_back(
    tmp_path_factory: pytest.TempPathFactory, datatype: str, error: float, samples: Samples
) -> None:
    target = tmp_path_factory.mktemp("recording") / "iq"
    write(target, samples, datatype=datatype, **ABOUT)
    recording = Recording.read(target)
    back = recording.samples()
    assert len(recording) == len(samples)
    assert back.dtype == np.complex64
    assert np.allclose(back.view(np.float32), samples.view(np.float32), rtol=0, atol=error)
    assert np.array_equal(np.concatenate([*recording.blocks(7), samples[:0]]), back)


def test_short_samples_beyond_full_scale_are_clipped(tmp_path: Path) -> None:
    write(tmp_path / "iq", np.array([3 - 2j, -1j], np.complex64), datatype="ci16_le", **ABOUT)
    assert Recording.read(tmp_path / "iq").samples().tolist() == [1 - 1j, -1j]


def test_what_is_known_comes_back(tmp_path: Path) -> None:
    frames = [received(7, 300, snr_db=12.5, cfo_hz=-3.0), received(8, 1200, crc_ok=False)]
    meta = write(
        *(tmp_path / "iq", some_samples()),
        **ABOUT,
        description="a test",
        gaps=2,
        phy="ofdm",
        phy_options={"modulation": "qam16"},
        frames=reversed(frames),
    )
    assert meta == meta_path(tmp_path / "iq")
    recording = Recording.read(meta)
    assert recording.path == data_path(tmp_path / "iq")
    assert (recording.rate_sps, recording.frequency_hz) == (2e6, 2.45e9)
    assert (recording.started, recording.hardware) == (STARTED, "type=vusrp,serial=V1")
    assert (recording.description, recording.gaps) == ("a test", 2)
    assert (recording.phy, recording.phy_options) == ("ofdm", {"modulation": "qam16"})
    assert recording.duration_s == 1000 / 2e6
    first, second = recording.annotations
    assert (first["core:sample_start"], first["core:sample_count"]) == (300, 800)
    assert (first["fadelab:sequence"], first["fadelab:snr_db"], first["fadelab:crc_ok"]) == (7, 12.5, True)
    assert second["core:label"] == "8 damaged"
    assert "fadelab:snr_db" not in second


def test_the_sigmf_package_reads_it_without_complaint(tmp_path: Path) -> None:
    samples = some_samples()
    write(tmp_path / "iq", samples, **ABOUT, phy="ofdm", frames=[received(1, 10)])
    theirs = sigmf.fromfile(str(tmp_path / "iq"))
    theirs.validate()
    assert np.array_equal(theirs.read_samples(), samples)


def test_time_is_written_in_utc(tmp_path: Path) -> None:
    elsewhere = STARTED.astimezone(timezone(timedelta(hours=5, minutes=30)))
    meta = write(tmp_path / "iq", some_samples(), **(ABOUT | {"started": elsewhere}))
    assert json.loads(meta.read_text())["captures"][0]["core:datetime"] == "2026-03-04T05:06:07.891000Z"


@pytest.mark.parametrize("name", ["iq", "iq.sigmf-data", "iq.sigmf-meta", "2.4GHz.run"])
def test_a_recording_goes_by_its_name_or_that_of_either_file(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, some_samples(), **ABOUT)
    base = name.removesuffix(".sigmf-data").removesuffix(".sigmf-meta")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{base}.sigmf-data", f"{base}.sigmf-meta"]
    for suffix in ("", ".sigmf-data", ".sigmf-meta"):
        assert len(Recording.read(tmp_path / (base + suffix))) == 1000


def test_a_sample_that_was_cut_is_dropped(tmp_path: Path) -> None:
    data_path(tmp_path / "iq").write_bytes(some_samples(10).tobytes()[:-3])
    finish(tmp_path / "iq", **ABOUT)
    recording = Recording.read(tmp_path / "iq")
    assert np.array_equal(recording.samples(), some_samples(10)[:9])
    assert list(PHY.decode(recording.blocks())) == []


def change(**fields: Any) -> Callable[[Path], object]:
    def do(target: Path) -> None:
        metadata = json.loads(meta_path(target).read_text())
        for name, value in fields.items():
            metadata["global"][f"core:{name}"] = value
        metadata["global"] = {name: value for name, value in metadata["global"].items() if value is not None}
        meta_path(target).write_text(json.dumps(metadata))

    return do


def ours(**fields: Any) -> Callable[[Path], object]:
    def do(target: Path) -> None:
        metadata = json.loads(meta_path(target).read_text())
        metadata["global"] |= {f"fadelab:{name}": value for name, value in fields.items()}
        meta_path(target).write_text(json.dumps(metadata))

    return do


def cut_within_a_sample(target: Path) -> None:
    change(sha512=None)(target)
    os.truncate(data_path(target), 7999)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda target: [path.unlink() for path in target.parent.iterdir()], "no such recording; check the path"),
        (lambda target: meta_path(target).unlink(), "no metadata; its recording was not finished"),
        (lambda target: data_path(target).unlink(), "the recording's samples are missing"),
        (lambda target: os.truncate(data_path(target), 4000), "cut short or written over"),
        (lambda target: data_path(target).write_bytes(bytes(8000)), "cut short or written over"),
        (lambda target: meta_path(target).write_text("{"), "no SigMF metadata"),
        (lambda target: meta_path(target).write_text("[]"), "no SigMF metadata"),
        (lambda target: meta_path(target).write_text("[" * 100_000), "no SigMF metadata .it is nested too deeply"),
        (ours(phy_options="qpsk"), "fadelab:phy_options is no mapping"),
        (ours(phy=[]), "fadelab:phy is no text"),
        (ours(gaps={}), "fadelab:gaps is no whole number"),
        (lambda target: meta_path(target).write_bytes(b"\xff\xfe\x00"), "no SigMF metadata"),
        (change(datatype="rf32_le"), "samples are rf32_le; fadelab reads cf32_le and ci16_le"),
        (change(datatype=None), "no SigMF metadata"),
        (change(sample_rate=None), "does not say its sample rate"),
        *((change(sample_rate=rate), "its sample rate does not lie between 1 and") for rate in (1e-320, 0.5)),
        (change(num_channels=2), "one channel and one capture"),
        (change(dataset="iq.bin"), "one channel and one capture"),
        (cut_within_a_sample, "does not end with a whole sample"),
        (change(datatype="ci16_le", sha512=None), None),
        (change(sha512=None), None),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, harm: Callable[[Path], object], message: str | None) -> None:
    target = tmp_path / "iq"
    write(target, some_samples(), **ABOUT)
    harm(target)
    if message is None:
        assert len(Recording.read(target)) in (1000, 2000)
        return
    with pytest.raises(RecordingError, match=message) as caught:
        Recording.read(target)
    assert "\n" not in str(caught.value)
    assert str(target) in str(caught.value)


def test_a_recording_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        finish(tmp_path / "iq", **ABOUT)
    assert list(tmp_path.iterdir()) == []


def test_metadata_that_are_not_valid_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="has no metadata") as caught:
        write(tmp_path / "iq", some_samples(), **(ABOUT | {"rate_sps": -1}))
    assert "\n" not in str(caught.value)
    assert not meta_path(tmp_path / "iq").exists()


def test_a_replay_hears_the_frames_that_were_heard_live(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    modulator = Modulator(PHY)
    bursts = [modulator.modulate(rng.bytes(int(size))) for size in rng.integers(1, 1500, 40)]
    on_air = air(bursts, rng, rms=PHY.rms, snr_db=11.0, cfo=0.001, tail=4096).samples

    target = tmp_path / "iq"
    source, receiver, mailbox = blocks.vector_source_c(on_air.tolist(), False), PHY.receiver(), Mailbox()
    sink = blocks.file_sink(gr.sizeof_gr_complex, str(data_path(target)), False)
    top = gr.top_block()
    top.connect(source, receiver)
    top.connect(source, sink)
    top.msg_connect((receiver, "frames"), (mailbox, "in"))
    top.run()
    sink.close()
    live = mailbox.heard
    assert len(live) == len(bursts)
    assert {frame.crc_ok for frame in live} == {True, False}

    finish(target, **ABOUT, phy="ofdm", frames=live)
    recording = Recording.read(target)
    assert np.array_equal(recording.samples(), on_air)
    assert list(PHY.decode(recording.blocks())) == live
    assert [annotation["core:sample_start"] for annotation in recording.annotations] == [f.sample for f in live]


def test_a_trace_has_a_row_per_frame_and_one_per_miss(tmp_path: Path) -> None:
    frames = [
        received(4, 2_000, nbytes=50, snr_db=10.0, cfo_hz=5.0),
        received(5, 4_000, nbytes=60, crc_ok=False, snr_db=6.0),
        received(8, 10_000, nbytes=70),
        # the transmitter began anew
        received(0, 20_000, nbytes=80),
    ]
    path = tmp_path / "trace.parquet"
    write_trace(path, frames, rate_sps=2e6, link="up", producer="test")
    trace = read_trace(path)
    assert list(trace.time_ns) == [1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 10_000_000]
    assert list(trace.nbytes) == [50, 60, 60, 60, 70, 80]
    ok, payload, missed = Outcome.OK, Outcome.PAYLOAD, Outcome.MISSED
    assert list(trace.outcome) == [ok, payload, missed, missed, ok, ok]
    assert list(trace.snr_db) == [10.0, 6.0, None, None, None, None]
    assert list(trace.cfo_hz) == [5.0, None, None, None, None, None]
    assert (trace.link, trace.producer) == ("up", "test")


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 10**9), st.integers(1, 1500), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
def test_times_of_a_trace_do_not_go_back(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[int, int, int, bool]]
) -> None:
    path = tmp_path_factory.mktemp("trace") / "trace.parquet"
    frames, sequence, sample = [], 0, 0
    for missed, distance, nbytes, crc_ok in steps:
        sequence += missed + 1
        sample += distance
        frames.append(received(sequence, sample, nbytes=nbytes, crc_ok=crc_ok))
    write_trace(path, frames, rate_sps=2.5e6, link="up", producer="test")
    trace = read_trace(path)
    assert list(trace.time_ns) == sorted(trace.time_ns)
    assert len(trace) == len(frames) + sum(missed for missed, *_ in steps[1:])
    heard = [
        (at, n) for at, n, o in zip(trace.time_ns, trace.nbytes, trace.outcome, strict=True) if o != Outcome.MISSED
    ]
    assert heard == [(round(frame.sample * 400), len(frame.payload)) for frame in frames]
