"""Past runs, read from their folders (docs/runs.md).

Rules kept
- Every folder is listed; a fault of its files is its `problem`, in one line.
- A folder is read again when one of its files has changed, and only then.
- A folder may be somebody else's: nothing in it leads to other files, or takes more time and memory than its size says.

Left out: traces, captures and recordings, which are listed as files and read by other programs.
"""

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from yaml import YAMLError

from common import plain_json, plain_yaml
from dashboard.charts import offered
from dashboard.curves import Curves, Picture
from dashboard.hub import RunInfo
from dashboard.run_folders import NAME, PARTS, find, is_part, is_run
from telemetry.parquet import RecordsError, open_records, rows_of
from telemetry.records import RECORD_TYPES, PhyRecord, Record

#: the columns for sorting and for filters of the list
FACETS = ("tier", "scheme", "scenario", "tcp")
PAGE = 50

_KEPT_CURVES = 4
#: of manifest, result and scenario; common/plain_json.py and plain_yaml.py have further limits
_MOST_BYTES = 1 << 26


class StoreError(RuntimeError):
    """A run, or a part of it, is missing or cannot be read; one line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list; unknown values are None."""

    name: str
    started: str | None = None
    scenario: str | None = None
    tier: str | None = None
    scheme: str | None = None
    tcp: str | None = None
    seed: int | None = None
    goodput_bps: float | None = None
    throughput_bps: float | None = None
    duration_s: float | None = None
    on_time: bool | None = None
    finished: bool = False
    intact: bool | None = None
    #: whether it was changed by a control
    controlled: bool = False
    #: why it has no result, or the file that cannot be read; empty: no problem
    problem: str = ""


SORTABLE = tuple(field.name for field in fields(Row))


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter of a list; empty fields do not filter."""

    text: str = ""
    facets: Mapping[str, str] | None = None
    finished: bool | None = None
    #: a column, with - in front to begin with the largest
    sort: str = "-started"
    #: from 1
    page: int = 1


class Store:
    """The run folders below `roots`. May be shared between threads."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)
        self._lock = threading.Lock()
        self._rows: dict[Path, tuple[object, Row]] = {}
        self._pictures: OrderedDict[Path, tuple[object, Picture]] = OrderedDict()

    # -- the list --------------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Return all runs, the newest first."""
        with self._lock:
            found = {}
            for path in self._folders():
                stamp = _stamp(path)
                known = self._rows.get(path)
                found[path] = known if known is not None and known[0] == stamp else (stamp, _row(path))
            self._rows = found
        return sorted((row for _, row in found.values()), key=lambda row: row.name, reverse=True)

    def list(self, wanted: Wanted) -> dict[str, Any]:
        """Return one page of the matching runs, their number, and the values for filters."""
        rows = self.rows()
        fitting = _fitting(rows, wanted)
        first = (wanted.page - 1) * PAGE
        return {
            "runs": fitting[first : first + PAGE],
            "total": len(fitting),
            "page": wanted.page,
            "page_size": PAGE,
            "facets": {
                name: sorted({value for row in rows if (value := getattr(row, name)) is not None}) for name in FACETS
            },
        }

    def fitting(self, wanted: Wanted) -> Sequence[Row]:
        """Return all matching runs, regardless of pages."""
        return _fitting(self.rows(), wanted)

    # -- one run ---------------------------------------------------------------------------------------------

    def find(self, name: str) -> Path | None:
        """Return the folder of a run, or None."""
        return find(self._roots, name)

    def row(self, name: str) -> Row:
        """Return the row of a run. Raises StoreError."""
        return _row(self.folder(name))

    def folder(self, name: str) -> Path:
        """Return the folder of a run. Raises StoreError."""
        path = self.find(name)
        if path is None:
            raise StoreError("there is no run of this name")
        return path

    def plain(self, name: str) -> Path:
        """Return the folder of a run, for other programs to read. Raises StoreError also for one with links."""
        path = self.folder(name)
        try:
            linked = next((part.name for part in path.iterdir() if part.is_symlink()), None)
        except OSError as error:
            raise StoreError(f"the folder cannot be read: {error.strerror}") from None
        if linked is not None:
            raise StoreError(f"{linked} cannot be read: it is a link")
        return path

    def detail(self, name: str) -> dict[str, Any]:
        """Return the details of a run that are text. Raises StoreError for an unknown run."""
        path = self.folder(name)
        row = _row(path)
        manifest, summary = _tolerant(path / "manifest.json"), _tolerant(path / "summary.json")
        return {
            "info": _info(row, manifest, summary, _recorded(path)),
            "manifest": manifest,
            "summary": summary,
            "scenario": _text_of(path / "scenario.yaml"),
            "files": _files(path),
            "problem": row.problem,
        }

    def scenario(self, name: str) -> dict[str, Any]:
        """Return the scenario of a run. Raises StoreError."""
        return _scenario(self.folder(name))

    def picture(self, name: str) -> Picture:
        """Return the curves of a run. Raises StoreError for an unknown run."""
        path = self.folder(name)
        stamp = _stamp(path)
        with self._lock:
            known = self._pictures.get(path)
            if known is not None and known[0] == stamp:
                self._pictures.move_to_end(path)
                return known[1]
        picture = _draw(path)
        with self._lock:
            self._pictures[path] = stamp, picture
            while len(self._pictures) > _KEPT_CURVES:
                self._pictures.popitem(last=False)
        return picture

    def parquet(self, name: str, measurement: str) -> Path:
        """Return the file with a run's records of one kind. Raises StoreError when it is missing or cannot be read."""
        path = self.folder(name) / f"{measurement}.parquet"
        _parquet(path)
        return path

    def _folders(self) -> Iterator[Path]:
        seen = set()
        for root in self._roots:
            try:
                paths = sorted(root.iterdir())
            except OSError:
                # a root before its first run
                continue
            for path in paths:
                # the first root takes precedence, as in `find`
                if path.name not in seen and NAME.fullmatch(path.name) and is_run(path):
                    seen.add(path.name)
                    yield path


