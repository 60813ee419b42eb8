"""What every paper keeps to; a new one is covered as soon as its file is there."""

import math
import pickle
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from random import Random

import pytest

from testbed.errors import FadelabError
from testbed.papers import report
from testbed.papers.computing import reproduce
from testbed.papers.gates import ALPHA, gates, level
from testbed.papers.paper import PAPERS, Paper, chosen
from testbed.papers.question import Question
from testbed.papers.results import Cell, CellResult, Results, Sample
from testbed.papers.statements import Figure, Verdict

pytestmark = pytest.mark.slow

PAGES = Path(__file__).parents[2] / "docs" / "papers"

every_paper = pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
#: papers of which figures are known; the others show plots without a scale, and are held to their statements alone
COMPARED = {name: paper for name, paper in PAPERS.items() if any(cell.paper.known for cell in paper.cells)}
compared_papers = pytest.mark.parametrize("paper", COMPARED.values(), ids=COMPARED)
#: the place of a statement that is no sentence of the paper
OURS = "ours, not the paper's"
#: made-up figure of a cell whose own is not known
MADE_UP = 10.0
#: made-up counters of a run: all that statements compare
COUNTS = {
    "frames": 3.0,
    **{statement.counter: 3.0 for paper in PAPERS.values() for statement in paper.statements if statement.counter},
}


def made_up(paper: Paper, factor: float = 1.0) -> Results:
    """All cells, with the paper's figures times a factor; a figure that is not known is made up."""

    def figure(cell: Cell) -> float:
        return factor * (cell.paper.median if cell.paper.known else MADE_UP)

    return Results(
        paper.name,
        tuple(CellResult(cell, 1, (Sample(figure(cell), COUNTS),)) for cell in paper.cells),
    )


@every_paper
def test_a_paper_is_found_by_the_name_of_its_module(paper: Paper) -> None:
    assert import_module(f"experiments.{paper.name}").PAPER is paper
    assert paper.title
    assert paper.heading


@every_paper
def test_cells_have_names_and_cases_of_their_own_and_a_figure(paper: Paper) -> None:
    assert len({cell.name for cell in paper.cells}) == len({cell.case for cell in paper.cells}) == len(paper.cells) > 0
    for cell in paper.cells:
        assert cell.name.count("/") >= 1
        assert cell.replications > 0
        if cell.paper.known:
            assert cell.paper.median > 0
            assert (cell.paper.p25 or 0) <= cell.paper.median <= (cell.paper.p75 or math.inf)
        assert cell.unit or paper.unit


@every_paper
def test_every_cell_has_a_job_that_goes_to_other_processes(paper: Paper) -> None:
    for cell in paper.cells:
        job = paper.job(cell.case, ())
        assert job == paper.job(cell.case, ()) == pickle.loads(pickle.dumps(job))


@every_paper
@pytest.mark.parametrize("setting", ["seed=9", "tier=emulated", "tcp=bsd-eln", "no.such.key=1", "mtu"])
def test_settings_that_make_a_cell_another_one_are_refused_in_one_line(paper: Paper, setting: str) -> None:
    with pytest.raises(FadelabError) as error:
        paper.job(paper.cells[0].case, [setting])
    assert "\n" not in str(error.value)


@every_paper
def test_replication_n_has_seed_n(paper: Paper) -> None:
    cell = min(paper.cells, key=lambda cell: cell.paper.median)
    job = paper.job(cell.case, ())
    five, four = (
        reproduce(Question(paper, [cell], replications=n, first_seed=s)).cells[0].samples for n, s in ((5, 3), (4, 4))
    )
    assert five[1:] == four
    assert five[0] == cell.sample(job(3)) != cell.sample(job(4))


@compared_papers
def test_the_papers_own_figures_agree_with_themselves(paper: Paper) -> None:
    results = made_up(paper)
    known = replace(results, cells=tuple(result for result in results.cells if result.cell.paper.known))
    # the paper gives no counters of its runs
    found = [each for each in paper.findings(known) if not each.statement.counter and each.statement.place != OURS]
    assert found
    for finding in found:
        assert (finding.hits, finding.misses) == (len(finding.cases), ()), finding.statement.name
    for headline in paper.headlines(known):
        assert headline.ours == pytest.approx(headline.paper)


