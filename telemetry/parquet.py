"""Writes records to Parquet: one file per measurement, in the run's folder.

The import of pyarrow takes 0.2 s, so it is delayed until the first rows are written.
"""

import sys
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


def read_records(folder: Path, measurement: str) -> list[dict[str, Any]]:
    """Return the rows of one measurement of a run; empty without such records."""
    import pyarrow.parquet as pq

    path = folder / f"{measurement}.parquet"
    return list(pq.read_table(path).to_pylist()) if path.exists() else []


def _schema(kind: type[Record]) -> Any:
    import pyarrow as pa

    types = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    return pa.schema([pa.field(name, types[hint]) for name, (hint, _) in field_types(kind).items()])
