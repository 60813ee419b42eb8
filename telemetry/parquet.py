"""Records in Parquet, written and read: one file per measurement, in the run's folder.

The import of pyarrow takes 0.2 s, so it is delayed until the first rows.
"""

import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from typing_extensions import override

from common.closing import Closing
from telemetry.records import RECORD_TYPES, Record, field_types

_ROWS_PER_GROUP = 16_384
#: prefix of the files with the records of a second link's stations
SECOND = "second-"
#: a day of a hundred flows; and what of them is in memory at once
_MOST_ROWS = 100_000_000
_BATCH_ROWS = 4096
_LONGEST_TEXT = 10_000
#: the types of columns in which a field of a record may be
_COLUMNS: dict[type[Any], tuple[str, ...]] = {
    int: ("int64",),
    float: ("double", "int64"),
    str: ("string", "large_string"),
    bool: ("bool",),
}


class RecordsError(ValueError):
    """A file of records that cannot be read; one line."""


class ParquetSink(Closing):
    """A sink (`sinks.py`) that appends to `<folder>/<prefix><measurement>.parquet`.

    `tags` go into each file's metadata.
    A file exists once its measurement has a record, and is readable once the sink is closed.
    """

    def __init__(self, folder: Path, tags: dict[str, str], prefix: str = "") -> None:
        self._folder = folder
        self._prefix = prefix
        self._tags = tags
        self._rows: dict[type[Record], list[Record]] = {kind: [] for kind in RECORD_TYPES}
        self._writers: dict[type[Record], Any] = {}
        #: records taken, by measurement
        self.counts = {kind.measurement: 0 for kind in RECORD_TYPES}

    def begin(self, epoch_ns: int) -> None:
        """Take the run's time 0 (Unix time, ns) into the files' metadata."""
        self._tags = {**self._tags, "epoch_ns": str(epoch_ns)}

    def write(self, record: Record) -> None:
        """Append one record."""
        rows = self._rows[type(record)]
        rows.append(record)
        self.counts[record.measurement] += 1
        if len(rows) >= _ROWS_PER_GROUP:
            self._flush(type(record))

    def close(self) -> None:
        """Write the buffered records and close the files; where one fails, the others still."""
        with ExitStack() as stack:
            for kind, rows in self._rows.items():
                stack.callback(self._end, kind, bool(rows))

    def _end(self, kind: type[Record], flush: bool) -> None:
        try:
            if flush:
                self._flush(kind)
        finally:
            if (writer := self._writers.pop(kind, None)) is not None:
                writer.close()

    def _flush(self, kind: type[Record]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = self._rows[kind]
        schema = _schema(kind).with_metadata(self._tags)
        if kind not in self._writers:
            path = self._folder / f"{self._prefix}{kind.measurement}.parquet"
            self._writers[kind] = pq.ParquetWriter(path, schema, compression="zstd")
        columns = [pa.array([getattr(row, field.name) for row in rows], field.type) for field in schema]
        self._writers[kind].write_table(pa.Table.from_arrays(columns, schema=schema))
        rows.clear()


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas in this process, which has no use for it.

    pyarrow asks pandas about every value that it is given, and imports it for that if it is installed: 0.4 s and 60 MB.
    """
    sys.meta_path.insert(0, _NoPandas())


class _NoPandas(MetaPathFinder):
    @override
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not for this process", name=fullname)


def read_records(folder: Path, measurement: str, needs: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the rows of one measurement of a run; empty without such records.

    `needs` are the columns that a file must have beside those that make it one. Others that are absent are None, as in
    files of older versions. Raises RecordsError.
    """
    [kind] = (kind for kind in RECORD_TYPES if kind.measurement == measurement.removeprefix(SECOND))
    path = folder / f"{measurement}.parquet"
    if not path.exists():
        return []
    try:
        with open_records(path) as file:
            return list(rows_of(file, kind, needs))
    except RecordsError as error:
        raise RecordsError(f"{folder}: {path.name} {error}") from None


def open_records(path: Path) -> Any:
    """Open a file of records, a `pyarrow.parquet.ParquetFile`. Raises RecordsError, which does not name the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            rows = file.metadata.num_rows
            texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        if rows > _MOST_ROWS:
            raise RecordsError(f"has {rows:,} rows, {_MOST_ROWS:,} at most")
        # a small file may repeat a text of any length: here it is there once, and looked at before it is repeated
        return pq.ParquetFile(path, read_dictionary=texts)
    except RecordsError:
        raise
    except PermissionError:
        raise RecordsError("cannot be read: Permission denied") from None
    except (pa.ArrowException, OSError, ValueError):
        # the latter of names that are no text
        raise RecordsError("is incomplete: the run was killed or goes on") from None


def rows_of(file: Any, kind: type[Record], needs: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the rows of an open file of records; columns that it does not have are None, as in older versions.

    Raises RecordsError, which does not name the file, for a file of other records, and without a column of `needs`.
    """
    import pyarrow as pa

    types = field_types(kind)
    held = file.schema_arrow.names
    present = [name for name in types if name in held]
    if not {"time_ns", *kind.tags} <= set(present) or len(set(held)) < len(held):
        raise RecordsError(f"holds no {kind.measurement} records")
    if not all(_type(file.schema_arrow.field(name)) in _COLUMNS[types[name][0]] for name in present):
        raise RecordsError(f"holds no {kind.measurement} records")
    if lacks := [name for name in needs if name not in present]:
        raise RecordsError(f"lacks {', '.join(lacks)}: it is of another version")
    absent = {name: None for name in types if name not in held}
    needed = [name for name in present if not types[name][1]]
    try:
        for batch in file.iter_batches(_BATCH_ROWS, columns=present):
            texts = [column.dictionary for column in batch.columns if pa.types.is_dictionary(column.type)]
            if any(batch.column(name).null_count for name in needed) or any(map(_has_long, texts)):
                raise RecordsError("is damaged")
            for row in batch.to_pylist():
                yield {**absent, **row}
    except (pa.ArrowException, OSError, ValueError):
        # the latter of text that is none
        raise RecordsError("is damaged") from None


def _type(field: Any) -> str:
    import pyarrow as pa

    return str(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)


def _has_long(texts: Any) -> bool:
    """Whether an array has a text that is longer than any of ours."""
    import pyarrow.compute as pc

    return (pc.max(pc.binary_length(texts)).as_py() or 0) > _LONGEST_TEXT


def _schema(kind: type[Record]) -> Any:
    import pyarrow as pa

    types = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    return pa.schema([pa.field(name, types[hint]) for name, (hint, _) in field_types(kind).items()])
