"""`doctor`: the parts of fadelab that work on this machine, the missing ones, and the remedies.

The looks are declared by topic in the files of this folder, as `LOOKS`. Those of `--radio` are in `usrp/`.

Rules kept: nothing is changed (the namespace and the TAP made to see whether they can be made live in a child process
and die with it). A capability is tried, not guessed from version numbers. A check that fails names its remedy. Slow
looks (other programs, GNU Radio's imports) run side by side.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from testbed.cli.doctor.look import Check

#: takes the number of looks done, that of all, and the name of the newest
Report = Callable[[int, int, str], None]


@click.command(epilog="docs/hardware.md")
@click.argument("scenario", type=options.PATH, required=False)
@click.option("--radio", "radios", multiple=True, metavar="ARGS", help="Ask these real radios: ST's, then BAS's.")
@options.settings("With --radio: change a value of SCENARIO, as in radio.cabled=true.")
@click.option("--cable", is_flag=True, help="With two radios: let them measure each other by short bursts.")
@options.out
@options.json_
def doctor(
    scenario: Path | None, radios: tuple[str, ...], settings: tuple[str, ...], cable: bool, out: Path, json_: bool
) -> int:
    """Look at this machine: what works, what is missing, how to get it.

    Changes nothing. The exit status is 0 when everything `demo` needs is there, else 2. With --radio: when everything
    is there that SCENARIO (default: scenarios/fading-link.yaml) needs on these radios. Their settings are made, and
    nothing is transmitted but for --cable, which draws its measurements into a folder below --out.
    """
    from testbed.cli.doctor.look import MAIN_JOB, RADIO_JOB

    if not radios and (scenario is not None or settings):
        raise click.UsageError("SCENARIO and --set are for the radios: name them, as in --radio serial=31A1.")
    if cable and len(radios) != 2:
        raise click.UsageError("--cable measures between two radios: --radio for ST and --radio for BAS.")
    with progress() as report:
        found = radio_checks(radios, scenario, settings, report) if radios else checks(report)
        if cable and ready(found):
            from testbed.cli.doctor.usrp.cable import cable_checks

            report(1, 1, "the radios measure each other")
            found += cable_checks(radios, scenario, settings, out)
    if json_:
        import json
        from dataclasses import asdict

        rows = [asdict(check) | {"required": check.required} for check in found]
        click.echo(json.dumps({"ready": ready(found), "checks": rows}, indent=2))
    else:
        render(found, job=RADIO_JOB if radios else MAIN_JOB)
    return 0 if ready(found) else 2


COMMAND = doctor


def checks(report: Report | None = None) -> "list[Check]":
    """Return all checks, those the demo needs first; takes seconds, `report` is called after each look."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from common.registry import Registry
    from testbed.cli.doctor.look import Look

    looks = list(Registry("testbed.cli.doctor", "LOOKS", Look).values())
    found = {look.name: look.check() for look in looks if look.forks}
    with ThreadPoolExecutor(max_workers=4) as pool:
        running = {pool.submit(look.check): look.name for look in looks if not look.forks}
        for future in as_completed(running):
            found[running[future]] = future.result()
            if report is not None:
                report(len(found), len(looks), running[future])
    return sorted((found[look.name] for look in looks), key=lambda check: not check.required)


def radio_checks(
    radios: Sequence[str], scenario: Path | None, settings: Sequence[str], report: Report | None = None
) -> "list[Check]":
    """Return the checks of a run on these radios; takes ten seconds a radio. Raises FadelabError."""
    from testbed.cli.doctor import usrp
    from testbed.cli.doctor.usrp.this_machine import case_of

    return sorted(usrp.checks(case_of(radios, scenario, settings, report)), key=lambda check: not check.required)


def ready(found: "Sequence[Check]") -> bool:
    """Whether everything is there that the job needs which decides the exit status."""
    return all(check.ok for check in found if check.required)


def render(found: "Sequence[Check]", console: "Console | None" = None, job: str = "demo") -> None:
    """Print a table, the remedies, and a closing line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if console is None:
        # a file is wide, unless COLUMNS says otherwise: wrapped lines are hard to grep
        console = Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=160)
    table = Table("", "what", box=None, pad_edge=False, header_style="bold")
    for heading in ("seen", "needed for"):
        table.add_column(heading, overflow="fold")
    for check in found:
        mark, style = ("ok", "green") if check.ok else ("--", "red" if check.required else "yellow")
        # Text: the output of other programs may hold square brackets
        table.add_row(Text(mark, style), check.name, Text(check.detail), Text(", ".join(check.needed_for), "dim"))
    console.print(table)
    missing = sorted((check for check in found if not check.ok), key=lambda check: not check.required)
    if missing:
        console.print("\n[bold]To get what is missing:[/bold]")
        for check in missing:
            note = "" if check.required else " (optional)"
            console.print(Text(f"  {check.name}{note}: {check.remedy}"), soft_wrap=True)
    needs = [check.name for check in missing if check.required]
    verdict = f"is missing {', '.join(needs)}" if needs else "has everything it needs"
    console.print(Text(f"\n{job} {verdict}", "bold red" if needs else "bold green"), soft_wrap=True)


@contextmanager
def progress() -> Iterator[Report]:
    """Show a progress line on stderr when that is a terminal."""

    def line(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    try:
        yield lambda done, of, name: line(f"{done}/{of} {name}")
    finally:
        line("")