@every_paper
def test_each_case_of_a_statement_can_hold_and_fail(paper: Paper) -> None:
    """Also of papers whose plots have no scale: a condition that is always true is no statement."""
    rng = Random(1)
    drawn = [0.0, math.inf, *(10 ** rng.uniform(-4, 7) for _ in range(40))]
    for statement in paper.statements:
        for case in statement.cases:
            figures = [part.value for part in case if isinstance(part, Figure)]
            # near the figures, too
            near = [figure * factor for figure in figures for factor in (0.999, 1, 1.001)]
            outcomes = set[bool]()
            for _ in range(2000):
                values = [part.value if isinstance(part, Figure) else rng.choice(drawn + near) for part in case]
                outcomes.add(all(condition(*values) for condition in statement.conditions))
                if len(outcomes) == 2:
                    break
            assert outcomes == {True, False}, (statement.name, case)


@every_paper
def test_statements_have_names_and_places_and_are_of_cells(paper: Paper) -> None:
    whole = made_up(paper)
    assert len({statement.name for statement in paper.statements}) == len(paper.statements) > 0
    assert len(paper.findings(whole)) == len(paper.statements)
    for finding in paper.findings(whole):
        statement = finding.statement
        assert statement.place
        assert statement.words
        assert len({case.name for case in finding.cases}) == len(statement.cases)
        # each pattern of a disagreement is of some case, and has a reason
        for pattern, why in statement.disagrees.items():
            assert any(fnmatchcase(case.name, pattern) for case in finding.cases), pattern
            assert why


@compared_papers
def test_findings_name_the_cells_that_are_off(paper: Paper) -> None:
    off = next(cell for cell in paper.cells if cell.paper.known and math.isfinite(cell.paper.median))
    results = made_up(paper)
    wrong = replace(
        results, cells=tuple(r if r.cell != off else replace(r, samples=(Sample(0.1, COUNTS),)) for r in results.cells)
    )
    assert [f"{off.name} (0/1)"] in [list(finding.misses) for finding in paper.findings(wrong)]


@every_paper
def test_findings_count_only_cells_that_were_computed(paper: Paper) -> None:
    assert paper.findings(Results(paper.name, ())) == []
    whole = made_up(paper)
    part = replace(whole, cells=whole.cells[:1])
    names = {finding.statement.name for finding in paper.findings(whole)}
    assert {finding.statement.name for finding in paper.findings(part)} <= names
    assert paper.findings(part) != paper.findings(whole)
    # a finding on a cell alone compares it with the paper's figure
    if paper.name in COMPARED:
        assert sum(len(finding.cases) for finding in paper.findings(part)) >= 1


@every_paper
def test_each_gate_can_fail(paper: Paper) -> None:
    cells = chosen(paper, paper.quick.only)
    for cell in cells:
        paper.job(cell.case, paper.quick.settings)
    runs = paper.quick.replications
    same = (Sample(MADE_UP, COUNTS),) * runs
    found = list(gates(paper, Results(paper.name, tuple(CellResult(cell, 1, same) for cell in cells))))
    assert sum(len(gate.demanded) for gate in found) * level(paper) == pytest.approx(ALPHA / len(PAPERS))
    for case in (case for gate in found for case in gate.demanded):
        never, always = ((hits,) * len(case.hits) for hits in (0, runs))
        assert replace(case, hits=never).verdict is Verdict.CONTRADICTED
        assert replace(case, hits=always).verdict is Verdict.CONFIRMED


@every_paper
def test_the_page_of_all_papers_shows_cells_and_plots_that_exist(paper: Paper) -> None:
    assert chosen(paper, paper.brief)
    for plot in paper.main_plots:
        assert (PAGES / f"{paper.name.replace('_', '-')}-{plot}").exists()


@every_paper
def test_the_report_has_every_figure_and_a_part_has_a_part(paper: Paper) -> None:
    whole, half = (report.markdown(paper, made_up(paper, factor)) for factor in (1.0, 0.5))
    assert "**" not in whole
    assert (half.count("**") > 0) == any(cell.paper.known for cell in paper.cells)
    headings = [line for line in whole.splitlines() if line.startswith("## ")]
    part = replace(made_up(paper), cells=made_up(paper).cells[:1])
    assert len([line for line in report.markdown(paper, part).splitlines() if line.startswith("## ")]) == 2
    assert headings[-1] == "## Parameters"
    for line in (line for line in whole.splitlines() if line.startswith("|")):
        assert line.endswith("|")


@every_paper
def test_the_document_has_its_parameters_and_places(paper: Paper) -> None:
    text = (PAGES / f"{paper.name.replace('_', '-')}.md").read_text()
    assert "\n".join(paper.choices()) in text
    for place in {cell.name.split("/")[0] for cell in paper.cells}:
        assert f"| `{place}/" in text
