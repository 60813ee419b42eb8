"""Statements of papers, the bounds derived for them, and gates on blocks of seeds. Seeds are stated where runs are."""

import json
from dataclasses import replace
from math import comb
from operator import lt
from typing import Any

import pytest

from testbed.cli import app
from testbed.papers import gates as gating
from testbed.papers import paper as papers
from testbed.papers.gates import ALPHA, BLOCK, Gate, GateError, failures_within_bound, fresh_blocks, gates, level
from testbed.papers.paper import PAPERS, Paper, Quick
from testbed.papers.results import NO_FIGURE, Cell, CellResult, PaperError, Quartiles, Results, Sample
from testbed.papers.statements import (
    LEVEL,
    Figure,
    Finding,
    Judged,
    Statement,
    Verdict,
    computed,
    judge,
    most_misses,
    near,
)
from tests.experiments.made_up import PAPER
from tests.harness.live_runs import Capture, done, refused


def at_most(hits: int, runs: int) -> float:
    """The probability of so many heads or fewer in so many tosses."""
    return sum(comb(runs, k) for k in range(hits + 1)) / 2**runs


@pytest.mark.parametrize("runs", [1, 3, 5, 8, 16, 20, 32, 101])
@pytest.mark.parametrize("level", [0.05, 0.01, 1e-3, 1e-5])
def test_bound_is_the_largest_that_keeps_the_level(runs: int, level: float) -> None:
    bound = most_misses(runs, level)
    assert bound == -1 or at_most(bound, runs) <= level
    assert at_most(bound + 1, runs) > level


def verdict(*hits: int, level: float = 1e-3) -> Verdict:
    """Of 20 replications; at most 2 of 20 have a probability of 2.0e-4, at most 3 of 1.3e-3."""
    return Judged("a", hits, 20, "", level).verdict


@pytest.mark.parametrize("name", ["coherence", "comparison", "lt_tcp", "slacp", "slowlink"])
def test_default_replications_decide_each_case_though_one_may_disagree(name: str) -> None:
    paper = PAPERS[name]
    cells = {cell.case: cell for cell in paper.cells}
    for statement in paper.statements:
        cases = computed(statement, cells)
        least = min(cells[part].replications for case in cases for part in case if part in cells)
        assert most_misses(least, LEVEL / len(cases)) >= 1, statement.name
        assert most_misses(least, LEVEL / len(cases) / len(statement.conditions)) >= 0, statement.name


def test_verdicts_mirror_one_another() -> None:
    assert [verdict(hits) for hits in (0, 2)] == [Verdict.CONTRADICTED] * 2
    assert [verdict(hits) for hits in (3, 10, 17)] == [Verdict.UNDECIDED] * 3
    assert [verdict(hits) for hits in (18, 20)] == [Verdict.CONFIRMED] * 2


def test_one_condition_contradicts_at_its_share_and_all_confirm() -> None:
    # 2.0e-4 is below a half of 1e-3, 2.0e-5 below a half of 3e-4, 2.0e-4 is not
    assert verdict(2, 20) is Verdict.CONTRADICTED
    assert verdict(2, 20, level=3e-4) is Verdict.UNDECIDED
    assert verdict(1, 20, level=3e-4) is Verdict.CONTRADICTED
    assert verdict(20, 17) is Verdict.UNDECIDED
    assert verdict(20, 18) is Verdict.CONFIRMED


def result(name: str, *values: float, paper: Quartiles = NO_FIGURE, **counts: float) -> CellResult:
    samples = tuple(Sample(value, counts) for value in values)
    return CellResult(Cell(name, paper, len(values), case=name), 1, samples)


def said(*cases: tuple[Any, ...], holds: Any = lt, **more: Any) -> Statement:
    return Statement(name="said", place="section 1", words="words", cases=cases, holds=holds, **more)


def found(statement: Statement, *results: CellResult) -> Finding:
    finding = judge(statement, Results("made-up", results))
    assert finding is not None
    return finding


