"""Progress of a run while it goes on, tables and plots at its end, for people.

Progress goes to stderr, so that stdout holds the result alone.
"""

import math
import textwrap
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import fmean, median
from time import monotonic
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from linklayer.filters.filter import Cause
from telemetry.parquet import read_records
from testbed.results.grid import grid
from testbed.results.ground_truth import CAUSES
from testbed.results.metrics import metric
from testbed.results.rates import RecentRate
from testbed.results.store import radio_warnings
from testbed.results.summary import Summary
from testbed.results.whole_files import write_figure
from testbed.run_hooks import Progress as RunProgress
from testbed.run_hooks import Show
from testbed.scenario.schema import ErrorsPart, Scenario
from testbed.tiers import TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's colours, told apart by the colour-blind, too
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def errors_in_words(errors: ErrorsPart) -> str:
    """Return an error model in words."""
    options = errors.model_dump(mode="json", exclude={"model"}, exclude_none=True)
    if errors.model == "bernoulli":
        return f"PER {100 * options['per']:g} %"
    return " ".join([f"errors {errors.model}", *(f"{name} {value}" for name, value in options.items())])


def medium_in_words(scenario: Scenario) -> str:
    """Return the medium of a scenario in words, in its main direction."""
    channel = scenario.channel.direction(scenario.workloads[0].direction)
    words = [rate(channel.rate_bps), f"{channel.delay_ms:g} ms each way"]
    if channel.errors.model != "none":
        words.append(errors_in_words(channel.errors))
    tier = TIERS[scenario.tier]
    if tier.radio:
        radio = scenario.radio
        words.append(
            f"{radio.phy} {'modes by SNR' if radio.modes == 'auto' else radio.mode} at {radio.rate_sps / 1e6:g} Msps"
        )
    if tier.air == "virtual":
        words.append(f"SNR {channel.snr_db:g} dB")
        if channel.fading is not None:
            words.append(f"{channel.fading.profile} fading, Doppler {channel.fading.doppler_hz:g} Hz")
    return ", ".join(words)


