"""The tables of plugins in the documents: `./fadelab docs --write` writes them, from the registries.

A document has a table between two comments, and nothing else there:

    <!-- table: queues -->
    <!-- end of table -->

Rule kept: a plugin is one file, so a table in the checkout may lack the rows of plugins that came later; the site has
them all. A row of the checkout is as the plugin declares it, and no row is of a plugin that is gone (a test).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from channel.capacity import CAPACITY_MODELS
from channel.errors import ERROR_MODELS
from dashboard.charts import ALL
from dashboard.grafana_boards.boards import files
from flowgraphs.phys import PHYS
from hosts.kernel.profiles import PROFILES
from hosts.tcp.growth import GROWTHS
from hosts.tcp.profiles import USER_PROFILES
from hosts.tcp.recovery import RECOVERIES
from hosts.workloads import WORKLOADS
from hosts.workloads.programs import PROGRAMS
from linklayer.filters import FILTERS
from linklayer.queues import QUEUES
from linklayer.schemes import SCHEMES
from telemetry.records import LinkRecord
from testbed.cli.app import cli
from testbed.cli.docs.keys import cell, keys_of_dataclass
from testbed.papers.paper import PAPERS, Paper
from testbed.paths import root
from testbed.scenario.schema import WorkloadPart
from testbed.tiers import TIERS

_REGION = re.compile(r"^(<!-- table: ([a-z-]+) -->\n)(.*?)^(?=<!-- end of table -->$)", re.DOTALL | re.MULTILINE)

#: the columns of a table: heading, and the cell of a plugin
Columns = Mapping[str, Callable[[Any], str]]


def filled(text: str, *, only_present: bool = False) -> str:
    """Return a document with its tables as they are now; `only_present`: of plugins that have a row there."""

    def fill(region: re.Match[str]) -> str:
        head, rows = table(region[2])
        kept = [row for row in rows if not only_present or f"\n{_mark(row)}" in region[3]]
        return region[1] + head + "".join(kept)

    return _REGION.sub(fill, text)


def generated(checkout: Path, *, only_present: bool = False) -> dict[Path, str]:
    """Return all documents with tables, and Grafana's files; `only_present`: of the plugins that are there already."""
    boards = checkout / "dashboard" / "grafana"
    named_in = "".join(path.read_text() for path in boards.rglob("*.json")) if only_present else None
    found = {path: filled(path.read_text(), only_present=only_present) for path in documents(checkout)}
    return found | {boards / name: text for name, text in files(named_in=named_in).items()}


def write(checkout: Path) -> list[Path]:
    """Write them; return the paths of those that have changed."""
    changed = {
        path: text for path, text in generated(checkout).items() if not path.exists() or path.read_text() != text
    }
    for path, text in changed.items():
        path.write_text(text)
    return list(changed)


def documents(checkout: Path) -> list[Path]:
    """Return the documents with tables."""
    found = [*checkout.glob("*.md"), *(checkout / "docs").rglob("*.md")]
    return sorted(path for path in found if _REGION.search(path.read_text()))


def names() -> tuple[str, ...]:
    """Return the names of all tables."""
    return tuple(_TABLES)


