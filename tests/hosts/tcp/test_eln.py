"""Explicit loss notifications: COMPARISON sections 2.3 and 3.1 (E2E-ELN, E2E-ELN-RXMT), with every recovery."""

from dataclasses import replace

import pytest

from hosts.tcp.config import TcpConfig
from tests.hosts.tcp.script import PLAIN, MakeScript, Script

RENO = replace(PLAIN, initial_window=8, recovery="reno", eln="keep-window")
NEWRENO = replace(RENO, recovery="newreno")
SACK = replace(RENO, recovery="sack")
SMART = replace(RENO, recovery="smart")
ALL = pytest.mark.parametrize("config", [RENO, NEWRENO, SACK, SMART], ids=["reno", "newreno", "sack", "smart"])
NO_SACK = pytest.mark.parametrize("config", [RENO, NEWRENO], ids=["reno", "newreno"])

#: three duplicates for the first segment
THREE = [f"ack 1 sack 1001:{n}001" for n in (2, 3, 4)]


def window_of_8(make: MakeScript, config: TcpConfig, nbytes: int = 100_000) -> Script:
    """Eight segments, 1:8001, are on their way at 100 ms."""
    s = make(config, peer="mss 1000 sackok")
    s.write(nbytes)
    assert len(s.skip()) == 8
    return s


# -- keep-window ---------------------------------------------------------------------------------------------


@ALL
def test_corruption_leaves_the_window_as_it_is(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, config)
    s.inject(200, *(f"{text} eln" for text in THREE[:2]), sends=[])
    s.inject(200, f"{THREE[2]} eln")
    assert s.skip()[0].startswith("1:1001")
    s.inject(300, "ack 8001", sends=...)
    assert (s.cwnd, s.ssthresh) == (8000, None)
    counters = s.connection.counters
    assert (counters.fast_retransmits, counters.eln_kept, counters.timeouts) == (1, 1, 0)


@ALL
def test_a_loss_that_nobody_calls_corruption_halves_it(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, config)
    s.inject(200, *THREE, sends=...)
    s.inject(300, "ack 8001", sends=...)
    assert s.ssthresh == 4000
    assert s.connection.counters.eln_kept == 0


@ALL
def test_a_word_about_another_segment_does_not_count(script: MakeScript, config: TcpConfig) -> None:
    # it was about the first, which is acknowledged by now
    s = window_of_8(script, config)
    s.inject(150, "ack 1 eln")
    s.inject(160, "ack 1001", sends=...)
    s.inject(200, *(f"ack 1001 sack 2001:{n}001" for n in (3, 4, 5)), sends=...)
    assert s.ssthresh == 4500
    assert s.connection.counters.eln_kept == 0


@ALL
def test_one_duplicate_that_tells_is_enough(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, config)
    s.inject(200, f"{THREE[0]} eln", *THREE[1:])
    assert s.skip()[0].startswith("1:1001")
    assert s.ssthresh is None


@NO_SACK
def test_the_kept_window_is_filled_while_the_loss_is_repaired(script: MakeScript, config: TcpConfig) -> None:
    # one segment leaves for each that has arrived
    s = window_of_8(script, config)
    s.inject(200, "ack 1 eln", "ack 1 eln", "ack 1 eln", sends=["1:1001", "8001:9001", "9001:10001", "10001:11001"])
    s.inject(210, "ack 1 eln", sends=["11001:12001"])


def test_with_sack_the_pipe_is_kept_full(script: MakeScript) -> None:
    s = window_of_8(script, SACK)
    s.inject(200, *(f"{text} eln" for text in THREE))
    # 1 was lost, three have arrived: the pipe takes the retransmission and three more
    s.expect(200, "1:1001", "8001:9001", "9001:10001", "10001:11001")


@ALL
def test_the_loss_is_repaired_by_the_timer_and_then_the_window_is_lost(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, config)
    s.inject(200, "ack 1 sack 1001:2001 eln")
    s.expect(1100, "1:1001")
    assert (s.cwnd, s.ssthresh) == (1000, 4000)


@NO_SACK
def test_without_eln_in_the_configuration_the_option_is_ignored(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, replace(config, eln="ignore"))
    s.inject(200, *(f"{text} eln" for text in THREE))
    assert s.ssthresh == 4000


