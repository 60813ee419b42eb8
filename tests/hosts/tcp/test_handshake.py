"""RFC 9293 sections 3.5 and 3.10: opening."""

import pytest

from common.sequence import MASK
from hosts.tcp.connection import reset_for
from tcpip.segment import ACK, FIN, RST, SYN, Segment
from tests.hosts.tcp.script import FLOW, PLAIN, Case, MakeScript, Script, by_script


@by_script(
    """
    active [connected=False]
        connect | state SYN-SENT
        0 > S 0:0 win 65535 mss 1000
        100 < S 0:0 ack 1 mss 1000 > 1:1 ack 1 | state ESTABLISHED, connected
    what was written before leaves with the acknowledgement [connected=False]
        connect
        write 1500 > S 0:0
        100 < S 0:0 ack 1 mss 1000 > 1:1001 ack 1
        200 < ack 1001 > 1001:1501 ack 1
    passive [connected=False]
        listen | state LISTEN
        0 < S 0:0 mss 1000 > S 0:0 ack 1 win 65535 mss 1000 | state SYN-RECEIVED
        100 < ack 1 > nothing | state ESTABLISHED
    passive with data in the third segment [connected=False]
        listen
        0 < S 0:0 mss 1000 > S 0:0 ack 1
        # the bare acknowledgement was lost
        100 < 1:1001 ack 1
        300 > 1:1 ack 1001 | bytes_received 1000
    simultaneous [connected=False]
        connect > S 0:0
        50 < S 0:0 mss 1000 > S 0:0 ack 1 | state SYN-RECEIVED
        # figure 8
        100 < S 0:0 ack 1 mss 1000 > 1:1 ack 1 | state ESTABLISHED
    an answer that gets lost is given again [connected=False]
        listen
        0 < S 0:0 mss 1000 > S 0:0 ack 1
        1000 > S 0:0 ack 1
        1500 < S 0:0 mss 1000 > S 0:0 ack 1, ...
    our acknowledgement was lost
        1100 < S 0:0 ack 1 mss 1000 > 1:1 ack 1 | state ESTABLISHED
    giving up [syn_retries=2, connected=False]
        connect
        0 1000 3000 > S 0:0
        6999 | state SYN-SENT
        7000 > nothing | state CLOSED, error, closed, next_deadline none
    a reset refuses if it acknowledges our syn [connected=False]
        connect > S 0:0
        100 < R 0:0, R 0:0 ack 0, R 0:0 ack 2 > nothing | state SYN-SENT
        100 < R 0:0 ack 1 > nothing | state CLOSED, error
    an old acknowledgement is reset [connected=False]
        # section 3.5.1, half-open connections: <SEQ=SEG.ACK><CTL=RST>
        connect > S 0:0
        100 < 1:1 ack 501 > R 501:501 | state SYN-SENT
        110 < S 0:0 ack 1 mss 1000 > 1:1 ack 1
    in listen an acknowledgement is reset and a reset ignored [connected=False]
        listen
        0 < R 0:0 > nothing
        0 < 0:0 ack 77 > R 77:77 | state LISTEN
        0 < S 0:0 ack 77 mss 1000 > R 77:77 | state LISTEN
    """
)
def test_opening(script: MakeScript, case: Case) -> None:
    case.play(script, PLAIN)


