"""The plots of `papers comparison --out`: ours beside the paper's, and single transfers as the paper draws them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from experiments.comparison.cells import FAMILIES, SETTINGS, Case, Cases
from experiments.comparison.traces import Point, Sender, Trace, trace
from testbed.papers.plots import COLOURS, spreads, subplots, title
from testbed.papers.results import CellResult, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLES = {"lan-8k": "LAN, 8 KB", "lan-32k": "LAN, 32 KB", "wan-32k": "WAN, 32 KB"}
_FAMILY_COLOURS = dict(zip(FAMILIES, (COLOURS[2], COLOURS[0], COLOURS[1]), strict=True))
_SCHEMES = [(table, scheme) for table, schemes in FAMILIES.items() for scheme in schemes]
_FAMILY_WORDS = {2: "link layer", 3: "end to end", 4: "split"}
#: of TCP data, without errors (COMPARISON section 4)
_PEAK_MBPS = {"lan-8k": 1.5, "lan-32k": 1.5, "wan-32k": 1.35}
#: the bandwidth-delay product of the WAN (COMPARISON section 4)
_WAN_BDP_BYTES = 23_000
#: the transfers that the paper shows: file, title, cells
TRACES: tuple[tuple[str, str, tuple[Case, ...]], ...] = (
    (
        "traces-ll.png",
        "local retransmissions, with and without suppression of dupacks",
        (Case("table2", "ll-tcp-aware", "wan-32k"), Case("table2", "ll", "wan-32k")),
    ),
    (
        "traces-eln.png",
        "Reno without and with explicit loss notifications",
        (Case("table3", "e2e", "wan-32k"), Case("table3", "e2e-eln", "wan-32k")),
    ),
    ("traces-split.png", "both sides of a split connection", (Case("table4", "split", "wan-32k"),)),
)


def draw(results: Results) -> "Iterator[tuple[str, Figure]]":
    """Yield the plots that these results permit, each with the name of its file."""
    cases: Cases = results.by_case()
    in_tables = {case: result for case, result in cases.items() if case.burst is None and case.place != "figure12"}
    throughputs = {case: result for case, result in in_tables.items() if case.metric == "throughput"}
    goodputs = {case: result for case, result in in_tables.items() if case.metric != "throughput"}
    sweep = {case: result for case, result in cases.items() if case.place == "figure12"}
    bursts = {case: result for case, result in cases.items() if case.place == "table5"}
    for name, part, plot in (
        ("throughput.png", throughputs, _throughput),
        ("goodput.png", goodputs, _goodput),
        ("figure12.png", sweep, _sweep),
        ("table5.png", bursts, _bursts),
    ):
        if part:
            yield name, plot(part)
    for name, text, shown in TRACES:
        if all(case in throughputs for case in shown):
            seed = throughputs[shown[0]].first_seed
            seen = {case.scheme: trace(case, seed, results.settings) for case in shown}
            yield name, _traces(f"{text} ({_TITLES[shown[0].setting]}, seed {seed})", seen)


def _throughput(cases: Cases) -> "Figure":
    """Tables 2 to 4: a bar per scheme, ours filled, the paper's hollow."""
    shown = [setting for setting in SETTINGS if any(case.setting == setting for case in cases)]
    figure, grid = subplots(len(shown), 1, grid="y", figsize=(11, 0.8 + 2.5 * len(shown)), sharex=True, squeeze=False)
    for axis, setting in zip(grid.flat, shown, strict=True):
        for place, (table, scheme) in enumerate(_SCHEMES):
            result = cases.get(Case(f"table{table}", scheme, setting))
            if result is not None:
                _bars(axis, place, result, _FAMILY_COLOURS[table])
        axis.axhline(_PEAK_MBPS[setting], color="0.6", linewidth=0.8, linestyle=(0, (4, 4)), zorder=0)
        axis.annotate("no errors", (0.995, _PEAK_MBPS[setting]), (0, 2), xycoords=("axes fraction", "data"),
                      textcoords="offset points", ha="right", fontsize=7, color="0.4")  # fmt: skip
        axis.set_title(_TITLES[setting], loc="left", fontsize=10)
        axis.set(ylabel="Mbps", ylim=(0, 1.7))
    grid.flat[-1].set_xticks(range(len(_SCHEMES)), [scheme for _, scheme in _SCHEMES], rotation=30, ha="right")
    _legend(figure, "COMPARISON, tables 2 to 4: throughput\nours filled, with quartiles; the paper's hollow")
    return figure


