"""`runs`: list, show, compare, save and remove past runs."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli import options
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from rich.table import Table

    from dashboard.store import Row

_SORTABLE = ("started", "name", "scenario", "tier", "scheme", "tcp", "seed", "goodput_bps", "duration_s")
_UNITS = "RPM: round trips per minute; energy by assumed powers: {}"
#: characters of a line; names of runs have 200 at most
_WIDEST = 400


class _Run(click.ParamType[str]):
    """A run: its name below --out, or the path of its folder. The shell completes names."""

    name = "run"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the names of runs below --out that begin so, and paths of folders."""
        from click.shell_completion import CompletionItem

        if "/" in incomplete:
            return [CompletionItem(incomplete, type="dir")]
        out = Path(ctx.params.get("out") or "runs")
        names = sorted(path.parent.name for path in out.glob(f"{incomplete}*/manifest.json"))
        return [CompletionItem(name) for name in names]


RUN = _Run()


def folder_of(run: str, out: Path) -> Path:
    """Return the folder of a run, named, given as a path, or by a part of its name that no other run has.

    Raises FadelabError.
    """
    from dashboard.run_folders import NAME, find, is_run

    path = Path(run)
    root, name = (path.parent, path.name) if "/" in run else (out, run)
    found = find([root], name)
    if found is not None:
        return found
    likely = sorted(path for path in root.glob(f"*{name}*") if is_run(path)) if NAME.fullmatch(name) else []
    if len(likely) == 1:
        return likely[0]
    if likely:
        raise FadelabError(
            f"{run}: {len(likely)} runs in {root} have this in their names, {likely[0].name} and {likely[-1].name} "
            "among them; give more of the name"
        )
    command = shlex.join(["fadelab", "runs", "list", "--out", str(root)])
    raise FadelabError(f"{run}: there is no such run in {root}; `{command}` names its runs")


@click.group(epilog="docs/runs.md#looking-after-runs")
def runs() -> None:
    """List, show, compare, save and remove past runs.

    RUN is the name of a run below --out or a part of it that no other run has, such as its time (141302), or the path
    of its folder.
    """


COMMAND = runs


@runs.command("list")
@click.argument("words", nargs=-1)
@options.out
@click.option("--tier", help="Only runs of this tier.")
@click.option("--scheme", help="Only runs of this link scheme.")
@click.option("--scenario", help="Only runs of the scenario of this name.")
@click.option("--tcp", help="Only runs with this TCP.")
@click.option("--finished/--unfinished", default=None, help="Only runs that came to their end, or that did not.")
@click.option("--sort", type=click.Choice(_SORTABLE), default="started", show_default=True)
@click.option("--ascending", is_flag=True, help="The smallest first.")
@click.option("--limit", type=click.IntRange(min=1), help="At most N runs.")
@options.json_
def list_(
    words: tuple[str, ...],
    out: Path,
    finished: bool | None,
    sort: str,
    ascending: bool,
    limit: int | None,
    json_: bool,
    **facets: str | None,
) -> None:
    """List the runs whose names, tiers, schemes, scenarios and TCPs contain all WORDS."""
    from dataclasses import asdict

    from rich.console import Console

    from dashboard.store import Store, Wanted

    if not out.is_dir():
        raise FadelabError(f"{out}: there is no such folder; name the folder of the runs with --out")
    asked = {name: value or "" for name, value in facets.items()}
    wanted = Wanted(" ".join(words), asked, finished, sort if ascending else f"-{sort}")
    rows = Store([out]).fitting(wanted)
    shown = rows[:limit]
    if json_:
        _print_json({"total": len(rows), "runs": [asdict(row) for row in shown]})
        return
    console = Console(markup=False)
    whole = all(_state(row) == "whole" for row in shown)
    table = _list_of(shown, whole, with_tcp=True)
    # names are whole, also on a narrow terminal: people copy them to other commands. Those of new runs name the TCP
    widest = console.options.update(width=_WIDEST)
    if console.measure(table, options=widest).maximum > console.width:
        table = _list_of(shown, whole, with_tcp=False)
    table.title = f"{len(shown)} of {len(rows)} runs in {out}{', all whole' if whole and shown else ''}"
    console.width = max(console.width, console.measure(table, options=widest).maximum)
    console.print(table)