def rate(bps: float) -> str:
    """Return a rate with its unit."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.2f} {unit}"
    return f"{bps:.0f} bit/s"


#: distance of progress lines where there is no terminal
LINE_S = 10.0


@contextmanager
def bars_of(*columns: ProgressColumn) -> Iterator[Progress]:
    """Draw progress bars on stderr, where that is a terminal."""
    console = Console(stderr=True)
    bars = Progress(*columns, console=console, transient=True)
    # without a terminal there is nothing to draw, and no empty line that ends the drawing
    with bars if console.is_terminal else nullcontext():
        yield bars


@contextmanager
def share_bar(label: str) -> Iterator[Callable[[float], None]]:
    """Show which share of one thing is done, on a terminal."""
    with bars_of(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()) as bars:
        task = bars.add_task(label, total=1.0)
        yield lambda share: bars.update(task, completed=share)


@contextmanager
def progress(labels: Sequence[str]) -> Iterator[list[Show]]:
    """Show one bar per label; yield the function of each that its run calls."""
    state = TextColumn("{task.fields[state]}", style="cyan", markup=False)
    with bars_of(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), state) as bars:
        tasks = [bars.add_task(label, total=None, state="") for label in labels]
        yield [_Bar(bars, task) for task in tasks]


class _Bar:
    """One run's bar; on no terminal, a line every ten seconds, however fast the run's own clock is."""

    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars, self._task = bars, task
        self._told_at = monotonic()

    def __call__(self, run: RunProgress) -> None:
        total, done = _extent(run)
        state = run.phase
        if run.phase == "running":
            state = f"{run.elapsed_s:5.1f} s  {rate(run.goodput_bps):>13}"
        self._bars.update(self._task, total=total, completed=done, state=state)
        if not self._bars.console.is_terminal and monotonic() - self._told_at >= LINE_S:
            self._told_at = monotonic()
            label = self._bars.tasks[self._task].description
            share = f"{100 * done / total:3.0f} %" if total else ""
            self._bars.console.print(f"{label}: {state} {share}".rstrip())


def _extent(run: RunProgress) -> tuple[float | None, float]:
    """Return the value of a full bar, and the present one."""
    if run.expected_s is not None:
        return run.expected_s, min(run.elapsed_s, run.expected_s)
    if run.bytes_expected is not None:
        return run.bytes_expected, run.bytes_received
    return None, 0


_COLUMNS = ("goodput", "of rate", "time", "PER", "left", "ARQ", "FEC", "TCP", "RTO", "late")
LEGEND = (
    "PER: frames lost on the air; left: packets the link did not repair; ARQ, TCP: retransmissions of the link and "
    "of TCP; FEC: redundancy frames; RTO: timeouts; late: events the machine was late for"
)
SPLIT_NOTE = (
    "Connections are split at the base station, which acknowledges what it has only stored: end-to-end ACK semantics "
    "are lost. TCP and RTO are those of the hosts."
)


def table(summaries: Sequence[Summary], title: str) -> Table:
    """Return the results, a row each, and the medians of a scheme that ran more than once, in 80 columns."""
    caption = LEGEND if all(s.end_to_end_acks for s in summaries) else f"{LEGEND}\n{SPLIT_NOTE}"
    rows = grid(title, "link", caption=caption)
    for heading in _COLUMNS:
        rows.add_column(heading, justify="right", no_wrap=heading != "time")
    groups: dict[str, list[Summary]] = {}
    for s in summaries:
        groups.setdefault(s.scheme, []).append(s)
    repeated = any(len(group) > 1 for group in groups.values())
    for s in summaries:
        link = s.link[s.flows[0].direction]
        rows.add_row(
            f"{s.scheme} seed {s.seed}" if repeated else s.scheme,
            *_speed(s.goodput_bps, s.capacity_bps, s.duration_s, s.finished),
            f"{100 * link.per:.1f} %",
            f"{100 * link.residual_per:.2f} %",
            str(link.retransmissions),
            str(link.fec_frames),
            str(s.retransmissions),
            str(s.timeouts),
            str(s.late_events) if s.on_time else f"[red]{s.late_events}[/]",
        )
    if repeated:
        rows.add_section()
        for scheme, group in groups.items():
            goodput, time = median(s.goodput_bps for s in group), median(_duration_s(s) for s in group)
            speed = _speed(goodput, group[0].capacity_bps, time, finished=True)
            rows.add_row(f"{scheme} median", *speed, *[""] * (len(_COLUMNS) - len(speed)), style="bold")
    return rows


def programs(summaries: Sequence[Summary]) -> Table | None:
    """Return what programs of others tell, beside what the link has measured; None without programs."""
    caption = "link: frames sent in the flow's direction, over the whole run, and the share that the air has lost"
    rows = grid("what programs tell, and the link", "flow", caption=caption, padding=(0, 1))
    found = [(s, flow, flow.told) for s in summaries for flow in s.flows if flow.told is not None]
    columns = {
        "goodput": [rate(flow.goodput_bps) for _, flow, _ in found],
        "time": [f"{told.duration_s:.1f} s" for _, _, told in found],
        "retransmitted": [_told(told.retransmissions) for _, _, told in found],
        "round trip": ["" if told.delay_ms is None else f"{told.delay_ms:.0f} ms" for _, _, told in found],
        "lost": [_told(told.lost) for _, _, told in found],
        "link": [rate(s.link[flow.direction].throughput_bps) for s, flow, _ in found],
        "PER": [f"{100 * s.link[flow.direction].per:.1f} %" for s, flow, _ in found],
    }
    # what no program tells has no column
    known = {heading: cells for heading, cells in columns.items() if any(cells)}
    for heading in known:
        rows.add_column(heading, justify="right", no_wrap=True)
    for index, (s, flow, _) in enumerate(found):
        label = f"{flow.flow} seed {s.seed}" if len(summaries) > 1 else flow.flow
        rows.add_row(label, *(cells[index] for cells in known.values()))
    return rows if found else None


def _told(count: int | None) -> str:
    return "" if count is None else str(count)


def paths(summaries: Sequence[Summary]) -> Table | None:
    """Return the paths of MPTCP connections, a row each; None without such connections."""
    caption = (
        "acknowledged: payload, by the sender's subflows; octets sent on both paths count on both. link: frames sent "
        "in the flow's direction, over the whole run, and the share that the medium has lost"
    )
    rows = grid("MPTCP's paths", "flow", "path", "scheme", caption=caption, padding=(0, 1))
    for heading in ("acknowledged", "share", "TCP", "RTO", "link", "PER"):
        rows.add_column(heading, justify="right", no_wrap=True)
    for s in summaries:
        for flow in s.flows:
            for path, sides in zip(flow.paths, (s.link, s.second_link), strict=False):
                link = sides[flow.direction]
                rows.add_row(
                    f"{flow.flow} seed {s.seed}" if len(summaries) > 1 else flow.flow,
                    str(path.path),
                    path.scheme,
                    f"{path.bytes / 1e6:.2f} MB",
                    "" if path.share is None else f"{100 * path.share:.1f} %",
                    str(path.retransmits),
                    str(path.timeouts),
                    rate(link.throughput_bps),
                    f"{100 * link.per:.1f} %",
                )
    return rows if rows.row_count else None


#: instead of the table for a real air, which takes frames without a report
TRUTH_UNKNOWN = (
    "Packet filters guessed why segments were missing. The losses of a real air are not known, so no guess is judged."
)


def guesses(summaries: Sequence[Summary]) -> Table | str | None:
    """Return packet filters' guesses beside the true causes, all runs together; None where no segment was missing."""
    total: dict[str, dict[Cause, Counter[Cause]]] = {}
    for s in summaries:
        for name, rows in (s.confusion or {}).items():
            counts = total.setdefault(name, {truth: Counter() for truth in CAUSES})
            for truth, row in rows.items():
                counts[truth].update(row)
    if not total:
        return TRUTH_UNKNOWN if any(s.confusion is None for s in summaries) else None
    late = "late: the link had lost nothing that was not guessed before"
    compared = grid("why segments were missing: guesses and causes", "filter", "cause", caption=late, padding=(0, 1))
    for cause in CAUSES:
        compared.add_column(f"guess: {cause}", justify="right")
    for name, counts in sorted(total.items()):
        for truth, row in counts.items():
            if any(row.values()):
                compared.add_row(name, truth, *(str(row[cause]) for cause in CAUSES))
    return compared


