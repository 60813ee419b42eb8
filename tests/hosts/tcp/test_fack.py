"""FACK: Mathis and Mahdavi (SIGCOMM 1996), sections 2.2 and 2.3."""

from functools import partial

from tests.hosts.tcp.script import PLAIN, MakeScript, window_of

FACK = PLAIN.but(recovery="fack")
window_of_10 = partial(window_of, 10)


def test_recovery_begins_once_more_than_three_segments_lie_below_the_highest(script: MakeScript) -> None:
    # snd.fack is three segments ahead: not yet
    s = window_of_10(script, FACK)
    s.inject(200, "ack 1 sack 2001:3001", sends=[])
    # five segments; RFC 6675 would wait for a third range or a third segment
    s.inject(210, "ack 1 sack 5001:6001 2001:3001", sends=["1:1001"], cwnd=5000, fast_retransmits=1)


def test_one_duplicate_suffices_where_sack_waits(script: MakeScript) -> None:
    for recovery, sends in (("fack", ["1:1001"]), ("sack", [])):
        s = window_of_10(script, FACK.but(recovery=recovery))
        s.inject(200, "ack 1 sack 3001:4001", sends=sends)


def test_all_below_the_highest_is_lost_and_goes_first(script: MakeScript) -> None:
    s = window_of_10(script, FACK)
    s.inject(200, "ack 1 sack 4001:5001", sends=["1:1001"], cwnd=5000)
    # in the network: 1, and 6 to 10 or fewer
    s.inject(201, "ack 1 sack 4001:7001", sends=["1001:2001"])
    s.inject(202, "ack 1 sack 4001:8001", sends=["2001:3001"])
    s.inject(203, "ack 1 sack 4001:9001", sends=["3001:4001"])
    s.inject(204, "ack 1 sack 4001:10001", sends=["10001:11001"])


def test_three_duplicates_begin_it_as_ever(script: MakeScript) -> None:
    s = window_of_10(script, FACK)
    s.inject(200, "ack 1 sack 1001:2001", "ack 1 sack 1001:3001", sends=[])
    s.inject(200, "ack 1 sack 1001:4001", sends=["1:1001"], fast_retransmits=1)


def test_a_peer_without_sack_gets_newreno(script: MakeScript) -> None:
    s = window_of_10(script, FACK, peer="mss 1000")
    s.inject(200, *["ack 1"] * 3, sends=["1:1001"], fast_retransmits=1)
    s.inject(300, "ack 2001", sends=["2001:3001"])