def _bars(axis: "Axes", place: float, result: CellResult, colour: str, width: float = 0.38) -> None:
    """Ours with its quartiles, and the paper's to its right."""
    ours = result.ours
    axis.bar(
        place - width / 2,
        ours.median,
        width,
        color=colour,
        yerr=spreads([ours]),
        error_kw={"elinewidth": 1, "ecolor": "0.2"},
    )
    axis.bar(place + width / 2, result.cell.paper.median, width, color="white", edgecolor=colour, linewidth=1.2)
    far = not result.cell.agrees(ours.median)
    axis.annotate(
        f"{ours.median:.2f}", (place - width / 2, ours.p75 or ours.median), (0, 2), textcoords="offset points",
        ha="center", fontsize=7, fontweight="bold" if far else "normal", color="black",
    )  # fmt: skip
    axis.annotate(
        f"{result.cell.paper.median:.2f}", (place + width / 2, result.cell.paper.median), (0, 2),
        textcoords="offset points", ha="center", fontsize=7, color="0.35",
    )  # fmt: skip


def _goodput(cases: Cases) -> "Figure":
    """Tables 2 to 4: goodput of both paths, ours filled, the paper's hollow."""
    shown = [setting for setting in SETTINGS if any(case.setting == setting for case in cases)]
    figure, grid = subplots(1, len(shown), grid="x", figsize=(1.6 + 3.6 * len(shown), 5), sharey=True, squeeze=False)
    for axis, setting in zip(grid.flat, shown, strict=True):
        for place, (table, scheme) in enumerate(_SCHEMES):
            for metric, marker, shift in (("wireless", "o", -0.15), ("wired", "s", 0.15)):
                result = cases.get(Case(f"table{table}", scheme, setting, metric))
                if result is not None:
                    row, colour = place + shift, _FAMILY_COLOURS[table]
                    axis.plot([result.ours.median, result.cell.paper.median], [row, row], color=colour, linewidth=0.8)
                    axis.plot(
                        result.cell.paper.median, row, marker, color=colour, markersize=5, markerfacecolor="white"
                    )
                    axis.plot(result.ours.median, row, marker, color=colour, markersize=5)
        axis.set_title(_TITLES[setting], loc="left", fontsize=10)
        axis.set(xlabel="goodput (%)", xlim=(94.5, 100.4))
    first = grid.flat[0]
    first.set_yticks(range(len(_SCHEMES)), [scheme for _, scheme in _SCHEMES])
    first.invert_yaxis()
    _legend(figure, "COMPARISON, tables 2 to 4: goodput\ncircles: wireless, squares: wired; the paper's hollow")
    return figure


def _bursts(cases: Cases) -> "Figure":
    figure, axis = subplots(grid="y", figsize=(7, 4.2))
    schemes = list(dict.fromkeys(case.scheme for case in cases))
    bursts = sorted({case.burst for case in cases if case.burst is not None})
    for case, result in cases.items():
        assert case.burst is not None
        place = bursts.index(case.burst) + (schemes.index(case.scheme) - 0.5) * 0.42
        _bars(axis, place, result, COLOURS[schemes.index(case.scheme)], 0.19)
    for scheme, colour in zip(schemes, COLOURS, strict=False):
        axis.bar(0, 0, color=colour, label=scheme)
    axis.set_xticks(range(len(bursts)), [str(burst) for burst in bursts])
    axis.set(xlabel="packets lost in a burst, one burst every 64 KB", ylabel="Mbps", ylim=(0, 1.7))
    figure.legend(frameon=False, loc="outside lower center", ncols=2, fontsize=9)
    title(figure, "COMPARISON, table 5: bursts (LAN, 32 KB)\nours filled, with quartiles; the paper's hollow")
    return figure


