"""`import-trace`: loss and capacity traces of other programs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli import options
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from channel.replay import Trace

_FORMATS = ("marks", "numbers", "csv", "mahimahi")


@click.command("import-trace", epilog="docs/exchange.md")
@click.argument("file", type=options.FILE)
@click.option("--format", "format_", type=click.Choice(_FORMATS), help="Default: by the file's name and content.")
@click.option("-o", "--output", type=options.FILE, help="Default: FILE's name with .parquet, beside FILE.")
@click.option("--interval-ms", type=options.Finite(min=0.000_001), default=1.0, show_default=True)
@click.option("--bytes", "nbytes", type=click.IntRange(1, 65_535), default=1500, show_default=True)
@click.option("--lost", type=click.Choice(("0", "1")), default="1", show_default=True, help="Mark of a lost packet.")
@options.json_
def import_trace(
    file: Path, format_: str | None, output: Path | None, interval_ms: float, nbytes: int, lost: str, json_: bool
) -> None:
    """Make a channel trace of FILE, a loss trace of another program, for error model `trace`.

    FILE has a mark, 0 or 1, per packet, or it is CSV with a header. With --format numbers it has the numbers of the
    packets that arrived. A packet-delivery trace of Mahimahi needs no conversion: it is checked, and the settings that
    use it are printed. --interval-ms and --bytes are the distance and the size of packets where FILE has none.
    """
    import json

    from channel.replay import TraceError
    from channel.trace import write_trace

    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FadelabError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FadelabError(f"{file}: is no text; a recording of samples is read by `fadelab replay`") from None
    chosen = format_ or _format_of(file, text)
    notes: list[str] = []
    if chosen == "mahimahi":
        found = _capacity(file, text)
    else:
        try:
            trace, notes = _losses(chosen, text, interval_ns=round(interval_ms * 1e6), nbytes=nbytes, lost=lost)
        except TraceError as error:
            hint = "; --format numbers reads the numbers of the packets that arrived" if format_ is None else ""
            raise FadelabError(f"{file}: {error}{hint if _is_numbers(text) else ''}") from None
        target = output or file.with_suffix(".parquet")
        try:
            write_trace(target, trace)
        except OSError as error:
            raise FadelabError(f"{target}: cannot be written: {error.strerror}") from None
        found = {**_described(trace, target), "notes": notes}
    if json_:
        print(json.dumps({"format": chosen, **found}))
        return
    click.echo(f"{file}: {chosen}, {found['summary']}")
    settings = " ".join(f"--set {key}={value}" for key, value in found["settings"].items())  # type: ignore[attr-defined]
    for note in notes:
        click.echo(note)
    click.echo(f"use it with {settings}")


COMMAND = import_trace


def _format_of(file: Path, text: str) -> str:
    """Return the format of a text: a table by its name or its letters, marks by their digits."""
    head = text[:10_000]
    if file.suffix.lower() == ".csv" or any(character.isalpha() for character in head):
        return "csv"
    return "marks" if set(head) <= set("01, \t\r\n") else "mahimahi"


def _is_numbers(text: str) -> bool:
    return all(word.isdecimal() for word in text[:10_000].split())


def _losses(chosen: str, text: str, *, interval_ns: int, nbytes: int, lost: str) -> "tuple[Trace, list[str]]":
    """Return the trace, and what its reader should know of how it was read."""
    from channel.loss_traces import parse_csv, parse_marks, parse_numbers

    if chosen == "numbers":
        return parse_numbers(text, interval_ns=interval_ns, nbytes=nbytes), []
    if chosen == "marks":
        return parse_marks(text, interval_ns=interval_ns, nbytes=nbytes, lost=lost), []
    trace, columns = parse_csv(text, interval_ns=interval_ns, nbytes=nbytes)
    notes = []
    if columns.time_at is None:
        notes.append(f"no column with times: packets are {interval_ns / 1e6:g} ms apart")
    elif columns.names[columns.time_at] in ("time", "timestamp"):
        notes.append(f"column {columns.names[columns.time_at]} was read as seconds")
    if columns.size_at is None:
        notes.append(f"no column with sizes: packets have {nbytes} octets")
    if columns.ignored:
        notes.append(f"ignored columns: {', '.join(columns.ignored)}")
    return trace, notes


def _described(trace: "Trace", target: Path) -> dict[str, object]:
    from channel.replay import Outcome

    lost = sum(outcome is not Outcome.OK for outcome in trace.outcome)
    bursts = sum(
        outcome is not Outcome.OK and (index == 0 or trace.outcome[index - 1] is Outcome.OK)
        for index, outcome in enumerate(trace.outcome)
    )
    mean = f", in bursts of {lost / bursts:.2f} on average" if bursts else ""
    return {
        "output": str(target),
        "packets": len(trace),
        "lost": lost,
        "bursts": bursts,
        "summary": f"{len(trace)} packets, {lost} lost ({100 * lost / len(trace):.2f} %){mean}; written to {target}",
        "settings": {
            "channel.errors.model": "trace",
            "channel.errors.path": str(target),
            "channel.errors.by": "index",
        },
    }


def _capacity(file: Path, text: str) -> dict[str, object]:
    from channel.capacity.mahimahi import PACKET_BYTES, MahimahiOptions, parse_opportunities, rates_of
    from common.units import MS, ns
    from testbed.results.show import rate

    try:
        times_ms = parse_opportunities(text)
    except ValueError as error:
        raise FadelabError(f"{file}: {error}; --format names another format") from None
    interval_ms = MahimahiOptions().interval_ms
    peak_bps = max(rates_of(times_ms, ns(interval_ms)))
    mean_bps = len(times_ms) * PACKET_BYTES * 8 * 1000 / times_ms[-1]
    return {
        "packets": len(times_ms),
        "duration_s": times_ms[-1] / 1000,
        "mean_bps": mean_bps,
        "peak_bps": peak_bps,
        "summary": (
            f"{len(times_ms)} packets of {PACKET_BYTES} octets in {times_ms[-1] * MS / 1e9:g} s, {rate(mean_bps)} on "
            f"average, up to {rate(peak_bps)} in {interval_ms:g} ms"
        ),
        "settings": {
            "channel.assignment.kind": "mahimahi",
            "channel.assignment.path": str(file),
            "channel.rate_bps": peak_bps,
        },
    }