# -- several holes -------------------------------------------------------------------------------------------


def test_reno_recovers_from_the_next_hole_without_reducing(script: MakeScript) -> None:
    # `recover` is about windows that were reduced
    s = window_of_8(script, RENO)
    s.inject(200, *["ack 1 eln"] * 3, sends=...)
    s.inject(300, "ack 3001", sends=...)
    s.inject(310, *["ack 3001 eln"] * 3)
    assert s.skip()[0].startswith("3001:4001")
    assert (s.connection.counters.eln_kept, s.ssthresh) == (2, None)


def test_reno_reduces_at_the_next_hole_when_that_is_congestion(script: MakeScript) -> None:
    s = window_of_8(script, RENO)
    s.inject(200, *["ack 1 eln"] * 3, sends=...)
    s.inject(300, "ack 3001", sends=...)
    s.inject(310, *["ack 3001"] * 3)
    assert s.skip()[0].startswith("3001:4001")
    assert s.connection.counters.eln_kept == 1
    assert s.ssthresh is not None


def test_a_corrupted_segment_of_a_reduced_window_is_sent_again_too(script: MakeScript) -> None:
    # without ELN Reno would wait for the timer
    s = window_of_8(script, RENO)
    s.inject(200, *["ack 1"] * 3, sends=...)
    s.inject(300, "ack 3001", sends=...)
    s.inject(310, *["ack 3001 eln"] * 3)
    assert s.skip()[0].startswith("3001:4001")
    assert s.ssthresh == 4000


def test_where_eln_tells_of_one_hole_per_window_the_next_reduces_it(script: MakeScript) -> None:
    s = window_of_8(script, replace(RENO, eln_once_per_window=True))
    s.inject(200, *["ack 1 eln"] * 3, sends=...)
    s.inject(300, "ack 3001", sends=...)
    s.inject(310, *["ack 3001 eln"] * 3)
    assert s.skip()[0].startswith("3001:4001")
    assert s.connection.counters.eln_kept == 1
    assert s.ssthresh is not None


def test_where_eln_tells_of_one_hole_per_window_it_tells_of_the_next_windows(script: MakeScript) -> None:
    s = window_of_8(script, replace(RENO, eln_once_per_window=True))
    s.inject(200, *["ack 1 eln"] * 3, sends=...)
    s.inject(300, "ack 8001", sends=...)
    s.inject(400, "ack 11001", *["ack 11001 eln"] * 3)
    assert any(line.startswith("11001:12001") for line in s.skip())
    assert (s.connection.counters.eln_kept, s.ssthresh) == (2, None)


def test_the_one_hole_may_be_the_first_to_go_at_once(script: MakeScript) -> None:
    config = replace(RENO, eln="retransmit", eln_once_per_window=True, one_reduction_per_window=False)
    s = window_of_8(script, config)
    s.inject(200, "ack 1 eln")
    assert s.skip()[0].startswith("1:1001")
    s.inject(300, "ack 3001 eln", "ack 3001 eln", sends=...)
    assert s.connection.counters.fast_retransmits == 1
    s.inject(310, "ack 3001 eln", "ack 3001 eln")
    assert s.connection.counters.fast_retransmits == 2


def test_newreno_keeps_it_when_the_partial_ack_tells(script: MakeScript) -> None:
    s = window_of_8(script, NEWRENO)
    s.inject(200, *["ack 1 eln"] * 3, sends=...)
    s.inject(300, "ack 3001 eln")
    assert s.skip()[0].startswith("3001:4001")
    s.inject(400, "ack 11001", sends=...)
    assert (s.cwnd, s.ssthresh) == (8000, None)


def test_newreno_reduces_once_at_the_first_hole_that_nobody_calls_corruption(script: MakeScript) -> None:
    s = window_of_8(script, NEWRENO)
    s.inject(200, *["ack 1 eln"] * 3, sends=...)
    s.inject(300, "ack 3001", sends=...)
    assert s.ssthresh is None
    s.inject(400, "ack 5001", sends=...)
    assert s.ssthresh == 4000
    s.inject(500, "ack 6001", sends=...)
    assert s.ssthresh == 4000
    s.inject(600, "ack 20001")
    assert s.cwnd <= 4000


