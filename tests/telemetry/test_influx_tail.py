"""Records read back as they arrive."""

import time
from dataclasses import astuple, replace
from math import isnan

import pytest

from telemetry.influx import Influx, InfluxError, InfluxTail
from telemetry.influx.line import Encoder
from telemetry.influx.tail import Arrival
from telemetry.records import ControlRecord, FlowRecord, LinkRecord, PhyRecord, Record, TcpRecord
from tests.harness.records import full, recorded

TAGS = {"run": "a run", "tier": "emulated", "scenario": "s"}
NOW_NS = time.time_ns()
S = 1_000_000_000

RECORDS: list[Record] = [
    full(TcpRecord, time_ns=1, bytes_acked=1 << 60),
    recorded(TcpRecord, time_ns=2, host="h2", flow="bulk", cwnd_bytes=14480),
    full(FlowRecord, time_ns=3, goodput_bps=2.0),
    full(LinkRecord, time_ns=4, established=False),
    full(PhyRecord, time_ns=5, snr_db=20.0, evm_db=None, mode=None),
    recorded(ControlRecord, time_ns=6, name="link.scheme", value='"none"'),
]


def write(influx: Influx, *records: Record, tags: dict[str, str] | None = None) -> None:
    """Write records whose times are after NOW_NS."""
    influx.write(Encoder(TAGS if tags is None else tags, NOW_NS).lines(records)[0])


def at(seconds: float, flow: str = "bulk") -> FlowRecord:
    return recorded(FlowRecord, time_ns=int(seconds * S), host="h2", flow=flow, bytes_received=7, goodput_bps=8.0)


def seconds(arrivals: list[Arrival]) -> list[float]:
    return [(arrival.time_ns - NOW_NS) / S for arrival in arrivals]


def test_records_come_back_as_they_were(influx: Influx) -> None:
    tail = InfluxTail(influx, since_ns=NOW_NS)
    assert tail.poll() == []
    write(influx, *reversed(RECORDS))
    arrivals = tail.poll()
    for (tags, time_ns, record), sent in zip(arrivals, RECORDS, strict=True):
        assert tags == TAGS
        assert time_ns == record.time_ns == NOW_NS + sent.time_ns
        assert replace(record, time_ns=sent.time_ns) == sent
        assert [*map(type, astuple(record))] == [*map(type, astuple(sent))]


def test_each_comes_once_also_out_of_step(influx: Influx) -> None:
    tail = InfluxTail(influx, since_ns=NOW_NS, overlap_s=1.0)
    write(influx, at(10), at(10.1))
    assert seconds(tail.poll()) == [10, 10.1]
    assert tail.poll() == []
    write(influx, at(9.5), at(10, "other"), at(10.2), at(10.1))
    write(influx, at(10.1), tags={**TAGS, "run": "another"})
    assert seconds(tail.poll()) == [9.5, 10, 10.1, 10.2]
    write(influx, at(9.1), at(12))
    assert seconds(tail.poll()) == [12], "9.1 is history"
    write(influx, at(11.5))
    assert seconds(tail.poll()) == [11.5]
    assert tail.poll() == []


def test_of_a_source_that_writes_too_much_the_newest_come(influx: Influx) -> None:
    tail = InfluxTail(influx, since_ns=NOW_NS, newest=3)
    write(influx, *(at(10 + number / 100) for number in range(50)), at(10.2, "quiet"))
    assert seconds(tail.poll()) == [10.2, 10.47, 10.48, 10.49]
    write(influx, at(10.5))
    assert seconds(tail.poll()) == [10.5]


def test_what_was_there_before_is_history(influx: Influx) -> None:
    elapsed_s = (time.time_ns() - NOW_NS) // S
    write(influx, at(elapsed_s - 60))
    tail = InfluxTail(influx)
    assert tail.poll() == []
    write(influx, at(elapsed_s + 60))
    assert seconds(tail.poll()) == [elapsed_s + 60]


def test_what_is_not_in_the_database(influx: Influx) -> None:
    """A rate that was not finite and a name that was empty were not written."""
    tail = InfluxTail(influx, since_ns=NOW_NS)
    write(influx, recorded(FlowRecord, time_ns=1, flow="bulk", bytes_received=5, goodput_bps=float("nan")))
    (arrival,) = tail.poll()
    assert isinstance(arrival.record, FlowRecord)
    assert (arrival.record.host, arrival.record.bytes_received) == ("", 5)
    assert isnan(arrival.record.goodput_bps)


def test_rows_of_other_programs(influx: Influx) -> None:
    tail = InfluxTail(influx, since_ns=NOW_NS)
    influx.write(
        f"flow,host=h2,flow=a goodput_bps=1 {NOW_NS}\n"
        f"flow,host=h2,flow=a,extra=tag goodput_bps=1,bytes_received=2i,more=3 {NOW_NS}\n"
        f"cpu load=1 {NOW_NS}\n".encode()
    )
    (arrival,) = tail.poll()
    assert arrival == (
        {"extra": "tag"},
        NOW_NS,
        recorded(FlowRecord, time_ns=NOW_NS, host="h2", flow="a", bytes_received=2, goodput_bps=1.0),
    )


def test_a_database_that_is_gone(influx: Influx) -> None:
    tail = InfluxTail(influx, since_ns=NOW_NS)
    influx.query(f"DROP DATABASE {influx.database}")
    with pytest.raises(InfluxError, match="database not found: test"):
        tail.poll()
    influx.create_database(30)
    write(influx, at(1))
    assert seconds(tail.poll()) == [1]
