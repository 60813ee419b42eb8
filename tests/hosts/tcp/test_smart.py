"""SMART: COMPARISON sections 2.2, 3.1 and 5; `tcpip/options.py` for the option."""

from functools import partial

import pytest

from common.units import MS
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script, window_of

SMART = PLAIN.but(initial_window=8, recovery="smart")
window_of_8 = partial(window_of, 8, peer="mss 1000 smartok")
ALL_BUT_THE_FIRST = [f"ack 1 smart {n}001:{n + 1}001" for n in range(1, 8)]


@by_script(
    """
    an ack says which segment caused it [nbytes=0]
        200 < 1:1001, 1001:2001 > 1:1 ack 2001 smart 1001:2001
        210 < 3001:4001 > 1:1 ack 2001 smart 3001:4001
        220 < 4001:4501 > 1:1 ack 2001 smart 4001:4501
        230 < 2001:3001 > 1:1 ack 4501 smart 2001:3001
    a delayed ack has the latest [nbytes=0]
        200 < 1:501
        400 > 1:1 ack 501 smart 1:501
    a window update was caused by none [receive_buffer=4000, nbytes=0]
        200 < 1:1001, 1001:2001, 2001:3001, 3001:4001 > ...
        discard > 1:1 ack 4001 win 4000
    data of our own does not hide a gap [nbytes=0]
        # data segments have no room for options
        write 1000 > 1:1001
        write 1000 > ...
        200 < 1001:2001 > 2001:2001 ack 1 smart 1001:2001
    the option counts whether permitted or not [peer='mss 1000']
        # the mobile end's tagger may have added it
        200 < ack 1 smart 1001:2001 > 1:1001
    the first duplicate sends the gap and the pipe says when the next
        # 1, 3001 and 5001 are lost
        200 < ack 1 smart 1001:2001 > 1:1001 | cwnd 4000, ssthresh 4000, fast_retransmits 1
        # pipe: what is above the highest arrived, and the retransmission
        201 < ack 1 smart 2001:3001 > nothing
        202 < ack 1 smart 4001:5001
        # 5001:8001 and 1:1001 are under way: no room for 3001 yet
        202 > nothing
        203 < ack 1 smart 6001:7001 > 3001:4001, 5001:6001
        # the window is reduced once
        204 < ack 1 smart 7001:8001 > 8001:9001 | ssthresh 4000
        300 < ack 3001 smart 1:1001 > 9001:10001
        301 < ack 5001 smart 3001:4001 > 10001:11001
        302 < ack 8001 smart 5001:6001 > 11001:12001 | cwnd 4000, ssthresh 4000, retransmits 3, timeouts 0
    a segment is sent again once until something newer has arrived
        200 < ack 1 smart 1001:2001 > 1:1001
        201 < ack 1 smart 2001:3001, ack 1 smart 3001:4001, ack 1 smart 4001:5001, ack 1 smart 5001:6001,
            ack 1 smart 6001:7001, ack 1 smart 7001:8001
        # three segments have room beside the retransmission
        201 > 8001:9001, 9001:10001, 10001:11001
        # that of 1 was lost, too: 8001 left after it
        300 < ack 1 smart 8001:9001 > 1:1001, 11001:12001
        # the window is not reduced a second time
        301 < ack 1 smart 9001:10001 > 12001:13001 | ssthresh 4000
        400 < ack 12001 smart 1:1001 | retransmits 2
    nor by what was sent before it
        200 < ack 1 smart 1001:2001, ack 1 smart 2001:3001, ack 1 smart 3001:4001, ack 1 smart 4001:5001,
            ack 1 smart 5001:6001, ack 1 smart 6001:7001 > 1:1001, 8001:9001, 9001:10001
        # the last segment that had left before
        310 < ack 1 smart 7001:8001 > 10001:11001
    plain duplicates are newrenos three [peer='mss 1000']
        200 < ack 1, ack 1 > nothing
        200 < ack 1 > 1:1001 | cwnd 7000, ssthresh 4000
        210 < ack 3001 > 3001:4001
    a plain duplicate among others does not matter
        200 < ack 1 > nothing
        200 < ack 1 smart 2001:3001 > 1:1001
        201 < ack 1 > nothing
    a gap that remains after recovery is repaired at once
        # 1 is lost, and so is 8001, which is sent while that is repaired
        200 < ack 1 smart 1001:2001, ack 1 smart 2001:3001, ack 1 smart 3001:4001, ack 1 smart 4001:5001,
            ack 1 smart 5001:6001, ack 1 smart 6001:7001, ack 1 smart 7001:8001 > 1:1001, 8001:9001, 9001:10001,
            10001:11001
        299 < ack 8001 smart 1:1001 > 11001:12001
        300 < ack 8001 smart 9001:10001 > 8001:9001 | fast_retransmits 2
    an ack of new data shows the next gap
        200 < ack 1001 smart 2001:3001 > 1001:2001, ... | fast_retransmits 1
    corruption leaves the window as it is [eln='keep-window']
        200 < ack 1 smart 1001:2001 eln > 1:1001, 8001:9001 | cwnd 8000, ssthresh none
    without the consent of the peer nothing is said [peer='mss 1000', nbytes=0]
        200 < 1001:2001 > 1:1 ack 1
    nor without our own [recovery='newreno', nbytes=0]
        200 < 1001:2001 > 1:1 ack 1
    without anything newer it takes the timer [window=8000]
        # the peer's window lets nothing new out
        200 < ack 1 smart 1001:2001, ack 1 smart 2001:3001, ack 1 smart 3001:4001, ack 1 smart 4001:5001,
            ack 1 smart 5001:6001, ack 1 smart 6001:7001, ack 1 smart 7001:8001 > 1:1001
        1100 > 1:1001 | timeouts 1
        # and then nothing of what has arrived
        1200 < ack 8001 smart 1:1001 > 8001:9001, ... | retransmits 2
    """
)
def test_smart(script: MakeScript, case: Case) -> None:
    case.play(script, SMART, initial_window=8, nbytes=100_000, peer="mss 1000 smartok")


@pytest.mark.parametrize(("tick_ms", "early_ms", "late_ms"), [(0, 299, 300), (500, 300, 700)])
def test_nor_before_a_round_trip_time_has_passed(script: MakeScript, tick_ms: int, early_ms: int, late_ms: int) -> None:
    # with a coarse clock that is long: SRTT after the handshake is one tick
    s = window_of_8(script, SMART.but(tick_ns=tick_ms * MS))
    s.inject(200, *ALL_BUT_THE_FIRST, sends=["1:1001", "8001:9001", "9001:10001", "10001:11001"])
    s.inject(early_ms, "ack 1 smart 8001:9001", sends=["11001:12001"])
    s.inject(late_ms, "ack 1 smart 9001:10001", sends=["1:1001", "12001:13001"])


@pytest.mark.parametrize(
    "option", ["smart 8001:9001", "smart 7001:12001", "smart 0:0", "smart 1:1", "smart 1:1001"],
    ids=["never sent", "partly never sent", "empty below", "empty", "not what it says"],
)  # fmt: skip
def test_an_option_that_cannot_be_does_no_harm(script: MakeScript, option: str) -> None:
    s = window_of_8(script, SMART)
    s.inject(200, f"ack 1 {option}", sends=[])
    s.inject(210, "ack 8001", sends=..., retransmits=0)
