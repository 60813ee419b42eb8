"""Runs that are not whole, in report, comparison and bundle."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from testbed.campaigns.rows import Row
from testbed.cli import app
from testbed.reports.bundle import write_bundle
from testbed.reports.footnotes import counted, marked, marks, notes
from testbed.reports.numbers import judge, read_campaign
from testbed.reports.report import compared, write_report
from tests.harness.flawed_runs import LONG, POINTS, flawed
from tests.harness.live_runs import Capture

pytestmark = [pytest.mark.slow, pytest.mark.interpreted]

WHOLE = Row("a", "done", finished=True, intact=True, on_time=True)
CUT = Row("b", "done", finished=False, intact=True, on_time=True)
LATE = Row("c", "done", finished=True, intact=True, on_time=False)
BOTH = Row("d", "done", finished=False, intact=True, on_time=False)
CORRUPT = Row("e", "failed", finished=True, intact=False, on_time=True)
REFUSED = Row("f", "failed", finished=True, intact=True, on_time=False)
FAILED = Row("g", "failed")
UNKNOWN = Row("h", "done")

CLAIMS = [
    {"claim": name, "metric": "duration_s", "greater": greater, "than": than}
    for name, greater, than in (
        ("never ends", POINTS[1], POINTS[0]),
        ("is late", POINTS[2], POINTS[0]),
        ("cannot be told", POINTS[3], POINTS[0]),
    )
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        return flawed(tmp_path_factory.mktemp("flawed"), patch, hypotheses=CLAIMS, seeds={"count": 8})


def test_runs_are_counted_by_kind() -> None:
    rows = [WHOLE] * 36 + [CUT] * 2 + [LATE] + [CORRUPT]
    assert counted(rows) == "40 runs: 36 whole, 2 cut off at limit_s, 1 late, 1 corrupt (left out)"
    assert counted([BOTH]) == "1 run: 1 late and cut off at limit_s"
    others = "3 runs: 1 of a version that did not tell, 1 too late (left out), 1 failed (left out)"
    assert counted([FAILED, REFUSED, UNKNOWN]) == others
    assert counted([]) == "0 runs"


def test_marks_of_figures() -> None:
    assert marks([WHOLE]) == ""
    rows = [LATE, CUT, BOTH, CORRUPT, REFUSED, FAILED, UNKNOWN]
    assert [marks([row]) for row in rows] == ["†", "‡", "†‡", "§", "§", "§", "¶"]
    assert marked(["1", "", "2"], [CUT, WHOLE, LATE]) == ["1†‡", "", "2†‡"]
    assert list(notes([("x", [WHOLE])])) == []
    [note] = notes([("x", [WHOLE, CUT]), ("y", [WHOLE])])
    assert note.text.startswith("‡ a transfer did not end")
    assert note.text.endswith("Of the points touched: x‡: 2 runs: 1 whole, 1 cut off at limit_s.")


def line(text: str, *words: str) -> list[str]:
    """The cells of the row of a table that has these words."""
    [found] = [row for row in text.splitlines() if row.startswith("| ") and all(word in row for word in words)]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_report_counts_and_marks_what_is_not_whole(made: Path, tmp_path: Path) -> None:
    write_report(read_campaign(made), tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "4 points, 32 runs: 8 whole, 8 cut off at limit_s, 8 late, 8 corrupt (left out)." in text
    duration = text.partition("## duration_s")[2].partition("## goodput_bps")[0]
    assert not any(mark in " ".join(line(duration, "mtu=600 ")) for mark in "†‡§¶")
    cut = line(duration, "mtu=700 ", "never")
    assert cut[1:4] == ["8‡", "never‡", "never to never‡"]
    assert cut[5] == "none: 8 of 8 did not end‡"
    late, corrupt = line(duration, "| mtu=800 "), line(duration, "| mtu=900 ")
    assert (late[1][-1], late[2][-1]) == ("†", "†")
    assert (corrupt[1], corrupt[2]) == ("0§", "")
    assert "mtu=800†: 8 runs: 8 late; " in duration
    # the goodput of a cut run is that until the cut
    goodput = text.partition("## goodput_bps")[2].partition("## What users feel")[0]
    assert float(line(goodput, "mtu=700 ", "‡")[2].rstrip("‡").replace(",", "")) > 0
    assert text.count("what arrived is not what was sent") == 8
    # bars: the median that does not exist is a word
    svg = (tmp_path / "figures" / "bars-duration_s.svg").read_text()
    assert "never‡" in svg
    assert "none§" in svg
    assert "†" in svg
    # what users feel
    felt = text.partition("## What users feel")[2].partition("## ")[0]
    assert not any(mark in " ".join(line(felt, "mtu=600 ")) for mark in "†‡§¶")
    assert [{cell[-1] for cell in line(felt, f"| mtu={mtu} ")[1:] if cell} for mtu in (700, 800, 900)] == [
        {"‡"},
        {"†"},
        set(),
    ]
    assert "limit_s=3‡: 8 runs: 8 cut off at limit_s; mtu=800†: 8 runs: 8 late; " in felt
    assert "--repeat 8 --allow-late" in " ".join(line(text, "mtu=800 ", "fadelab run "))


def test_hypotheses_use_ranks_of_transfers_that_never_end(made: Path, tmp_path: Path) -> None:
    never, late, unknown = judge(read_campaign(made))
    assert (never.verdict, unknown.verdict) == ("holds", "no pairs")
    write_report(read_campaign(made), tmp_path)
    text = (tmp_path / "report.md").read_text().partition("## Hypotheses")[2].partition("## duration_s")[0]
    cells = line(text, "never ends")
    assert cells[4:8] == ["holds‡", "8‡", "infinite‡", "infinite to infinite‡"]
    assert all(cell.endswith("†") for cell in line(text, "is late")[4:])
    assert line(text, "is late")[4] == "not decided: 0 pairs without late runs†"
    assert line(text, "cannot be told")[4:6] == ["no pairs§", "0§"]
    assert (late.difference.pairs.n, late.difference.on_time.n) == (8, 0)


def test_comparison_marks_what_either_campaign_touches(made: Path, capsys: Capture) -> None:
    campaign = read_campaign(made)
    table, below = compared(campaign, campaign)
    rows = {(row[0], row[1].split()[0]): row for row in table.rows}
    assert rows["duration_s", "mtu=700"][2:5] == ["never‡", "never‡", "8‡"]
    assert rows["duration_s", "mtu=800"][2].endswith("†")
    assert rows["duration_s", "mtu=900"][4] == "0§"
    assert "B mtu=800†: 8 runs: 8 late; " in below[0].text
    assert app.main(["report", "compare", str(made), str(made)]) == 0
    out = capsys.readouterr().out
    assert out.count("32 runs: 8 whole, 8 cut off at limit_s, 8 late, 8 corrupt (left out)") == 2
    assert "† the machine was late" in out


def test_bundle_has_the_kinds_and_is_checked(made: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "copy"))
    bundle = write_bundle(read_campaign(folder), tmp_path / "b.zip", source=False)
    with zipfile.ZipFile(bundle) as archive:
        results = json.loads(archive.read("small/results.json"))
        names = set(archive.namelist())
        assert "8 corrupt (left out)" in archive.read("small/report.md").decode()
    assert results["kinds"] == {"whole": 8, "cut": 8, "late": 8, "corrupt": 8}
    assert any(name.startswith("small/failed/3-900-") for name in names)
    assert app.main(["report", "verify", str(bundle), "--sample", "0"]) == 0
    for old, new in (('"finished": false', '"finished": true'), ('"duration_s": "Infinity"', '"duration_s": 3.0')):
        forged = folder / "results.json"
        whole = forged.read_text()
        forged.write_text(whole.replace(old, new, 1))
        assert app.main(["report", "verify", str(folder), "--sample", "0"]) == 2
        assert "results.json: 1-700-" in capsys.readouterr().err
        forged.write_text(whole)


def test_point_whose_median_is_never_needs_no_more_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = {"metric": "duration_s", "half_width": "1%", "least": 8, "most": 16, "batch": 8}
    changes: dict[str, Any] = {"sweep": None, "set": {"workloads": LONG, "limit_s": 1}, "seeds": None, "stop": stop}
    folder = flawed(tmp_path, monkeypatch, **changes)
    assert counted(read_campaign(folder).rows) == "8 runs: 8 cut off at limit_s"
    mean = {**changes, "stop": {**stop, "of": "mean", "least": 20, "most": 40}}
    folder = flawed(tmp_path / "mean", monkeypatch, **mean)
    assert counted(read_campaign(folder).rows) == "20 runs: 20 cut off at limit_s"