def test_cells_are_paired_by_seed() -> None:
    # medians 5 and 6, and yet one of three seeds agrees
    finding = found(said(("a", "b")), result("a", 1, 5, 9), result("b", 8, 2, 6, 7))
    [case] = finding.cases
    assert (case.name, case.hits, case.of) == ("a, b", (1,), 3)
    assert finding.misses == ("a, b (1/3)",)


def test_statement_counts_its_counter_and_figures() -> None:
    losses = said(("a", Figure(2)), ("b", Figure(2)), counter="losses")
    finding = found(losses, result("a", 9, losses=1), result("b", 1, losses=3))
    assert [case.hits for case in finding.cases] == [(1,), (0,)]
    with pytest.raises(PaperError, match="statement said: no run counts losses"):
        found(losses, result("a", 9))


def test_band_of_a_figure_is_two_conditions() -> None:
    known = result("a", 74.9, 75, 100, 125, 125.1, paper=Quartiles(None, 100.0, None))
    [case] = found(near("near", "table 1", "words", [known.cell, result("b").cell]), known).cases
    assert case.hits == (4, 4)


def test_level_is_divided_among_cases() -> None:
    cells = [result(name, *range(8)) for name in "abc"]
    finding = found(said(("a", "b"), ("a", "c"), ("x", "y")), *cells)
    assert [case.level for case in finding.cases] == [LEVEL / 2] * 2


def test_statement_is_contradicted_by_a_case_and_confirmed_by_all() -> None:
    low, high, mixed = result("low", *[1] * 16), result("high", *[2] * 16), result("mixed", *[0, 3] * 8)
    assert found(said(("low", "high")), low, high).verdict is Verdict.CONFIRMED
    assert found(said(("low", "high"), ("low", "mixed")), low, high, mixed).verdict is Verdict.UNDECIDED
    both = found(said(("low", "high"), ("high", "low")), low, high)
    assert both.verdict is Verdict.CONTRADICTED
    assert [both.count(verdict) for verdict in Verdict] == [1, 0, 1]


# -- gates ---------------------------------------------------------------------------------------------------

#: of the made-up cells: 9 to 11 and 19 to 21
LOW, HIGH = "table1/a", "table1/b"


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Paper:
    """The command line finds one paper, with these statements, and compiles nothing."""
    from testbed.cli import papers as command

    made = replace(PAPER, state=lambda cells: request.param)
    monkeypatch.setattr(command, "ensure_compiled", lambda: None)
    monkeypatch.setattr(papers, "find", lambda name: made)
    return made


TRUE = [said((LOW, HIGH))]
FALSE = [replace(TRUE[0], name="true"), said((HIGH, LOW))]
KNOWN = [replace(FALSE[1], disagrees={"table1/b, *": "it is drawn otherwise"}), replace(TRUE[0], name="true")]
SURPRISE = [replace(TRUE[0], disagrees={"*": "nobody looked"}), replace(TRUE[0], name="true")]


@pytest.mark.parametrize("paper", [TRUE, KNOWN], indirect=True)
def test_quick_check_passes_what_stands_or_is_known(paper: Paper, capsys: Capture) -> None:
    out = done(capsys, "papers", "made-up", "--quick", "--workers", "1")
    assert f"made-up: seeds from {BLOCK} on" in out
    assert "of 1 cases 1 confirmed, 0 contradicted: holds" in out
    assert ("words: known not to be met" in out) is (paper.statements[0].name == "said" and len(paper.statements) > 1)


@pytest.mark.parametrize("paper", [FALSE], indirect=True)
def test_quick_check_fails_on_a_contradicted_statement(paper: Paper, capsys: Capture) -> None:
    assert app.main(["papers", "made-up", "--quick", "--workers", "1"]) == 2
    out, err = capsys.readouterr()
    assert "of 1 cases 0 confirmed, 1 contradicted: FAILS" in out
    assert "1 of 2 statements are contradicted: made-up: said: table1/b, table1/a holds in 0 of 16 repl" in err


