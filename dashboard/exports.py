"""Records as files for other programs: Parquet as in a run's folder, and CSV with the same columns."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from telemetry.parquet import ParquetSink
from telemetry.records import Record


def to_parquet(records: Sequence[Record], tags: Mapping[str, str], epoch_ns: int | None) -> bytes:
    """Return the Parquet file of one or more records of the same kind."""
    with TemporaryDirectory(prefix="fadelab-export-") as folder:
        with ParquetSink(Path(folder), dict(tags)) as sink:
            if epoch_ns is not None:
                sink.begin(epoch_ns)
            for record in records:
                sink.write(record)
        return (Path(folder) / f"{records[0].measurement}.parquet").read_bytes()


def to_csv(parquet: bytes) -> bytes:
    """Return a file of records as CSV: a header, a line per record, missing values empty.

    Raises ValueError when the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(parquet))
    except (pa.ArrowException, OSError):
        raise ValueError("the records are damaged") from None
    target = io.BytesIO()
    pa.csv.write_csv(table, target, pa.csv.WriteOptions(quoting_style="needed", quoting_header="none"))
    return target.getvalue()
