"""Explicit loss notifications: COMPARISON sections 2.3 and 3.1 (E2E-ELN, E2E-ELN-RXMT), with every recovery."""

from functools import partial

import pytest

from hosts.tcp.config import TcpConfig
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script, window_of

RENO = PLAIN.but(initial_window=8, recovery="reno", eln="keep-window")
NEWRENO = RENO.but(recovery="newreno")
SACK = RENO.but(recovery="sack")
SMART = RENO.but(recovery="smart")
ALL = pytest.mark.parametrize("config", [RENO, NEWRENO, SACK, SMART], ids=["reno", "newreno", "sack", "smart"])
NO_SACK = pytest.mark.parametrize("config", [RENO, NEWRENO], ids=["reno", "newreno"])

#: three duplicates for the first segment
THREE = [f"ack 1 sack 1001:{n}001" for n in (2, 3, 4)]
window_of_8 = partial(window_of, 8)


# -- keep-window ---------------------------------------------------------------------------------------------


@ALL
@pytest.mark.parametrize(("eln", "told"), [("keep-window", ""), ("retransmit", ""), ("ignore", " eln")])
def test_a_loss_that_nobody_calls_corruption_takes_three_and_halves_it(
    script: MakeScript, config: TcpConfig, eln: str, told: str
) -> None:
    s = window_of_8(script, config.but(eln=eln))
    s.inject(200, *(f"{text}{told}" for text in THREE[:2]), sends=[])
    s.inject(200, f"{THREE[2]}{told}", sends=["1:1001", ...])
    s.inject(300, "ack 8001", sends=...)
    assert (s.ssthresh, s.connection.counters.eln_kept) == (4000, 0)


@ALL
@by_script(
    """
    a word about another segment does not count
        # it was about the first, which is acknowledged by now
        150 < ack 1 eln
        160 < ack 1001 > ...
        200 < ack 1001 sack 2001:3001, ack 1001 sack 2001:4001, ack 1001 sack 2001:5001 > ... | ssthresh 4500,
            eln_kept 0
    the loss is repaired by the timer and then the window is lost
        200 < ack 1 sack 1001:2001 eln
        1100 > 1:1001 | cwnd 1000, ssthresh 4000
    corruption of which all duplicates tell leaves the window as it is
        200 < ack 1 sack 1001:2001 eln, ack 1 sack 1001:3001 eln > nothing
        200 < ack 1 sack 1001:4001 eln > 1:1001, ...
        300 < ack 8001 > ... | cwnd 8000, ssthresh none, fast_retransmits 1, eln_kept 1, timeouts 0
    corruption of which one duplicate tells leaves the window as it is
        200 < ack 1 sack 1001:2001 eln, ack 1 sack 1001:3001 > nothing
        200 < ack 1 sack 1001:4001 > 1:1001, ...
        300 < ack 8001 > ... | cwnd 8000, ssthresh none, fast_retransmits 1, eln_kept 1, timeouts 0
    the first duplicate that tells is enough to retransmit once [eln='retransmit']
        200 < ack 1 sack 1001:2001 eln > 1:1001, ...
        210 < ack 1 sack 1001:3001 eln, ack 1 sack 1001:4001 eln > ... | retransmits 1
        300 < ack 8001 > ... | cwnd 8000, ssthresh none
    """
)
def test_every_recovery(script: MakeScript, config: TcpConfig, case: Case) -> None:
    case.play(script, config, nbytes=100_000, peer="mss 1000 sackok")


@NO_SACK
@by_script(
    """
    the kept window is filled while the loss is repaired
        # one segment leaves for each that has arrived
        200 < ack 1 eln, ack 1 eln, ack 1 eln > 1:1001, 8001:9001, 9001:10001, 10001:11001
        210 < ack 1 eln > 11001:12001
    a mark of congestion counts while the window is kept [ecn=True, peer='SE mss 1000']
        150 < ack 1001 > ...
        200 < ack 1001 eln x3 > ... | ssthresh none
        210 < E 1:1 ack 1001 > ... | ssthresh 4500, ecn_reductions 1
    what the timer has sent again is not sent a third time at once [eln='retransmit']
        1100 > 1:1001
        1150 < ack 1 eln > nothing
    """
)
def test_recoveries_without_sack(script: MakeScript, config: TcpConfig, case: Case) -> None:
    case.play(script, config, nbytes=100_000)


@by_script(
    """
    the next hole goes at its first duplicate [eln='retransmit']
        200 < ack 1 eln > ...
        300 < ack 3001 eln > ...
        310 < ack 3001 eln > 3001:4001, ... | eln_kept 2, ssthresh none
    one hole may be the first to go at once [eln='retransmit', eln_once_per_window=True, one_reduction_per_window=False]
        200 < ack 1 eln > 1:1001, ...
        300 < ack 3001 eln, ack 3001 eln > ... | fast_retransmits 1
        310 < ack 3001 eln, ack 3001 eln | fast_retransmits 2
    a rescue retransmission is no hole [recovery='sack', peer='mss 1000 sackok', nbytes=8000]
        # nothing new is left to send, and room in the window: RFC 6675 sends the last segment once more
        200 < ack 1 sack 1001:2001 eln, ack 1 sack 1001:3001 eln, ack 1 sack 1001:4001 eln > 1:1001, 7001:8001
        300 < ack 8001 | cwnd 8000, ssthresh none
    """
)
def test_reno_and_sack(script: MakeScript, case: Case) -> None:
    case.play(script, RENO, nbytes=100_000)


