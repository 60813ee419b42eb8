r"""Records as line protocol.

Read first: InfluxData's line protocol reference, "Special characters" and "Data types".

Rules kept
- Missing values are not written: None, and floats that are not finite, which InfluxDB does not support. A record
  without any value gives no line.
- Field strings are unchanged when read back. So are tags, except for characters that line protocol cannot represent: a
  line feed becomes the two characters `\n`, backslashes at the end are removed, and an empty tag is left out.
- Points of link, TCP and flow have `run_s`, the seconds since the run's time 0, by which runs of different times are
  compared: the databases cannot compute with times.
- Speed: records come at up to thousands per second. One f-string per type, generated from its fields as dataclasses
  generate their methods, writes its lines; escaped tags are cached.

The function generated for PhyRecord, with its f-string in pieces:

    def line(r, heads, epoch_ns):
        fields = (
            f"{f',snr_db={r.snr_db}' if r.snr_db is not None and isfinite(r.snr_db) else ''}"
            f"{f',evm_db={r.evm_db}' if r.evm_db is not None and isfinite(r.evm_db) else ''}" …
        )
        return f"{heads[(r.link,)]}{fields[1:]} {epoch_ns + r.time_ns}\n" if fields else ""
"""

import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from telemetry.influx.events import Events
from telemetry.records import DATABASE_TYPES, DatabaseRecord, FlowRecord, LinkRecord, TcpRecord, field_types

#: the records whose points have their time of the run, too, and the field that has it
ALIGNED = (LinkRecord, TcpRecord, FlowRecord)
RUN_S = "run_s"

#: limit of cached tag sets, in case names never end
_MAX_HEADS = 10_000

_TAG_ESCAPES = str.maketrans({",": "\\,", "=": "\\=", " ": "\\ ", "\n": "\\n"})

#: one point as `Encoder` writes it: tags up to the first bare space, then fields; only strings may contain line feeds
_POINT = re.compile(rb'[^\n]+?(?<!\\) (?:[^"\n]|"(?:[^"\\]|\\.)*")*\n', re.DOTALL)


class Encoder:
    """Encodes the records of one run. Every line has `tags`; the run's time 0 is `epoch_ns` (Unix, ns)."""

    def __init__(self, tags: Mapping[str, str], epoch_ns: int) -> None:
        self._epoch_ns = epoch_ns
        self._events = Events()
        self._kinds = {kind: (_WRITERS[kind], _Heads(kind, tags)) for kind in DATABASE_TYPES}

    def line(self, record: DatabaseRecord) -> str:
        """Return the record's line with its line feed, or an empty string when the record has no value."""
        write, heads = self._kinds[type(record)]
        return write(record, heads, self._epoch_ns)

    def lines(self, records: Iterable[DatabaseRecord]) -> tuple[bytes, int]:
        """Return the lines of many records in UTF-8, and their number.

        A record of an event has its text in the field `text` (`events.py`).
        """
        kinds, epoch_ns = self._kinds, self._epoch_ns
        lines = []
        for record in records:
            write, heads = kinds[type(record)]
            line = write(record, heads, epoch_ns)
            if text := self._events.text(record):
                fields, _, time_ns = line.rpartition(" ")
                line = f'{fields},text="{escape_string(text)}" {time_ns}'
            if line:
                lines.append(line)
        # UTF-8 has no surrogates; a bad name must not cost a batch
        return "".join(lines).encode(errors="replace"), len(lines)


def halves(lines: bytes) -> tuple[bytes, bytes]:
    """Divide the output of an `Encoder` between two points, near the middle."""
    ends = [match.end() for match in _POINT.finditer(lines)]
    middle = ends[len(ends) // 2 - 1] if len(ends) > 1 else len(lines)
    return lines[:middle], lines[middle:]


def escape_tag(value: str) -> str:
    """Return a tag's value in line protocol; empty when it must be left out."""
    return value.translate(_TAG_ESCAPES).rstrip("\\")


def escape_string(value: str) -> str:
    """Return a field's string as written between quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"')


class _Heads(dict[tuple[str, ...], str]):
    """A line's measurement and tags, by the values of the record's own tags."""

    def __init__(self, kind: type[DatabaseRecord], tags: Mapping[str, str]) -> None:
        super().__init__()
        self._kind = kind
        self._tags = tags

    def __missing__(self, values: tuple[str, ...]) -> str:
        if len(self) >= _MAX_HEADS:
            self.clear()
        tags = {**self._tags, **dict(zip(self._kind.tags, values, strict=True))}
        # sorted, so that InfluxDB need not sort them for every point
        pairs = [(name, escape_tag(value)) for name, value in sorted(tags.items())]
        head = ",".join([self._kind.measurement, *(f"{name}={value}" for name, value in pairs if value)]) + " "
        self[values] = head
        return head


_Writer = Callable[[Any, Mapping[tuple[str, ...], str], int], str]


def _writer(kind: type[DatabaseRecord]) -> _Writer:
    parts = [
        _part(name, hint, optional)
        for name, (hint, optional) in field_types(kind).items()
        if name != "time_ns" and name not in kind.tags
    ]
    if kind in ALIGNED:
        parts.append(f",{RUN_S}={{r.time_ns / 1e9}}")
    own = "".join(f"r.{name}," for name in kind.tags)
    source = (
        "def line(r, heads, epoch_ns):\n"
        f"    fields = f'''{''.join(parts)}'''\n"
        f'    return f"{{heads[({own})]}}{{fields[1:]}} {{epoch_ns + r.time_ns}}\\n" if fields else ""\n'
    )
    names: dict[str, Any] = {"isfinite": isfinite, "escape": escape_string}
    exec(compile(source, f"<line of {kind.__name__}>", "exec"), names)
    return names["line"]  # type: ignore[no-any-return]


def _part(name: str, hint: type[Any], optional: bool) -> str:
    """Return the piece of an f-string that writes a comma and one field."""
    at = f"r.{name}"
    value = {int: f"{{{at}}}i", float: f"{{{at}}}", bool: f"{{{at}}}", str: f'"{{escape({at})}}"'}[hint]
    checks = [f"{at} is not None"] * optional + [f"isfinite({at})"] * (hint is float)
    field = f",{name}={value}"
    return f"{{f'{field}' if {' and '.join(checks)} else ''}}" if checks else field


_WRITERS = {kind: _writer(kind) for kind in DATABASE_TYPES}
