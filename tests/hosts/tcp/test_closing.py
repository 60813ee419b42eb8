"""RFC 9293 sections 3.6 and 3.10: FINs in every state, resets, TIME-WAIT; RFC 5961: which of them to believe."""

from collections.abc import Callable

import pytest

from common.units import SECOND
from tests.hosts.tcp.script import PLAIN, MakeScript, Script


def test_we_close_first(script: MakeScript) -> None:
    s = script(PLAIN.but(time_wait_ns=30 * SECOND))
    s.close(sends=["F 1:1 ack 1"], state="FIN-WAIT-1")
    s.inject(200, "ack 2", sends=[], state="FIN-WAIT-2")
    assert s.connection.next_deadline() is None
    s.inject(500, "F 1:1 ack 2", sends=["2:2 ack 2"], state="TIME-WAIT")
    assert s.connection.at_end
    s.expect(30_500, state="CLOSED")
    assert s.connection.closed
    assert s.connection.error is None


def test_the_peer_closes_first(script: MakeScript) -> None:
    s = script(PLAIN)
    s.inject(200, "F 1:1", sends=["1:1 ack 2"], state="CLOSE-WAIT")
    assert s.connection.at_end
    # half-closed: our direction goes on
    s.write(2000, sends=["1:1001", "1001:2001"])
    s.inject(300, "ack 2001")
    s.close(sends=["F 2001:2001 ack 2"], state="LAST-ACK")
    s.inject(400, "ack 2002", sends=[], state="CLOSED")
    assert s.connection.closed


def test_both_close_at_once(script: MakeScript) -> None:
    s = script(PLAIN)
    s.close(sends=["F 1:1"])
    s.inject(150, "F 1:1 ack 1", sends=["ack 2"], state="CLOSING")
    s.inject(200, "ack 2", sends=[], state="TIME-WAIT")


def test_fin_and_its_acknowledgement_in_one(script: MakeScript) -> None:
    s = script(PLAIN)
    s.close(sends=...)
    s.inject(200, "F 1:1 ack 2", sends=["2:2 ack 2"], state="TIME-WAIT")


def test_the_fin_goes_with_the_last_octets(script: MakeScript) -> None:
    s = script(PLAIN)
    s.write(1500, sends=["1:1001"])
    s.close(sends=["F 1001:1501"])
    s.inject(200, "ack 1502", state="FIN-WAIT-2")
    assert s.connection.bytes_acked == 1500


def test_a_fin_that_is_lost_is_sent_again(script: MakeScript) -> None:
    s = script(PLAIN)
    s.close(sends=["F 1:1"])
    s.expect(1100, "F 1:1")
    s.expect(3100, "F 1:1")
    s.inject(3200, "ack 2", state="FIN-WAIT-2")


def test_the_fin_waits_for_the_window_behind_the_data(script: MakeScript) -> None:
    s = script(PLAIN.but(initial_window=2))
    s.write(4000)
    s.close(sends=["1:1001", "1001:2001"])
    s.inject(200, "ack 2001", state="FIN-WAIT-1")
    assert "".join(s.skip()).startswith("2001:3001")
    s.inject(300, "ack 4001", sends=...)
    s.inject(400, "ack 4002", state="FIN-WAIT-2")


def test_data_that_comes_after_we_closed_is_received(script: MakeScript) -> None:
    s = script(PLAIN.but(ack_every=1))
    s.close(sends=...)
    s.inject(200, "1:1001 ack 1", sends=["ack 1001"])
    s.inject(210, "1001:2001 ack 2", sends=["2:2 ack 2001"])
    assert s.discard() == 2000
    s.inject(220, "F 2001:3001 ack 2", sends=["2:2 ack 3002"], state="TIME-WAIT")
    assert not s.connection.at_end
    assert s.discard() == 1000
    assert s.connection.at_end


@pytest.mark.parametrize("right", [1001, 2001])
def test_a_fin_out_of_order_counts_when_its_turn_comes(script: MakeScript, right: int) -> None:
    s = script(PLAIN)
    s.inject(200, f"F 1001:{right}", sends=["ack 1"], state="ESTABLISHED")
    s.inject(210, "1:1001", sends=[f"ack {right + 1}"], state="CLOSE-WAIT")
    assert s.connection.bytes_received == right - 1


def test_time_wait_answers_the_fin_and_waits_anew(script: MakeScript) -> None:
    s = script(PLAIN.but(time_wait_ns=30 * SECOND))
    s.close(sends=...)
    s.inject(200, "F 1:1 ack 2", sends=...)
    s.inject(20_000, "F 1:1 ack 2", sends=["2:2 ack 2"])
    assert not s.connection.closed
    s.expect(49_999, state="TIME-WAIT")
    s.expect(50_000, state="CLOSED")


