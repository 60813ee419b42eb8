"""`counterfactual`: a past run again, but for what changes from some time on."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli import options
from testbed.cli.runs import RUN, folder_of
from testbed.errors import FadelabError
from testbed.tiers import TIERS, names_of

if TYPE_CHECKING:
    from testbed.exports.futures import Futures, Life, Loss
    from testbed.results.summary import Summary
    from testbed.scenario.schema import Scenario

#: losses that the screen shows
_SHOWN = 15


@click.command(epilog="docs/counterfactual.md")
@click.argument("run", type=RUN)
@click.option("--at", "at_s", type=options.Finite(min=0), required=True, help="The time of the run, s.")
@options.settings("What changes then, as in link.scheme=none.")
@options.out
@options.json_
def counterfactual(run: str, at_s: float, settings: tuple[str, ...], out: Path, json_: bool) -> None:
    """Make RUN again with a change at a time, and tell what became of each loss.

    Up to that time both runs must be equal, which is checked. The new run is a run like any other; its folder has
    counterfactual.csv, a row per loss, and counterfactual.png.
    """
    from testbed.cli.machine.virtual_kernel import prepare_clock
    from testbed.exports.futures import futures
    from testbed.exports.source import timeline_of
    from testbed.results import show
    from testbed.results.store import RunFolder
    from testbed.running import run_in
    from testbed.scenario.file import load

    folder = folder_of(run, out)
    scenario = load(folder / "scenario.yaml")
    if not (TIERS[scenario.tier].simulated or scenario.clock == "virtual"):
        raise FadelabError(
            f"{folder.name}: tier {scenario.tier} is real time, whose past cannot be repeated: run the scenario with "
            f"--clock virtual and --set capture=true, or with --tier {names_of(simulated=True)}"
        )
    changed = _changed(scenario, at_s, settings)
    prepare_clock(changed)
    here = timeline_of(folder)
    last_s = max((frame.sent_ns for frame in here.frames), default=0) / 1e9
    if at_s >= last_s:
        raise FadelabError(f"--at {at_s:g}: {folder.name} sends nothing after {last_s:.1f} s: name an earlier time")
    with show.progress([f"{scenario.name} {' '.join(settings)}"]) as [bar]:
        summary = run_in(RunFolder.create(out, changed), changed, bar)
    other = Path(str(summary.folder))
    found = futures(here, timeline_of(other), round(at_s * 1e9))
    _write(found, other / "counterfactual.csv")
    words = f"{', '.join(settings)} from {at_s:g} s"
    runs, title = [("as it was", folder), (words, other)], f"{folder.name}: {words}"
    show.plot(runs, other / "counterfactual.png", title, summary.flows[0].direction)
    if json_:
        print(json.dumps(_plain(folder, found, summary)))
    else:
        _show(folder, found, summary, at_s)


COMMAND = counterfactual


def _changed(scenario: "Scenario", at_s: float, settings: tuple[str, ...]) -> "Scenario":
    """Return the scenario with one more change. Raises ScenarioError."""
    from testbed.scenario.file import validate
    from testbed.scenario.settings import split_setting

    if not settings:
        raise FadelabError("nothing changes: name a key and its value with --set, as in link.scheme=none")
    change = {"at_s": at_s, "set": dict(split_setting(setting, Path.cwd()) for setting in settings)}
    raw = scenario.plain()
    raw["changes"] = [*raw.get("changes", ()), change]
    return validate(raw, "counterfactual", base=Path.cwd())


def _write(found: "Futures", target: Path) -> None:
    import csv

    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        lives = ("fate", "transmissions", "lost_frames", "acked_ms")
        names = [f"{name}_{where}" for where in ("here", "there") for name in lives]
        writer.writerow(["lost_in", "time_s", "link", "flow", "connection", "octet", "length", *names])
        for where, losses in (("here", found.here), ("there", found.there)):
            for loss in losses:
                row = [where, f"{loss.time_s:.6f}", loss.side, loss.flow, loss.connection, loss.octet, loss.length]
                # the run that was comes first, whichever lost the frame
                both = (loss.here, loss.there) if where == "here" else (loss.there, loss.here)
                writer.writerow([*row, *(value for life in both for value in _values(life))])


def _values(life: "Life") -> list[Any]:
    return [life.fate, life.transmissions, life.lost_frames, "" if life.acked_ms is None else f"{life.acked_ms:.3f}"]


def _plain(folder: Path, found: "Futures", summary: "Summary") -> dict[str, Any]:
    return {
        "run": folder.name,
        "counterfactual": summary.run,
        "equal": dict(found.equal),
        "losses": {"here": len(found.here), "there": len(found.there)},
        "fates": [
            {"here": here, "there": there, "losses": count} for (here, there), count in sorted(found.table().items())
        ],
        "acked_bytes": {"here": found.acked_here, "there": found.acked_there},
        "folder": summary.folder,
    }


def _show(folder: Path, found: "Futures", summary: "Summary", at_s: float) -> None:
    from rich.console import Console
    from rich.table import Table

    from testbed.exports.futures import FATES

    console = Console(markup=False)
    equal = ", ".join(f"{count:,} {what}" for what, count in found.equal.items())
    console.print(f"Until {at_s:g} s both are one: {equal} are equal.", highlight=False)
    console.print(
        f"From then on {found.acked_here / 1e6:.2f} MB are acknowledged as it was and {found.acked_there / 1e6:.2f} MB "
        f"with the change; {len(found.here)} and {len(found.there)} frames with data are lost.",
        highlight=False,
    )
    counts = found.table()
    columns = [fate for fate in FATES if any(there == fate for _, there in counts)]
    table = Table(box=None, pad_edge=False)
    table.add_column("as it was")
    for fate in columns:
        table.add_column(f"with the change: {fate}" if fate == columns[0] else fate, justify="right")
    for here in FATES:
        row = [counts[here, there] for there in columns]
        if any(row):
            table.add_row(here, *(str(count or "-") for count in row))
    console.print(table)
    for loss in found.here[:_SHOWN]:
        console.print(f"{loss.time_s:8.3f} s {loss.side:4} {_told(loss)}", highlight=False, soft_wrap=True)
    if len(found.here) > _SHOWN:
        console.print(f"... {len(found.here) - _SHOWN} more in the file", highlight=False)
    console.print(
        f"{summary.folder}/  counterfactual.csv: all losses, counterfactual.png", highlight=False, soft_wrap=True
    )


def _told(loss: "Loss") -> str:
    octets = f"{loss.flow} octets {loss.octet} to {loss.octet + loss.length - 1}"
    return f"{octets}: {_life(loss.here)}; with the change {_life(loss.there)}"


def _life(life: "Life") -> str:
    words = {"at once": "they cross at once", "by the link": "the link repairs them", "by TCP": "TCP repairs them"}
    words |= {"open": "they are not acknowledged by the end", "not sent": "they are not sent by the end"}
    acked = "" if life.acked_ms is None else f", acknowledged after {life.acked_ms:.0f} ms"
    return words[life.fate] + acked