def _list_of(rows: "Sequence[Row]", whole: bool, with_tcp: bool) -> "Table":
    """Return the table of these runs; without results where all are whole."""
    from testbed.results import show
    from testbed.results.grid import grid

    table = grid("", padding=(0, 1, 0, 0))
    table.add_column("run", no_wrap=True)
    if with_tcp:
        table.add_column("TCP", no_wrap=True)
    for heading in ("goodput", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    if not whole:
        table.add_column("result", max_width=36)
    for row in rows:
        goodput = "" if row.goodput_bps is None else show.rate(row.goodput_bps)
        time = "" if row.duration_s is None else f"{row.duration_s:.1f} s"
        state = () if whole else (_state(row),)
        table.add_row(row.name, *((row.tcp or "",) if with_tcp else ()), goodput, time, *state)
    return table


@runs.command("show")
@click.argument("run", type=RUN)
@options.out
@options.json_
def show_(run: str, out: Path, json_: bool) -> None:
    """Show one run: its result, its origin and its files."""
    from rich.console import Console

    from dashboard.compare import figures
    from dashboard.store import Store
    from testbed.results import show
    from testbed.results.grid import grid
    from testbed.results.quality import Powers

    folder = folder_of(run, out)
    detail = Store([folder.parent]).detail(folder.name)
    manifest, summary = detail["manifest"] or {}, detail["summary"]
    if json_:
        kept = {key: detail[key] for key in ("manifest", "summary", "files", "problem")}
        _print_json({"run": folder.name, "folder": str(folder), **kept})
        return
    console = Console(markup=False)
    origin = grid(folder.name, "", "", show_header=False, padding=(0, 1))
    for label, value in _origin(manifest, summary or {}):
        origin.add_row(label, value)
    console.print(origin, highlight=False)
    if detail["problem"]:
        show.warn(detail["problem"])
    if summary is not None:
        state = _state(Store([folder.parent]).row(folder.name))
        result = grid(f"result: {state}", "figure", padding=(0, 1))
        result.add_column("value", justify="right")
        result.caption = _UNITS.format(Powers())
        for row in figures(summary, None):
            result.add_row(row["figure"], _value(row["a"], row["unit"]))
        console.print(result, highlight=False)
    files = grid("files", "file", padding=(0, 1))
    files.add_column("size", justify="right")
    for file in detail["files"]:
        files.add_row(file["name"], _size(file["bytes"]))
    console.print(files, highlight=False)


@runs.command()
@click.argument("a", type=RUN)
@click.argument("b", type=RUN)
@options.out
@options.json_
def compare(a: str, b: str, out: Path, json_: bool) -> None:
    """Compare two runs: the figures of their results, and the settings in which they differ."""
    from rich.console import Console

    from dashboard.compare import differences, figures
    from dashboard.store import Store, StoreError
    from testbed.results.grid import grid
    from testbed.results.quality import Powers

    folders = [folder_of(run, out) for run in (a, b)]
    stores = [(Store([folder.parent]), folder.name) for folder in folders]
    first, second = (store.detail(name)["summary"] for store, name in stores)
    try:
        settings = differences(*(store.scenario(name) for store, name in stores))
    except StoreError as error:
        raise FadelabError(f"{a}, {b}: {error}") from None
    rows = figures(first, second)
    if json_:
        names = {key: folder.name for key, folder in zip("ab", folders, strict=True)}
        _print_json({**names, "figures": rows, "differences": settings})
        return
    console = Console(markup=False)
    sides = zip("AB", stores, strict=True)
    legend = "\n".join(f"{key}: {name}, {_state(store.row(name))}" for key, (store, name) in sides)
    legend += f"\none run each, so B / A has no interval (campaigns have); {_UNITS.format(Powers())}"
    result = grid("results", "figure", caption=legend, padding=(0, 1))
    for heading in ("A", "B", "B / A"):
        result.add_column(heading, justify="right")
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.3g}"
        result.add_row(row["figure"], _value(row["a"], row["unit"]), _value(row["b"], row["unit"]), ratio)
    console.print(result, highlight=False)
    console.print(_settings_table(settings), highlight=False)


