"""`import-trace`: a loss trace becomes the losses of a run."""

import json
from pathlib import Path

import pytest

import testbed.api as fadelab
from channel.trace import read_trace
from tests.harness.live_runs import Capture, done, refused

LOSSY = fadelab.root() / "scenarios" / "lossy-link.yaml"


def test_a_run_loses_the_packets_of_the_trace(tmp_path: Path, capsys: Capture) -> None:
    marks = ("0" * 37 + "100" + "0" * 28 + "11") * 30
    (tmp_path / "lab.txt").write_text(marks)
    told = json.loads(done(capsys, "import-trace", tmp_path / "lab.txt", "--json"))
    assert (told["format"], told["packets"], told["lost"], told["bursts"]) == ("marks", 2100, 90, 60)
    settings = {**told["settings"], "workloads.0.duration_s": 1}
    run = fadelab.run(LOSSY, tier="model", settings=settings, out=tmp_path / "runs")
    fates = ["0" if outcome == "ok" else "1" for outcome in run.records("trace-up").polars()["outcome"]]
    assert len(fates) > 100
    assert "".join(fates) == marks[: len(fates)]


def test_mahimahis_trace_gives_a_run_its_mean_rate(tmp_path: Path, capsys: Capture) -> None:
    # two packets in 16 ms: 1.504 Mbit/s
    (tmp_path / "cell.txt").write_text("".join(f"{16 * n}\n{16 * n + 3}\n" for n in range(1, 100)))
    told = json.loads(done(capsys, "import-trace", tmp_path / "cell.txt", "--json"))
    assert told["format"] == "mahimahi"
    assert told["mean_bps"] == pytest.approx(1.504e6, rel=0.01)
    settings = {**told["settings"], "channel.per": 0, "workloads.0.duration_s": 4}
    run = fadelab.run(LOSSY, tier="model", settings=settings, out=tmp_path / "runs")
    assert 0.85 < run.summary["throughput_bps"] / told["mean_bps"] <= 1.01


def test_output_and_format_can_be_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "odd").write_text("lost\n1\n0\n")
    named = ("-o", tmp_path / "x.parquet", "--interval-ms", "2", "--bytes", "64")
    assert "--set channel.errors.path=" in done(capsys, "import-trace", tmp_path / "odd", *named)
    trace = read_trace(tmp_path / "x.parquet")
    assert (trace.time_ns, trace.nbytes) == ([0, 2_000_000], [64, 64])


def test_it_says_how_a_table_was_read(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "lab.csv").write_text("timestamp;seq;rx;snr\n0;1;1;9\n0.5;2;0;3\n")
    told = done(capsys, "import-trace", tmp_path / "lab.csv").splitlines()
    assert told[1:4] == [
        "column timestamp was read as seconds",
        "no column with sizes: packets have 1500 octets",
        "ignored columns: seq, snr",
    ]
    assert read_trace(tmp_path / "lab.parquet").time_ns == [0, 500_000_000]


def test_numbers_of_what_arrived(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "got.csv").write_text("1\n2\n5\n")
    assert "--format numbers" in refused(capsys, "import-trace", tmp_path / "got.csv")
    told = json.loads(done(capsys, "import-trace", tmp_path / "got.csv", "--format", "numbers", "--json"))
    assert (told["packets"], told["lost"], told["notes"]) == (5, 2, [])


def test_a_text_in_place_of_a_trace_is_told_of_import_trace(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "lab.csv").write_text("lost\n0\n")
    errors = f"channel.errors={{model: trace, path: {tmp_path / 'lab.csv'}}}"
    line = refused(capsys, "run", LOSSY, "--tier", "model", "--set", errors)
    assert "channel.up.errors.path" in line
    assert "`fadelab import-trace`" in line


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "cannot be read"), (b"\xff\xfe\x00", "is no text"), (b"5\n4\n", "line 2 is 4 after 5"), (b"", "no packet")],
)
def test_wrong_files_are_one_line(content: bytes | None, complaint: str, tmp_path: Path, capsys: Capture) -> None:
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    assert complaint in refused(capsys, "import-trace", tmp_path / "file")
    assert not (tmp_path / "file.parquet").exists()
