"""The receiving side: RFC 5681 section 4.2 (when to acknowledge), RFC 9293 section 3.8.6 (windows), DAASS, SLOWLINK."""

import pytest

from common.units import MS
from hosts.tcp.shared import Shared
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script


@by_script(
    """
    every second full segment
        200 < 1:1001
        210 > nothing
        210 < 1001:2001 > ack 2001
        220 < 2001:3001, 3001:4001 > ack 4001
    the delay runs from the first
        150 < 1:1001, 1001:2001 > ack 2001
        200 < 2001:2101
        350 < 2101:2201
        400 > ack 2201
    small segments are counted by their octets
        # RFC 5681 section 4.2: every second full-sized segment
        200 < 1:1001, 1001:2001 > ...
        300 < 2001:2101, 2101:2201, 2201:2301 > nothing
        310 < 2301:3301, 3301:4301 > ack 4301
    data carries the acknowledgement
        200 < 1:1001
        250
        write 1000 > 1:1001 ack 1001
        600 > nothing
    out of order and filling a gap at once
        200 < 1001:2001, 3001:4001 > ack 1, ack 1
        # part of a gap as well
        210 < 1:1001 > ack 2001
        220 < 2001:3001 > ack 4001
        230 < 4001:5001 > nothing
    a duplicate at once
        200 < 1:1001, 1001:2001 > ...
        300 < 1:1001 > ack 2001
    what overlaps counts once [ack_every=1]
        200 < 1:1001 > ack 1001
        200 < 501:1501 > ack 1501 | bytes_received 1500
    a full buffer closes the window and reading opens it [receive_buffer=4000]
        200 < 1:1001, 1001:2001 > ack 2001 win 2000
        200 < 2001:3001, 3001:4001 > ack 4001 win 0
        # what comes nevertheless is not taken
        300 < 4001:4002 > ack 4001 win 0 | readable 4000
        400
        discard > ack 4001 win 4000
    """
)
def test_the_receiver(script: MakeScript, case: Case) -> None:
    case.play(script, PLAIN)


@pytest.mark.parametrize("delay_ms", [40, 200])
def test_within_the_delay_otherwise(script: MakeScript, delay_ms: int) -> None:
    s = script(PLAIN.but(delayed_ack_ns=delay_ms * MS))
    s.inject(200, "1:1001")
    s.expect(200 + delay_ms, "1:1 ack 1001")
    assert s.connection.next_deadline() is None


@pytest.mark.parametrize("changes", [{"delayed_ack_ns": 0}, {"ack_every": 1}])
def test_without_delay_every_segment(script: MakeScript, changes: dict[str, int]) -> None:
    s = script(PLAIN.but(**changes))
    s.inject(200, "1:1001", sends=["ack 1001"])
    s.inject(200, "1001:2001", sends=["ack 2001"])


def test_until_half_the_window_every_segment(script: MakeScript) -> None:
    s = script(PLAIN.but(daass=True, receive_buffer=8000))
    for number in range(4):
        s.inject(200 + number, f"{1 + 1000 * number}:{1001 + 1000 * number}", sends=[f"ack {1001 + 1000 * number}"])
        s.discard()
    s.inject(300, "4001:5001")
    s.expect(499)
    s.expect(500, "ack 5001")


def test_octets_are_read_in_order_and_the_window_opens_by_segments(script: MakeScript) -> None:
    # RFC 9293 section 3.8.6.2.2: by a segment or half the buffer, whichever is less
    s = script(PLAIN.but(receive_buffer=4000))
    for left in (1, 1001, 2001, 3001):
        s.inject(200, f"{left}:{left + 1000}", sends=...)
    whole = s.octets(1, 4001)
    assert s.read(500) == whole[:500]
    s.expect(200)
    assert s.read(1500) == whole[500:2000]
    s.expect(200, "ack 4001 win 2000")
    assert s.read(4000) == whole[2000:]


def test_a_window_opens_by_half_a_small_buffer(script: MakeScript) -> None:
    s = script(PLAIN.but(receive_buffer=1000))
    s.inject(200, "1:1001", sends=...)
    s.read(499)
    s.expect(200)
    s.read(1)
    s.expect(200, "ack 1001 win 500")


def test_the_right_edge_never_moves_left(script: MakeScript) -> None:
    # RFC 9293 section 3.8.6: a buffer that others share may shrink, what was offered stays
    shared = Shared(window_bytes=16_000)
    s = script(PLAIN.but(ack_every=1), shared=shared)
    assert s.timeline[-1].endswith("win 16000")
    other = script(PLAIN, shared=shared)
    assert other.timeline[-1].endswith("win 8000")
    s.inject(200, "1:1001")
    s.discard(sends=["ack 1001 win 15000"])
    for right in range(2001, 9001, 1000):
        s.inject(200, f"{right - 1000}:{right}")
        s.discard()
        [ack] = s.skip()
        assert ack.endswith(f"win {max(16_001 - right, 8000)}")


def test_the_limited_window_is_divided_among_the_open(script: MakeScript) -> None:
    # SLOWLINK
    shared = Shared(window_bytes=12_000)
    scripts = [script(PLAIN, shared=shared) for _ in range(3)]
    assert [s.timeline[-1].rpartition(" ")[2] for s in scripts] == ["12000", "6000", "4000"]
    assert shared.open_connections == 3
    scripts[0].abort()
    scripts[1].inject(200, "R 1:1")
    assert shared.open_connections == 1
    scripts[2].inject(200, "1:1001", "1001:2001")
    scripts[2].discard()
    scripts[2].skip()
    scripts[2].inject(210, "2001:3001", "3001:4001")
    assert scripts[2].skip()[0].endswith("win 10000")


@pytest.mark.parametrize("in_order", [True, False])
def test_data_beyond_the_window_is_cut(script: MakeScript, in_order: bool) -> None:
    s = script(PLAIN.but(receive_buffer=1500))
    if not in_order:
        s.inject(200, "1001:2001", sends=["ack 1 win 1500"])
    s.inject(200, "1:1001", *["1001:2001"] * in_order, sends=["ack 1501 win 0"])
    assert s.connection.readable == 1500
    s.discard(sends=...)
    s.inject(300, "1501:2001", sends=...)
    assert s.connection.readable == 500
