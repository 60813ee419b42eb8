"""SMART: COMPARISON sections 2.2, 3.1 and 5; `tcpip/options.py` for the option."""

from functools import partial

import pytest

from common.units import MS
from hosts.tcp.config import TcpConfig
from tests.hosts.tcp.script import PLAIN, MakeScript, window_of

SMART = PLAIN.but(initial_window=8, recovery="smart")
NEWRENO = SMART.but(recovery="newreno")
window_of_8 = partial(window_of, 8, peer="mss 1000 smartok")
ALL_BUT_THE_FIRST = [f"ack 1 smart {n}001:{n + 1}001" for n in range(1, 8)]


# -- the receiver --------------------------------------------------------------------------------------------


def test_an_ack_says_which_segment_caused_it(script: MakeScript) -> None:
    s = script(SMART, peer="mss 1000 smartok")
    s.inject(200, "1:1001", "1001:2001", sends=["1:1 ack 2001 smart 1001:2001"])
    s.inject(210, "3001:4001", sends=["1:1 ack 2001 smart 3001:4001"])
    s.inject(220, "4001:4501", sends=["1:1 ack 2001 smart 4001:4501"])
    s.inject(230, "2001:3001", sends=["1:1 ack 4501 smart 2001:3001"])


def test_a_delayed_ack_has_the_latest(script: MakeScript) -> None:
    s = script(SMART, peer="mss 1000 smartok")
    s.inject(200, "1:501")
    s.expect(400, "1:1 ack 501 smart 1:501")


def test_a_window_update_was_caused_by_none(script: MakeScript) -> None:
    s = script(SMART.but(receive_buffer=4000), peer="mss 1000 smartok")
    s.inject(200, "1:1001", "1001:2001", "2001:3001", "3001:4001", sends=...)
    s.discard(sends=["1:1 ack 4001 win 4000"])


@pytest.mark.parametrize(("config", "peer"), [(SMART, "mss 1000"), (NEWRENO, "mss 1000 smartok")])
def test_without_consent_nothing_is_said(script: MakeScript, config: TcpConfig, peer: str) -> None:
    s = script(config, peer=peer)
    s.inject(200, "1001:2001", sends=["1:1 ack 1"])


def test_data_of_our_own_does_not_hide_a_gap(script: MakeScript) -> None:
    # data segments have no room for options
    s = script(SMART, peer="mss 1000 smartok")
    s.write(1000, sends=["1:1001"])
    s.write(1000, sends=...)
    s.inject(200, "1001:2001", sends=["2001:2001 ack 1 smart 1001:2001"])


# -- the sender ----------------------------------------------------------------------------------------------


def test_the_option_counts_whether_permitted_or_not(script: MakeScript) -> None:
    # the mobile end's tagger may have added it
    s = window_of_8(script, SMART, peer="mss 1000")
    s.inject(200, "ack 1 smart 1001:2001", sends=["1:1001"])


def test_the_first_duplicate_sends_the_gap_and_the_pipe_says_when_the_next(script: MakeScript) -> None:
    # 1, 3001 and 5001 are lost
    s = window_of_8(script, SMART)
    s.inject(200, "ack 1 smart 1001:2001", sends=["1:1001"], cwnd=4000, ssthresh=4000, fast_retransmits=1)
    # pipe: what is above the highest arrived, and the retransmission
    s.inject(201, "ack 1 smart 2001:3001", sends=[])
    s.inject(202, "ack 1 smart 4001:5001")
    # 5001:8001 and 1:1001 are under way: no room for 3001 yet
    s.expect(202)
    s.inject(203, "ack 1 smart 6001:7001", sends=["3001:4001", "5001:6001"])
    # the window is reduced once
    s.inject(204, "ack 1 smart 7001:8001", sends=["8001:9001"], ssthresh=4000)
    s.inject(300, "ack 3001 smart 1:1001", sends=["9001:10001"])
    s.inject(301, "ack 5001 smart 3001:4001", sends=["10001:11001"])
    s.inject(302, "ack 8001 smart 5001:6001", sends=["11001:12001"], cwnd=4000, ssthresh=4000, retransmits=3)
    assert s.connection.counters.timeouts == 0


