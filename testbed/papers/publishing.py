"""docs/results.md and the pages behind it: all papers of `papers --all`, for readers who run nothing.

| file | content |
|---|---|
| `results.md` | origin, findings and the main figures of every paper |
| `papers/NAME-results.md` | all tables of a paper, ours beside the paper's |
| `papers/NAME-PLOT.png` | its plots |

Rule kept: the numbers are those of `papers --all`; tables and plots are made of them anew, so that a mended plot needs
no new runs.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.papers import report
from testbed.papers.folder import Manifest, editions, read_manifest, read_results
from testbed.papers.paper import PAPERS, Paper, chosen
from testbed.papers.plots import save
from testbed.papers.results import CellResult, PaperError, Results, quantile
from testbed.papers.statements import Verdict

#: of the pages, below the target
FOLDER = "papers"
#: quartiles behind a median, as `report.entry` writes them
_QUARTILES = re.compile(r" \([^()|]+ to [^()|]+\)")


@dataclass(frozen=True)
class _Computed:
    """A paper that was computed."""

    paper: Paper
    results: Results
    manifest: Manifest
    #: of its variants, by name
    variants: Mapping[str, Results]

    @property
    def page(self) -> str:
        """The name of its pages and plots, without ending."""
        return self.paper.name.replace("_", "-")

    @property
    def seeds(self) -> str:
        """Its seeds, the most that a cell has."""
        first = self.results.cells[0].first_seed
        return f"{first} to {first + max(len(result.samples) for result in self.results.cells) - 1}"


def publish(folder: Path, target: Path, *, plots: bool = True) -> list[Path]:
    """Write the pages of all papers below `target`, from the folder of `papers --all`; return the files.

    Raises PaperError where a paper is missing or incomplete.
    """
    computed = []
    for paper in PAPERS.values():
        manifests = []
        for name, _ in editions(paper):
            manifests.append(read_manifest(folder / name))
            if manifests[-1] is None:
                raise PaperError(f"{folder / name}: is not complete: `papers --all --out {folder} --resume` goes on")
        results, *others = (read_results(folder / name, paper) for name, _ in editions(paper))
        assert manifests[0] is not None
        computed.append(_Computed(paper, results, manifests[0], dict(zip(paper.variants, others, strict=True))))
    (target / FOLDER).mkdir(parents=True, exist_ok=True)
    written = []
    for each in computed:
        for name, figure in each.paper.plots(each.results) if plots else ():
            written.append(save(figure, target / FOLDER / f"{each.page}-{name}"))
        drawn = sorted(path.name for path in (target / FOLDER).glob(f"{each.page}-*.png"))
        written.append(target / FOLDER / f"{each.page}-results.md")
        written[-1].write_text(_details(each, drawn))
    written.append(target / "results.md")
    written[-1].write_text("\n".join(_summary(computed)))
    return written


# -- a paper's own page --------------------------------------------------------------------------------------


def _details(each: _Computed, drawn: Sequence[str]) -> str:
    """Return all tables and plots of a paper."""
    paper, results = each.paper, each.results
    lines = [f"# {paper.heading}", "", f"{_made_by(each.manifest)} The choices behind them, and what differs and why:"]
    lines[-1] += f" [{each.page}.md]({each.page}.md)."
    for note in paper.notes:
        lines += ["", note]
    found = report.findings(paper.findings(results), paper.headlines(results))
    lines += ["", *found, "", *paper.tables(results)]
    if drawn:
        lines += ["", "## Plots"]
    for name in drawn:
        lines += ["", f"![{Path(name).stem}]({name})"]
    return "\n".join(lines).rstrip() + "\n"


def _made_by(manifest: Manifest) -> str:
    return f"Made by `{_command(manifest)}`, version {manifest.question['fadelab']}, {manifest.ended[:10]}."


def _command(manifest: Manifest) -> str:
    """Return the command without options of this machine."""
    seed = manifest.question["first_seed"]
    return f"./fadelab papers --all --seed {seed} --out DIR"


# -- the page of all -----------------------------------------------------------------------------------------


def _summary(computed: Sequence[_Computed]) -> Iterator[str]:
    first = computed[0].manifest
    yield from ("# Results", "")
    yield "All papers, computed in full and set beside their published figures and findings. Two commands make this"
    yield "page, and the pages and plots in `docs/papers/`:"
    yield from ("", f"    {_command(first)}", "    ./fadelab report papers DIR --out docs", "")
    yield "Interrupted, the first one goes on with `--resume`. The same version and seeds give the same numbers to the"
    yield "last digit, on any number of processes."
    yield ""
    rows = [
        [
            f"[{each.paper.name}](#{_anchor(each.paper.heading)})",
            f"`{each.paper.tier}`",
            f"{sum(len(result.samples) for result in each.results.cells):,}",
            each.seeds,
            _minutes(each.manifest.processor_s),
            f"`{each.manifest.question['fadelab']}`",
            each.manifest.cores,
            f"{each.manifest.ended[:16].replace('T', ' ')}",
        ]
        for each in computed
    ]
    yield from report.table(
        ["paper", "tier", "numbers", "seeds", "processor time", "version", "cores", "ended (UTC)"], rows
    )
    total = sum(each.manifest.processor_s for each in computed)
    machines = sorted({f"{each.manifest.cpus} x {each.manifest.processor}" for each in computed})
    yield ""
    yield f"In all {_minutes(total)} of processor time, on {', '.join(machines)} with Python {first.python}. *numbers*"
    yield "are values of cells; several cells may be numbers of the same run. Processor time is that of the runs, not"
    yield "of plots."
    yield from ("", "Statements of the papers, by the evidence of these runs:", "")
    rows = [row for each in computed for row in _scores(each)]
    yield from report.table(["paper", "parameters", "statements", "met", *map(str, Verdict)], rows)
    yield ""
    yield "*parameters*: how many of them the paper states; the others are ours, each with its reason. *met*: all cases"
    yield "hold, which is no test. The statements that are not met are below, with what is known of why."
    for each in computed:
        yield from ("", *_section(each))


def _scores(each: _Computed) -> Iterator[list[str]]:
    """Yield the statements met, and their verdicts, by each set of parameters."""
    choices = [choice for group in each.paper.parameters.values() for choice in group]
    stated = sum(choice.whose == "paper" for choice in choices)
    for name, results in {"": each.results, **each.variants}.items():
        found = each.paper.findings(results)
        met = sum(finding.hits == len(finding.cases) for finding in found)
        verdicts = (sum(finding.verdict is verdict for finding in found) for verdict in Verdict)
        parameters = f"`{name}`" if name else f"{stated} of {len(choices)} the paper's"
        yield [each.paper.name, parameters, *map(str, (len(found), met, *verdicts))]


def _section(each: _Computed) -> Iterator[str]:
    paper, results = each.paper, each.results
    yield from (f"## {paper.heading}", "", f"{paper.title}.", "")
    for note in paper.notes:
        yield from (note, "")
    page = f"{FOLDER}/{each.page}"
    yield f"All figures: [{each.page}-results.md]({page}-results.md)."
    yield f"What differs, and why: [{each.page}.md]({page}.md)."
    yield ""
    yield from report.findings(paper.findings(results), paper.headlines(results))
    yield from _variants(each)
    compared = [result for result in results.cells if result.cell.paper.known]
    if compared:
        yield from ("", *_ratios(compared))
    shown = _cells(paper, results)
    if shown.cells:
        yield from ("", *(_brief(line) for line in paper.tables(shown)))
    for name in paper.main_plots:
        yield from ("", f"![{name}]({page}-{name})")


def _variants(each: _Computed) -> Iterator[str]:
    """Yield the verdicts by each set of parameters, and the sets."""
    if not each.variants:
        return
    sets = [each.paper.findings(results) for results in (each.results, *each.variants.values())]
    yield from ("", "The same statements with other parameters, cases that hold and verdicts:", "")
    rows = (
        [same[0].statement.words, *(f"{found.hits} of {len(found.cases)}, {found.verdict}" for found in same)]
        for same in zip(*sets, strict=True)
    )
    yield from report.table(["statement", "ours", *each.variants], rows)
    for name, settings in each.paper.variants.items():
        yield from ("", f"*{name}*: `{' '.join(f'--set {setting}' for setting in settings)}`.")


def _ratios(compared: Sequence[CellResult]) -> Iterator[str]:
    """Yield how near our medians are to the paper's, by the first part of the cells' names."""
    groups: dict[str, list[CellResult]] = {}
    for result in compared:
        groups.setdefault(result.cell.name.split("/")[0], []).append(result)
    rows = []
    for name, group in groups.items():
        # "never" has no ratio
        ratios = [result.ratio for result in group if result.ratio is not None]
        near = sum(result.cell.agrees(result.ours.median) for result in group)
        spread = [quantile(ratios, share) for share in (0, 0.25, 0.5, 0.75, 1)] if ratios else []
        rows.append([f"`{name}`", f"{near} of {len(group)}", *(f"{ratio:.2f}" for ratio in spread or [math.nan] * 5)])
    headings = ["cells", "near", "ours / the paper's: least", "quarter", "median", "three quarters", "most"]
    return report.table(headings, rows)


def _cells(paper: Paper, results: Results) -> Results:
    """Return the results that the page of all papers has as tables."""
    names = {cell.name for cell in chosen(paper, paper.brief)} if paper.brief else set()
    return Results(results.paper, tuple(each for each in results.cells if each.cell.name in names), results.settings)


def _brief(line: str) -> str:
    """Return a line of a paper's tables for the page of all: medians without quartiles, below the paper's heading."""
    return f"#{line}" if line.startswith("## ") else _QUARTILES.sub("", line)


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
