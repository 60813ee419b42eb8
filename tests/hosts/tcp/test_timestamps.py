"""RFC 7323 sections 3 to 5: when timestamps are used, what is echoed, and PAWS."""

from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

STAMPED = PLAIN.but(mss=1012, timestamps=True)


@by_script(
    """
    they take room from the payload
        write 3000 > 1:1001 ts 100/7000, 1001:2001 ts 100/7000, 2001:3001 ts 100/7000
    the echo is of the first segment a delayed ack is for
        # section 4.3, (2) with Last.ACK.sent: so that the peer's RTT includes the delay
        200 < 1:1001 ts 7100/100
        250 < 1001:2001 ts 7150/100 > ack 2001 ts 250/7100
    the echo during a gap is of what came in order [ack_every=1]
        # section 4.3, (B): the segments behind the gap do not count; (C): the one that fills it does
        200 < 1:1001 ts 7100/100 > ack 1001 ts 200/7100
        210 < 2001:3001 ts 7110/100 > ack 1001 ts 210/7100
        220 < 1001:2001 ts 7120/100 > ack 3001 ts 220/7120
    an older segment is refused [ack_every=1]
        # section 5.3, R1
        200 < 1:1001 ts 7100/100 > ...
        300 < 1001:2001 ts 7099/100 > ack 1001 ts 300/7100 | bytes_received 1000
    the clock may wrap [peer='mss 1012 ts 4294967286/0']
        200 < 1:1001 ts 90/100
        200 < 1001:2001 ts 90/100 > ack 2001 ts 200/90
    what lacks its timestamp is dropped
        # section 3.2
        200 < 1:1001
        600 > nothing | bytes_received 0
    outside the window a timestamp says nothing [ack_every=1]
        # section 5.3, R2 before R3
        200 < 70000:70100 ts 9000/100 > ack 1 ts 200/7000
        300 < 1:1001 ts 7200/100 > ack 1001 ts 300/7200
    every ack of new data is a sample and no duplicate [min_rto_ns=1]
        # section 4.1: only what advances the window
        write 3000 > ...
        150 < ack 1 ts 7100/100 | rto_ms 300
        # 100 ms again: RTTVAR 37.5
        200 < ack 1001 ts 7100/100 | rto_ms 250
        200 < ack 2001 ts 7100/100 | rto_ms 212.5
    a reset counts whatever its timestamp
        # sections 3.2 and 5.2
        200 < R 1:1 ts 6000/100 | state CLOSED
    a reset counts without a timestamp
        200 < R 1:1 | state CLOSED
    """
)
def test_timestamps(script: MakeScript, case: Case) -> None:
    case.play(script, STAMPED, peer="mss 1012 ts 7000/0")
