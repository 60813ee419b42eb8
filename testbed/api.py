"""fadelab for notebooks and scripts: run scenarios, and load runs as frames of pandas and Polars.

Read first: docs/notebooks.md, and the notebook docs/notebooks/loss-and-repair.ipynb.

    import testbed.api as fadelab

    run = fadelab.run("scenarios/lossy-link.yaml", tier="model", settings={"channel.per": 0.1}, seed=7)
    run.summary["goodput_bps"]
    run.records("link").pandas()
    fadelab.results(fadelab.find("runs", scheme="slacp")).polars()

The module is `testbed.api` and not `fadelab.api`, since the checkout's root holds the launcher, a file named `fadelab`,
where a package of this name would have to stand.

Rules kept: what the command line refuses is refused here, as the same exceptions with the same line; nothing is
printed; a run made here is a run folder as any other. pandas and Polars are imported when their frame is asked for.
"""

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from common.plain_json import object_of
from dashboard.store import Store, Wanted
from testbed.errors import FadelabError
from testbed.paths import root
from testbed.results.metrics import metric
from testbed.results.validity import require_valid
from testbed.running import check_tier, run_once, unused
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Frame", "Run", "find", "open_run", "records", "results", "root", "run", "scenario"]

#: columns that name the run of a row, where a frame holds several runs
_NAMING = ("run", "scenario", "tier", "scheme", "tcp", "seed")


def _require(library: str) -> None:
    if find_spec(library) is None:
        raise FadelabError(f"{library} is not installed: ./fadelab compile installs it")


@dataclass(frozen=True)
class Frame:
    """A table, as an Arrow table and as frames of both libraries."""

    arrow: Any

    def pandas(self) -> "pd.DataFrame":
        """Return a pandas frame with a range index; null becomes NaN in columns of numbers."""
        _require("pandas")
        frame: pd.DataFrame = self.arrow.to_pandas()
        return frame

    def polars(self) -> "pl.DataFrame":
        """Return a Polars frame; it shares memory with the Arrow table where their layouts agree."""
        _require("polars")
        import polars as pl

        frame = pl.from_arrow(self.arrow)
        assert isinstance(frame, pl.DataFrame)
        return frame