# -- several holes -------------------------------------------------------------------------------------------

#: 1:1001, and a word of its corruption
FIRST = ["ack 1 eln"] * 3
#: 1 and 3001 are lost, with SACK; the last tells of nothing but the first
TWO = ["ack 1 sack 1001:3001 eln", "ack 1 sack 4001:6001 1001:3001 eln", "ack 1 sack 4001:8001 1001:3001"]
#: 1, 3001 and 5001 are lost
THREE_HOLES = [
    "ack 1 sack 1001:3001 eln", "ack 1 sack 4001:5001 1001:3001 eln", "ack 1 sack 6001:8001 4001:5001 1001:3001 eln",
]  # fmt: skip
ONCE = RENO.but(eln_once_per_window=True)
LINUX = SACK.but(jumped_is_congestion=False)

#: configuration; ACKs that come at 200 ms, 300 ms and so on; first octets of what is sent again; recoveries that have
#: kept the window, and ssthresh
HOLES = {
    # `recover` is about windows that were reduced
    "reno: corruption, corruption": (RENO, [FIRST, ["ack 3001"], ["ack 3001 eln"] * 3], [1, 3001], 2, None),
    "reno: corruption, congestion": (RENO, [FIRST, ["ack 3001"], ["ack 3001"] * 3], [1, 3001], 1, 4000),
    # without ELN Reno would wait for the timer
    "reno: congestion, corruption": (RENO, [["ack 1"] * 3, ["ack 3001"], ["ack 3001 eln"] * 3], [1, 3001], 1, 4000),
    "reno, one word per window: the next hole": (
        ONCE, [FIRST, ["ack 3001"], ["ack 3001 eln"] * 3], [1, 3001], 1, 4000
    ),
    "reno, one word per window: the next window": (
        ONCE, [FIRST, ["ack 8001"], ["ack 11001"], ["ack 11001 eln"] * 3], [1, 11_001], 2, None
    ),
    "newreno: the partial ACK tells": (NEWRENO, [FIRST, ["ack 3001 eln"], ["ack 11001"]], [1, 3001], 1, None),
    # once, at the first hole that nobody has called corruption
    "newreno: the partial ACKs do not tell": (
        NEWRENO, [FIRST, ["ack 3001"], ["ack 5001"], ["ack 6001"]], [1, 3001, 5001, 6001], 1, 4000
    ),
    "sack: each hole has its word": (
        SACK,
        [THREE_HOLES, ["ack 3001 sack 6001:9001 4001:5001 eln"], ["ack 5001 sack 6001:9001 eln"], ["ack 12001"]],
        [1, 3001, 5001], 1, None,
    ),
    "sack: the second hole has no word": (
        SACK,
        [THREE_HOLES, ["ack 3001 sack 6001:8001 4001:5001"], ["ack 5001 sack 6001:8001"], ["ack 8001"]],
        # two segments above 5001 do not make it lost
        [1, 3001], 1, 4000,
    ),
    # the ACK for 3001, which would have told, was lost itself
    "sack: an ACK jumps over a hole": (SACK, [TWO, ["ack 8001"]], [1, 3001], 1, 4000),
    "sack, linux: an ACK jumps over a hole": (LINUX, [TWO, ["ack 8001"]], [1, 3001], 1, None),
    "sack, linux: an ACK has stood at it": (
        LINUX, [TWO, ["ack 3001 sack 4001:8001"], ["ack 8001"]], [1, 3001], 1, 4000
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "acks", "again", "kept", "ssthresh"), HOLES.values(), ids=HOLES)
def test_several_holes(
    script: MakeScript, config: TcpConfig, acks: list[list[str]], again: list[int], kept: int, ssthresh: int | None
) -> None:
    s = window_of_8(script, config)
    sent, end = [], 8001
    for number, came in enumerate(acks):
        s.inject(200 + 100 * number, *came)
        for text in s.skip():
            left, _, right = text.split()[0].partition(":")
            sent += [int(left)] * (int(left) < end)
            end = max(end, int(right))
    assert sent == again
    assert (s.connection.counters.eln_kept, s.ssthresh) == (kept, ssthresh)


@pytest.mark.parametrize("config", [NEWRENO, SACK], ids=["newreno", "sack"])
def test_a_recovery_that_is_found_to_be_of_congestion_ends_where_it_would(
    script: MakeScript, config: TcpConfig
) -> None:
    # 1 and 3001 are lost, the second by congestion
    s = window_of_8(script, config)
    s.inject(200, *TWO[:2], f"{TWO[2]} eln", sends=...)
    s.inject(300, "ack 3001 sack 4001:8001", sends=...)
    s.inject(310, "ack 8001", sends=..., ssthresh=4000)
    s.inject(320, "ack 9001")
    assert not [text for text in s.skip() if text.startswith("9001:")]


# -- as Linux with its eBPF control does it -------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [True, False])
def test_a_lost_retransmission_shows_when_something_newer_has_come(script: MakeScript, seen: bool) -> None:
    s = window_of_8(script, SACK.but(lost_retransmissions=seen))
    # 1 was lost, three have arrived: the pipe takes the retransmission and three more
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
    s = window_of_8(script, SACK.but(conserve_kept=conserves))
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
