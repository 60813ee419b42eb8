"""Options that both SYNs must have: window scale and timestamps (RFC 7323), SACK (RFC 2018), SMART, ECN (RFC 3168)."""

from typing import NamedTuple

import pytest

from hosts.tcp.config import TcpConfig
from tests.harness.endpoints import agreed
from tests.hosts.tcp.script import PLAIN, MakeScript


class Case(NamedTuple):
    """One option: who wants it, and how it looks; the words behind a SYN's numbers, and its flags."""

    config: TcpConfig
    #: our SYN; the peer's; our answer to that
    asks: str = ""
    peer: str = ""
    answers: str = ""
    #: of our SYN, and of our answer
    flags: tuple[str, str] = ("S", "S")


CASES = {
    "sack": Case(PLAIN.but(recovery="sack"), "sackok", "sackok", "sackok"),
    "smart": Case(PLAIN.but(recovery="smart"), "smartok", "smartok", "smartok"),
    "window scale": Case(PLAIN.but(window_scaling=True, receive_buffer=1 << 20), "wscale 5", "wscale 3", "wscale 5"),
    "timestamps": Case(PLAIN.but(timestamps=True), "ts 0/0", "ts 7000/0", "ts 0/7000"),
    "ecn": Case(PLAIN.but(ecn=True), flags=("SEW", "SE")),
}
OPTIONS = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@OPTIONS
def test_the_syn_asks_for_it(script: MakeScript, case: Case) -> None:
    s = script(case.config, connected=False)
    # the window of a SYN is never scaled
    s.connect(sends=[f"{case.flags[0]} 0:0 win 65535 mss 1000 {case.asks}".strip()])


@OPTIONS
@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_the_answer_has_it_if_both_want_it(script: MakeScript, case: Case, wanted: bool, asked: bool) -> None:
    s = script(case.config if wanted else PLAIN, connected=False)
    s.listen()
    s.inject(0, f"{case.flags[0] if asked else 'S'} 0:0 mss 1000 {case.peer if asked else ''}".strip())
    agreed = wanted and asked
    [answer] = s.skip()
    words = f"{case.flags[1] if agreed else 'S'} 0:0 ack 1 win 65535 mss 1000 {case.answers if agreed else ''}".split()
    assert sorted(answer.split()) == sorted(words)


def test_without_an_answer_no_option_is_used(script: MakeScript) -> None:
    config = PLAIN.but(
        recovery="sack", window_scaling=True, timestamps=True, ecn=True, receive_buffer=1 << 20, mss=1012
    )
    s = script(config, connected=False)
    s.connect(sends=...)
    s.inject(100, "S 0:0 ack 1 mss 1000")
    assert s.skip() == ["1:1 ack 1 win 65535"]
    connection = s.connection
    assert not agreed(connection)
    s.inject(200, "1001:2001", sends=["ack 1"])
    s.write(1000, sends=["1:1001"])


def test_an_answer_to_what_was_not_asked_agrees_to_nothing(script: MakeScript) -> None:
    s = script(PLAIN, peer="mss 1000 sackok smartok wscale 7 ts 7000/0")
    s.inject(110, "ack 1 win 3000")
    s.write(50_000, sends=["1:1001", "1001:2001", "2001:3001"])
    assert not agreed(s.connection) & {"sack", "timestamps"}
    s.inject(200, "1001:2001", sends=["ack 1", ...])


# -- ECN: the flags have one meaning on a SYN, and another on its answer ----------------------------------------------


@pytest.mark.parametrize("answer", ["S", "SEW", "SW"])
def test_any_answer_but_ece_alone_is_a_no(script: MakeScript, answer: str) -> None:
    s = script(PLAIN.but(ecn=True), connected=False)
    s.connect(sends=...)
    s.inject(100, f"{answer} 0:0 ack 1 mss 1000", sends=...)
    s.write(1000, sends=["1:1001"])
    assert "ecn" not in agreed(s.connection)


@pytest.mark.parametrize("asked", ["SE", "SW"])
def test_any_question_but_ece_and_cwr_is_not_agreed_to(script: MakeScript, asked: str) -> None:
    s = script(PLAIN.but(ecn=True), connected=False)
    s.listen()
    s.inject(0, f"{asked} 0:0 mss 1000", sends=["S 0:0 ack 1"])


# -- window scale -----------------------------------------------------------------------------------------------------


def test_the_scales_hold_behind_the_handshake(script: MakeScript) -> None:
    config = PLAIN.but(window_scaling=True, receive_buffer=1 << 20, initial_window=10)
    s = script(config, peer="mss 1000 wscale 2 win 1000")
    s.write(20_000, sends=["1:1001"])
    s.inject(200, "ack 1001 win 1000")
    assert s.skip() == [f"{left}:{left + 1000} ack 1 win 32768" for left in (1001, 2001, 3001, 4001)]


def test_a_scale_above_fourteen_counts_as_fourteen(script: MakeScript) -> None:
    # RFC 7323 section 2.3
    config = PLAIN.but(window_scaling=True, receive_buffer=1 << 20, initial_window=100)
    s = script(config, peer="mss 1000 wscale 15")
    s.inject(100, "ack 1 win 1")
    s.write(50_000)
    assert len(s.skip()) == (1 << 14) // 1000