def _duration_s(summary: Summary) -> float:
    """Return the duration of a run; infinite where a transfer was cut off."""
    return metric(summary.plain(), "duration_s") or 0.0


def _speed(goodput_bps: float, capacity_bps: int, duration_s: float, finished: bool) -> tuple[str, str, str]:
    time = "never" if math.isinf(duration_s) else f"{duration_s:.1f} s"
    return rate(goodput_bps), f"{100 * goodput_bps / capacity_bps:.0f} %", time if finished else f"{time} (cut)"


def warnings(summaries: Sequence[Summary], *, late: bool = True) -> list[str]:
    """Return the faults of these results, a line each; with `late`, lateness is one of them."""
    lines = []
    for s in summaries:
        if s.folder is not None:
            lines += [f"{s.run}: {escape(line)}" for line in radio_warnings(Path(s.folder))]
        if late and not s.on_time:
            lines.append(f"{s.run}: {s.lateness}: this machine did not keep up, the figures are not the channel's")
        if not s.finished:
            lines.append(f"{s.run}: ended before the transfer did (limit_s, or stopped)")
        if s.changes:
            lines.append(f"{s.run}: was changed {s.changes} times while it ran; control.parquet has the changes")
        lines += [f"{s.run}: flow {flow.flow}: {flow.fallback}" for flow in s.flows if flow.fallback is not None]
        lines += [
            f"{s.run}: flow {flow.flow}: no octet was acknowledged on path {path.path}"
            for flow in s.flows
            for path in flow.paths
            if not path.bytes
        ]
    return lines


