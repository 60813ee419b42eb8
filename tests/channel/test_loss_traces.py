"""Loss traces of other programs become channel traces."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channel.loss_traces import parse_csv, parse_marks, parse_numbers
from channel.replay import Outcome, TraceError

OK, MISSED, PAYLOAD = Outcome.OK, Outcome.MISSED, Outcome.PAYLOAD


def test_marks_in_lines_with_blanks_and_commas() -> None:
    trace = parse_marks("0 1\n\n1,0\t0\r\n", interval_ns=5, nbytes=40)
    assert trace.outcome == [OK, MISSED, MISSED, OK, OK]
    assert (trace.time_ns, trace.nbytes) == ([0, 5, 10, 15, 20], [40] * 5)
    assert parse_marks("0111", interval_ns=5, nbytes=40, lost="0").outcome == [MISSED, OK, OK, OK]


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("lost\n0\n1\n", [OK, MISSED]),
        ("Received\nTRUE\nno\n", [OK, MISSED]),
        ("seq,outcome\n7,payload\n\n8,missed\n9,ok\n", [PAYLOAD, MISSED, OK]),
        ("loss\n1\n0\n", [MISSED, OK]),
        ("seq;rx\n7;1\n8;0\n", [OK, MISSED]),
        ("seq\trx\n7\t1\n8\t0\n", [OK, MISSED]),
    ],
)
def test_csv_fates(text: str, outcomes: list[Outcome]) -> None:
    trace, _ = parse_csv(text, interval_ns=1000, nbytes=99)
    assert trace.outcome == outcomes
    assert (trace.time_ns, trace.nbytes) == ([1000 * index for index in range(len(outcomes))], [99] * len(outcomes))


@pytest.mark.parametrize(
    ("unit", "times", "ns"),
    [
        ("time_ns", ("1700000000123456789", "1700000000123456791"), 2),
        ("time_us", ("-3", "4"), 7_000),
        ("time_ms", ("0.25", "1"), 750_000),
        ("time_s", (" 2 ", "2.5"), 500_000_000),
        ("time", ("1700000000", "1700000001"), 1_000_000_000),
        ("timestamp", ("0.001", "0.0035"), 2_500_000),
    ],
)
def test_csv_times_count_from_the_first_packet(unit: str, times: tuple[str, str], ns: int) -> None:
    trace, _ = parse_csv(f"{unit},lost,size\n{times[0]},0,1500\n{times[1]},1, 64\n", interval_ns=1, nbytes=1)
    assert (trace.time_ns, trace.nbytes) == ([0, ns], [1500, 64])


def test_largest_sizes_and_times_are_taken() -> None:
    first, last = -(1 << 62) + 1, (1 << 62) - 1
    trace, _ = parse_csv(f"time_ns,lost,size\n{first},0,1\n{last},1,2147483647\n", interval_ns=1, nbytes=1)
    assert (trace.time_ns, trace.nbytes) == ([0, last - first], [1, 2147483647])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the header is ''"),
        ("lost\n", "there is no packet"),
        ("dropped\n1\n", "one column must be lost, received or outcome"),
        ("loss,lost\n1,1\n", "one column must be lost, received or outcome"),
        ("lost,received\n1,0\n", "one column must be"),
        ("lost\n2\n", "line 2: '2' is neither 0 nor 1"),
        ("outcome\nfine\n", "line 2: outcome 'fine' is unknown: choose from ok, payload, missed"),
        ("time_s,lost\n1,0\n0.5,0\n", "line 3: the time goes back"),
        ("time_s,lost\nnan,0\n", "line 2: time_s 'nan' is too far away"),
        ("time_s,lost\nsoon,0\n", "line 2: could not convert"),
        ("time_s,lost\n1e300,0\n", "line 2: time_s '1e300' is too far away"),
        ("time_ns,lost\n99999999999999999999,0\n", "line 2: time_ns '99999999999999999999' is too far away"),
        ("lost,size\n0\n", "line 2 has 1 cells, the header 2"),
        pytest.param("lost\n0\n" + "1" * 200_000, "line 3: field larger than field limit", id="a long cell"),
        pytest.param("lost" * 50_000, "line 1: field larger than field limit", id="a long heading"),
        ("lost,size\n0,0\n", "line 2: a packet of 0 octets cannot be"),
        ("lost,size\n0,2147483648\n", "line 2: a packet of 2147483648 octets cannot be"),
        ("time_ns,lost\n4611686018427387904,0\n", "line 2: time_ns '4611686018427387904' is too far away"),
    ],
)
def test_what_is_no_table_of_packets_is_one_line(text: str, complaint: str) -> None:
    with pytest.raises(TraceError) as refused:
        parse_csv(text, interval_ns=1, nbytes=1)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [(" \n", "there is no packet"), *((f"01\n0{mark}\n", f"line 2 has '[{mark}]'") for mark in "!+-./2;x")],
)
def test_what_is_no_text_of_marks_is_one_line(text: str, complaint: str) -> None:
    with pytest.raises(TraceError, match=complaint):
        parse_marks(text, interval_ns=1, nbytes=1)


def test_columns_without_a_meaning_are_told() -> None:
    _, columns = parse_csv("Seq,time_ms,rx,SNR\n1,0,1,3\n", interval_ns=1, nbytes=1)
    assert (columns.time_at, columns.size_at, columns.ignored) == (1, None, ["seq", "snr"])


def test_numbers_of_what_arrived_in_any_order() -> None:
    trace = parse_numbers("7\n 9\n\n8\n12\n9\n", interval_ns=5, nbytes=40)
    assert trace.outcome == [OK, OK, OK, MISSED, MISSED, OK]
    assert (trace.time_ns, trace.nbytes) == ([0, 5, 10, 15, 20, 25], [40] * 6)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("\n", "there is no packet"),
        ("1\n-2\n", "line 2 has '-2'; it must be the number of a packet"),
        ("1\n2 3\n", "line 2 has '2 3'"),
        ("9" * 30, "line 1 has '" + "9" * 20),
        ("5\n10000005\n", "packets 5 to 10000005 are more than 10,000,000"),
    ],
)
def test_what_are_no_numbers_is_one_line(text: str, complaint: str) -> None:
    with pytest.raises(TraceError, match=complaint):
        parse_numbers(text, interval_ns=1, nbytes=1)


@given(st.text(alphabet="01,;\t2.eE-+ \n\rlostimze_\"'nai", max_size=60))
def test_no_text_has_another_error(text: str) -> None:
    for read in (parse_csv, parse_marks, parse_numbers):
        with suppress(TraceError):
            found = read(text, interval_ns=3, nbytes=5)
            assert len(found[0] if isinstance(found, tuple) else found) > 0