@pytest.mark.parametrize("config", [NEWRENO, SACK], ids=["newreno", "sack"])
def test_a_recovery_that_is_found_to_be_of_congestion_ends_where_it_would(
    script: MakeScript, config: TcpConfig
) -> None:
    # 1 and 3001 are lost, the second by congestion
    s = window_of_8(script, config)
    s.inject(200, "ack 1 sack 1001:3001 eln", "ack 1 sack 4001:5001 1001:3001 eln", sends=...)
    s.inject(200, "ack 1 sack 4001:8001 1001:3001 eln", sends=...)
    s.inject(300, "ack 3001 sack 4001:8001", sends=...)
    s.inject(310, "ack 8001", sends=...)
    assert s.ssthresh == 4000
    s.inject(320, "ack 9001")
    assert not [text for text in s.skip() if text.startswith("9001:")]


def test_sack_judges_each_hole_by_its_own_word(script: MakeScript) -> None:
    # 1, 3001 and 5001 are lost
    s = window_of_8(script, SACK)
    s.inject(200, "ack 1 sack 1001:3001 eln", "ack 1 sack 4001:5001 1001:3001 eln")
    found = s.skip()
    s.inject(200, "ack 1 sack 6001:8001 4001:5001 1001:3001 eln")
    found += s.skip()
    s.inject(300, "ack 3001 sack 6001:9001 4001:5001 eln")
    found += s.skip()
    assert {"1:1001", "3001:4001", "5001:6001"} <= {text.split()[0] for text in found}
    s.inject(310, "ack 5001 sack 6001:9001 eln", sends=...)
    s.inject(320, "ack 9001", sends=...)
    assert s.ssthresh is None
    s.inject(400, "ack 12001", sends=...)
    assert (s.ssthresh, s.connection.counters.eln_kept) == (None, 1)


def test_sack_reduces_once_where_a_hole_has_no_word(script: MakeScript) -> None:
    s = window_of_8(script, SACK)
    s.inject(200, "ack 1 sack 1001:3001 eln", "ack 1 sack 4001:5001 1001:3001 eln", sends=...)
    s.inject(200, "ack 1 sack 6001:8001 4001:5001 1001:3001 eln", sends=...)
    s.inject(300, "ack 3001 sack 6001:8001 4001:5001", sends=...)
    assert s.ssthresh is None
    s.inject(310, "ack 5001 sack 6001:8001", sends=...)
    assert s.ssthresh == 4000
    s.inject(320, "ack 8001", sends=...)
    assert s.ssthresh == 4000


def test_an_ack_that_jumps_over_a_hole_has_said_nothing_of_it(script: MakeScript) -> None:
    # the ACK for 3001, which would have told, was lost itself
    s = window_of_8(script, SACK)
    s.inject(200, "ack 1 sack 1001:3001 eln", "ack 1 sack 4001:6001 1001:3001 eln", "ack 1 sack 4001:8001 1001:3001")
    s.skip()
    s.inject(300, "ack 8001", sends=...)
    assert s.ssthresh == 4000


def test_a_rescue_retransmission_is_no_hole(script: MakeScript) -> None:
    # nothing new is left to send, and room in the window: RFC 6675 sends the last segment once more
    s = window_of_8(script, SACK, nbytes=8000)
    s.inject(200, *(f"{text} eln" for text in THREE), sends=["1:1001", "7001:8001"])
    s.inject(300, "ack 8001")
    assert (s.cwnd, s.ssthresh) == (8000, None)


def test_a_mark_of_congestion_counts_while_the_window_is_kept(script: MakeScript) -> None:
    s = script(replace(NEWRENO, ecn=True), connected=False)
    s.connect(sends=...)
    s.inject(100, "SE 0:0 ack 1 mss 1000")
    s.write(100_000, sends=...)
    s.inject(150, "ack 1001", sends=...)
    s.inject(200, *["ack 1001 eln"] * 3, sends=...)
    assert s.ssthresh is None
    s.inject(210, "E 1:1 ack 1001", sends=...)
    assert s.ssthresh == 4500
    assert s.connection.counters.ecn_reductions == 1


# -- retransmit ----------------------------------------------------------------------------------------------