def warn(*lines: str) -> None:
    """Print warnings to stderr."""
    console = Console(stderr=True)
    for line in lines:
        console.print(f"[yellow]warning:[/] {line}", highlight=False, soft_wrap=True)


def lateness(labels: Sequence[str], summaries: Sequence[Summary]) -> list[str]:
    """Return the late events of all these runs in one line; no line where no event was late."""
    late = [
        f"{label} {s.late_events} of {s.events} (worst {s.max_late_ms:.0f} ms)"
        for label, s in zip(labels, summaries, strict=True)
        if s.late_events
    ]
    if not late:
        return []
    on_time = all(s.on_time for s in summaries)
    meaning = "few enough to trust the figures" if on_time else "it did not keep up, the figures are not the channel's"
    return [f"this machine was late for some events: {', '.join(late)}; {meaning}"]


def comparison(bare_bps: float, slacp_bps: float) -> str:
    """Compare the goodputs without and with SLACP in a sentence with Rich's markup."""
    if not bare_bps and not slacp_bps:
        return "Neither run carried any data."
    if not bare_bps:
        return f"Without SLACP no data got across; with SLACP [bold]{rate(slacp_bps)}[/] did."
    if not slacp_bps:
        return f"With SLACP no data got across; without it [bold]{rate(bare_bps)}[/] did."
    ratio = slacp_bps / bare_bps
    if 0.95 <= ratio < 1.05:
        return "SLACP carried about as much data in the same time."
    if ratio < 1:
        # two digits, however small: never 0.0 times
        return f"SLACP carried less: [bold]{ratio:.2g} times[/] the data in the same time."
    return f"SLACP carried [bold]{ratio:.1f} times[/] the data in the same time."


# -- plots ---------------------------------------------------------------------------------------------------


#: settings for labels that users and strangers give: a dollar sign is one
AS_GIVEN = {"text.parse_math": False}


def pyplot() -> Any:
    """matplotlib's pyplot, drawing into files."""
    import matplotlib as mpl

    mpl.use("Agg")
    # Debian's own matplotlib, which GNU Radio brings along, hides the 3D axes of ours
    with catch_warnings():
        filterwarnings("ignore", "Unable to import Axes3D")
        from matplotlib import pyplot
    return pyplot


def plot(folders: Sequence[tuple[str, Path]], target: Path, title: str, link: str = "up") -> None:
    """Draw goodput, data received, cwnd and losses of some runs over time into one PNG; with radios, SNR and PER.

    Losses, SNR and PER are those of one direction of the link.
    """
    with pyplot().rc_context(AS_GIVEN):
        _plot(folders, target, title, link)


def _plot(folders: Sequence[tuple[str, Path]], target: Path, title: str, link: str) -> None:
    plt = pyplot()
    radios = any(read_records(folder, "phy") for _, folder in folders)
    names = [
        ("Goodput of all flows (1 s mean)", "Mbit/s"),
        ("Received by all flows", "MB"),
        ("cwnd", "KiB"),
        (f"Lost since the start, link {link}", "frames or packets"),
    ]
    if radios:
        names += [
            (f"SNR of the frames heard, link {link}", "dB"),
            (f"Frames lost on the air (1 s mean), link {link}", "%"),
        ]
    lines = len(names) // 2
    figure, axes = plt.subplots(lines, 2, figsize=(11, 0.5 + 3 * lines), layout="constrained", sharex=True)
    goodput, received, cwnd, losses, *phy = axes.flat
    for colour, (label, folder) in zip(COLOURS, folders, strict=False):
        _draw_flows(goodput, received, folder, label, colour)
        _draw_cwnd(cwnd, folder, label, colour)
        _draw_losses(losses, folder, label, colour, link)
        if radios:
            _draw_phy(phy[0], phy[1], folder, label, colour, link)
    for axis, (name, unit) in zip(axes.flat, names, strict=True):
        axis.set_title(name, loc="left", fontsize=10)
        axis.set_ylabel(unit)
        axis.grid(alpha=0.3)
        if unit != "dB":
            axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[-1]:
        axis.set(xlabel="time (s)", xlim=(0, None))
    received.legend(frameon=False)
    # the colours are the runs', as in the other pictures
    styles = [losses.plot([], [], color="gray", linestyle=style)[0] for _, style, _ in _LOSSES]
    losses.legend(styles, [meaning for _, _, meaning in _LOSSES], frameon=False, loc="upper left", fontsize=9)
    figure.suptitle(textwrap.fill(title, 100), fontweight="bold", fontsize=11)
    write_figure(figure, target)
    plt.close(figure)


