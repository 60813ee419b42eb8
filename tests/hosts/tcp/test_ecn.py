"""RFC 3168 section 6.1: negotiation, ECN-Echo and CWR, the window, and which packets are ECN-capable."""

from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

ECN = PLAIN.but(ecn=True, initial_window=8)


@by_script(
    """
    data is capable once
        # section 6.1.5: not what is sent again; section 6.1.4: not pure ACKs
        write 1000 > 1:1001 ECT0
        1100 > 1:1001
        1200 < 2001:3001 ack 1001 > ack 1
    after a timeout only what is new is capable [initial_window=2]
        write 4000 > 1:1001 ECT0, 1001:2001 ECT0
        1100 > 1:1001
        1200 < ack 1001 > 1001:2001, W 2001:3001 ECT0
    a mark is told of until cwr [ack_every=1]
        # section 6.1.3
        200 < 1:1001 CE > E ack 1001
        # by data as well
        write 1000 > E 1:1001 ack 1001 ECT0
        210 < 1001:2001 ECT0 > E 1001:1001 ack 2001
        220 < W 2001:3001 ECT0 > ack 3001
        # one that is marked itself begins anew
        230 < W 3001:4001 CE > E ack 4001
    an echo halves the window once per window of data
        # section 6.1.2
        write 50000 > ...
        200 < E ack 1001 | cwnd 3500, ssthresh 3500, ecn_reductions 1
        200 < E ack 2001, E ack 3001, E ack 4001, E ack 5001, E ack 6001, E ack 7001 > ... | ssthresh 3500
        # CWR, which went behind what was outstanding then, has not come yet
        210 < E ack 8001 > ... | ecn_reductions 1
        300 < E ack 9001 | ecn_reductions 2
    cwr goes with the first new data
        write 50000 > ...
        200 < E ack 1001, ack 4001 > nothing
        200 < ack 6001 > W 8001:9001 ECT0, 9001:10001 ECT0
        200 < ack 7001 > 10001:11001 ECT0
    a loss is told of by cwr and is not answered twice [recovery='sack']
        # section 6.1.2: a reduction for any reason; one per window, whether by loss or by mark
        write 50000 > ...
        200 < E ack 1 sack 1001:4001 > 1:1001 | cwnd 4000, ssthresh 4000
        210 < E ack 1 sack 1001:7001 > W 8001:9001 ECT0, 9001:10001 ECT0
        300 < E ack 8001 | ecn_reductions 0, ssthresh 4000
    a timeout counts as a reduction
        write 8000 > ...
        1100 > 1:1001 | ssthresh 4000
        1200 < E ack 1001 > ... | ssthresh 4000, ecn_reductions 0
    without ecn a mark is nothing [ecn=False, ack_every=1, peer='mss 1000']
        200 < 1:1001 CE > ack 1001
    """
)
def test_ecn(script: MakeScript, case: Case) -> None:
    case.play(script, ECN, peer="SE mss 1000 sackok")


def test_the_window_stays_at_one_segment_at_least(script: MakeScript) -> None:
    s = script(ECN.but(initial_window=1), peer="SE mss 1000 sackok")
    s.write(50_000, sends=...)
    for ack in range(1001, 20_001, 1000):
        s.inject(200 + ack / 100, f"E ack {ack}", sends=...)
        assert s.cwnd >= 1000