class Run:
    """One run in its folder. docs/runs.md defines the values and columns; times are ns since the run's time 0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Its command, seed, versions and machine. Raises FadelabError."""
        return self._json("manifest.json")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Its result. Raises FadelabError for a run without one: it failed, was stopped or goes on."""
        return self._json("summary.json")

    @cached_property
    def scenario(self) -> Scenario:
        """Its scenario, with all defaults; `run` takes it again. Raises FadelabError."""
        return load(self.folder / "scenario.yaml")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of records it has: `tcp`, `flow`, `link`, …, and the channel traces `trace-up` and `trace-down`."""
        return tuple(sorted(path.stem for path in self.folder.glob("*.parquet")))

    def records(self, kind: str) -> Frame:
        """Return its records of one kind, and `time_s` beside `time_ns`. Raises FadelabError."""
        return Frame(self._table(kind))

    def _table(self, kind: str) -> Any:
        if kind not in self.kinds:
            raise FadelabError(f"{self.name}: has no {kind!r} records; it has {', '.join(self.kinds) or 'none'}")
        try:
            table = pq.read_table(self.folder / f"{kind}.parquet")
        except (pa.ArrowException, OSError):
            raise FadelabError(f"{self.name}: {kind}.parquet is incomplete: the run was killed or goes on") from None
        seconds = [at / 1e9 for at in table["time_ns"].to_pylist()]
        return table.add_column(1, "time_s", pa.array(seconds, pa.float64()))

    def _json(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        try:
            return object_of(path.read_text())
        except (OSError, ValueError):
            why = "half written, or damaged" if path.exists() else "the run failed, was stopped or goes on"
            raise FadelabError(f"{self.name}: has no readable {name}: {why}") from None


def scenario(
    path: Path | str,
    *,
    settings: Mapping[str, Any] | None = None,
    tier: str | None = None,
    tcp: str | None = None,
    seed: int | None = None,
) -> Scenario:
    """Return the scenario in a file, changed by settings as in `{"channel.per": 0.1}`. Raises FadelabError."""
    return load(Path(path), _as_text(settings), tier=tier, tcp=tcp, seed=seed)


def run(
    what: Scenario | Path | str,
    *,
    settings: Mapping[str, Any] | None = None,
    tier: str | None = None,
    tcp: str | None = None,
    seed: int | None = None,
    out: Path | str = "runs",
    allow_late: bool = False,
) -> Run:
    """Run a scenario, or the file of one with these changes, and return the run in its new folder below `out`.

    A setting without effect is a UserWarning. Raises FadelabError, HostError or PhyError, in one line, for a request
    that cannot run here, and FadelabError for a run whose data arrived otherwise than sent or, unless `allow_late`,
    that did not keep the clock; its folder is kept.
    """
    if isinstance(what, Scenario):
        if (settings, tier, tcp, seed) != (None,) * 4:
            raise FadelabError("run: give changes with the scenario's file: fadelab.scenario(PATH, settings=...)")
        made = what
    else:
        made = scenario(what, settings=settings, tier=tier, tcp=tcp, seed=seed)
    check_tier(made)
    for line in unused(made):
        warnings.warn(line, UserWarning, stacklevel=2)
    summary = run_once(made, Path(out), lambda progress: None)
    require_valid([summary], allow_late)
    return Run(Path(str(summary.folder)))


def open_run(folder: Path | str) -> Run:
    """Return the run in a folder. Raises FadelabError when it holds none."""
    path = Path(folder).absolute()
    if Store([path.parent]).find(path.name) is None:
        raise FadelabError(f"{folder}: there is no run in this folder")
    return Run(path)


def find(out: Path | str = "runs", words: str = "", **facets: str) -> list[Run]:
    """Return the finished runs below `out`, the oldest first, that match.

    `words` must be in their names, tiers, schemes, scenarios or TCPs; `facets` are exact: `tier`, `scheme`, `scenario`,
    `tcp`. Raises FadelabError for another facet.
    """
    known = ("tier", "scheme", "scenario", "tcp")
    for name in facets:
        if name not in known:
            raise FadelabError(f"find: {name!r} is unknown: choose from {', '.join(known)}")
    rows = Store([Path(out)]).fitting(Wanted(words, facets, finished=True, sort="name"))
    return [Run(Path(out) / row.name) for row in rows]


def results(runs: Iterable[Run]) -> Frame:
    """Return the results of runs, one row each: the numbers and texts of `summary.json`, `link.up.per` for nested ones.

    Lists, such as `flows`, are left out. The duration of a transfer that was cut off is infinite. Raises FadelabError
    for a run without a result.
    """
    rows = []
    for found in runs:
        said = {**found.summary, "run": found.name, "duration_s": metric(found.summary, "duration_s")}
        rows.append({"run": found.name} | dict(_flat(said)))
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Frame(pa.table({name: [row.get(name) for row in rows] for name in names}))


def records(runs: Iterable[Run], kind: str) -> Frame:
    """Return the records of one kind of several runs, below one another; the first columns name the run of each row.

    Raises FadelabError for a run without such records.
    """
    tables = []
    for found in runs:
        table = found._table(kind)
        said = {**found.summary, "run": found.name}
        columns = {name: pa.array([said[name]] * table.num_rows) for name in _NAMING}
        for name, column in zip(table.column_names, table.columns, strict=True):
            # a trace's outcomes are numbered per file; a link record's own scheme goes before that of the result
            columns[name] = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        tables.append(pa.table(columns))
    return Frame(pa.concat_tables(tables) if tables else pa.table({}))


def _flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        elif not isinstance(value, list):
            yield f"{path}{key}", value


def _as_text(settings: Mapping[str, Any] | None) -> list[str]:
    """Return settings as `--set` takes them; JSON is YAML."""
    try:
        return [f"{key}={json.dumps(_plain(value))}" for key, value in (settings or {}).items()]
    except TypeError as error:
        raise FadelabError(f"settings: {error}") from None


def _plain(value: Any) -> Any:
    """Return a path as text, and a number of numpy's as one of Python's."""
    if isinstance(value, Path):
        return str(value)
    return value.item() if hasattr(value, "item") else value
