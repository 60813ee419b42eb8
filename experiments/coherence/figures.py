"""The plots of `papers coherence --out`: windows and queues over time, and the metrics by error rate."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from experiments.coherence.cells import METRICS, SCHEME_WORDS, TRACE_PER, Case, Cases
from experiments.coherence.jobs import job
from experiments.coherence.radio_path_runs import run
from testbed.papers.plots import COLOURS, spreads, subplots, title, title_and_legend
from testbed.papers.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = dict(zip(SCHEME_WORDS, "xo^sD", strict=True))
_COLOURS = dict(zip(SCHEME_WORDS, COLOURS, strict=False))
_POSITIONS = {"figure8": "last hop", "first": "first hop", "middle": "in the middle"}
_DETAILS = ("figure9", "figure10", "figure11", "figure12", "figure13", "figure14")
#: (s, cwnd, queue), packets
Samples = list[tuple[float, float, int]]


def draw(results: Results) -> "Iterator[tuple[str, Figure]]":
    """Yield the plots that these results permit, each with the name of its file."""
    cases: Cases = results.by_case()
    goodputs = [place for place in _POSITIONS if any(case.place == place for case in cases)]
    details = [place for place in _DETAILS if any(case.place == place for case in cases)]
    if goodputs:
        yield "goodput.png", _goodput(cases, goodputs)
    if details:
        yield "details.png", _details(cases, details)
    traced = [scheme for scheme in SCHEME_WORDS if Case("figure7", scheme, TRACE_PER, "cwnd") in cases]
    if traced:
        seed = cases[Case("figure7", traced[0], TRACE_PER, "cwnd")].first_seed
        yield "traces.png", _traces({scheme: _samples(scheme, seed, results.settings) for scheme in traced}, seed)


def _samples(scheme: str, seed: int, settings: tuple[str, ...]) -> Samples:
    made = job(Case("figure7", scheme, TRACE_PER, "cwnd"), settings)
    return run(made.case, made.settings, seed, keep_samples=True).samples


def _goodput(cases: Cases, places: list[str]) -> "Figure":
    """Figure 8, for each place of the wireless link."""
    figure, grid = subplots(1, len(places), figsize=(1.4 + 3.6 * len(places), 4.4), sharey=True, squeeze=False)
    for axis, place in zip(grid.flat, places, strict=True):
        _lines(axis, cases, place, 1000)
        axis.set_title(f"wireless link: {_POSITIONS[place]}", loc="left", fontsize=10)
    grid.flat[0].set(ylabel="goodput (1000 packets in 500 s)", ylim=(0, 82))
    title_and_legend(figure, grid.flat[0], "COHERENCE, figure 8: goodput by packet error rate")
    return figure


def _details(cases: Cases, places: list[str]) -> "Figure":
    rows = -(-len(places) // 3)
    figure, grid = subplots(rows, min(3, len(places)), figsize=(12, 0.8 + 3.4 * rows), squeeze=False)
    for axis, place in zip(grid.flat, places, strict=False):
        _, unit, words = METRICS[place]
        _lines(axis, cases, place)
        axis.set_title(f"figure {place.removeprefix('figure')}: {words}", loc="left", fontsize=10)
        axis.set(ylabel=unit, ylim=(0, None))
    for axis in list(grid.flat)[len(places) :]:
        axis.set_axis_off()
    title_and_legend(figure, grid.flat[0], "COHERENCE, figures 9 to 14 (wireless link: last hop)")
    return figure


def _lines(axis: "Axes", cases: Cases, place: str, scale: float = 1.0) -> None:
    """A line per scheme, with quartiles."""
    for scheme, word in SCHEME_WORDS.items():
        points = sorted((c.per, result.ours) for c, result in cases.items() if (c.place, c.scheme) == (place, scheme))
        if not points:
            continue
        below, above = spreads(ours for _, ours in points)
        axis.errorbar(
            [per for per, _ in points],
            [ours.median / scale for _, ours in points],
            yerr=([each / scale for each in below], [each / scale for each in above]),
            color=_COLOURS[scheme],
            marker=_MARKERS[scheme],
            markersize=5,
            linewidth=1.3,
            elinewidth=1,
            markerfacecolor="white" if _MARKERS[scheme] != "x" else _COLOURS[scheme],
            label=word,
        )
    axis.set(xscale="log", xlabel="packet error rate")


def _traces(seen: Mapping[str, Samples], seed: int) -> "Figure":
    """Figure 7: the window above, the bottleneck's queue below."""
    figure, grid = subplots(
        2, len(seen), grid="y", figsize=(1 + 2.6 * len(seen), 5), sharex=True, sharey="row", squeeze=False
    )
    for (scheme, samples), (above, below) in zip(seen.items(), grid.T, strict=True):
        times = [time for time, _, _ in samples]
        above.plot(times, [cwnd for _, cwnd, _ in samples], color=COLOURS[0], linewidth=0.9)
        below.plot(times, [queue for _, _, queue in samples], color=COLOURS[1], linewidth=0.7)
        above.set_title(SCHEME_WORDS[scheme], loc="left", fontsize=10)
        below.set_xlabel("time (s)")
    grid[0, 0].set_ylabel("cwnd (packets)")
    grid[1, 0].set_ylabel("queue (packets)")
    for axis in (grid[0, 0], grid[1, 0]):
        axis.set_ylim(bottom=0)
    title(figure, f"COHERENCE, figure 7: window and queue at PER {TRACE_PER:g} (last hop, seed {seed})")
    return figure
