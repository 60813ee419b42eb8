"""D-SACK (RFC 2883): the receiver tells of octets that have come twice."""

from tests.hosts.tcp.script import PLAIN, MakeScript, Script

DSACK = PLAIN.but(recovery="sack", dsack=True)


def connected(make: MakeScript, peer: str = "mss 1000 sackok") -> Script:
    return make(DSACK, peer=peer)


def test_a_segment_that_was_acknowledged_comes_again(script: MakeScript) -> None:
    # section 4.1.1
    s = connected(script)
    s.inject(200, "1:1001", "1001:2001", sends=["ack 2001"])
    s.inject(210, "1:1001", sends=["ack 2001 sack 1:1001"])


def test_it_is_told_once(script: MakeScript) -> None:
    s = connected(script)
    s.inject(200, "1:1001", "1001:2001", "1001:2001", sends=["ack 2001", "ack 2001 sack 1001:2001"])
    s.inject(210, "3001:4001", sends=["ack 2001 sack 3001:4001"])


def test_a_segment_within_a_block_comes_again(script: MakeScript) -> None:
    # section 4.2: the D-SACK block first, the block that it is part of second
    s = connected(script)
    s.inject(200, "1001:2001", "2001:3001", sends=...)
    s.inject(201, "5001:6001", sends=["ack 1 sack 5001:6001 1001:3001"])
    s.inject(202, "2001:3001", sends=["ack 1 sack 2001:3001 1001:3001 5001:6001"])


def test_only_the_octets_that_came_twice_are_told(script: MakeScript) -> None:
    # section 4.3: partial duplicates, below and above the acknowledgement
    s = connected(script)
    s.inject(200, "1:1001", "1001:2001", sends=["ack 2001"])
    s.inject(210, "1501:3001", sends=[])
    s.expect(410, "ack 3001 sack 1501:2001")
    s.inject(420, "4001:5001", "4501:5501", sends=["ack 3001 sack 4001:5001", "ack 3001 sack 4501:5001 4001:5501"])


def test_beside_timestamps_three_blocks_fit(script: MakeScript) -> None:
    s = script(DSACK.but(timestamps=True), peer="mss 1012 sackok ts 1/0")
    for left in (1001, 3001, 5001):
        s.inject(200, f"{left}:{left + 1000} ts 2/100", sends=...)
    s.inject(210, "1001:2001 ts 3/100", sends=["ack 1 sack 1001:2001 1001:2001 5001:6001"])


def test_it_is_off_by_default_and_without_sack(script: MakeScript) -> None:
    off = script(DSACK.but(dsack=False), peer="mss 1000 sackok")
    without = connected(script, peer="mss 1000")
    for s in (off, without):
        s.inject(200, "1:1001", "1001:2001", sends=["ack 2001"])
        s.inject(210, "1:1001", sends=["ack 2001"])


def test_octets_before_the_first_are_not_told(script: MakeScript) -> None:
    s = connected(script)
    s.inject(200, "0:0", sends=...)
    assert s.connection._receiver.blocks() == ()
