"""Keeps the timeline of a run in its folder, so that the next reader has it at once.

Rules kept

- The file names what it was made of by a digest: the run's files, byte by byte, and the program's sources. A reader
  with another digest does not use it, and makes the timeline anew. Only this checkout can make such a digest, so that
  nobody's story is believed that comes along with a run.
- It is written whole or not at all. A folder that cannot be written to stays as it is, and a file that cannot be read
  counts as none.

The file has two lines, compressed: the digest, and the timeline as columns of values in JSON.
"""

import gc
import gzip
import hashlib
import hmac
import json
import os
import secrets
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from testbed.exports.timeline import Frame, Packet, Passing, Samples, Timeline
from testbed.paths import root
from testbed.source_files import digest_now

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T", bound="DataclassInstance")

NAME: Final = "timeline.json.gz"
#: the files of a run of which a timeline is made
_MADE_OF: Final = (
    *("scenario.yaml", "summary.json", "tcp.parquet", "link.parquet", "phy.parquet"),
    *("air-st.pcapng", "air-bas.pcapng", "iq-up.sigmf-meta", "iq-down.sigmf-meta"),
    *("trace-up.parquet", "trace-down.parquet"),
)
#: longer ones are not kept, and not read: a small file may unpack to them
_MOST_BYTES: Final = 1 << 28
_PASSINGS: Final = ("sent", "received", "crossed")
_PACKET: Final = tuple(field.name for field in fields(Packet) if field.name != "number")
_FRAME: Final = tuple(field.name for field in fields(Frame) if field.name not in ("number", "fields", "samples"))


def digest_of(folder: Path, program: str = "") -> str:
    """Return the digest of all that a timeline of a run is made of, at present.

    `program`: the digest of the program's sources; empty: this one's.
    """
    digest = hmac.new(_secret(), (program or digest_now()).encode(), "sha256")
    for name in _MADE_OF:
        with suppress(FileNotFoundError), (folder / name).open("rb") as file:
            digest.update(f"\n{name} {hashlib.file_digest(file, 'sha256').hexdigest()}".encode())
    return digest.hexdigest()


@cache
def _secret() -> bytes:
    """Return what this checkout alone knows; where it cannot be kept, what this process knows."""
    path, made = root() / ".build" / "timelines.key", secrets.token_bytes(32)
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.stat().st_size != len(made):
            beside = path.with_name(f"{path.name}.{os.getpid()}")
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as key:
                key.write(made)
            if os.geteuid() == 0:
                os.chown(beside, root().stat().st_uid, root().stat().st_gid)
            beside.replace(path)
        return path.read_bytes()
    return made


def read(folder: Path, digest: str) -> Timeline | None:
    """Return the timeline that a run's folder keeps; None: it keeps none, or one of another digest."""
    try:
        with gzip.open(folder / NAME) as file:
            if file.readline(len(digest) + 1) != f"{digest}\n".encode():
                return None
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            return None
        with _uncollected():
            return _timeline(folder.name, json.loads(content))
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return None


def write(folder: Path, digest: str, timeline: Timeline) -> None:
    """Keep a timeline in its run's folder, if that can be written to."""
    content = f"{digest}\n{json.dumps(_plain(timeline), separators=(',', ':'))}"
    if len(content) > _MOST_BYTES:
        return
    beside = folder / f"{NAME}.{os.getpid()}"
    with suppress(OSError):
        try:
            beside.write_bytes(gzip.compress(content.encode(), 1, mtime=0))
            beside.replace(folder / NAME)
        finally:
            beside.unlink(missing_ok=True)


def _plain(timeline: Timeline) -> dict[str, Any]:
    frames = timeline.frames
    kinds: dict[tuple[str, ...], list[list[Any]]] = {}
    for index, frame in enumerate(frames):
        kinds.setdefault(tuple(frame.fields), []).append([index, *frame.fields.values()])
    return {
        "tier": timeline.tier,
        "scheme": timeline.scheme,
        "epoch_ns": timeline.epoch_ns,
        "packets": _columns(timeline.packets, _PACKET),
        "frames": _columns(frames, _FRAME),
        "fields": [[list(names), rows] for names, rows in kinds.items()],
        "samples": [
            [index, each.start, each.count, each.rate_sps, each.crc_ok, dict(each.figures)]
            for index, each in enumerate(frame.samples for frame in frames)
            if each is not None
        ],
        **{name: _columns(getattr(timeline, name), ("time_ns", "packet")) for name in _PASSINGS},
        "records": {kind: _columns(rows, list(rows[0]) if rows else ()) for kind, rows in timeline.records.items()},
    }


def _timeline(run: str, plain: Mapping[str, Any]) -> Timeline:
    frames = plain["frames"]
    count = _length(frames)
    contents: list[Mapping[str, Any]] = [{}] * count
    for names, rows in plain["fields"]:
        for index, *values in rows:
            contents[index] = dict(zip(names, values, strict=True))
    samples: list[Samples | None] = [None] * count
    for index, *rest in plain["samples"]:
        samples[index] = Samples(*rest)
    packets = plain["packets"]
    return Timeline(
        run=run,
        tier=plain["tier"],
        scheme=plain["scheme"],
        epoch_ns=plain["epoch_ns"],
        packets=_objects(Packet, packets | {"number": range(_length(packets))}),
        frames=_objects(Frame, frames | {"number": range(count), "fields": contents, "samples": samples}),
        records={kind: list(_rows(columns)) for kind, columns in plain["records"].items()},
        **{name: _objects(Passing, plain[name]) for name in _PASSINGS},
    )


def _objects(kind: type[_T], columns: Mapping[str, Sequence[Any]]) -> list[_T]:
    """Return objects with the values of columns, which are all their fields.

    Column by column: the constructor of a frozen class takes five times as long, and a run has tens of thousands.
    """
    if set(columns) != {field.name for field in fields(kind)}:
        raise KeyError(kind.__name__)
    length = _length(columns)
    found = [object.__new__(kind) for _ in range(length)]
    for name, values in columns.items():
        if len(values) != length:
            raise ValueError(name)
        deque(map(getattr(kind, name).__set__, found, values), maxlen=0)
    return found


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector away: it would look through a hundred thousand new objects again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _columns(entries: Sequence[Any], names: Iterable[str]) -> dict[str, list[Any]]:
    """Return values of objects or mappings by name."""
    if entries and isinstance(entries[0], Mapping):
        return {name: [entry[name] for entry in entries] for name in names}
    return {name: [getattr(entry, name) for entry in entries] for name in names}


def _rows(columns: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    names = list(columns)
    return (dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True))


def _length(columns: Mapping[str, Sequence[Any]]) -> int:
    return len(next(iter(columns.values())))
