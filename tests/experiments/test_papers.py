"""Papers made again: choosing cells, computing them on many processes, comparing them; and the command line."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from testbed.campaigns.processes import WorkerError, call_all
from testbed.cli import app
from testbed.errors import FadelabError
from testbed.papers import outputs, report
from testbed.papers import paper as papers
from testbed.papers.computing import reproduce
from testbed.papers.question import Question
from testbed.papers.results import (
    NO_FIGURE,
    Cell,
    CellResult,
    PaperError,
    Quartiles,
    Results,
    Sample,
    quantile,
)
from testbed.papers.samples import SampleStore
from testbed.papers.statements import judge, near
from testbed.sources import sources
from tests.experiments.made_up import PAPER, Die
from tests.harness.campaigns import edited_sources
from tests.harness.live_runs import Capture, done, refused
from tests.harness.waiting import PATIENCE_S, wait_for

ROOT = Path(__file__).parents[2]


def computed(workers: int = 1, first_seed: int = 1) -> Results:
    return reproduce(Question(PAPER, PAPER.cells, first_seed=first_seed), workers=workers)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> papers.Paper:
    """The command line finds one paper."""
    monkeypatch.setattr(papers, "find", lambda name: PAPER)
    return PAPER


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_workers() -> None:
    assert computed(workers=1) == computed(workers=2) == computed(workers=3)
    assert computed(first_seed=1) != computed(first_seed=2)


def test_equal_jobs_run_once_and_progress_ends_at_all() -> None:
    told: list[tuple[int, int]] = []
    results = reproduce(Question(PAPER, PAPER.cells), done=lambda runs, of: told.append((runs, of)))
    assert told[-1] == (6 + 6 + 5 + 5, 6 + 6 + 5 + 5)
    assert [runs for runs, _ in told] == sorted({runs for runs, _ in told})
    assert results["table1/again"].samples == results["table1/a"].samples
    assert results["table1/again"].ratio == pytest.approx(results["table1/a"].ours.median / 20)


def test_unfinished_replications_count_as_infinite() -> None:
    results = computed()
    half, never = results["table2/half"], results["table2/never"]
    assert 0 < half.unfinished < 5
    assert never.unfinished == 5
    assert math.isinf(never.ours.median)
    assert never.ratio is None
    assert half.means() == {"seed": 3}
    # of the replications that have it
    result = CellResult(half.cell, 1, (Sample(1.0, {"a": 1, "b": 4}), Sample(2.0, {"a": 2})))
    assert result.means() == {"a": 1.5, "b": 4}
    assert asdict(result.ours) == {"p25": 1.25, "median": 1.5, "p75": 1.75}


@pytest.mark.slow
def test_error_of_worker_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        call_all(_inverse, [1, 2, 0, 4], workers=2)
    assert "_inverse" in str(raised.value.__cause__)
    assert call_all(_inverse, [1, 2, 4], workers=2) == [1, 0.5, 0.25]


def _inverse(number: int) -> float:
    return 1 / number


@pytest.mark.slow
def test_killed_worker_is_reported() -> None:
    with pytest.raises(WorkerError, match="was killed"):
        call_all(Die(), [1, 2, 3], workers=2)


@pytest.mark.slow
def test_ctrl_c_ends_the_workers(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from testbed.cli import app; from testbed.papers import paper;"
        "from dataclasses import replace; from tests.experiments.made_up import PAPER, Wait;"
        "waiting = replace(PAPER, job=lambda case, settings: Wait(Path(sys.argv[1])));"
        "paper.find = lambda name: waiting;"
        "sys.exit(app.main(['papers', 'made-up', '--workers', '2', '--json']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
        # as a terminal does: to the whole group
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert (process.returncode, out, err.strip()) == (app.INTERRUPTED, "", "fadelab: interrupted")
    assert not [worker for worker in tmp_path.iterdir() if Path("/proc", worker.name).exists()]


def test_interrupted_computation_goes_on_with_the_same_result(tmp_path: Path) -> None:
    asked = Question(PAPER, PAPER.cells)

    class Interrupted(Exception):  # noqa: N818
        pass

    def interrupt(runs: int, of: int) -> None:
        if runs >= 8:
            raise Interrupted

    with SampleStore(tmp_path, asked, resume=True) as store, pytest.raises(Interrupted):
        reproduce(asked, store=store, done=interrupt)
    told: list[int] = []
    with SampleStore(tmp_path, asked, resume=True) as store:
        again = reproduce(asked, store=store, done=lambda runs, of: told.append(runs))
        store.remove()
    assert again == computed()
    assert told[0] > 8
    assert list(tmp_path.iterdir()) == []


def test_samples_count_for_the_same_question_only(tmp_path: Path) -> None:
    asked = Question(PAPER, PAPER.cells)
    with SampleStore(tmp_path, asked, resume=False) as store:
        store.add(0, 1, Sample(math.inf, {"seed": 1}), 0.5)
    with SampleStore(tmp_path, asked, resume=True) as store:
        assert store.get(0, 1) == Sample(math.inf, {"seed": 1})
        assert store.get(0, 2) is None
        assert store.processor_s == 0.5
        with pytest.raises(PaperError, match="another command computes there: wait for its end"):
            SampleStore(tmp_path, asked, resume=True)
    with pytest.raises(PaperError, match="interrupted command: go on with --resume, or remove it"):
        SampleStore(tmp_path, asked, resume=False)
    with pytest.raises(PaperError, match="is of a command with another first_seed"):
        SampleStore(tmp_path, Question(PAPER, PAPER.cells, first_seed=2), resume=True)
    with pytest.raises(PaperError, match="is of a command with another cells"):
        SampleStore(tmp_path, Question(PAPER, PAPER.cells[:2]), resume=True)


def test_samples_count_for_the_same_sources_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Question(PAPER, PAPER.cells)
    with SampleStore(tmp_path, asked, resume=False) as store:
        store.add(0, 1, Sample(1.0, {}), 0.5)
    assert asked.digest()["sources"] == sources().digest
    edited_sources(monkeypatch)
    with pytest.raises(PaperError, match="is of a command with other sources of fadelab: remove it to begin anew"):
        SampleStore(tmp_path, asked, resume=True)


def test_cell_without_a_figure_is_compared_with_nothing(tmp_path: Path) -> None:
    paper = replace(PAPER, read=lambda: (Cell("table1/a", NO_FIGURE, 6, case="table1/a"),))
    results = reproduce(Question(paper, paper.cells))
    [found] = results.cells
    assert found.cell.agrees(found.ours.median)
    assert found.ratio is None
    assert paper.findings(results) == []
    [cell] = outputs.document(results, paper)["cells"]
    assert cell["paper"] == {"p25": None, "median": None, "p75": None}
    assert cell["paper_not_finished"] is False
    headings = [str(column.header) for column in outputs.table(results, paper).columns]
    assert ("ours" in headings, "paper" in headings, "ratio" in headings) == (True, False, False)
    outputs.write(results, paper, tmp_path)
    [row] = csv.DictReader((tmp_path / "cells.csv").read_text().splitlines())
    assert (row["paper_median_s"], row["ratio"]) == ("", "")
    assert " / " not in report.entry(found)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.5),
        ([1.0, 2.0, 3.0, 4.0], 0.25, 1.75),
        ([5.0], 0.75, 5.0),
        ([1.0, 2.0, math.inf], 0.5, 2.0),
        ([1.0, 2.0, math.inf], 0.75, math.inf),
        ([1.0, math.inf, math.inf], 0.5, math.inf),
        ([math.inf, math.inf], 0.25, math.inf),
    ],
)
def test_quantiles(values: list[float], share: float, expected: float) -> None:
    assert quantile(values, share) == expected


def test_agreement_counts_both_sides_and_never() -> None:
    never = math.inf
    ours = (75.0, 125.0, 74.9, 125.1, never, never, 100.0)
    theirs = (100.0, 100.0, 100.0, 100.0, never, 100.0, never)
    medians = dict(zip("abcdefg", zip(ours, theirs, strict=True), strict=True))
    results = [
        CellResult(Cell(name, Quartiles(None, theirs, None), 1, case=name), 1, (Sample(ours),))
        for name, (ours, theirs) in medians.items()
    ]
    statement = near("name", "table 1", "words", [result.cell for result in results])
    finding = judge(statement, Results("made-up", tuple(results)))
    assert finding is not None
    assert (finding.hits, len(finding.cases)) == (3, 7)
    assert finding.misses == ("c (0/1)", "d (0/1)", "f (0/1)", "g (0/1)")
    assert judge(statement, Results("made-up", ())) is None


def test_json_is_one_document(made_up: papers.Paper, capsys: Capture) -> None:
    out = done(capsys, "papers", "made-up", "--json", "--only", "table2/*", "--seed", "3", "--workers", "1")
    assert out.count("\n") == 1
    document = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert document.keys() == {"paper", "title", "tier", "unit", "settings", "cells", "summary"}
    half, never = document["cells"]
    assert half.keys() == {
        *("cell", "tier", "unit", "ours", "paper", "ratio", "replications", "seeds", "not_finished"),
        *("paper_not_finished", "means"),
    }
    assert (half["cell"], half["replications"], half["seeds"]) == ("table2/half", 5, [3, 7])
    assert half["paper"] == {"p25": None, "median": 40.0, "p75": None}
    assert half["not_finished"] == sum(
        not math.isfinite(sample.value) for sample in computed(first_seed=3)["table2/half"].samples
    )
    assert never["ours"] == {"p25": None, "median": None, "p75": None}
    assert (never["ratio"], never["not_finished"], never["paper_not_finished"]) == (None, 5, True)
    assert document["summary"]["near"]["of"] == 2


def test_the_table_has_ours_beside_the_papers(made_up: papers.Paper, capsys: Capture) -> None:
    out = done(capsys, "papers", "made-up", "--workers", "1")
    results = computed()
    [row] = [line for line in out.splitlines() if line.startswith("table1/b")]
    assert f"{results['table1/b'].ours.median:.1f}" in row
    assert "30.0" in row
    assert "never" in next(line for line in out.splitlines() if line.startswith("table2/never"))
    assert f"medians near the paper's: {made_up.findings(results)[0].hits} of 5, " in out


def test_out_keeps_every_replication(made_up: papers.Paper, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "new" / "folder"
    printed = done(capsys, "papers", "made-up", "--out", folder, "--json", "--workers", "1")
    assert {path.name for path in folder.iterdir()} == {
        *("results.json", "cells.csv", "replications.csv", "report.md", "manifest.json")
    }
    assert json.loads((folder / "results.json").read_text()) == json.loads(printed)
    with (folder / "replications.csv").open() as file:
        rows = list(csv.DictReader(file))
    values = [sample.value for result in computed().cells for sample in result.samples]
    assert [float(row["value_s"]) for row in rows] == values
    with (folder / "cells.csv").open() as file:
        assert [row["cell"] for row in csv.DictReader(file)] == [cell.name for cell in made_up.cells]


def test_list_runs_nothing(made_up: papers.Paper, capsys: Capture) -> None:
    listed = done(capsys, "papers", "made-up", "--list", "--only", "table1/*").split()
    assert listed == ["table1/a", "table1/b", "table1/again"]


def test_papers_are_found_by_their_folders(capsys: Capture) -> None:
    assert "slacp" in papers.PAPERS
    assert [line.split(":")[0] for line in done(capsys, "papers").splitlines()] == list(papers.PAPERS)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nothing",), "no paper 'nothing': choose from bbr_cases, coherence, comparison"),
        (
            ("slacp", "--only", "table2/*", "--only", "table9/*"),
            "no cell matches 'table9/*': there are table2/cra/none/ref/1x1MB/none to ",
        ),
        (("slacp", "--set", "mtu"), "--set mtu: must be key=value"),
        (("slacp", "--set", "link.scheem=1"), "unknown key (did you mean scheme?)"),
        (("slacp", "--set", "link.scheme=slacp"), "--set makes link.scheme of table2/cra/none/ref/1x1MB/none another"),
        (("slacp", "--set", "channel.up.errors=none", "--only", "table4/low/*"), "--set makes channel.up.errors of"),
        (("slacp", "--set", "tier=emulated"), "--set makes tier of"),
        (("slacp", "--set", "seed=9"), "--seed seeds"),
        (("slacp", "--replications", "0"), "'--replications'"),
        (("slacp", "--quick", "--replications", "2"), "--quick chooses cells"),
        (("slacp", "--resume"), "--resume needs --out"),
        (("slacp", "--all"), "--all computes whole papers: give it with --out, and no PAPER"),
    ],
)
def test_wrong_papers_arguments_are_one_line(args: tuple[str, ...], message: str, capsys: Capture) -> None:
    assert message in refused(capsys, "papers", *args)


def test_folder_and_settings_are_refused_before_anything_runs(
    made_up: papers.Paper, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").touch()
    below = refused(capsys, "papers", "made-up", "--out", tmp_path / "file" / "below")
    assert "cannot be made: Not a directory" in below
    setting = ("--set", "mtu=1500")
    assert "--set mtu=1500: not here" in refused(capsys, "papers", "made-up", *setting, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(FadelabError, match="not here"):
        reproduce(Question(PAPER, PAPER.cells, settings=["mtu=1500"]))