def test_closed_in_syn_sent(script: MakeScript) -> None:
    s = script(PLAIN, connected=False)
    s.connect(sends=...)
    s.close(state="CLOSED")
    # who answers now is told
    s.inject(100, "S 0:0 ack 1 mss 1000", sends=["R 1:1"])


@pytest.mark.parametrize("active", [True, False])
def test_closed_during_the_handshake_the_fin_follows_it(script: MakeScript, active: bool) -> None:
    s = script(PLAIN, connected=False)
    if active:
        s.connect(sends=...)
    else:
        s.listen()
        s.inject(0, "S 0:0 mss 1000", sends=...)
    s.write(500)
    s.close()
    s.skip()
    s.inject(100, "S 0:0 ack 1 mss 1000" if active else "ack 1", sends=["F 1:501 ack 1"], state="FIN-WAIT-1")


def test_closing_twice_is_closing_once(script: MakeScript) -> None:
    s = script(PLAIN)
    s.close()
    s.close(sends=["F 1:1"])
    with pytest.raises(RuntimeError, match="after close"):
        s.connection.write(1)


def test_abort_resets(script: MakeScript) -> None:
    s = script(PLAIN)
    s.write(2000, sends=...)
    s.abort(sends=["R 2001:2001 ack 1"])
    assert s.state == "CLOSED"
    assert s.connection.closed
    assert s.connection.error is not None
    assert s.connection.next_deadline() is None


@pytest.mark.parametrize("opened", [Script.listen, Script.connect])
@pytest.mark.parametrize("ended", [Script.close, Script.abort])
def test_ended_before_anybody_knows_of_us(
    script: MakeScript, opened: Callable[[Script], None], ended: Callable[..., None]
) -> None:
    s = script(PLAIN, connected=False)
    opened(s)
    s.skip()
    ended(s, sends=[])
    assert s.connection.closed


# -- resets and SYNs that come: RFC 5961 -------------------------------------------------------------------------------


#: how a connection gets there: by our close, and by what comes
STATES = {
    "ESTABLISHED": [],
    "FIN-WAIT-1": ["close"],
    "FIN-WAIT-2": ["close", "ack 2"],
    "CLOSE-WAIT": ["F 1:1"],
    "CLOSING": ["close", "F 1:1 ack 1"],
    "LAST-ACK": ["F 1:1", "close"],
    "TIME-WAIT": ["close", "ack 2", "F 1:1 ack 2"],
}


def in_state(make: MakeScript, state: str) -> tuple[Script, int]:
    """A connection in this state, and the next number it expects of the peer."""
    s = make(PLAIN)
    for step in STATES[state]:
        if step == "close":
            s.close(sends=...)
        else:
            s.inject(200, step, sends=...)
    assert s.state == state
    return s, 1 + any(step.startswith("F") for step in STATES[state])


@pytest.mark.parametrize("state", STATES)
def test_a_reset_at_the_next_number_ends_it_and_outside_the_window_is_nothing(script: MakeScript, state: str) -> None:
    s, number = in_state(script, state)
    s.inject(300, "R 0:0", "R 70000:70000", sends=[], state=state)
    s.inject(300, f"R {number}:{number}", sends=[], state="CLOSED")
    assert s.connection.closed


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("stray", ["R 1000:1000", "S 0:0", "S 1000:1000", "S 70000:70000"])
def test_a_reset_elsewhere_in_the_window_and_any_syn_are_challenged(script: MakeScript, state: str, stray: str) -> None:
    # sections 3.2 and 4.2
    s, number = in_state(script, state)
    s.inject(300, stray)
    [challenge] = s.skip()
    assert f"ack {number}" in challenge
    assert s.state == state


def test_a_reset_is_said_to_the_application(script: MakeScript) -> None:
    s = script(PLAIN)
    s.write(1000, sends=...)
    s.inject(200, "R 1:1")
    assert s.connection.error == "reset by the peer"


@pytest.mark.parametrize("stray", ["ack 1002", "70000:70100", "0:1"])
def test_what_lies_outside_the_windows_is_answered(script: MakeScript, stray: str) -> None:
    # RFC 9293 section 3.10.7.4; RFC 5961 section 5.2
    s = script(PLAIN)
    s.write(1000, sends=...)
    s.inject(200, stray, sends=["1001:1001 ack 1"])
    assert (s.connection.bytes_acked, s.connection.bytes_received) == (0, 0)


def test_without_an_acknowledgement_nothing_is_taken() -> None:
    # RFC 9293 section 3.10.7.4, fifth: the ACK bit is off
    s = Script(PLAIN)
    s._acked = None
    s.inject(200, "1:1001")
    s.expect(500)
    assert s.connection.bytes_received == 0