@ALL
def test_the_first_duplicate_that_tells_is_enough_to_retransmit(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, replace(config, eln="retransmit"))
    s.inject(200, f"{THREE[0]} eln")
    assert s.skip()[0].startswith("1:1001")
    s.inject(210, *(f"{text} eln" for text in THREE[1:]))
    # not twice
    assert not [text for text in s.skip() if text.startswith("1:1001")]
    s.inject(300, "ack 8001", sends=...)
    assert (s.cwnd, s.ssthresh) == (8000, None)


@ALL
def test_without_a_word_it_takes_three(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, replace(config, eln="retransmit"))
    s.inject(200, *THREE[:2], sends=[])
    s.inject(200, THREE[2])
    assert s.skip()[0].startswith("1:1001")
    assert s.ssthresh == 4000


@NO_SACK
def test_what_the_timer_has_sent_again_is_not_sent_a_third_time_at_once(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, replace(config, eln="retransmit"))
    s.expect(1100, "1:1001")
    s.inject(1150, "ack 1 eln", sends=[])


def test_the_next_hole_goes_at_its_first_duplicate(script: MakeScript) -> None:
    s = window_of_8(script, replace(RENO, eln="retransmit"))
    s.inject(200, "ack 1 eln", sends=...)
    s.inject(300, "ack 3001 eln", sends=...)
    s.inject(310, "ack 3001 eln")
    assert s.skip()[0].startswith("3001:4001")
    assert (s.connection.counters.eln_kept, s.ssthresh) == (2, None)


# -- as Linux with its eBPF control does it -------------------------------------------------------------------------


def test_a_hole_no_ack_has_stood_at_may_go_with_the_others(script: MakeScript) -> None:
    s = window_of_8(script, replace(SACK, jumped_is_congestion=False))
    s.inject(200, "ack 1 sack 1001:3001 eln", "ack 1 sack 4001:6001 1001:3001 eln", "ack 1 sack 4001:8001 1001:3001")
    s.skip()
    s.inject(300, "ack 8001", sends=...)
    assert s.ssthresh is None


def test_a_hole_an_ack_has_stood_at_may_not(script: MakeScript) -> None:
    s = window_of_8(script, replace(SACK, jumped_is_congestion=False))
    s.inject(200, "ack 1 sack 1001:3001 eln", "ack 1 sack 4001:6001 1001:3001 eln", "ack 1 sack 4001:8001 1001:3001")
    s.skip()
    s.inject(300, "ack 3001 sack 4001:8001", sends=...)
    s.inject(310, "ack 8001", sends=...)
    assert s.ssthresh == 4000


@pytest.mark.parametrize("seen", [True, False])
def test_a_lost_retransmission_shows_when_something_newer_has_come(script: MakeScript, seen: bool) -> None:
    s = window_of_8(script, replace(SACK, lost_retransmissions=seen))
    s.inject(200, *(f"{text} eln" for text in THREE), sends=["1:1001", "8001:9001", "9001:10001", "10001:11001"])
    # what was sent before it tells nothing
    s.inject(210, "ack 1 sack 1001:8001")
    assert not any(sent.startswith("1:1001") for sent in s.skip())
    s.inject(300, "ack 1 sack 1001:9001")
    assert any(sent.startswith("1:1001") for sent in s.skip()) is seen
    # once
    s.inject(301, "ack 1 sack 1001:10001")
    assert not any(sent.startswith("1:1001") for sent in s.skip())


@pytest.mark.parametrize("conserves", [True, False])
def test_a_kept_window_may_be_filled_by_what_arrives_only(script: MakeScript, conserves: bool) -> None:
    s = window_of_8(script, replace(SACK, conserve_kept=conserves))
    # five of eight are lost, and nobody can say of what but the first
    s.inject(200, *(f"ack 1 sack {blocks} eln" for blocks in ("3001:4001", "5001:6001 3001:4001")), sends=...)
    s.inject(200, "ack 1 sack 7001:8001 5001:6001 3001:4001 eln")
    sent = s.skip()
    assert sent[0].startswith("1:1001")
    assert (len(sent) == 1) is conserves
    s.inject(300, "ack 1001 sack 7001:8001 5001:6001 3001:4001 eln")
    # a segment has arrived and one has left; one more for the partial ACK
    if conserves:
        assert [text.split()[0] for text in s.skip()] == ["1001:2001"]
