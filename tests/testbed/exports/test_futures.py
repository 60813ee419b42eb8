"""Two runs with one past: it is checked, and each loss is told with what the other run made of it."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

import testbed.api as fadelab
from testbed.errors import FadelabError
from testbed.exports.futures import futures
from testbed.exports.source import timeline_of
from tests.harness.live_runs import Capture, done, refused

pytestmark = pytest.mark.slow

LOSSY = fadelab.root() / "scenarios" / "lossy-link.yaml"
AT_NS = 3_000_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with more than a hundred losses behind AT_NS."""
    settings = {"workloads.0.duration_s": 10, "channel.per": 0.1}
    return fadelab.run(LOSSY, tier="model", settings=settings, out=tmp_path_factory.mktemp("runs")).folder


def test_each_loss_is_told_with_what_the_other_scheme_made_of_it(run: Path, tmp_path: Path, capsys: Capture) -> None:
    told = json.loads(
        done(capsys, "counterfactual", run, "--at", "3", "--set", "link.scheme=none", "--out", tmp_path, "--json")
    )
    here = timeline_of(run)
    # by other means: the frames with TCP's data that did not arrive whole
    lost = [
        frame
        for frame in here.frames
        if frame.fate != "ok"
        and frame.sent_ns >= AT_NS
        and frame.packet is not None
        and here.packets[frame.packet].length
    ]
    assert len(lost) > 100
    with (Path(told["folder"]) / "counterfactual.csv").open() as file:
        rows = list(csv.DictReader(file))
    ours = [row for row in rows if row["lost_in"] == "here"]
    assert [float(row["time_s"]) for row in ours] == pytest.approx([frame.sent_ns / 1e9 for frame in lost], abs=1e-6)
    counted = Counter((row["fate_here"], row["fate_there"]) for row in ours)
    assert counted == {(each["here"], each["there"]): each["losses"] for each in told["fates"]}
    # a frame is lost, so it did not cross at once; without repair the link mends nothing
    assert "at once" not in {here for here, _ in counted}
    assert "by the link" in {here for here, _ in counted}
    theirs = [row for row in rows if row["lost_in"] == "there"]
    assert len(theirs) > 5
    assert {row["fate_there"] for row in theirs} <= {"by TCP", "open"}
    # TCP without SLACP gets less across
    assert told["acked_bytes"]["there"] < told["acked_bytes"]["here"]
    assert told["equal"]["frames"] == sum(frame.sent_ns < AT_NS for frame in here.frames) > 300


def test_a_change_that_changes_nothing_has_the_same_future(run: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ("--at", "3", "--set", "paused=false", "--out", tmp_path, "--json")
    told = json.loads(done(capsys, "counterfactual", run, *words))
    assert told["losses"]["here"] == told["losses"]["there"] > 100
    assert told["acked_bytes"]["here"] == told["acked_bytes"]["there"] > 1_000_000
    assert all(each["here"] == each["there"] for each in told["fates"])


def test_runs_with_another_past_are_refused(run: Path, tmp_path: Path) -> None:
    settings = {"workloads.0.duration_s": 10, "channel.per": 0.1}
    other = fadelab.run(LOSSY, tier="model", settings=settings, seed=2, out=tmp_path).folder
    with pytest.raises(FadelabError, match=r"the runs differ before the time: frame \d+ is another"):
        futures(timeline_of(run), timeline_of(other), AT_NS)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--at", "500", "--set", "link.scheme=none"), "sends nothing after"),
        (("--at", "3"), "nothing changes: name a key and its value with --set"),
        (("--at", "3", "--set", "mtu=900"), "mtu cannot change while a run goes on"),
        (("--at", "3", "--set", "link.scheme"), "must be key=value"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    words: tuple[str, ...], complaint: str, run: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert complaint in refused(capsys, "counterfactual", run, *words, "--out", tmp_path)
    assert list(tmp_path.iterdir()) == []
