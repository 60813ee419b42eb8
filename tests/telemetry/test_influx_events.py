"""What happened, in words: the field `text` of timeouts and of what a person changed."""

from telemetry.influx.events import Events
from telemetry.influx.line import Encoder
from telemetry.records import ControlRecord, FlowRecord, RunRecord, TcpRecord
from tests.harness.records import recorded


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
    assert second.endswith(',timeouts=1i,text="timeout" 1008')
    assert third.endswith(',text="snr_db: a \\"b\\"" 1009')


def test_a_run_is_a_line_of_its_own() -> None:
    record = recorded(RunRecord, scheme="slacp", seed=7, begins="1790000000000", ends="now")
    line = Encoder({"run": "r", "tier": "model"}, 5).line(record)
    assert line == 'runs,run=r,tier=model scheme="slacp",seed=7i,begins="1790000000000",ends="now" 5\n'
