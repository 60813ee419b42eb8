"""Records as line protocol, with what happened in words, and back through a real InfluxDB."""

import math
import time
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from telemetry.influx import Influx
from telemetry.influx.events import Events
from telemetry.influx.line import Encoder, halves
from telemetry.records import ControlRecord, FlowRecord, LinkRecord, PhyRecord, Record, RunRecord, TcpRecord
from tests.harness.records import recorded

TAGS = {"run": "a-run", "tier": "emulated", "scenario": "näme"}
EPOCH_NS = 1_700_000_000_000_000_000
PHY = recorded(PhyRecord, time_ns=7, link="up", snr_db=20.5, cfo_hz=-3.0, per=0.25)

_times = count(time.time_ns())


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            recorded(FlowRecord, time_ns=-2, host="h2", flow="on off", goodput_bps=1.5e-7),
            "flow,flow=on\\ off,host=h2,run=r bytes_received=0i,goodput_bps=1.5e-07,run_s=-2e-09 1699999999999999998\n",
        ),
        (PHY, "phy,link=up,run=r snr_db=20.5,cfo_hz=-3.0,per=0.25 1700000000000000007\n"),
        (replace(PHY, snr_db=math.nan, cfo_hz=-math.inf), "phy,link=up,run=r per=0.25 1700000000000000007\n"),
        (recorded(PhyRecord, time_ns=7, link="up"), ""),
        (
            recorded(ControlRecord, time_ns=5, name="snr_db", value='"a\\'),
            'control,name=snr_db,run=r value="\\"a\\\\" 1700000000000000005\n',
        ),
    ],
)
def test_lines(record: Record, line: str) -> None:
    assert Encoder({"run": "r"}, EPOCH_NS).line(record) == line


def test_lines_counts_what_it_wrote() -> None:
    encoder = Encoder(TAGS, EPOCH_NS)
    empty = recorded(PhyRecord, time_ns=7, link="up")
    assert encoder.lines([PHY, empty, PHY]) == ((encoder.line(PHY) * 2).encode(), 2)
    assert encoder.lines([empty]) == (b"", 0)


def test_names_without_end_do_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telemetry.influx.line._MAX_HEADS", 3)
    encoder = Encoder({}, 0)
    written = [encoder.line(recorded(ControlRecord, name=str(n), value="1")) for n in (*range(10), 0)]
    assert written == [f'control,name={n} value="1" 0\n' for n in (*range(10), 0)]


def tcp(timeouts: int, flow: str = "bulk", time_ns: int = 7) -> TcpRecord:
    return recorded(TcpRecord, time_ns=time_ns, host="h1", flow=flow, cwnd_bytes=14480, timeouts=timeouts)


def test_each_timeout_is_told_once() -> None:
    events = Events()
    counts = [0, 0, 1, 1, 3, 3]
    assert [events.text(tcp(count)) for count in counts] == ["", "", "timeout", "", "2 timeouts", ""]
    # another flow has its own
    assert events.text(tcp(1, "other")) == "timeout"
    # a new connection under the old name begins at nothing
    assert [events.text(tcp(count)) for count in (0, 1)] == ["", "timeout"]


def test_a_change_has_its_name_and_value_without_quotes() -> None:
    events = Events()
    as_they_are = ("12.5", "true", '{"a": 1}', "no JSON")
    for value, said in [('"none"', "none"), *zip(as_they_are, as_they_are, strict=True)]:
        assert events.text(recorded(ControlRecord, time_ns=1, name="what", value=value)) == f"what: {said}"


def test_the_words_are_a_field_of_the_record_they_tell_of() -> None:
    lines, count = Encoder({"run": "r"}, 1000).lines(
        [
            tcp(0),
            tcp(1, time_ns=8),
            recorded(ControlRecord, time_ns=9, name="snr_db", value='"a \\"b\\""'),
            recorded(FlowRecord, time_ns=9, host="h2", flow="bulk", bytes_received=1, goodput_bps=2.0),
        ]
    )
    assert count == 4
    first, second, third, fourth = lines.decode().splitlines()
    assert "text" not in first + fourth
    assert second.endswith(',timeouts=1i,run_s=8e-09,text="timeout" 1008')
    assert third.endswith(',text="snr_db: a \\"b\\"" 1009')


def test_a_run_is_a_line_of_its_own() -> None:
    record = recorded(RunRecord, scheme="slacp", tcp="cubic", seed=7, begins="1790000000000", ends="now")
    line = Encoder({"run": "r", "tier": "model"}, 5).line(record)
    assert line == 'runs,run=r,tier=model scheme="slacp",tcp="cubic",seed=7i,begins="1790000000000",ends="now" 5\n'


# Surrogates cannot be in UTF-8; what becomes of them is of no interest.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.text('\\", =\na', max_size=12)


@given(values=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=9))
def test_halves_are_cut_between_points(values: list[tuple[str, str]]) -> None:
    encoder = Encoder({"run": values[0][1]}, EPOCH_NS)
    lines = [
        encoder.line(recorded(ControlRecord, time_ns=n, name=name, value=value)).encode()
        for n, (name, value) in enumerate(values)
    ]
    first, second = halves(b"".join(lines))
    if len(values) == 1:
        assert (first, second) == (lines[0], b"")
    else:
        middle = len(lines) // 2
        assert (first, second) == (b"".join(lines[:middle]), b"".join(lines[middle:]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tag=TEXT, name=TEXT, value=TEXT)
@example(tag="two\nlines, a=b c", name="end\\", value="")
@example(tag="\\\\", name="back\\slash", value='quo"te')
def test_any_string_comes_back(influx: Influx, tag: str, name: str, value: str) -> None:
    time_ns = next(_times)
    influx.write(
        Encoder({"run": tag}, 0).line(recorded(ControlRecord, time_ns=time_ns, name=name, value=value)).encode()
    )
    (series,) = influx.query(f'SELECT value FROM "control" WHERE time = {time_ns} GROUP BY *')
    assert series.values == [[time_ns, value]]
    # "" where there is no such tag
    assert series.tags.get("run", "") == as_tag(tag)
    assert series.tags.get("name", "") == as_tag(name)


def as_tag(text: str) -> str:
    """What the docstring of line.py says of tags."""
    return text.replace("\n", "\\n").rstrip("\\")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    number=st.integers(-(1 << 63), (1 << 63) - 1),
    real=st.floats(allow_nan=False, allow_infinity=False),
    flag=st.booleans(),
)
def test_any_number_comes_back(influx: Influx, number: int, real: float, flag: bool) -> None:
    time_ns = next(_times)
    record = recorded(
        LinkRecord, time_ns=time_ns, link="up", scheme="none", established=flag, throughput_bps=real, packets=number
    )
    influx.write(Encoder({}, 0).line(record).encode())
    (series,) = influx.query(f'SELECT packets, throughput_bps, established FROM "link" WHERE time = {time_ns}')
    # JSON has one kind of number: 38361712241478410 may stand for 3.836171224147841e+16
    ((_, packets, throughput_bps, established),) = series.values
    assert (packets, float(throughput_bps), established) == (number, real, flag)
