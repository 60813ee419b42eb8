"""`export`: a run's packets, frames and samples for other programs, or those of one octet as text."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli import options
from testbed.cli.runs import RUN, folder_of
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from testbed.exports.timeline import Timeline

#: suffix of the file of each format; "text" goes to the screen
_SUFFIXES = {"qlog": ".sqlog", "perfetto": ".perfetto.json", "text": ".txt"}


@click.command(epilog="docs/exchange.md")
@click.argument("run", type=RUN)
@click.option("--format", "format_", type=click.Choice(tuple(_SUFFIXES)), required=True)
@options.out
@click.option(
    "-o", "--output", type=options.FILE, help="Default: the run's name with the format's suffix; text: stdout."
)
@click.option("--flow", help="With --octet: the flow; default: the first one of the scenario.")
@click.option("--octet", type=click.IntRange(min=0), help="Only what carries this payload octet, counted from 0.")
@click.option(
    "--connection", type=click.IntRange(min=0), default=0, help="With --octet: of several connections, which."
)
def export(
    run: str, format_: str, out: Path, output: Path | None, flow: str | None, octet: int | None, connection: int
) -> None:
    """Export RUN, from TCP's octets to frames and samples.

    qlog: events in JSON text sequences. perfetto: a trace that https://ui.perfetto.dev opens. text: a line per event.

    A run of tier model is simulated again. A real-time run needs the captures of `capture: true`, and samples those of
    `radio.record: true`.
    """
    from testbed.exports.perfetto import to_perfetto
    from testbed.exports.qlog import to_qlog
    from testbed.exports.source import timeline_of
    from testbed.sources import fadelab_version

    if octet is None and (flow is not None or connection):
        raise FadelabError("--flow and --connection choose an octet: give --octet, too")
    folder = folder_of(run, out)
    timeline = timeline_of(folder)
    if octet is not None:
        timeline = _following(timeline, flow, octet, connection)
    if format_ == "text":
        lines: Iterable[str] = (f"{line}\n" for line in _lines(timeline))
        if output is None:
            for line in lines:
                click.echo(line, nl=False)
            return
    else:
        lines = (to_qlog if format_ == "qlog" else to_perfetto)(timeline, fadelab_version())
    target = output or Path(f"{folder.name}{_SUFFIXES[format_]}")
    _write(target, lines)
    click.echo(f"{target}: {len(timeline.packets)} packets, {len(timeline.frames)} frames")


COMMAND = export


def _following(timeline: "Timeline", flow: str | None, octet: int, connection: int) -> "Timeline":
    named = flow or next((packet.flow for packet in timeline.packets if packet.flow), "")
    found = timeline.following(named, octet, connection)
    if not found.packets:
        flows = sorted({packet.flow for packet in timeline.packets if packet.flow})
        raise FadelabError(f"no packet of flow {named!r} has octet {octet}; the flows are {', '.join(flows) or 'none'}")
    return found


def _write(target: Path, pieces: Iterable[str]) -> None:
    """Write a file whole or not at all."""
    beside = target.with_name(f".{target.name}.part")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
        beside.replace(target)
    except OSError as error:
        raise FadelabError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)


def _lines(timeline: "Timeline") -> Iterator[str]:
    """Yield a line per event, in order of time."""
    packets = {packet.number: packet for packet in timeline.packets}
    events: list[tuple[int, int, str]] = []

    def add(time_ns: int, words: str, **details: Any) -> None:
        told = ", ".join(f"{key} {value}" for key, value in details.items() if value is not None)
        events.append((time_ns, len(events), f"{words}: {told}" if told else words))

    for what, passings in (("leaves", timeline.sent), ("reaches", timeline.received)):
        for passing in passings:
            packet = packets[passing.packet]
            words = f"packet {packet.number} ({packet.words()}) {what} the sender's host"
            add(passing.time_ns, words, flow=packet.flow or None, seq=packet.seq)
    for frame in timeline.frames:
        name = f"{frame.side}: frame {frame.number}"
        carried = None if frame.packet not in packets else f"{frame.packet} ({packets[frame.packet].words()})"
        add(frame.sent_ns, f"{name} sent, {frame.words()}", packet=carried, bytes=frame.nbytes, fate=frame.fate)
        if frame.samples is not None and frame.heard_ns is not None:
            crc = "ok" if frame.samples.crc_ok else "failed"
            add(frame.heard_ns, f"{name} in the samples", start=frame.samples.start, count=frame.samples.count, crc=crc)
        if frame.arrived_ns is not None:
            add(frame.arrived_ns, f"{name} arrives", fate=None if frame.fate == "ok" else frame.fate)
    for time_ns, _, words in sorted(events):
        yield f"{time_ns / 1e9:12.6f} s  {words}"