def _draw_flows(goodput: "Axes", received: "Axes", folder: Path, label: str, colour: str) -> None:
    times, totals = flow_totals(folder)
    received.plot(times, [total / 1e6 for total in totals], color=colour, label=label)
    goodput.plot(*mean_rate(times, totals), color=colour, label=label)


def _draw_cwnd(axis: "Axes", folder: Path, label: str, colour: str) -> None:
    rows = read_records(folder, "tcp", ("cwnd_bytes",))
    for flow in sorted({row["flow"] for row in rows}):
        points = [(row["time_ns"] / 1e9, row["cwnd_bytes"] / 1024) for row in rows if row["flow"] == flow]
        axis.plot(*zip(*points, strict=True), color=colour, label=label, linewidth=1)


#: counters of a link's records, how each is drawn, and what it counts. TCP repairs the second and the third: what
#: queues drop was never on the air, so the two are not to be added up beside the first
_LOSSES = (
    ("corruption_losses", ":", "frames lost on the air"),
    ("residual_losses", "-", "packets the link lost"),
    ("congestion_losses", "--", "packets dropped by queues"),
)


def _draw_losses(axis: "Axes", folder: Path, label: str, colour: str, link: str) -> None:
    rows = [row for row in read_records(folder, "link", [name for name, _, _ in _LOSSES]) if row["link"] == link]
    times = [row["time_ns"] / 1e9 for row in rows]
    for counter, style, _ in _LOSSES:
        axis.plot(times, [row[counter] for row in rows], color=colour, linestyle=style, label=label)


def _draw_phy(snr: "Axes", per: "Axes", folder: Path, label: str, colour: str, link: str) -> None:
    rows = [row for row in read_records(folder, "phy") if row["link"] == link and row["per"] is not None]
    times = [row["time_ns"] / 1e9 for row in rows]
    snr.plot(times, [row["snr_db"] for row in rows], color=colour, label=label, linewidth=1)
    recent: deque[tuple[float, float]] = deque()
    shares = []
    for time, row in zip(times, rows, strict=True):
        recent.append((time, row["per"]))
        while recent[0][0] < time - 1:
            recent.popleft()
        shares.append(100 * fmean(share for _, share in recent))
    per.plot(times, shares, color=colour, label=label, linewidth=1)


def flow_totals(folder: Path) -> tuple[list[float], list[int]]:
    """Payload bytes received by all flows of a run over time (s)."""
    latest: dict[str, int] = {}
    times, totals = [0.0], [0]
    for row in read_records(folder, "flow", ("bytes_received",)):
        latest[row["flow"]] = row["bytes_received"]
        times.append(row["time_ns"] / 1e9)
        totals.append(sum(latest.values()))
    return times, totals


def mean_rate(times: list[float], totals: list[int]) -> tuple[list[float], list[float]]:
    """The rate over the last second (since the start, before that), in Mbit/s: one value per time (s)."""
    recent = RecentRate()
    rates = []
    for time, total in zip(times, totals, strict=True):
        recent.add(time, total)
        rates.append(recent.bps / 1e6)
    return times, rates


def terminal_plot(folders: Sequence[tuple[str, Path]], width: int) -> Text:
    """Data received over time, drawn in characters."""
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(min(width, 100), 16)
    for (label, folder), marker in zip(folders, "ox*", strict=False):
        times, totals = flow_totals(folder)
        plotext.plot(times, [total / 1e6 for total in totals], label=label, marker=marker)
    plotext.xlabel("time (s)")
    plotext.ylabel("MB received")
    return Text.from_ansi(plotext.build())
