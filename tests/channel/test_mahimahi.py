"""Capacity from packet-delivery traces: the reader, and the rates of each interval."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channel.capacity.mahimahi import (
    CAPACITY_MODEL,
    PACKET_BYTES,
    MahimahiOptions,
    Opportunities,
    parse_opportunities,
    rates_of,
)
from channel.errors.none import NoErrors
from channel.framing import raw
from channel.hop import Hop
from common.units import MS
from tests.harness.hop_driving import drive_punctually

PACKET_BITS = 8 * PACKET_BYTES
SECOND = 1000 * MS


def rates_in_turn(capacity: Opportunities, until: int) -> list[tuple[int, int]]:
    """The times at which a terminal whose backlog never ends changes its rate, and the rates, from time 0."""
    capacity.handle_backlog(1, 0)
    found = []
    while (at := capacity.next_deadline()) is not None and at < until:
        capacity.handle_deadline(at)
        found.append((at, capacity.rate_bps()))
    return found


def test_rates_follow_the_opportunities_and_begin_again() -> None:
    # two packets in the first 10 ms, none in the second, one in the last 5 ms
    capacity = Opportunities([1, 10, 25], 10 * MS, 10**7)
    one = PACKET_BITS * 100
    turn = [(0, 2 * one), (10 * MS, 0), (20 * MS, 2 * one)]
    # the last interval is half as long, so its one packet is as fast, and the trace goes on without a change
    assert rates_in_turn(capacity, 40 * MS) == [*turn, (25 * MS, 2 * one), (35 * MS, 0)]


def test_a_terminal_without_a_backlog_rests_and_wakes_where_the_trace_is() -> None:
    capacity = Opportunities([10, 30], 10 * MS, 10**7)
    capacity.handle_backlog(1, 7 * MS)
    capacity.handle_deadline(7 * MS)
    assert (capacity.rate_bps(), capacity.next_deadline()) == (PACKET_BITS * 100, 17 * MS)
    capacity.handle_backlog(0, 17 * MS)
    capacity.handle_deadline(17 * MS)
    assert (capacity.rate_bps(), capacity.next_deadline()) == (0, None)
    # 25 ms after its begin: the interval from 20 to 30 ms
    capacity.handle_backlog(1, 32 * MS)
    capacity.handle_deadline(32 * MS)
    assert (capacity.rate_bps(), capacity.next_deadline()) == (PACKET_BITS * 100, 37 * MS)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(1, 70))
def test_the_intervals_have_the_bits_of_the_trace(times: list[int], interval_ms: int) -> None:
    times_ms = sorted(times)
    rates = rates_of(times_ms, interval_ms * MS)
    lengths = [min(interval_ms, times_ms[-1] - index * interval_ms) * MS for index in range(len(rates))]
    assert sum(lengths) == times_ms[-1] * MS
    bits = sum(rate * length for rate, length in zip(rates, lengths, strict=True)) / SECOND
    # each rate is rounded down, by less than 1 bit/s
    assert len(times_ms) * PACKET_BITS - sum(lengths) / SECOND <= bits <= len(times_ms) * PACKET_BITS


def test_full_load_gets_the_traces_mean_rate() -> None:
    times_ms = [3, 3, 8, 21, 40, 40, 41, 50]
    capacity = Opportunities(times_ms, 10 * MS, 10**7)
    hop: Hop[int] = Hop(capacity=capacity, framing=raw, errors=NoErrors(), propagation_ns=0, buffer_bytes=10**7)
    arrivals, _ = drive_punctually(hop, [(0, PACKET_BYTES)] * 80)
    # ten periods
    assert arrivals[-1].sent_at == pytest.approx(500 * MS, rel=1e-6)


def test_the_first_bits_to_wait_wake_it_and_none_do_not() -> None:
    capacity = Opportunities([3, 8], 10 * MS, 10**7)
    capacity.handle_backlog(0, 5 * MS)
    assert capacity.next_deadline() is None
    for at in (7 * MS, 8 * MS):
        capacity.handle_backlog(100, at)
        assert capacity.next_deadline() == 7 * MS


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no time above 0"),
        ("0\n0\n", "no time above 0"),
        ("5\n4\n", "line 2 is 4 after 5"),
        ("1\n2.5\n", "line 2 is '2.5'"),
        ("-1\n", "line 1 is '-1'"),
        ("1\n\N{ARABIC-INDIC DIGIT FIVE}\n", "line 2 is"),
        ("99999999999999999999\n", "a trace lasts a day"),
    ],
)
def test_what_is_no_trace_is_one_line(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as refused:
        parse_opportunities(text)
    assert "\n" not in str(refused.value)


def test_empty_lines_are_no_opportunities() -> None:
    assert parse_opportunities("1\n\n  \n2\n\n") == [1, 2]


def test_a_trace_without_a_bit_per_second_is_one_line() -> None:
    # 12,000 bits in a day
    day_ms = 86_400_000
    line = "^the trace has less than 1 bit/s in every interval: set interval_ms lower$"
    with pytest.raises(ValueError, match=line):
        Opportunities([day_ms], day_ms * MS, 10**7)
    # and in an hour
    assert Opportunities([day_ms], day_ms * MS // 24, 10**7)


def test_refusals_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "fast.mahimahi"
    path.write_text("1\n1\n1\n10\n")

    def refusal(options: MahimahiOptions, rate_bps: int) -> str:
        import random

        with pytest.raises(ValueError) as refused:  # noqa: PT011 (the caller looks at the line)
            CAPACITY_MODEL.make(options, rate_bps, random.Random(1))
        return str(refused.value)

    assert refusal(MahimahiOptions(path=path), 10**6) == (
        f"{path}: rate_bps is 1000000; the trace has up to {4 * PACKET_BITS * 100} bit/s in one interval: "
        "set rate_bps to that, or interval_ms higher"
    )
    assert "cannot be read: No such file" in refusal(MahimahiOptions(path=tmp_path / "none"), 10**6)
    assert "path is missing" in refusal(MahimahiOptions(), 10**6)
