"""FACK: Mathis and Mahdavi (SIGCOMM 1996), sections 2.2 and 2.3."""

from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

FACK = PLAIN.but(recovery="fack")


@by_script(
    """
    recovery begins once more than three segments lie below the highest
        # snd.fack is three segments ahead: not yet
        200 < ack 1 sack 2001:3001 > nothing
        # five segments; RFC 6675 would wait for a third range or a third segment
        210 < ack 1 sack 5001:6001 2001:3001 > 1:1001 | cwnd 5000, fast_retransmits 1
    all below the highest is lost and goes first
        200 < ack 1 sack 4001:5001 > 1:1001 | cwnd 5000
        # in the network: 1, and 6 to 10 or fewer
        201 < ack 1 sack 4001:7001 > 1001:2001
        202 < ack 1 sack 4001:8001 > 2001:3001
        203 < ack 1 sack 4001:9001 > 3001:4001
        204 < ack 1 sack 4001:10001 > 10001:11001
    three duplicates begin it as ever
        200 < ack 1 sack 1001:2001, ack 1 sack 1001:3001 > nothing
        200 < ack 1 sack 1001:4001 > 1:1001 | fast_retransmits 1
    a peer without sack gets newreno [peer='mss 1000']
        200 < ack 1 x3 > 1:1001 | fast_retransmits 1
        300 < ack 2001 > 2001:3001
    one duplicate suffices
        200 < ack 1 sack 3001:4001 > 1:1001
    where sack waits [recovery='sack']
        200 < ack 1 sack 3001:4001 > nothing
    """
)
def test_fack(script: MakeScript, case: Case) -> None:
    case.play(script, FACK, initial_window=10, nbytes=100_000, peer="mss 1000 sackok")
