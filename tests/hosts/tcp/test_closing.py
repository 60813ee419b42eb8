"""RFC 9293 sections 3.6 and 3.10: FINs in every state, resets, TIME-WAIT; RFC 5961: which of them to believe."""

from collections.abc import Callable

import pytest

from tcpip.segment import CWR, ECE, FIN, PSH, URG, Segment
from tests.hosts.tcp.script import FLOW, PLAIN, Case, MakeScript, Script, by_script


@by_script(
    """
    we close first [time_wait_ns=30_000_000_000]
        close > F 1:1 ack 1 | state FIN-WAIT-1
        200 < ack 2 > nothing | state FIN-WAIT-2, next_deadline none
        500 < F 1:1 ack 2 > 2:2 ack 2 | state TIME-WAIT, at_end
        30500 > nothing | state CLOSED, closed, error none
    the peer closes first
        200 < F 1:1 > 1:1 ack 2 | state CLOSE-WAIT, at_end
        # half-closed: our direction goes on
        write 2000 > 1:1001, 1001:2001
        300 < ack 2001
        close > F 2001:2001 ack 2 | state LAST-ACK
        400 < ack 2002 > nothing | state CLOSED, closed
    both close at once
        close > F 1:1
        150 < F 1:1 ack 1 > ack 2 | state CLOSING
        200 < ack 2 > nothing | state TIME-WAIT
    fin and its acknowledgement in one
        close > ...
        200 < F 1:1 ack 2 > 2:2 ack 2 | state TIME-WAIT
    the fin goes with the last octets
        write 1500 > 1:1001
        close > F 1001:1501
        200 < ack 1502 | state FIN-WAIT-2, bytes_acked 1500
    a fin needs no room in the congestion window [initial_window=1]
        write 1000 > 1:1001
        close > F 1001:1001
    nor more in the peers than its number [initial_window=1, window=1001]
        write 1000 > 1:1001
        close > F 1001:1001
    nor behind segments of another size [initial_window=1, peer='mss 999']
        write 999 > 1:1000
        close > F 1000:1000
    a fin that is lost is sent again
        close > F 1:1
        1100 > F 1:1
        3100 > F 1:1
        3200 < ack 2 | state FIN-WAIT-2
    data that comes after we closed is received [ack_every=1]
        close > ...
        200 < 1:1001 ack 1 > ack 1001
        210 < 1001:2001 ack 2 > 2:2 ack 2001 | readable 2000
        discard
        220 < F 2001:3001 ack 2 > 2:2 ack 3002 | state TIME-WAIT, not at_end, readable 1000
        discard | at_end
    time wait answers the fin and waits anew [time_wait_ns=30_000_000_000]
        close > ...
        200 < F 1:1 ack 2 > ...
        20000 < F 1:1 ack 2 > 2:2 ack 2 | not closed
        49999 > nothing | state TIME-WAIT
        50000 > nothing | state CLOSED
    closed in syn sent [connected=False]
        connect > ...
        close | state CLOSED
        # who answers now is told
        100 < S 0:0 ack 1 mss 1000 > R 1:1
    abort resets
        write 2000 > ...
        abort > R 2001:2001 ack 1 | state CLOSED, closed, error, next_deadline none
    a reset is said to the application
        write 1000 > ...
        200 < R 1:1 | error reset by the peer
    the fin waits for the window behind the data [initial_window=2]
        write 4000
        close > 1:1001, 1001:2001
        200 < ack 2001 > 2001:3001, ... | state FIN-WAIT-1
        300 < ack 4001 > ...
        400 < ack 4002 | state FIN-WAIT-2
    a bare fin out of order counts when its turn comes
        200 < F 1001:1001 > ack 1 | state ESTABLISHED
        210 < 1:1001 > ack 1002 | state CLOSE-WAIT, bytes_received 1000
    a fin with data out of order counts when its turn comes
        200 < F 1001:2001 > ack 1 | state ESTABLISHED
        210 < 1:1001 > ack 2002 | state CLOSE-WAIT, bytes_received 2000
    """
)
def test_closing(script: MakeScript, case: Case) -> None:
    case.play(script, PLAIN)


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


@pytest.mark.parametrize("stray", ["ack 1002", "70000:70100", "0:1"])
def test_what_lies_outside_the_windows_is_answered(script: MakeScript, stray: str) -> None:
    # RFC 9293 section 3.10.7.4; RFC 5961 section 5.2
    s = script(PLAIN)
    s.write(1000, sends=...)
    s.inject(200, stray, sends=["1001:1001 ack 1"])
    assert (s.connection.bytes_acked, s.connection.bytes_received) == (0, 0)


@pytest.mark.parametrize("flags", [0, FIN, PSH, URG, ECE, CWR])
def test_without_an_acknowledgement_nothing_is_taken(flags: int) -> None:
    # RFC 9293 section 3.10.7.4, fifth: the ACK bit is off
    s = Script(PLAIN)
    s.connection.handle_segment(Segment(FLOW.reversed(), s.irs + 1, 0, flags, 1000, 500), s.now)
    s.expect(500)
    assert (s.connection.bytes_received, s.state) == (0, "ESTABLISHED")