@runs.command("export")
@click.argument("names", nargs=-1, required=True, metavar="RUN [RUN]", type=RUN)
@options.out
@click.option("--html", type=options.FILE, required=True, help="The file to write.")
def export_(names: tuple[str, ...], out: Path, html: Path) -> None:
    """Save one run, or the comparison of two, as one HTML file that needs nothing beside it.

    It has the charts, all figures, the scenario, seed, tier and versions; no paths of this machine and no command line.
    """
    from dashboard.saved_page import Kept, saved_page
    from dashboard.store import Store, StoreError
    from testbed.results.whole_files import write_whole
    from testbed.sources import fadelab_version

    if len(names) > 2:
        raise FadelabError(f"{len(names)} runs: a page shows one run or compares two")
    kept = []
    for folder in (folder_of(name, out) for name in names):
        store = Store([folder.parent])
        try:
            kept.append(
                Kept(folder.name, store.detail(folder.name), store.scenario(folder.name), store.picture(folder.name))
            )
        except StoreError as error:
            raise FadelabError(f"{folder.name}: {error}") from None
    try:
        write_whole(html, saved_page(kept, fadelab_version()))
    except OSError as error:
        raise FadelabError(f"{html}: cannot be written: {error.strerror}") from None


@runs.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN...", type=RUN)
@options.out
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(names: tuple[str, ...], out: Path, yes: bool) -> None:
    """Remove the folders of runs, for good. Asks first.

    A run that goes on stays, and so does a folder in which a person has put something. Either all named runs are
    removed, or none.
    """
    from testbed.results.removal import check_removable
    from testbed.results.removal import remove as remove_folders

    found = {name: folder_of(name, out) for name in names}
    folders = list(dict.fromkeys(found.values()))
    if yes and (part := next((name for name, folder in found.items() if Path(name).name != folder.name), None)):
        raise FadelabError(f"{part}: with --yes, a run has to be named whole: {found[part].name}")
    for folder in folders:
        check_removable(folder)
    if not yes:
        for folder in folders:
            nbytes = sum(path.stat().st_size for path in folder.iterdir())
            click.echo(f"{folder}  {_size(nbytes)}", err=True)
        if not click.confirm(f"Remove {'it' if len(folders) == 1 else f'these {len(folders)} runs'}?", err=True):
            click.echo("nothing was removed", err=True)
            return
    remove_folders(folders)


def _print_json(values: Mapping[str, Any]) -> None:
    import json

    print(json.dumps(values))


def _state(row: Any) -> str:
    if row.problem:
        return str(row.problem)
    marks = (
        "corrupt" if row.intact is False else "",
        "" if row.finished else "cut",
        "late" if row.on_time is False else "",
        "steered" if row.controlled else "",
    )
    return ", ".join(mark for mark in marks if mark) or "whole"


def _origin(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield where a run comes from, a line each."""
    said = {**manifest, **summary}
    for key in ("scenario", "tier", "scheme", "tcp", "seed", "started"):
        if key in said:
            yield key, str(said[key])
    if isinstance(command := manifest.get("command"), list):
        yield "command", " ".join(map(str, command))
    versions = manifest.get("versions")
    if isinstance(versions, Mapping):
        yield "versions", ", ".join(f"{name} {number}" for name, number in versions.items())
    yield from ((key, str(manifest[key])) for key in ("cores", "cpus") if key in manifest)


def _value(value: float | None, unit: str) -> str:
    from testbed.results.show import rate

    if value is None:
        return ""
    if unit == "bit/s":
        return rate(value)
    return f"{value:.4g} {unit}" if unit else f"{value:g}"


def _settings_table(settings: list[dict[str, Any]]) -> "Table | str":
    from testbed.results.grid import grid

    if not settings:
        return "The settings are the same."
    table = grid("settings", "key", "A", "B", padding=(0, 1))
    for row in settings:
        table.add_row(row["key"], *("" if row[side] is None else str(row[side]) for side in ("a", "b")))
    return table


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"
