"""`explain`: the lost frames of a run, and the story of one, hop by hop."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.sides import SIDES
from common.units import number_of
from testbed.cli import options
from testbed.cli.runs import RUN, folder_of
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from testbed.exports.losses import Losses
    from testbed.exports.story import Event, Loss, Story

_NONE_LOST = "no such frame was lost: leave out --direction, --flow or --fate"
#: losses that the screen shows
_SHOWN = 30
#: fates in the column of repairs
_REPAIRED = {"open": "not by the end", "lost": "not", "at once": "needed no repair"}


def _fates() -> list[str]:
    from testbed.exports.story import ALL_FATES

    return [_option(fate) for fate in ALL_FATES]


@click.command(epilog="docs/explain.md")
@click.argument("run", type=RUN)
@click.option("--loss", "number", type=click.IntRange(min=1), help="The story of this loss, by its number in the list.")
@click.option("--octet", type=click.IntRange(min=0), help="The story of this payload octet of a flow, from 0.")
@click.option("--time", "time_s", type=options.Finite(), help="The story of the loss nearest to this time, s.")
@click.option("--direction", type=click.Choice(SIDES), help="Only losses in this direction.")
@click.option("--flow", help="Only losses of this flow; with --octet: the flow, by default the first one.")
@click.option("--connection", type=click.IntRange(min=0), help="With --octet: of several connections, which.")
@click.option("--fate", type=options.Names(_fates), help="Only losses of which this became.")
@click.option("--all", "all_", is_flag=True, help="List every lost frame: those without data of TCP, too.")
@options.out
@options.json_
def explain(
    run: str,
    number: int | None,
    octet: int | None,
    time_s: float | None,
    direction: str | None,
    flow: str | None,
    connection: int | None,
    fate: str | None,
    all_: bool,
    out: Path,
    json_: bool,
) -> None:
    """List the lost frames of RUN, or tell the story of one, hop by hop: from TCP to the air and back.

    A run of tier model is simulated again, once: its folder keeps the frames. A real-time run needs the captures of
    `capture: true`.
    """
    from testbed.exports.losses import Losses
    from testbed.exports.source import timeline_of

    if sum(each is not None for each in (number, octet, time_s)) > 1:
        raise FadelabError("--loss, --octet and --time each choose a story: give one of them")
    if connection is not None and octet is None:
        raise FadelabError("--connection chooses an octet: give --octet, too")
    one = number is not None or octet is not None
    idle = {
        "--all": all_ and (one or time_s is not None),
        "--flow": flow is not None and number is not None,
        "--direction": direction is not None and one,
        "--fate": fate is not None and one,
    }
    for option in (option for option, is_idle in idle.items() if is_idle):
        raise FadelabError(f"{option} is of the list, and one story is asked for: leave it out")
    folder = folder_of(run, out)
    losses = Losses(timeline_of(folder))
    if octet is not None:
        _tell(losses.of_octet(flow or next(iter(losses.flows), ""), connection or 0, octet), json_)
    elif number is not None:
        _tell(losses.story(number), json_)
    elif time_s is not None and flow is None and fate is None:
        nearest = losses.nearest(time_s, direction or "")
        if nearest is None:
            raise FadelabError(f"{folder.name}: {_NONE_LOST}")
        _tell(losses.story(nearest), json_)
    else:
        found = _fitting(losses, direction, flow, fate)
        if time_s is None:
            _list(folder.name, len(losses), found, all_, json_)
        elif found:
            _tell(losses.story(min(found, key=lambda loss: abs(loss.frame.sent_ns / 1e9 - time_s)).number), json_)
        else:
            raise FadelabError(f"{folder.name}: {_NONE_LOST}")


COMMAND = explain


def _option(fate: str) -> str:
    return fate.lower().replace(" ", "-")


def _fitting(losses: "Losses", direction: str | None, flow: str | None, fate: str | None) -> "list[Loss]":
    if flow is not None and flow not in losses.flows:
        raise FadelabError(f"--flow {flow}: there is none; the flows are {', '.join(losses.flows) or 'none'}")
    return [
        loss
        for loss in losses.all
        if direction in (None, loss.frame.side)
        and (flow is None or (loss.packet is not None and loss.packet.flow == flow))
        and fate in (None, _option(loss.fate))
    ]


# -- for people --------------------------------------------------------------------------------------------------


def _list(run: str, total: int, found: "Sequence[Loss]", all_: bool, json_: bool) -> None:
    from testbed.exports.story import content_of, octets_of

    if json_:
        import json

        print(json.dumps({"run": run, "lost_frames": total, "losses": [loss.plain() for loss in found]}))
        return
    from rich.console import Console

    from testbed.results.grid import grid

    with_data = [loss for loss in found if loss.packet is not None and octets_of(loss.packet) is not None]
    listed = found if all_ else with_data
    shown = listed if all_ else listed[:_SHOWN]
    table = grid(run, padding=(0, 1))
    table.add_column("loss", justify="right", no_wrap=True)
    table.add_column("time (s)", justify="right", no_wrap=True)
    for heading in ("link", "flow", "lost", "how", "repaired"):
        table.add_column(heading, no_wrap=heading not in ("flow", "lost"))
    for loss in shown:
        flow = "" if loss.packet is None else loss.packet.flow
        what = content_of(loss.frame, loss.packet).removeprefix("octets ")
        cells = (str(loss.number), f"{loss.frame.sent_ns / 1e9:.3f}", loss.frame.side, flow, what, loss.frame.fate)
        table.add_row(*cells, _REPAIRED.get(loss.fate, loss.fate))
    console = Console(markup=False)
    console.print(table, highlight=False)
    if not all_ and len(listed) > len(shown):
        console.print(f"... {len(listed) - len(shown)} more with data: narrow the list, or show --all", highlight=False)
    without = len(found) - len(with_data)
    told = f"{number_of(len(with_data), 'lost frame')} with data of TCP{_counted(with_data)}; {without} without"
    console.print(f"{told}{'' if all_ or not without else ' (--all lists them, too)'}.", highlight=False)
    if shown:
        console.print(f"--loss {shown[0].number} tells the story of the first.", highlight=False)


def _tell(story: "Story", json_: bool) -> None:
    if json_:
        import json

        print(json.dumps(story.plain()))
        return
    from rich.console import Console

    from testbed.results.grid import grid

    console = Console(markup=False)
    console.print(story.sentence(), highlight=False)
    table = grid("", padding=(0, 1))
    table.add_column("time (s)", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("place", no_wrap=True)
    table.add_column("what")
    began_ns = story.events[0].time_ns
    for event in story.events:
        since_ms = (event.time_ns - began_ns) / 1e6
        style = _style(event)
        table.add_row(f"{event.time_ns / 1e9:.6f}", f"+{since_ms:.1f}", event.place, event.words(), style=style)
    console.print(table, highlight=False)
    if len(story.losses) > 1:
        console.print(f"Losses of this story: {', '.join(map(str, story.losses))}.", highlight=False)


def _style(event: "Event") -> str:
    from testbed.exports.story import LOST, Carried, Dropped

    lost = isinstance(event, Dropped) or (isinstance(event, Carried) and event.fate in LOST)
    return "red" if lost else ""


def _counted(losses: "Sequence[Loss]") -> str:
    counts = Counter(_REPAIRED.get(loss.fate, loss.fate) for loss in losses)
    told = ", ".join(f"{count} {fate}" for fate, count in counts.most_common())
    return f" (repaired {told})" if told else ""
