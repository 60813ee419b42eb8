"""Whole papers into folders, and the pages that are made of them. Seeds 1 to 6 of a made-up paper."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.cli import app
from testbed.errors import FadelabError
from testbed.papers import paper as papers
from testbed.papers import publishing
from testbed.papers.computing import reproduce
from testbed.papers.folder import compute_into, read_manifest, read_results
from testbed.papers.question import Question
from testbed.papers.runs import Parameter
from tests.experiments.made_up import PAPER

CHOICES = Parameter("mtu", 1400, "paper", ""), Parameter("limit_s", 60, "ours", "long")
BRIEF = replace(
    PAPER,
    brief=("table1/*",),
    notes=("A note.",),
    variants={"again": ()},
    parameters={"all": CHOICES[:1], "a": CHOICES[1:]},
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of `papers --all` with one paper."""
    for module in (papers, publishing):
        monkeypatch.setattr(module, "PAPERS", {"made-up": BRIEF})
    for name in ("made-up", "made-up-again"):
        compute_into(tmp_path / name, Question(BRIEF, BRIEF.cells))
    return tmp_path


def test_results_read_back_are_those_computed(folder: Path) -> None:
    found = read_results(folder / "made-up", BRIEF)
    assert found == reproduce(Question(BRIEF, BRIEF.cells))
    manifest = read_manifest(folder / "made-up")
    assert manifest is not None
    assert manifest.question["first_seed"] == 1
    assert manifest.processor_s >= 0
    assert not (folder / "made-up" / "samples.jsonl").exists()


def test_pages_have_origin_findings_ratios_and_tables(folder: Path) -> None:
    written = publishing.publish(folder, folder / "docs")
    assert {path.relative_to(folder / "docs").as_posix() for path in written} == {
        "results.md",
        "papers/made-up-results.md",
    }
    text = (folder / "docs" / "results.md").read_text()
    manifest = read_manifest(folder / "made-up")
    assert manifest is not None
    command = "./fadelab papers --all --seed 1 --out DIR"
    for word in (command, manifest.question["fadelab"], manifest.processor, "1 to 6", "[made-up](#made-up)"):
        assert word in text
    tallied = next(line for line in text.splitlines() if line.startswith("| medians near the paper's"))
    assert "of 5" in tallied
    both = [line for line in text.splitlines() if line.startswith("| medians near the paper's")][1]
    [ours, again] = both.split("|")[2:4]
    assert ours == again
    assert "of 5, " in ours
    for parameters in ("1 of 2 the paper's", "`again`"):
        assert f"| made-up | {parameters} | 1 | 0 | 0 | 1 | 0 |" in text
    assert "| `table1` |" in text
    # medians alone there, with quartiles behind
    assert " to 1" not in next(line for line in text.splitlines() if line.startswith("| `table1/a`"))
    details = (folder / "docs" / "papers" / "made-up-results.md").read_text()
    assert "| `table2/never` |" in details
    assert " (9." in next(line for line in details.splitlines() if line.startswith("| `table1/a`"))


def test_unfinished_folder_and_results_of_other_cells_are_refused(folder: Path) -> None:
    with pytest.raises(FadelabError, match="not of the present cells of made-up: 'table1/a'"):
        read_results(folder / "made-up", replace(BRIEF, read=lambda: PAPER.cells[1:]))
    (folder / "made-up" / "manifest.json").unlink()
    with pytest.raises(FadelabError, match=r"is not complete: `papers --all --out .* --resume` goes on"):
        publishing.publish(folder, folder / "docs")


def test_all_papers_are_resumed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from testbed.cli import papers as command

    monkeypatch.setattr(command, "ensure_compiled", lambda: None)
    out = ["--out", str(folder), "--workers", "1", "--seed", "1"]
    before = json.loads((folder / "made-up" / "manifest.json").read_text())
    assert app.main(["papers", "--all", "--resume", *out]) == 0
    assert "made-up: complete since" in capsys.readouterr().out
    assert json.loads((folder / "made-up" / "manifest.json").read_text()) == before
    assert app.main(["papers", "--all", "--resume", *out, "--replications", "2"]) == 0
    assert json.loads((folder / "made-up" / "manifest.json").read_text()) != before
    assert app.main(["report", "papers", str(folder), "--out", str(folder / "docs")]) == 0
    assert str(folder / "docs" / "results.md") in capsys.readouterr().out
