"""RFC 7323 sections 3 to 5: when timestamps are used, what is echoed, and PAWS."""

import pytest

from tests.hosts.tcp.script import PLAIN, MakeScript, Script

STAMPED = PLAIN.but(mss=1012, timestamps=True)


def connected(make: MakeScript, **changes: object) -> Script:
    """The peer's clock is at 7000 when the connection opens, at 100 ms of ours."""
    return make(STAMPED.but(**changes), peer="mss 1012 ts 7000/0")


def test_they_take_room_from_the_payload(script: MakeScript) -> None:
    s = connected(script)
    s.write(3000, sends=[*(f"{left}:{left + 1000} ts 100/7000" for left in (1, 1001, 2001))])


def test_the_echo_is_of_the_first_segment_a_delayed_ack_is_for(script: MakeScript) -> None:
    # section 4.3, (2) with Last.ACK.sent: so that the peer's RTT includes the delay
    s = connected(script)
    s.inject(200, "1:1001 ts 7100/100")
    s.inject(250, "1001:2001 ts 7150/100", sends=["ack 2001 ts 250/7100"])


def test_the_echo_during_a_gap_is_of_what_came_in_order(script: MakeScript) -> None:
    # section 4.3, (B): the segments behind the gap do not count; (C): the one that fills it does
    s = connected(script, ack_every=1)
    s.inject(200, "1:1001 ts 7100/100", sends=["ack 1001 ts 200/7100"])
    s.inject(210, "2001:3001 ts 7110/100", sends=["ack 1001 ts 210/7100"])
    s.inject(220, "1001:2001 ts 7120/100", sends=["ack 3001 ts 220/7120"])


def test_an_older_segment_is_refused(script: MakeScript) -> None:
    # section 5.3, R1
    s = connected(script, ack_every=1)
    s.inject(200, "1:1001 ts 7100/100", sends=...)
    s.inject(300, "1001:2001 ts 7099/100", sends=["ack 1001 ts 300/7100"])
    assert s.connection.bytes_received == 1000


def test_the_clock_may_wrap(script: MakeScript) -> None:
    s = script(STAMPED, peer=f"mss 1012 ts {2**32 - 10}/0")
    s.inject(200, "1:1001 ts 90/100")
    s.inject(200, "1001:2001 ts 90/100", sends=["ack 2001 ts 200/90"])


@pytest.mark.parametrize("reset", ["R 1:1 ts 6000/100", "R 1:1"])
def test_a_reset_counts_whatever_its_timestamp_if_any(script: MakeScript, reset: str) -> None:
    # sections 3.2 and 5.2
    s = connected(script)
    s.inject(200, reset, state="CLOSED")


def test_what_lacks_its_timestamp_is_dropped(script: MakeScript) -> None:
    # section 3.2
    s = connected(script)
    s.inject(200, "1:1001")
    s.expect(600)
    assert s.connection.bytes_received == 0


def test_outside_the_window_a_timestamp_says_nothing(script: MakeScript) -> None:
    # section 5.3, R2 before R3
    s = connected(script, ack_every=1)
    s.inject(200, "70000:70100 ts 9000/100", sends=["ack 1 ts 200/7000"])
    s.inject(300, "1:1001 ts 7200/100", sends=["ack 1001 ts 300/7200"])


def test_every_ack_of_new_data_is_a_sample_and_no_duplicate(script: MakeScript) -> None:
    # section 4.1: only what advances the window
    s = connected(script, min_rto_ns=1)
    s.write(3000, sends=...)
    s.inject(150, "ack 1 ts 7100/100")
    assert s.rto_ms == 300
    s.inject(200, "ack 1001 ts 7100/100")
    # 100 ms again: RTTVAR 37.5
    assert s.rto_ms == 250
    s.inject(200, "ack 2001 ts 7100/100")
    assert s.rto_ms == 100 + 4 * 28.125