@pytest.mark.parametrize("forgiven", [0, 1])
@pytest.mark.parametrize("active", [True, False])
def test_a_lost_syn_makes_the_window_one_segment_and_the_timeout_three_seconds(
    script: MakeScript, active: bool, forgiven: int
) -> None:
    # RFC 5681 section 3.1, RFC 6298 (5.7): a SYN-ACK counts as a SYN does; Linux forgives one
    s = script(PLAIN.but(initial_window=2, forgiven_syns=forgiven), connected=False)
    if active:
        s.connect(sends=["S 0:0"])
        s.expect(1000, "S 0:0")
        s.inject(1100, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"])
    else:
        s.listen()
        s.inject(0, "S 0:0 mss 1000", sends=["S 0:0 ack 1"])
        s.expect(1000, "S 0:0 ack 1")
        s.inject(1100, "ack 1")
    s.write(5000, sends=["1:1001", "1001:2001"][: 1 + forgiven])
    assert s.rto_ms == (2000 if forgiven else 3000)


@pytest.mark.parametrize("ack", [0, 2, 500])
def test_in_syn_received_only_our_syn_is_acknowledged(script: MakeScript, ack: int) -> None:
    # section 3.10.7.4, fifth
    s = script(PLAIN, connected=False)
    s.listen()
    s.inject(0, "S 0:0 mss 1000", sends=...)
    s.inject(100, f"1:1 ack {ack}", sends=[f"R {ack}:{ack}"], state="SYN-RECEIVED")
    s.inject(200, "1:1 ack 1", state="ESTABLISHED")


@pytest.mark.parametrize(
    ("segment", "seq", "ack", "flags"),
    [
        (Segment(FLOW, 100, 0, SYN, 1000), 0, 101, RST | ACK),
        (Segment(FLOW, 2**32 - 10, 0, SYN, 1000, 20), 0, 11, RST | ACK),
        (Segment(FLOW, 101, 0, SYN | FIN, 1000, 20), 0, 123, RST | ACK),
        (Segment(FLOW, 101, 0, FIN, 1000, 20), 0, 122, RST | ACK),
        (Segment(FLOW, 100, 200, ACK, 1000, 20), 200, 0, RST),
        (Segment(FLOW, 100, 200, SYN | ACK, 1000), 200, 0, RST),
    ],
)
def test_what_has_no_connection_is_reset(segment: Segment, seq: int, ack: int, flags: int) -> None:
    # section 3.10.7.1
    answer = reset_for(segment)
    assert answer is not None
    assert (answer.flow, answer.seq, answer.ack, answer.flags) == (FLOW.reversed(), seq, ack, flags)
    assert reset_for(answer) is None


@pytest.mark.parametrize("number", [2**32 - 1, 2**32 - 2])
@pytest.mark.parametrize("active", [True, False])
def test_a_syn_may_have_the_last_number(number: int, active: bool) -> None:
    # RFC 9293 section 3.4: numbers are modulo 2^32
    s = Script(PLAIN, iss=number, irs=number, connected=active)
    if not active:
        s.listen()
        s.inject(0, "S 0:0 mss 1000", sends=["S 0:0 ack 1"])
        s.inject(100, "1:1 ack 1", sends=[])
    s.write(10, sends=["1:11 ack 1"])
    s.inject(200, "1:11 ack 11", sends=[])
    s.close(sends=["F 11:11 ack 11"], state="FIN-WAIT-1")
    s.inject(300, "F 11:11 ack 12", sends=["12:12 ack 12"], state="TIME-WAIT")


@pytest.mark.parametrize("behind", [1, 2, 1000])
def test_an_old_syn_ack_does_not_answer_a_simultaneous_open(script: MakeScript, behind: int) -> None:
    # figure 8 has the number of the SYN that was taken
    s = script(PLAIN, connected=False)
    s.connect(sends=["S 0:0"])
    s.inject(50, "S 0:0 mss 1000", sends=["S 0:0 ack 1"])
    old = Segment(FLOW.reversed(), s.irs - behind & MASK, s.iss + 1 & MASK, SYN | ACK, 1000)
    s.connection.handle_segment(old, s.now)
    assert s.state == "SYN-RECEIVED"


def test_a_segment_without_flags_is_ignored(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect(sends=["S 0:0"])
    s.connection.handle_segment(Segment(FLOW.reversed(), 1, 7, FIN, 1000), s.now)
    assert (s.state, s.connection.poll_segment(s.now)) == ("SYN-SENT", None)


def test_a_connection_is_opened_once(script: MakeScript) -> None:
    s = script(PLAIN)
    with pytest.raises(RuntimeError, match="opened once"):
        s.connection.connect(s.now)
    with pytest.raises(RuntimeError, match="opened once"):
        s.connection.listen()
