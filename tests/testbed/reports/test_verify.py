"""The check of a bundle in which somebody has forged results, runs or the report."""

import hashlib
import json
import random
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

import pytest

from testbed.campaigns.folder import open_plan
from testbed.reports import verify
from tests.harness.live_runs import Capture
from tests.testbed.reports.forging import change_rows, check, first, sum_again, tell_anew

pytestmark = pytest.mark.slow


def test_bundle_that_nobody_forged_agrees(forged: Path, capsys: Capture) -> None:
    assert check(forged, "--sample", "1") == 0
    out = capsys.readouterr().out
    assert "report: text and figures compared with those that the rows give" in out
    assert out.splitlines()[-1] == "all that was checked agrees"


@pytest.mark.parametrize("file", ["report.md", "report.html"])
def test_forged_report_with_new_sums_is_found(file: str, forged: Path, capsys: Capture) -> None:
    text = (forged / file).read_text()
    (forged / file).write_text(re.sub("6 to 6|1 to 6", "1 to 60", text, count=1))
    sum_again(forged)
    assert check(forged, "--sample", "0") == 2
    assert re.search(
        rf"1 difference, the first: {file}: line \d+ is '.*1 to 60.*', made again", capsys.readouterr().err
    )


def test_forged_figure_with_new_sums_is_found(forged: Path, capsys: Capture) -> None:
    figure = forged / "figures" / "bars-duration_s.svg"
    text = figure.read_text()
    [first, *_] = re.findall(r'<path d="M (\d+\.\d+) ', text)
    figure.write_text(text.replace(f'd="M {first} ', f'd="M {float(first) + 5:g} ', 1))
    (forged / "figures" / "more.svg").write_text("<svg/>")
    sum_again(forged)
    assert check(forged, "--sample", "0") == 2
    shown = capsys.readouterr()
    assert re.search(
        r"the first: figures/bars-duration_s\.svg: number \d+ that it draws is [\d.]+, made again", shown.err
    )
    assert "differs: figures/more.svg: is no figure of the report" in shown.out


def test_index_and_report_that_agree_and_are_both_forged_are_found(forged: Path, capsys: Capture) -> None:
    """The report is made from the index, so the index is compared with the runs."""

    def faster(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"metrics": {name: value * 2 for name, value in row["metrics"].items()}}

    change_rows(forged, faster)
    tell_anew(forged)
    assert check(forged, "--sample", "0") == 2
    assert re.search(r"the first: index\.jsonl: 0-none-s1: metrics is .*, and .* in the run's", capsys.readouterr().err)


def test_table_of_results_is_compared(forged: Path, capsys: Capture) -> None:
    (forged / "results.csv").write_text((forged / "results.csv").read_text().replace("done", "late", 1))
    sum_again(forged)
    assert check(forged, "--sample", "0") == 2
    assert "1 difference, the first: results.csv: line 2 is '0-none-s1,model,none,1,late" in capsys.readouterr().err


def forge_run(folder: Path, run: str) -> None:
    """Make a run twice as fast, in all places where that is told."""
    path = folder / "runs" / run / "summary.json"
    summary = json.loads(path.read_text())
    before = summary["goodput_bps"]
    summary["goodput_bps"] = before * 2
    path.write_text(json.dumps(summary, indent=2) + "\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def change(row: dict[str, Any]) -> dict[str, Any]:
        if row["run"] != run:
            return row
        metrics = {**row["metrics"], "goodput_bps": before * 2}
        return row | {"metrics": metrics, "files": {**row["files"], "summary.json": digest}}

    change_rows(folder, change)
    tell_anew(folder)


def test_changed_run_is_found_by_a_number_of_the_verifier_and_not_hidden_by_the_plan(
    forged: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forger who knows the plan's hash knew the whole sample when the hash drew it."""
    plan = open_plan(forged)
    runs = [plan.run(point, n).name for point in plan.points for n in range(6)]
    spared = next(run for run in runs if run not in random.Random(plan.sha256).sample(runs, 3))
    forge_run(forged, spared)
    hits = [draw for draw in range(60) if spared in random.Random(draw).sample(runs, 3)]
    misses = [draw for draw in range(60) if draw not in hits]
    assert check(forged, "--sample", "3", "--draw", str(misses[0])) == 0
    assert check(forged, "--sample", "3", "--draw", str(hits[0])) == 2
    assert f"the first: runs/{spared}/summary.json: line" in capsys.readouterr().err
    # without a number it is chance, which is told, and repeats the draw
    monkeypatch.setattr(secrets, "randbelow", lambda most: hits[1] if most == verify.DRAWS else -1)
    assert check(forged, "--sample", "3") == 2
    assert f"drawn by {hits[1]}: --draw {hits[1]} repeats it" in capsys.readouterr().out


def test_draws_without_a_number_differ(forged: Path, capsys: Capture) -> None:
    """Two equal ones of 2**32 have a probability of 2e-10."""
    for _ in range(2):
        assert check(forged, "--sample", "0") == 0
    first, second = re.findall(r"drawn by (\d+)", capsys.readouterr().out)
    assert first != second


def test_run_that_is_said_to_have_failed_and_can_be_made_is_found(forged: Path, capsys: Capture) -> None:
    """Otherwise who does not like a run lets it fail."""

    def fail(row: dict[str, Any]) -> dict[str, Any]:
        made = {"status": "failed", "error": "no luck", "files": {}, "metrics": {}}
        return row | made if row["run"] == "1-slacp-s2" else row

    change_rows(forged, fail)
    shutil.rmtree(forged / "runs" / "1-slacp-s2")
    tell_anew(forged)
    assert check(forged, "--all") == 2
    err = capsys.readouterr().err
    assert "1 difference, the first: runs/1-slacp-s2: is said to have failed (no luck), and can be made" in err


def test_run_that_is_missing_is_found(forged: Path, capsys: Capture) -> None:
    shutil.rmtree(forged / "runs" / "1-slacp-s2")
    tell_anew(forged)
    assert check(forged, "--sample", "0") == 2
    assert "the first: index.jsonl: 1 runs of the plan are missing" in capsys.readouterr().err


def test_record_with_a_new_sum_differs_from_that_of_the_index(forged: Path, capsys: Capture) -> None:
    """Otherwise a forger spares himself the index."""
    record = forged / "runs" / "1-slacp-s2" / "flow.parquet"
    record.write_bytes(record.read_bytes() + b"\0")
    assert re.match(r"runs/1-slacp-s2/flow\.parquet: differs at byte \d+", first(forged, capsys))


@pytest.mark.parametrize("text", ["[" * 100_000, "5", "{}", '{"runs": [1]}', '{"runs": {"run": 1}}'])
def test_results_that_are_none_are_found(text: str, forged: Path, capsys: Capture) -> None:
    (forged / "results.json").write_text(text)
    sum_again(forged)
    assert first(forged, capsys) == "results.json: cannot be read"


def test_run_that_is_a_file_is_found(forged: Path, capsys: Capture) -> None:
    run = next(path for path in (forged / "runs").iterdir())
    shutil.rmtree(run)
    run.write_text("a file")
    sum_again(forged)
    assert check(forged, "--sample", "8") == 2
    assert f"runs/{run.name}" in capsys.readouterr().out