def _sweep(cases: Cases) -> "Figure":
    """Figure 12: ours with quartiles, the paper's dotted and hollow."""
    figure, axis = subplots(grid="y", figsize=(8.5, 5.4))
    for colour, scheme in zip(COLOURS, dict.fromkeys(case.scheme for case in cases), strict=False):
        points = sorted((case.spacing_kb, result) for case, result in cases.items() if case.scheme == scheme)
        places = [spacing for spacing, _ in points]
        theirs = [result.cell.paper.median for _, result in points]
        axis.plot(places, theirs, color=colour, linewidth=1, linestyle=":", marker="s", markersize=5,
                  markerfacecolor="white", alpha=0.8)  # fmt: skip
        ours = [result.ours for _, result in points]
        axis.errorbar(places, [each.median for each in ours], yerr=spreads(ours), color=colour, linewidth=1.4,
                      marker="o", markersize=5, elinewidth=1, label=scheme)  # fmt: skip
    spacings = sorted({case.spacing_kb for case in cases})
    axis.set_xscale("log", base=2)
    axis.set_xticks(spacings, [str(spacing) for spacing in spacings])
    axis.minorticks_off()
    axis.set(xlabel="mean distance of bit errors (KB)", ylabel="throughput (Mbps)", ylim=(0, 1.6))
    figure.legend(frameon=False, loc="outside lower center", ncols=3, fontsize=9)
    title(figure, "COMPARISON, figure 12: error rates (LAN, 32 KB)\nours filled, with quartiles; the paper's hollow")
    return figure


def _legend(figure: "Figure", text: str) -> None:
    """A title, and the colours of the families."""
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=_FAMILY_WORDS[table]) for table, colour in _FAMILY_COLOURS.items()]
    figure.legend(handles=patches, frameon=False, loc="outside lower center", ncols=3, fontsize=9)
    title(figure, text)


def _traces(text: str, seen: Mapping[str, Trace]) -> "Figure":
    """Windows above, segments below; marks above the segments say when something was sent again, and why."""
    # the base station's own connection crosses the air alone
    columns: list[tuple[str, list[Point], Sender, list[float], int | None]] = []
    for scheme, each in seen.items():
        if each.wireless.cwnd:
            columns.append((f"{scheme}, wired", each.wired, each.sender, [], _WAN_BDP_BYTES))
            columns.append((f"{scheme}, wireless", each.air, each.wireless, [], None))
        else:
            columns.append((scheme, each.wired, each.sender, each.local, _WAN_BDP_BYTES))
    figure, grid = subplots(2, len(columns), grid="y", figsize=(12, 7), sharex="col", sharey="row")
    for (name, segments, sender, local, bdp_bytes), (above, below) in zip(columns, grid.T, strict=True):
        _draw_window(above, sender, bdp_bytes)
        above.set_title(name, loc="left", fontsize=10)
        _draw_segments(below, segments, {"local": local, "fast": sender.fast_retransmits, "timeout": sender.timeouts})
        below.set_xlabel("time (s)")
    grid[0, 0].set(ylabel="cwnd (KB)", ylim=(0, 66))
    grid[1, 0].set(ylabel="sequence number (MB)", ylim=(0, 10.6))
    grid[1, 0].set_yticks(range(0, 9, 2))
    marks = {
        label: handle
        for axis in grid[1]
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        if len(handle.get_xdata())
    }
    figure.legend(list(marks.values()), list(marks), frameon=False, loc="outside lower center", ncols=4, fontsize=9)
    title(figure, f"COMPARISON: {text}")
    return figure


def _draw_window(axis: "Axes", sender: Sender, bdp_bytes: int | None) -> None:
    times = [time for time, _ in sender.cwnd]
    axis.plot(times, [min(nbytes / 1024, 64) for _, nbytes in sender.cwnd], color=COLOURS[0], linewidth=0.9)
    if bdp_bytes is not None:
        height = bdp_bytes / 1024
        axis.axhline(height, color="0.5", linewidth=0.8, linestyle=(0, (4, 4)), zorder=0)
        axis.annotate("bandwidth x delay", (0.99, height), (0, 2), xycoords=("axes fraction", "data"),
                      textcoords="offset points", ha="right", fontsize=7, color="0.4")  # fmt: skip


def _draw_segments(axis: "Axes", segments: list[tuple[float, float]], marks: Mapping[str, list[float]]) -> None:
    axis.plot([time for time, _ in segments], [octet / 2**20 for _, octet in segments], ",", color="0.25")
    for row, (kind, label, marker, colour) in enumerate(
        (
            ("local", "sent again by the base station", "|", COLOURS[2]),
            ("fast", "fast retransmissions", "|", COLOURS[0]),
            ("timeout", "coarse timeouts", "x", COLOURS[1]),
        )
    ):
        heights = [10.0 - 0.6 * row] * len(marks[kind])
        axis.plot(marks[kind], heights, marker, color=colour, markersize=6, label=label)