@pytest.mark.parametrize("paper", [SURPRISE], indirect=True)
def test_quick_check_tells_of_a_statement_that_is_met_after_all(paper: Paper, capsys: Capture) -> None:
    assert "table1/a, table1/b is met, although: nobody looked" in done(
        capsys, "papers", "made-up", "--quick", "--workers", "1"
    )


@pytest.mark.parametrize("paper", [KNOWN], indirect=True)
def test_gates_as_json(paper: Paper, capsys: Capture) -> None:
    first, _ = json.loads(done(capsys, "papers", "made-up", "--quick", "--json", "--seed", "3", "--workers", "1"))
    assert first == {
        "paper": "made-up",
        "name": "said",
        "place": "section 1",
        "label": "words",
        "open": True,
        "cases": [
            {
                "case": "table1/b, table1/a",
                "hits": 0,
                "of": 16,
                "verdict": "contradicted",
                "why": "it is drawn otherwise",
            }
        ],
    }


@pytest.mark.parametrize("paper", [TRUE, FALSE], indirect=True)
def test_fresh_blocks_are_drawn_and_repeat(paper: Paper, capsys: Capture) -> None:
    args = ("papers", "made-up", "--quick", "--workers", "1", "--blocks", "3", "--draw", "5")
    if paper.statements == tuple(FALSE):
        assert app.main(list(args)) == 2
        assert "3 of 3 blocks fail: too many for true statements (--draw 5 repeats" in capsys.readouterr().err
        return
    out = done(capsys, *args)
    assert ", ".join(map(str, fresh_blocks(5, 3))) in out
    assert f"holds in 3 of 3, promised at least {1 - ALPHA / len(PAPERS):.3%}" in out
    assert "0 of 3 blocks fail" in out
    assert done(capsys, *args) == out != done(capsys, *args[:-1], "6")
    assert fresh_blocks(5, 3) == fresh_blocks(5, 4)[:3]
    assert min(fresh_blocks(5, 1000)) >= 10**6


def test_failing_blocks_have_a_bound_of_their_own() -> None:
    # one of three fails with 3 %, two of three with 0.03 %, one of one with 1 %
    assert [failures_within_bound(*of) for of in ((0, 3), (1, 3), (2, 3), (1, 1))] == [True, True, False, False]


def test_level_shares_among_demanded_cases_alone() -> None:
    two = [said((LOW, HIGH), (HIGH, LOW), disagrees={"table1/b,*": "known"}), near("n", "p", "w", PAPER.cells[:1])]
    assert level(replace(PAPER, state=lambda cells: two)) == pytest.approx(ALPHA / len(PAPERS) / 2)
    quick = Quick(replications=16, statements=("sa*",))
    assert level(replace(PAPER, state=lambda cells: two, quick=quick)) == pytest.approx(ALPHA / len(PAPERS))


def test_gate_that_cannot_fail_is_refused() -> None:
    few = replace(PAPER, state=lambda cells: TRUE, quick=Quick(replications=8))
    with pytest.raises(GateError, match="made-up: gate said: cannot fail with 8 runs"):
        list(gates(few, gating.quick_results(few)))


def test_gate_knows_broken_and_surprising_cases() -> None:
    case = Judged("a", (0,), 16, "", 1e-3)
    gate = Gate("made-up", Finding(TRUE[0], (case, replace(case, why="known"), replace(case, hits=(16,), why="known"))))
    assert gate.demanded == gate.broken == [case]
    assert [each.hits for each in gate.surprises] == [(16,)]
    assert not gate.open


def test_blocks_need_quick(capsys: Capture) -> None:
    assert "--blocks and --draw are of --quick" in refused(capsys, "papers", "slacp", "--blocks", "2")
    seeds = refused(capsys, "papers", "--quick", "--blocks", "2", "--seed", "1")
    assert "--blocks draws its seeds" in seeds
    assert app.main(["papers", "--quick", "--blocks", "0"]) != 0
