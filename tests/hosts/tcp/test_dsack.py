"""D-SACK (RFC 2883): the receiver tells of octets that have come twice."""

from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

DSACK = PLAIN.but(recovery="sack", dsack=True)


@by_script(
    """
    a segment that was acknowledged comes again
        # section 4.1.1
        200 < 1:1001, 1001:2001 > ack 2001
        210 < 1:1001 > ack 2001 sack 1:1001
    a keep alive has no octets that could come twice
        200 < 1:1001 > nothing
        210 < 1000:1000 > ack 1001
    it is told once
        200 < 1:1001, 1001:2001, 1001:2001 > ack 2001, ack 2001 sack 1001:2001
        210 < 3001:4001 > ack 2001 sack 3001:4001
    a segment within a block comes again
        # section 4.2: the D-SACK block first, the block that it is part of second
        200 < 1001:2001, 2001:3001 > ...
        201 < 5001:6001 > ack 1 sack 5001:6001 1001:3001
        202 < 2001:3001 > ack 1 sack 2001:3001 1001:3001 5001:6001
    only the octets that came twice are told
        # section 4.3: partial duplicates, below and above the acknowledgement
        200 < 1:1001, 1001:2001 > ack 2001
        210 < 1501:3001 > nothing
        410 > ack 3001 sack 1501:2001
        420 < 4001:5001, 4501:5501 > ack 3001 sack 4001:5001, ack 3001 sack 4501:5001 4001:5501
    beside timestamps three blocks fit [timestamps=True, peer='mss 1012 sackok ts 1/0']
        200 < 1001:2001 ts 2/100, 3001:4001 ts 2/100, 5001:6001 ts 2/100 > ...
        210 < 1001:2001 ts 3/100 > ack 1 sack 1001:2001 1001:2001 5001:6001
    it may be off [dsack=False]
        200 < 1:1001, 1001:2001 > ack 2001
        210 < 1:1001 > ack 2001
    without sack there is none [peer='mss 1000']
        200 < 1:1001, 1001:2001 > ack 2001
        210 < 1:1001 > ack 2001
    """
)
def test_dsack(script: MakeScript, case: Case) -> None:
    case.play(script, DSACK, peer="mss 1000 sackok")


def test_octets_before_the_first_are_not_told(script: MakeScript) -> None:
    s = script(DSACK, peer="mss 1000 sackok")
    s.inject(200, "0:0", sends=...)
    assert s.connection._receiver.blocks() == ()
