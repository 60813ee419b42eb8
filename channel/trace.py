"""Channel traces in Parquet files.

Read first: `docs/channel.md`, section "Channel traces" (the schema), and `channel/replay.py` (the meaning of
a trace).

Rules: a file names its format and version, and a reader refuses unknown ones. Every fault of a file is a TraceError
that names the file. A writer streams: it never holds more than one row group, and another one that is being written.

Left out: a receiver's other figures, which are telemetry.
"""

from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from channel.replay import Outcome, Trace, TraceError
from common.closing import Closing

FORMAT: Final = "fadelab-channel-trace"
VERSION: Final = 1
#: of a Parquet file
_MAGIC: Final = b"PAR1"

SCHEMA: Final = pa.schema(
    [
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("nbytes", pa.int32(), nullable=False),
        pa.field("snr_db", pa.float32()),
        pa.field("cfo_hz", pa.float32()),
        pa.field("outcome", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    ]
)

#: a day of a thousand frames a second: a small file may claim any number
_MOST_ROWS: Final = 100_000_000
_OUTCOMES: Final = {outcome.value: outcome for outcome in Outcome}
_FORM: Final[dict[str, Any]] = {"compression": "zstd", "write_page_checksum": True}
#: rows that become columns together, a tenth of a millisecond of work, for a station writes its trace while its frames
#: are due; and those of a group, some milliseconds. Until a file's end, Parquet keeps 4 kB of each of its groups
_ROWS_PER_CHUNK: Final = 512
_ROWS_PER_GROUP: Final = 4096


class TraceWriter(Closing):
    """Writes a trace row by row; a context manager.

    A file is readable once closed; leaving the context closes it, also by an exception, so all rows are kept.
    `link` names the link and its direction, `producer` the program that wrote the file. Groups are written in a thread
    of `aside`, if there is one: the file lies on a disk, which takes its time. An error of the disk is then raised with
    the next group and whenever the writer is closed; no group behind the one that failed is written.
    """

    def __init__(
        self,
        path: Path,
        *,
        link: str,
        producer: str,
        rows_per_group: int = _ROWS_PER_GROUP,
        aside: Executor | None = None,
    ) -> None:
        self.rows = 0
        self._aside = aside
        #: the group that is being written aside
        self._writing: Future[None] | None = None
        self._rows_per_group = rows_per_group
        #: a row is added in one step, so that Ctrl-C cannot interrupt it
        self._buffered: list[tuple[Any, ...]] = []
        self._rows_per_chunk = min(_ROWS_PER_CHUNK, rows_per_group)
        self._chunks: list[Any] = []
        self._last_time_ns: int | None = None
        metadata = {"format": FORMAT, "version": str(VERSION), "link": link, "producer": producer}
        self._schema = SCHEMA.with_metadata(metadata)
        self._writer = pq.ParquetWriter(path, self._schema, **_FORM)
        # pyarrow's modules for the first rows would delay due frames by a tenth of a second
        _table([(at, at, at / 3, at / 7, Outcome.OK.value) for at in range(_ROWS_PER_CHUNK)], self._schema)

    def write(
        self,
        time_ns: int,
        nbytes: int,
        outcome: Outcome,
        snr_db: float | None = None,
        cfo_hz: float | None = None,
    ) -> None:
        """Append one frame; raise TraceError, without appending, if its time is before the last frame's."""
        if self._last_time_ns is not None and time_ns < self._last_time_ns:
            raise TraceError(f"time_ns is {time_ns} after {self._last_time_ns}; write frames in order of time.")
        self._last_time_ns = time_ns
        self._buffered.append((time_ns, nbytes, snr_db, cfo_hz, outcome.value))
        self.rows += 1
        if len(self._buffered) >= self._rows_per_chunk:
            self._take()
            if len(self._chunks) * self._rows_per_chunk >= self._rows_per_group:
                self.flush()

    def close(self) -> None:
        """Write the buffered rows and the file's footer; a second call does nothing."""
        if self._writer.is_open:
            self.flush()
            self._settle()
            self._writer.close()

    def flush(self) -> None:
        """Write the buffered rows."""
        self._take()
        if not self._chunks:
            return
        group = pa.concat_tables(self._chunks)
        self._settle()
        if self._aside is None:
            self._writer.write_table(group)
        else:
            self._writing = self._aside.submit(self._writer.write_table, group)
        self._chunks.clear()

    def _settle(self) -> None:
        """Wait for the group that is being written aside; raise its error, each time."""
        if self._writing is not None:
            self._writing.result()

    def _take(self) -> None:
        if self._buffered:
            self._chunks.append(_table(self._buffered, self._schema))
            self._buffered.clear()


def _table(rows: list[tuple[Any, ...]], schema: Any) -> Any:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_trace(path: Path, trace: Trace) -> None:
    """Write a whole trace to `path`."""
    with TraceWriter(path, link=trace.link, producer=trace.producer) as writer:
        columns = (trace.time_ns, trace.nbytes, trace.outcome, trace.snr_db, trace.cfo_hz)
        for row in zip(*columns, strict=True):
            writer.write(*row)


def read_trace(path: Path) -> Trace:
    """Return the trace in the file `path`; raise TraceError if it is missing or not valid."""
    try:
        # A context, since an open handle would outlive the error.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            _check_schema(path, schema)
            if file.metadata.num_rows > _MOST_ROWS:
                raise TraceError(f"{path}: has {file.metadata.num_rows:,} frames; a trace has {_MOST_ROWS:,} at most.")
            table = file.read(columns=SCHEMA.names)
            # before each frame gets its own: a small file may repeat a text of any length
            outcomes = pc.unique(table["outcome"]).to_pylist()
            if unknown := next((each for each in outcomes if each not in _OUTCOMES), None):
                known = ", ".join(_OUTCOMES)
                raise TraceError(f"{path}: outcome is {unknown[:40]!r}, known are {known}; record it again.")
            columns = table.to_pydict()
    except FileNotFoundError:
        raise TraceError(f"{path}: no such trace; check the path.") from None
    except TraceError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        # the latter of names that are no text
        if _is_another_format(path):
            raise TraceError(f"{path}: no channel trace; `fadelab import-trace` makes one of a text.") from None
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(f"{path}: not a complete Parquet file ({why}); record the trace again.") from None
    try:
        return Trace(
            time_ns=columns["time_ns"],
            nbytes=columns["nbytes"],
            outcome=[_OUTCOMES[name] for name in columns["outcome"]],
            snr_db=columns["snr_db"],
            cfo_hz=columns["cfo_hz"],
            link=_text(schema, "link"),
            producer=_text(schema, "producer"),
        )
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None


def _is_another_format(path: Path) -> bool:
    """Whether a file has octets that begin no Parquet file."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) not in (b"", _MAGIC)
    except OSError:
        return False


def _check_schema(path: Path, schema: Any) -> None:
    if _text(schema, "format") != FORMAT:
        raise TraceError(f"{path}: a Parquet file but not a channel trace; name a file made by `fadelab record`.")
    version = _text(schema, "version")
    if not version.isdecimal() or len(version) > 9 or int(version) < 1:
        raise TraceError(f"{path}: trace version is {version!r}; record the trace again.")
    if int(version) > VERSION:
        raise TraceError(f"{path}: trace version {version}, this fadelab reads up to {VERSION}; update fadelab.")
    for wanted in SCHEMA:
        at = schema.get_field_index(wanted.name)
        if at < 0:
            raise TraceError(f"{path}: column {wanted.name} is missing; record the trace again.")
        found = schema.field(at)
        if found.type != wanted.type or (found.nullable and not wanted.nullable):
            raise TraceError(f"{path}: column is {found}, not {wanted}; record the trace again.")


def _text(schema: Any, key: str) -> str:
    value: bytes = (schema.metadata or {}).get(key.encode(), b"")
    return value.decode(errors="replace")
