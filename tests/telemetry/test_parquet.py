"""Records in Parquet files."""

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telemetry import parquet
from telemetry.parquet import ParquetSink, RecordsError, read_records
from telemetry.records import RECORD_TYPES, FlowRecord, LinkRecord, Record, TcpRecord
from tests.harness.processes import files_of_at_most
from tests.harness.records import full, recorded

TAGS = {"run": "a-run", "tier": "emulated", "scenario": "näme"}
FULL: list[Record] = [full(kind) for kind in RECORD_TYPES]


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[ParquetSink]:
    with ParquetSink(tmp_path, TAGS) as opened:
        yield opened


@pytest.mark.parametrize("kind", RECORD_TYPES, ids=lambda kind: kind.measurement)
def test_there_and_back(kind: type[Record], tmp_path: Path) -> None:
    for records in ([full(kind)], [recorded(kind)], [recorded(kind), full(kind), recorded(kind)]):
        with ParquetSink(tmp_path, TAGS) as sink:
            for record in records:
                sink.write(record)
        rows = read_records(tmp_path, records[0].measurement)
        assert rows == [asdict(record) for record in records]
        assert [type(records[0])(**row) for row in rows] == records


def test_columns_have_the_fields_order_and_types(sink: ParquetSink, tmp_path: Path) -> None:
    for kind in RECORD_TYPES:
        sink.write(recorded(kind))
    sink.close()
    for kind in RECORD_TYPES:
        schema = pq.read_schema(tmp_path / f"{kind.measurement}.parquet")
        assert schema.names == [field.name for field in fields(kind)]
        assert str(schema.field("time_ns").type) == "int64"
    assert str(pq.read_schema(tmp_path / "tcp.parquet").field("ssthresh_bytes").type) == "int64"
    assert str(pq.read_schema(tmp_path / "phy.parquet").field("per").type) == "double"


def test_counts_by_measurement(sink: ParquetSink) -> None:
    assert sink.counts == dict.fromkeys(["tcp", "flow", "link", "belief", "phy", "access", "station", "control"], 0)
    for record in (FULL[0], FULL[0], FULL[2]):
        sink.write(record)
    others = dict.fromkeys(["flow", "belief", "phy", "access", "station", "control"], 0)
    assert sink.counts == {"tcp": 2, "link": 1, **others}


def test_tags_and_epoch_are_in_every_file(sink: ParquetSink, tmp_path: Path) -> None:
    sink.begin(1_700_000_000_123_456_789)
    for record in FULL:
        sink.write(record)
    sink.close()
    expected = {**TAGS, "epoch_ns": "1700000000123456789"}
    for kind in RECORD_TYPES:
        metadata = pq.read_schema(tmp_path / f"{kind.measurement}.parquet").metadata
        assert {key.decode(): value.decode() for key, value in metadata.items()}.items() >= expected.items()


def test_nothing_written_leaves_no_file(tmp_path: Path) -> None:
    with ParquetSink(tmp_path, TAGS) as sink:
        sink.close()
        sink.close()
    assert list(tmp_path.iterdir()) == []
    assert read_records(tmp_path, "tcp") == []


def test_rows_stay_in_order_over_many_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_ROWS_PER_GROUP", 10)
    with ParquetSink(tmp_path, TAGS) as sink:
        for n in range(95):
            sink.write(recorded(FlowRecord, time_ns=n, host="h2", flow="bulk", bytes_received=n))
        assert (tmp_path / "flow.parquet").exists()
    assert pq.ParquetFile(tmp_path / "flow.parquet").num_row_groups == 10
    assert [row["time_ns"] for row in read_records(tmp_path, "flow")] == list(range(95))


def test_on_a_full_disk_the_other_files_are_whole(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, TAGS)
    few = recorded(FlowRecord)
    for number in range(2000):
        sink.write(recorded(LinkRecord, time_ns=number**3))
    sink.write(few)
    with files_of_at_most(8192), pytest.raises(OSError, match="File too large"):
        sink.close()
    assert read_records(tmp_path, "flow") == [asdict(few)]


def changed(folder: Path, change: str) -> None:
    """Change the records of a folder's senders as a stranger may."""
    path = folder / "tcp.parquet"
    table = pq.read_table(path)
    flow = table.schema.get_field_index("flow")
    match change:
        case "other columns":
            table = table.select(["time_ns", "cwnd_bytes"])
        case "without":
            table = table.drop_columns(["cwnd_bytes"])
        case "twice":
            table = table.append_column("flow", table["flow"])
        case "of another type":
            table = table.set_column(flow, "flow", pa.array([1] * len(table)))
        case "null":
            table = table.set_column(flow, "flow", pa.nulls(len(table), pa.string()))
        case "no text":
            table = table.set_column(flow, "flow", pa.array([b"\xff"] * len(table)).cast(pa.string(), safe=False))
        case "long":
            table = table.set_column(flow, "flow", pa.array(["a" * 20_000] * len(table)))
    pq.write_table(table, path)
    if change == "cut":
        path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("other columns", "tcp.parquet holds no tcp records"),
        ("twice", "tcp.parquet holds no tcp records"),
        ("of another type", "tcp.parquet holds no tcp records"),
        ("without", "tcp.parquet lacks cwnd_bytes: it is of another version"),
        ("null", "tcp.parquet is damaged"),
        ("no text", "tcp.parquet is damaged"),
        ("long", "tcp.parquet is damaged"),
        ("cut", "tcp.parquet is incomplete"),
    ],
)
def test_records_of_strangers_are_refused_in_one_line(change: str, complaint: str, tmp_path: Path) -> None:
    with ParquetSink(tmp_path, TAGS) as sink:
        for number in range(9):
            sink.write(replace(full(TcpRecord), time_ns=number))
    changed(tmp_path, change)
    with pytest.raises(RecordsError, match=complaint) as refused:
        read_records(tmp_path, "tcp", ("cwnd_bytes",))
    assert "\n" not in str(refused.value)


def test_columns_that_an_older_version_does_not_have_are_none(tmp_path: Path) -> None:
    with ParquetSink(tmp_path, TAGS) as sink:
        sink.write(full(TcpRecord))
    changed(tmp_path, "without")
    assert read_records(tmp_path, "tcp") == [{**asdict(full(TcpRecord)), "cwnd_bytes": None}]


def test_a_small_file_of_very_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_MOST_ROWS", 8)
    with ParquetSink(tmp_path, TAGS) as sink:
        for number in range(9):
            sink.write(replace(full(TcpRecord), time_ns=number))
    with pytest.raises(RecordsError, match=r"tcp\.parquet has 9 rows, 8 at most"):
        read_records(tmp_path, "tcp")