def _fitting(rows: Sequence[Row], wanted: Wanted) -> list[Row]:
    """Return the matching rows in the wanted order; unknown values come last."""
    words = wanted.text.lower().split()
    facets = {name: value for name, value in (wanted.facets or {}).items() if value}
    fitting = [
        row
        for row in rows
        if all(word in _text(row) for word in words)
        and all(getattr(row, name) == value for name, value in facets.items())
        and wanted.finished in (None, row.finished)
    ]
    column, descending = wanted.sort.removeprefix("-"), wanted.sort.startswith("-")
    known = [row for row in fitting if getattr(row, column) is not None]
    known.sort(key=lambda row: getattr(row, column), reverse=descending)
    return known + [row for row in fitting if getattr(row, column) is None]


def _recorded(path: Path) -> Set[type[Record]]:
    """Return the kinds of records that a run has."""
    return {kind for kind in RECORD_TYPES if _exists(path / f"{kind.measurement}.parquet")}


def _stamp(path: Path) -> object:
    """Return a value that changes with the files of the folder."""
    stamps = []
    for part in (path, *(path / name for name in PARTS)):
        with suppress(OSError):
            found = part.stat()
            stamps.append((part.name, found.st_mtime_ns, found.st_size))
    return tuple(stamps)


def _exists(path: Path) -> bool:
    """Whether a path exists; False in an inaccessible folder, for which Path.exists raises."""
    return os.path.exists(path)  # noqa: PTH110


def _text(row: Row) -> str:
    return " ".join(str(getattr(row, name)) for name in ("name", *FACETS)).lower()


# -- reading -------------------------------------------------------------------------------------------------


def _row(path: Path) -> Row:
    problem = ""
    manifest: Mapping[str, Any] = {}
    summary: Mapping[str, Any] = {}
    try:
        manifest = _json(path / "manifest.json")
        if _exists(path / "summary.json"):
            summary = _json(path / "summary.json")
        else:
            problem = "no result: the run failed, was stopped or goes on"
    except StoreError as error:
        problem = str(error)
    said = {**manifest, **summary}
    if "scheme" not in said:
        # from the result; without one, from the scenario
        try:
            scenario = _scenario(path)
            link = scenario.get("link")
            said = {
                "scheme": link.get("scheme") if isinstance(link, dict) else None,
                "tcp": scenario.get("tcp"),
                **said,
            }
        except StoreError as error:
            problem = problem or str(error)
    values: dict[str, Any] = {}
    for name, kind in _KINDS.items():
        value = said.get(name)
        if value is None:
            continue
        if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
            values[name] = value
        else:
            problem = problem or f"{path.name}: {name} is of the wrong kind"
    changes = said.get("changes")
    controlled = (isinstance(changes, int) and changes > 0) or _exists(path / "control.parquet")
    return Row(path.name, controlled=controlled, problem=problem, **values)


