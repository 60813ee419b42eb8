"""What lines make of records, against their definition; and that a stream and a file give the same curves."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.charts import ALL as ALL_CHARTS
from dashboard.charts import CHARTS, Chart, Percentile
from dashboard.curves import ALL, SOURCES, Curves, Mark, Note
from telemetry.records import ControlRecord, FlowRecord, Record
from tests.harness.dashboard_runs import LINK, TCP, records
from tests.harness.records import recorded

S = 1_000_000_000


def drawn(some: list[Record]) -> Curves:
    curves = Curves()
    curves.take(some)
    return curves


def points(curves: Curves, chart: str, label: str) -> list[tuple[float, float | None]]:
    curve = curves.curves[chart, label]
    return [(t, None if math.isnan(v) else v) for t, v in zip(curve.times, curve.values, strict=True)]


def everything(curves: Curves) -> dict[tuple[str, str], list[tuple[float, float | None]]]:
    return {key: points(curves, *key) for key in curves.curves}


# -- the definition, in words, over all rows at once ----------------------------------------------------------


def by_definition(rows: list[tuple[Any, ...]], make: Callable[..., float | None]) -> list[float | None]:
    """For each row: what `make` says of the time and growth since the newest row a second ago, or else the first."""
    found = []
    for row in rows:
        older = [other for other in rows if other[0] <= row[0] - 1] or rows[:1]
        found.append(make(*(now - then for now, then in zip(row, older[-1], strict=True))))
    return found


@given(st.lists(st.tuples(st.integers(1, 2_500_000_000), st.integers(0, 100)), min_size=2, max_size=40))
def test_rates_cover_the_last_second(steps: list[tuple[int, int]]) -> None:
    rows, time_ns, count = [], 0, 0
    for step_ns, more in steps:
        time_ns, count = time_ns + step_ns, count + more
        rows.append((time_ns, count))
    curves = drawn([replace(TCP, time_ns=time_ns, retransmits=count) for time_ns, count in rows])
    in_s: list[tuple[Any, ...]] = [(time_ns / 1e9, count) for time_ns, count in rows]
    expected = by_definition(in_s, lambda span_s, grown: grown / max(span_s, 0.5) if span_s else None)
    found = points(curves, "repairs", "bulk TCP retransmits")
    assert [v for _, v in found] == expected[1:]
    assert [t for t, _ in found] == [t for t, _ in in_s[1:]]


@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0, 1)), min_size=2, max_size=60))
def test_errors_are_shares_of_the_last_second(steps: list[tuple[int, float]]) -> None:
    frames = losses = 0
    rows: list[tuple[Any, ...]] = []
    for number, (sent, share) in enumerate(steps):
        frames, losses = frames + sent, losses + round(sent * share)
        rows.append((number / 10, frames, losses))
    curves = drawn([replace(LINK, time_ns=int(t * S), frames=f, corruption_losses=c) for t, f, c in rows])
    expected = by_definition(rows, lambda span_s, sent, lost: 100 * lost / sent if sent else None)
    while expected and expected[0] is None:
        expected.pop(0)
    found = points(curves, "per", "up before") if expected else []
    assert [v for _, v in found] == expected


@pytest.mark.parametrize(
    ("record", "field", "values", "line", "expected"),
    [
        (
            TCP,
            "retransmits",
            [0, 50, 100, 4, 8],
            "repairs: bulk TCP retransmits",
            [(1, 50), (2, 50), (3, None), (4, 4)],
        ),
        (TCP, "ssthresh_bytes", [None, None, 20, None, 30], "cwnd: bulk ssthresh", [(2, 20), (3, None), (4, 30)]),
        (LINK, "throughput_bps", [1, math.nan, math.inf, 2], "throughput: up", [(0, 1), (1, None), (2, None), (3, 2)]),
    ],
    ids=["a counter that begins anew", "a value that is missing", "what is no number"],
)
def test_what_cannot_be_drawn_is_a_gap(
    record: Any, field: str, values: list[Any], line: str, expected: list[tuple[float, float | None]]
) -> None:
    curves = drawn([replace(record, time_ns=n * S, **{field: value}) for n, value in enumerate(values)])
    assert points(curves, *line.split(": ")) == expected


def test_marks_are_the_growth_of_losses_by_cause() -> None:
    first = replace(LINK, time_ns=0, corruption_losses=7)
    second = replace(first, time_ns=S, corruption_losses=9, residual_losses=1)
    third = replace(second, time_ns=2 * S, congestion_losses=4, residual_losses=None)
    fourth = replace(third, time_ns=3 * S, residual_losses=3)
    assert drawn([first, second, third, fourth]).marks() == [
        Mark(1, "corruption", "up", 2),
        Mark(1, "given up", "up", 1),
        Mark(2, "congestion", "up", 4),
    ]


def test_changes_by_a_person_are_notes() -> None:
    told = [
        recorded(ControlRecord, time_ns=S, name="snr_db", value="12.5"),
        recorded(ControlRecord, time_ns=2 * S, name="slacp", value="false"),
        recorded(ControlRecord, time_ns=3 * S, name="x", value="no JSON"),
    ]
    assert drawn(list(told)).notes() == [Note(1, "snr_db", 12.5), Note(2, "slacp", False), Note(3, "x", "no JSON")]


def test_a_record_that_is_not_later_is_left_out() -> None:
    times = [1, 2, 2, 1, 3]
    curves = drawn([replace(TCP, time_ns=t * S, cwnd_bytes=n) for n, t in enumerate(times)])
    assert points(curves, "cwnd", "bulk") == [(1, 0), (2, 1), (3, 4)]


def test_many_flows_become_few_lines_and_their_sum() -> None:
    flows = [f"bulk-{n}" for n in range(100)]
    some: list[Record] = [
        recorded(FlowRecord, time_ns=step * S // 10 + n, host="h2", flow=flow, bytes_received=1000 * step)
        for step in range(30)
        for n, flow in enumerate(flows)
    ]
    curves = drawn(some)
    labels = {label for chart, label in curves.curves if chart == "goodput"}
    assert labels == {*flows[:SOURCES], ALL}
    assert curves.hidden() == {"goodput": 100 - SOURCES}
    # every 100 ms each of the 100 flows gets 1000 bytes; the sum is read while some have got theirs
    total = [v for t, v in points(curves, "goodput", ALL) if t > 1.5]
    assert total == pytest.approx([8e6 * 100 / 1000 * 10] * len(total), rel=0.02)
    assert len(total) > 5


def test_one_flow_has_no_sum() -> None:
    curves = drawn([recorded(FlowRecord, time_ns=n * S, host="h2", flow="bulk", bytes_received=n) for n in range(5)])
    assert set(curves.curves) == {("goodput", "bulk")}


def test_flows_of_one_name_are_told_apart_by_their_host() -> None:
    curves = drawn([TCP, replace(TCP, host="h2"), replace(TCP, host="h1", time_ns=S)])
    assert points(curves, "cwnd", "bulk") == [(0, 14480), (1, 14480)]
    assert points(curves, "cwnd", "bulk (h2)") == [(0, 14480)]


# -- stream and file ----------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.integers(0, 1000), st.lists(st.integers(1, 60), max_size=40))
def test_a_stream_gives_what_a_batch_gives(seed: int, sizes: list[int]) -> None:
    some = records(seed, 6.0)
    batch = drawn(some)
    stream = Curves()
    read: dict[tuple[str, str], list[tuple[float, float | None]]] = {}
    marks: list[Mark] = []
    notes: list[Note] = []
    rest = some
    for size in [*sizes, len(some)]:
        before = stream.batch
        stream.take(rest[:size])
        rest = rest[size:]
        for key, curve in stream.curves.items():
            new = curve.after(before, -math.inf)
            values = [None if math.isnan(v) else v for v in curve.values[new]]
            read.setdefault(key, []).extend(zip(curve.times[new], values, strict=True))
        marks += stream.marks(before)
        notes += stream.notes(before)
    assert read == everything(batch)
    assert (marks, notes) == (batch.marks(), batch.notes())
    assert len(read) > 20
    assert marks


def test_long_runs_are_forgotten_from_their_beginning() -> None:
    curves = Curves(points=100)
    for n in range(1000):
        curves.take([replace(TCP, time_ns=n * S)])
    curve = curves.curves["cwnd", "bulk"]
    assert 100 <= len(curve.times) < 200
    assert curve.times[-1] == 999
    assert list(curve.times) == sorted(set(curve.times))


# -- the list -------------------------------------------------------------------------------------------------


def test_every_line_can_be_made_of_its_records() -> None:
    curves = drawn(records(3, 3.0))
    filled = {(chart, curve.line) for (chart, _), curve in curves.curves.items()}
    wanted = {(chart.name, number) for chart in CHARTS for number in range(len(chart.lines))}
    assert filled == wanted


# -- percentiles ----------------------------------------------------------------------------------------------


def test_a_percentile_is_that_of_the_last_second() -> None:
    half, most = Percentile("srtt_ms", 50).start(), Percentile("srtt_ms", 95).start()
    values = [None, 40.0, 10.0, 30.0, 20.0]
    taken = [(n / 10, replace(TCP, srtt_ms=value)) for n, value in enumerate(values)]
    assert [half(*at) for at in taken] == [None, 40.0, 10.0, 30.0, 20.0]
    assert [most(*at) for at in taken] == [None, 40.0, 40.0, 40.0, 40.0]
    # 40 was 1.0 s ago
    assert most(1.1, replace(TCP, srtt_ms=None)) == 30.0
    assert most(9.0, replace(TCP, srtt_ms=None)) is None


@pytest.mark.parametrize("chart", ALL_CHARTS.values(), ids=lambda chart: chart.name)
def test_charts_are_of_fields_that_exist(chart: Chart) -> None:
    for line in chart.lines:
        names = {field.name for field in fields(line.record)}
        asked = {getattr(line.figure, name, None) for name in ("field", "counter", "of")}
        assert asked - {None} <= names
