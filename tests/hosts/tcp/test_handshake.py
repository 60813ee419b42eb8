"""RFC 9293 sections 3.5 and 3.10: opening."""

import pytest

from hosts.tcp.connection import reset_for
from tcpip.segment import ACK, RST, SYN, Segment
from tests.hosts.tcp.script import FLOW, PLAIN, MakeScript


def test_active(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect(state="SYN-SENT")
    s.expect(0, "S 0:0 win 65535 mss 1000")
    s.inject(100, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"], state="ESTABLISHED")
    assert s.connection.connected


def test_what_was_written_before_leaves_with_the_acknowledgement(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect()
    s.write(1500, sends=["S 0:0"])
    s.inject(100, "S 0:0 ack 1 mss 1000", sends=["1:1001 ack 1"])
    s.inject(200, "ack 1001", sends=["1001:1501 ack 1"])


def test_passive(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.listen(state="LISTEN")
    s.inject(0, "S 0:0 mss 1000", sends=["S 0:0 ack 1 win 65535 mss 1000"], state="SYN-RECEIVED")
    s.inject(100, "ack 1", sends=[], state="ESTABLISHED")


def test_passive_with_data_in_the_third_segment(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.listen()
    s.inject(0, "S 0:0 mss 1000", sends=["S 0:0 ack 1"])
    # the bare acknowledgement was lost
    s.inject(100, "1:1001 ack 1")
    s.expect(300, "1:1 ack 1001")
    assert s.connection.bytes_received == 1000


def test_simultaneous(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect(sends=["S 0:0"])
    s.inject(50, "S 0:0 mss 1000", sends=["S 0:0 ack 1"], state="SYN-RECEIVED")
    # figure 8
    s.inject(100, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"], state="ESTABLISHED")


def test_an_answer_that_gets_lost_is_given_again(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.listen()
    s.inject(0, "S 0:0 mss 1000", sends=["S 0:0 ack 1"])
    s.expect(1000, "S 0:0 ack 1")
    s.inject(1500, "S 0:0 mss 1000", sends=["S 0:0 ack 1", ...])


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


def test_our_acknowledgement_was_lost(script: MakeScript) -> None:
    s = script(PLAIN)
    s.inject(1100, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"], state="ESTABLISHED")


def test_giving_up(script: MakeScript) -> None:
    s = script(PLAIN.but(syn_retries=2), connected=False)
    s.connect()
    for at_ms in (0, 1000, 3000):
        s.expect(at_ms, "S 0:0")
    s.run_to(6999)
    assert s.state == "SYN-SENT"
    s.expect(7000, state="CLOSED")
    assert s.connection.error is not None
    assert s.connection.closed
    assert s.connection.next_deadline() is None


def test_a_reset_refuses_if_it_acknowledges_our_syn(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect(sends=["S 0:0"])
    s.inject(100, "R 0:0", "R 0:0 ack 0", "R 0:0 ack 2", sends=[], state="SYN-SENT")
    s.inject(100, "R 0:0 ack 1", sends=[], state="CLOSED")
    assert s.connection.error is not None


def test_an_old_acknowledgement_is_reset(script: MakeScript) -> None:
    # section 3.5.1, half-open connections: <SEQ=SEG.ACK><CTL=RST>
    s = script(PLAIN, connected=False)
    s.connect(sends=["S 0:0"])
    s.inject(100, "1:1 ack 501", sends=["R 501:501"], state="SYN-SENT")
    s.inject(110, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"])


@pytest.mark.parametrize("ack", [0, 2, 500])
def test_in_syn_received_only_our_syn_is_acknowledged(script: MakeScript, ack: int) -> None:
    # section 3.10.7.4, fifth
    s = script(PLAIN, connected=False)
    s.listen()
    s.inject(0, "S 0:0 mss 1000", sends=...)
    s.inject(100, f"1:1 ack {ack}", sends=[f"R {ack}:{ack}"], state="SYN-RECEIVED")
    s.inject(200, "1:1 ack 1", state="ESTABLISHED")


def test_in_listen_an_acknowledgement_is_reset_and_a_reset_ignored(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.listen()
    s.inject(0, "R 0:0", sends=[])
    s.inject(0, "0:0 ack 77", sends=["R 77:77"], state="LISTEN")


@pytest.mark.parametrize(
    ("segment", "seq", "ack", "flags"),
    [
        (Segment(FLOW, 100, 0, SYN, 1000), 0, 101, RST | ACK),
        (Segment(FLOW, 2**32 - 10, 0, SYN, 1000, 20), 0, 11, RST | ACK),
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


def test_a_connection_is_opened_once(script: MakeScript) -> None:
    s = script(PLAIN)
    with pytest.raises(RuntimeError, match="opened once"):
        s.connection.connect(s.now)
    with pytest.raises(RuntimeError, match="opened once"):
        s.connection.listen()