_NUMBER = (int, float)
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("started", "scenario", "tier", "scheme", "tcp"), str),
    "seed": int,
    **dict.fromkeys(("goodput_bps", "throughput_bps", "duration_s"), _NUMBER),
    **dict.fromkeys(("on_time", "finished", "intact"), bool),
}


def _info(
    row: Row, manifest: Mapping[str, Any] | None, summary: Mapping[str, Any] | None, recorded: Set[type[Record]]
) -> dict[str, Any]:
    """Return the run's properties and state (RunInfo in README.md)."""
    title = f"{row.scenario or row.name}, {row.scheme or 'scheme not known'}"
    scenario, scheme, tier, tcp = (tag or "" for tag in (row.scenario, row.scheme, row.tier, row.tcp))
    radio = PhyRecord in recorded
    info = RunInfo(row.name, title, scenario, scheme, tier, tcp, row.seed, radio)
    return asdict(info) | {
        "epoch_ns": _epoch_ns(manifest or {}),
        "live": False,
        "ended": {"error": row.problem or None, "summary": summary},
        "controlled": False,
        "charts": list(offered(recorded, radio=radio)),
    }


def _epoch_ns(manifest: Mapping[str, Any]) -> int | None:
    with suppress(KeyError, TypeError, ValueError):
        return round(datetime.fromisoformat(manifest["epoch"]).timestamp() * 1e3) * 1_000_000
    return None


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a file. Raises StoreError."""
    return _mapping(path, plain_json.parse, "JSON", "object")


def _scenario(path: Path) -> dict[str, Any]:
    """Return the scenario in a run's folder. Raises StoreError."""
    return _mapping(path / "scenario.yaml", plain_yaml.parse, "YAML", "scenario")


def _mapping(path: Path, parse: Callable[[str], Any], form: str, content: str) -> dict[str, Any]:
    _require_part(path)
    try:
        found = parse(path.read_text())
    except FileNotFoundError:
        raise StoreError(f"{path.name} is missing") from None
    except OSError as error:
        raise StoreError(f"{path.name} cannot be read: {error.strerror}") from None
    except (ValueError, YAMLError):
        raise StoreError(f"{path.name} is no {form}: half written, or damaged") from None
    if not isinstance(found, dict):
        raise StoreError(f"{path.name} holds no {content}")
    return found


def _require_part(path: Path) -> None:
    """Raise StoreError unless a path is a plain file, of a size to be read, or cannot be looked at."""
    try:
        found = path.lstat()
    except OSError:
        # as reading it says
        return
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path.name} cannot be read: it is a link, or no file")
    if found.st_size > _MOST_BYTES and path.suffix != ".parquet":
        raise StoreError(f"{path.name} is too large")


def _tolerant(path: Path) -> dict[str, Any] | None:
    with suppress(StoreError):
        return _json(path)
    return None


def _text_of(path: Path) -> str | None:
    with suppress(OSError, StoreError):
        _require_part(path)
        return path.read_text(errors="replace")
    return None


def _files(path: Path) -> list[dict[str, Any]]:
    """Return the files of an accessible folder, with their sizes."""
    with suppress(OSError):
        return [{"name": part.name, "bytes": part.stat().st_size} for part in sorted(path.iterdir()) if is_part(part)]
    return []


def _draw(path: Path) -> Picture:
    """Make the curves of a run's records; files that cannot be read are its problem."""
    curves = Curves()
    problems = []
    for kind in RECORD_TYPES:
        file = path / f"{kind.measurement}.parquet"
        if _exists(file):
            try:
                curves.take(_records(file, kind))
            except StoreError as error:
                problems.append(str(error))
    return curves.picture("; ".join(problems))


def _parquet(path: Path) -> Any:
    """Open a file of records. Raises StoreError."""
    if not _exists(path):
        raise StoreError(f"the run has no {path.name}")
    _require_part(path)
    try:
        return open_records(path)
    except RecordsError as error:
        raise StoreError(f"{path.name} {error}") from None


def _records(path: Path, kind: type[Record]) -> Iterator[Record]:
    """Yield the records in a file. Raises StoreError."""
    with _parquet(path) as file:
        try:
            for row in rows_of(file, kind):
                yield kind(**row)
        except RecordsError as error:
            raise StoreError(f"{path.name} {error}") from None