def test_a_segment_is_sent_again_once_until_something_newer_has_arrived(script: MakeScript) -> None:
    s = window_of_8(script, SMART)
    s.inject(200, "ack 1 smart 1001:2001", sends=["1:1001"])
    s.inject(201, *(f"ack 1 smart {n}001:{n + 1}001" for n in (2, 3, 4, 5, 6, 7)))
    # three segments have room beside the retransmission
    s.expect(201, "8001:9001", "9001:10001", "10001:11001")
    # that of 1 was lost, too: 8001 left after it
    s.inject(300, "ack 1 smart 8001:9001", sends=["1:1001", "11001:12001"])
    s.inject(301, "ack 1 smart 9001:10001", sends=["12001:13001"])
    # the window is not reduced a second time
    assert s.ssthresh == 4000
    s.inject(400, "ack 12001 smart 1:1001", retransmits=2)


@pytest.mark.parametrize(("tick_ms", "early_ms", "late_ms"), [(0, 299, 300), (500, 300, 700)])
def test_nor_before_a_round_trip_time_has_passed(script: MakeScript, tick_ms: int, early_ms: int, late_ms: int) -> None:
    # with a coarse clock that is long: SRTT after the handshake is one tick
    s = window_of_8(script, SMART.but(tick_ns=tick_ms * MS))
    s.inject(200, *ALL_BUT_THE_FIRST, sends=["1:1001", "8001:9001", "9001:10001", "10001:11001"])
    s.inject(early_ms, "ack 1 smart 8001:9001", sends=["11001:12001"])
    s.inject(late_ms, "ack 1 smart 9001:10001", sends=["1:1001", "12001:13001"])


def test_nor_by_what_was_sent_before_it(script: MakeScript) -> None:
    s = window_of_8(script, SMART)
    s.inject(200, *(f"ack 1 smart {n}001:{n + 1}001" for n in range(1, 7)), sends=["1:1001", "8001:9001", "9001:10001"])
    # the last segment that had left before
    s.inject(310, "ack 1 smart 7001:8001", sends=["10001:11001"])


def test_without_anything_newer_it_takes_the_timer(script: MakeScript) -> None:
    # the peer's window lets nothing new out
    s = script(SMART, peer="mss 1000 smartok", window=8000)
    s.write(100_000)
    assert len(s.skip()) == 8
    s.inject(200, *ALL_BUT_THE_FIRST, sends=["1:1001"])
    s.expect(1100, "1:1001", timeouts=1)
    # and then nothing of what has arrived
    s.inject(1200, "ack 8001 smart 1:1001", sends=["8001:9001", ...], retransmits=2)


def test_plain_duplicates_are_newrenos_three(script: MakeScript) -> None:
    s = window_of_8(script, SMART, peer="mss 1000")
    s.inject(200, "ack 1", "ack 1", sends=[])
    s.inject(200, "ack 1", sends=["1:1001"], cwnd=7000, ssthresh=4000)
    s.inject(210, "ack 3001", sends=["3001:4001"])


def test_a_plain_duplicate_among_others_does_not_matter(script: MakeScript) -> None:
    s = window_of_8(script, SMART)
    s.inject(200, "ack 1", sends=[])
    s.inject(200, "ack 1 smart 2001:3001", sends=["1:1001"])
    s.inject(201, "ack 1", sends=[])


def test_a_gap_that_remains_after_recovery_is_repaired_at_once(script: MakeScript) -> None:
    # 1 is lost, and so is 8001, which is sent while that is repaired
    s = window_of_8(script, SMART)
    s.inject(200, *ALL_BUT_THE_FIRST, sends=["1:1001", "8001:9001", "9001:10001", "10001:11001"])
    s.inject(299, "ack 8001 smart 1:1001", sends=["11001:12001"])
    s.inject(300, "ack 8001 smart 9001:10001", sends=["8001:9001"], fast_retransmits=2)


@pytest.mark.parametrize(
    "option", ["smart 8001:9001", "smart 7001:12001", "smart 0:0", "smart 1:1", "smart 1:1001"],
    ids=["never sent", "partly never sent", "empty below", "empty", "not what it says"],
)  # fmt: skip
def test_an_option_that_cannot_be_does_no_harm(script: MakeScript, option: str) -> None:
    s = window_of_8(script, SMART)
    s.inject(200, f"ack 1 {option}", sends=[])
    s.inject(210, "ack 8001", sends=..., retransmits=0)


def test_corruption_leaves_the_window_as_it_is(script: MakeScript) -> None:
    s = window_of_8(script, SMART.but(eln="keep-window"))
    s.inject(200, "ack 1 smart 1001:2001 eln", sends=["1:1001", "8001:9001"])
    assert (s.cwnd, s.ssthresh) == (8000, None)