@cache
def table(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the head of a table and its rows."""
    plugins, columns = _TABLES[name]
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    return head, tuple(
        f"| {' | '.join(cell(make(plugin)) for make in columns.values())} |\n" for plugin in plugins.values()
    )


def _mark(row: str) -> str:
    """Return the beginning of a row, up to the name."""
    return row[: row.index("`", row.index("`") + 1) + 1]


def _named(attribute: str) -> Callable[[Any], str]:
    return lambda plugin: f"`{getattr(plugin, attribute)}`"


def _keys(plugin: Any) -> str:
    """Return the options of a plugin, each with its default and its range."""
    shared = WorkloadPart.model_fields if plugin.name in WORKLOADS else {}
    found = [
        f"`{name}` ({', '.join(filter(None, (default, kind if kind[0] == '`' else kind.partition(', ')[2])))})"
        for name, kind, default, _ in keys_of_dataclass(plugin.options)
        if name not in shared
    ]
    return ", ".join(found)


def _options_at(plugin: Any) -> str:
    return f"`link.{plugin.options_key}`" if fields(plugin.options) else ""


def _packets(scheme: Any) -> str:
    """Return what a scheme does with packets, and its own queue."""
    own = dict(scheme.queue) | ({"ip_queue_bytes": scheme.ip_queue_bytes} if scheme.ip_queue_bytes else {})
    words = ", ".join(f"`{key}: {value}`" for key, value in own.items())
    return f"{scheme.summary}; own queue: {words}" if own else str(scheme.summary)


def _ends(plugin: Any) -> str:
    return " and ".join({"mobile": "ST", "base": "BAS"}[end] for end in plugin.ends)


def _usage(command: click.Command) -> str:
    arguments = [each.human_readable_name for each in command.params if isinstance(each, click.Argument)]
    return f"`{' '.join([str(command.name), *arguments])}`"


def _purpose(command: click.Command) -> str:
    """Return a command's help in a line, with a link to the document that its epilog names."""
    more = f" ([{command.epilog.partition('#')[0]}]({command.epilog}))" if command.epilog else ""
    return f"{command.get_short_help_str(1000).rstrip('.')}{more}"


def _page(paper: Paper) -> str:
    page = f"papers/{paper.name.replace('_', '-')}.md"
    return f"[{page}]({page})" if (root() / "docs" / page).exists() else ""


def _summary(plugin: Any) -> str:
    return str(plugin.summary)


def _rows(prefix: str, options: type[Any]) -> dict[str, tuple[str, ...]]:
    """Return the keys of a dataclass in words, by their paths."""
    return {f"{prefix}{name}": (f"`{prefix}{name}`", *words) for name, *words in keys_of_dataclass(options)}


_WITH_OPTIONS: list[Any] = [*SCHEMES.values(), *FILTERS.values()]
#: options of schemes and packet filters, by their place in a scenario
_LINK_OPTIONS = {k: v for each in _WITH_OPTIONS for k, v in _rows(f"link.{each.options_key}.", each.options).items()}
_KEY: Columns = {"key": itemgetter(0), "value": itemgetter(1), "default": itemgetter(2), "meaning": itemgetter(3)}
_NAME = _named("name")
_SUMMARY: Columns = {"summary": _summary}
_KEYS: Columns = {"keys (defaults and ranges)": _keys}

_TABLES: Mapping[str, tuple[Mapping[str, Any], Columns]] = {
    "schemes": (SCHEMES, {"`scheme`": _NAME, "options": _options_at, "packets": _packets}),
    "link-options": (_LINK_OPTIONS, _KEY),
    "link-record": (_rows("", LinkRecord), {"column": itemgetter(0), "meaning": itemgetter(3)}),
    "packet-filters": (FILTERS, {"filter": _NAME, "stands at": _ends, "options": _options_at, **_SUMMARY}),
    "queues": (QUEUES, {"`kind`": _NAME, **_KEYS, "an arrival is": _summary}),
    "error-models": (ERROR_MODELS, {"`model`": _NAME, **_KEYS, "a frame is lost": _summary}),
    "capacity-models": (CAPACITY_MODELS, {"`kind`": _NAME, **_KEYS, "capacity": _summary}),
    "phys": (PHYS, {"`phy`": _NAME, **_KEYS, "on the air": _summary}),
    "workloads": (WORKLOADS, {"`kind`": _NAME, **_KEYS, "traffic": _summary}),
    "programs": (
        PROGRAMS,
        {"`tool`": _NAME, "Debian package": lambda program: program.package, "traffic": _summary},
    ),
    "kernel-profiles": (PROFILES, {"`tcp`": _NAME, **_SUMMARY}),
    "tcp-profiles": (USER_PROFILES, {"profile": _NAME, **_SUMMARY}),
    "recoveries": (RECOVERIES, {"`recovery`": _NAME, **_KEYS, **_SUMMARY}),
    "growths": (GROWTHS, {"`growth`": _NAME, **_KEYS, **_SUMMARY}),
    "tiers": (
        TIERS,
        {
            "tier": _NAME,
            "medium": _summary,
            "clock": lambda tier: " or ".join(tier.clocks),
            "TCP": lambda tier: "Linux's over TAP, or our own" if tier.kernel else "our own",
        },
    ),
    "charts": (
        ALL,
        {"chart": _NAME, "place": lambda chart: str(chart.page or ""), "shows": lambda chart: chart.description},
    ),
    "papers": (PAPERS, {"paper": _NAME, "": lambda paper: paper.title, "its cells, and what differs and why": _page}),
    "commands": (cli.commands, {"command": _usage, "purpose": _purpose}),
}
