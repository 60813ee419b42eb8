"""RFC 9293 sections 3.5 and 3.10: opening; RFC 7323 section 2: window scale."""

from dataclasses import replace

import pytest

from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import reset_for
from tcpip.segment import ACK, RST, SYN, Segment
from tests.hosts.tcp.script import FLOW, PLAIN, MakeScript


def test_active(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect()
    assert s.state == "SYN-SENT"
    s.expect(0, "S 0:0 win 65535 mss 1000")
    s.inject(100, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"])
    assert s.state == "ESTABLISHED"
    assert s.connection.connected


def test_what_was_written_before_leaves_with_the_acknowledgement(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect()
    s.write(1500, sends=["S 0:0"])
    s.inject(100, "S 0:0 ack 1 mss 1000", sends=["1:1001 ack 1"])
    s.inject(200, "ack 1001", sends=["1001:1501 ack 1"])


def test_passive(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.listen()
    assert s.state == "LISTEN"
    s.inject(0, "S 0:0 mss 1000", sends=["S 0:0 ack 1 win 65535 mss 1000"])
    assert s.state == "SYN-RECEIVED"
    s.inject(100, "ack 1", sends=[])
    assert s.state == "ESTABLISHED"


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
    s.inject(50, "S 0:0 mss 1000", sends=["S 0:0 ack 1"])
    assert s.state == "SYN-RECEIVED"
    # figure 8
    s.inject(100, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"])
    assert s.state == "ESTABLISHED"


def test_an_answer_that_gets_lost_is_given_again(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.listen()
    s.inject(0, "S 0:0 mss 1000", sends=["S 0:0 ack 1"])
    s.expect(1000, "S 0:0 ack 1")
    s.inject(1500, "S 0:0 mss 1000")
    assert s.skip()[0].startswith("S 0:0 ack 1")


def test_after_a_lost_answer_the_window_is_one_segment_and_the_timeout_three_seconds(script: MakeScript) -> None:
    # RFC 5681 section 3.1, RFC 6298 (5.7): a SYN-ACK counts as a SYN does
    s = script(replace(PLAIN, initial_window=10), connected=False)
    s.listen()
    s.inject(0, "S 0:0 mss 1000", sends=["S 0:0 ack 1"])
    s.expect(1000, "S 0:0 ack 1")
    s.inject(1100, "ack 1")
    s.write(5000, sends=["1:1001 ack 1"])
    assert s.rto_ms == 3000


def test_our_acknowledgement_was_lost(script: MakeScript) -> None:
    s = script(PLAIN)
    s.inject(1100, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"])
    assert s.state == "ESTABLISHED"


def test_giving_up(script: MakeScript) -> None:
    s = script(replace(PLAIN, syn_retries=2), connected=False)
    s.connect()
    for at_ms in (0, 1000, 3000):
        s.expect(at_ms, "S 0:0")
    s.run_to(6999)
    assert s.state == "SYN-SENT"
    s.expect(7000)
    assert s.state == "CLOSED"
    assert s.connection.error is not None
    assert s.connection.closed
    assert s.connection.next_deadline() is None


def test_refused(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect(sends=["S 0:0"])
    s.inject(100, "R 0:0 ack 1", sends=[])
    assert s.state == "CLOSED"
    assert s.connection.error is not None


@pytest.mark.parametrize("stray", ["R 0:0", "R 0:0 ack 0", "R 0:0 ack 2"])
def test_a_reset_of_something_else_refuses_nothing(script: MakeScript, stray: str) -> None:
    s = script(PLAIN, connected=False)
    s.connect(sends=["S 0:0"])
    s.inject(100, stray, sends=[])
    assert s.state == "SYN-SENT"


def test_an_old_acknowledgement_is_reset(script: MakeScript) -> None:
    # section 3.5.1, half-open connections: <SEQ=SEG.ACK><CTL=RST>
    s = script(PLAIN, connected=False)
    s.connect(sends=["S 0:0"])
    s.inject(100, "1:1 ack 501", sends=["R 501:501"])
    assert s.state == "SYN-SENT"
    s.inject(110, "S 0:0 ack 1 mss 1000", sends=["1:1 ack 1"])


@pytest.mark.parametrize("ack", [0, 2, 500])
def test_in_syn_received_only_our_syn_is_acknowledged(script: MakeScript, ack: int) -> None:
    # section 3.10.7.4, fifth
    s = script(PLAIN, connected=False)
    s.listen()
    s.inject(0, "S 0:0 mss 1000", sends=...)
    s.inject(100, f"1:1 ack {ack}", sends=[f"R {ack}:{ack}"])
    assert s.state == "SYN-RECEIVED"
    s.inject(200, "1:1 ack 1")
    assert s.state == "ESTABLISHED"


def test_in_listen_an_acknowledgement_is_reset_and_a_reset_ignored(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.listen()
    s.inject(0, "R 0:0", sends=[])
    s.inject(0, "0:0 ack 77", sends=["R 77:77"])
    assert s.state == "LISTEN"


def test_what_has_no_connection_is_reset() -> None:
    # section 3.10.7.1
    answer = reset_for(Segment(FLOW, 100, 0, SYN, 1000))
    assert answer is not None
    assert (answer.flow, answer.seq, answer.ack, answer.flags) == (FLOW.reversed(), 0, 101, RST | ACK)
    answer = reset_for(Segment(FLOW, 2**32 - 10, 0, SYN, 1000, 20))
    assert answer is not None
    assert answer.ack == 11
    answer = reset_for(Segment(FLOW, 100, 200, ACK, 1000, 20))
    assert answer is not None
    assert (answer.seq, answer.flags) == (200, RST)
    assert reset_for(Segment(FLOW, 100, 200, RST, 1000)) is None


def test_a_connection_is_opened_once(script: MakeScript) -> None:
    s = script(PLAIN)
    with pytest.raises(RuntimeError, match="opened once"):
        s.connection.connect(s.now)
    with pytest.raises(RuntimeError, match="opened once"):
        s.connection.listen()


def test_the_numbers_and_states_before_it_is_open(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    assert s.connection.next_deadline() is None
    assert (s.connection.bytes_acked, s.connection.bytes_received, s.connection.readable) == (0, 0, 0)
    assert s.connection.srtt_ns is None
    assert not s.connection.connected


# -- window scale ------------------------------------------------------------------------------------------------------

SCALED = replace(PLAIN, window_scaling=True, receive_buffer=1 << 20)


def test_the_scale_is_as_large_as_the_buffer_needs(script: MakeScript) -> None:
    s = script(SCALED, connected=False)
    s.connect()
    # the window of a SYN is never scaled
    s.expect(0, "S 0:0 win 65535 wscale 5")
    s.inject(100, "S 0:0 ack 1 mss 1000 wscale 2 win 1000", sends=["1:1 ack 1 win 32768"])


def test_the_peers_scale_holds_behind_the_handshake(script: MakeScript) -> None:
    s = script(replace(SCALED, initial_window=10), peer="mss 1000 wscale 2 win 1000")
    s.write(20_000, sends=["1:1001"])
    s.inject(200, "ack 1001 win 1000")
    assert s.skip() == [f"{left}:{left + 1000} ack 1 win 32768" for left in (1001, 2001, 3001, 4001)]


@pytest.mark.parametrize("config", [SCALED, replace(SCALED, window_scaling=False, receive_buffer=65_535)])
def test_both_sides_must_scale(script: MakeScript, config: TcpConfig) -> None:
    s = script(config, connected=False)
    s.connect(sends=...)
    s.inject(100, "S 0:0 ack 1 mss 1000" + " wscale 7" * (config is not SCALED), sends=["1:1 ack 1 win 65535"])
    s.inject(110, "ack 1 win 3000")
    s.write(50_000, sends=["1:1001", "1001:2001", "2001:3001"])


def test_a_listener_scales_only_where_it_was_asked(script: MakeScript) -> None:
    for options, answer in (("wscale 3", "wscale 5"), ("", "")):
        s = script(SCALED, connected=False)
        s.listen()
        s.inject(0, f"S 0:0 mss 1000 {options}".strip(), sends=[f"S 0:0 ack 1 win 65535 {answer}".strip()])


def test_a_scale_above_fourteen_counts_as_fourteen(script: MakeScript) -> None:
    # RFC 7323 section 2.3
    s = script(replace(SCALED, initial_window=100), peer="mss 1000 wscale 15")
    s.inject(100, "ack 1 win 1")
    s.write(50_000)
    assert len(s.skip()) == (1 << 14) // 1000
