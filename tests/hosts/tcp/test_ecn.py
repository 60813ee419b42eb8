"""RFC 3168 section 6.1: negotiation, ECN-Echo and CWR, the window, and which packets are ECN-capable."""

from tests.hosts.tcp.script import PLAIN, MakeScript, Script

ECN = PLAIN.but(ecn=True, initial_window=8)


def connected(make: MakeScript, **changes: object) -> Script:
    return make(ECN.but(**changes), peer="SE mss 1000 sackok")


def test_data_is_capable_once(script: MakeScript) -> None:
    # section 6.1.5: not what is sent again; section 6.1.4: not pure ACKs
    s = connected(script)
    s.write(1000, sends=["1:1001 ECT0"])
    s.expect(1100, "1:1001")
    s.inject(1200, "2001:3001 ack 1001", sends=["ack 1"])


def test_after_a_timeout_only_what_is_new_is_capable(script: MakeScript) -> None:
    s = connected(script, initial_window=2)
    s.write(4000, sends=["1:1001 ECT0", "1001:2001 ECT0"])
    s.expect(1100, "1:1001")
    s.inject(1200, "ack 1001", sends=["1001:2001", "W 2001:3001 ECT0"])


def test_a_mark_is_told_of_until_cwr(script: MakeScript) -> None:
    # section 6.1.3
    s = connected(script, ack_every=1)
    s.inject(200, "1:1001 CE", sends=["E ack 1001"])
    # by data as well
    s.write(1000, sends=["E 1:1001 ack 1001 ECT0"])
    s.inject(210, "1001:2001 ECT0", sends=["E 1001:1001 ack 2001"])
    s.inject(220, "W 2001:3001 ECT0", sends=["ack 3001"])
    # one that is marked itself begins anew
    s.inject(230, "W 3001:4001 CE", sends=["E ack 4001"])


def test_without_ecn_a_mark_is_nothing(script: MakeScript) -> None:
    s = script(PLAIN.but(ack_every=1))
    s.inject(200, "1:1001 CE", sends=["ack 1001"])


def test_an_echo_halves_the_window_once_per_window_of_data(script: MakeScript) -> None:
    # section 6.1.2
    s = connected(script)
    s.write(50_000, sends=...)
    s.inject(200, "E ack 1001", cwnd=3500, ssthresh=3500, ecn_reductions=1)
    for ack in (2001, 3001, 4001, 5001, 6001, 7001):
        s.inject(200, f"E ack {ack}", sends=...)
    assert s.ssthresh == 3500
    # CWR, which went behind what was outstanding then, has not come yet
    s.inject(210, "E ack 8001", sends=..., ecn_reductions=1)
    s.inject(300, "E ack 9001", ecn_reductions=2)


def test_cwr_goes_with_the_first_new_data(script: MakeScript) -> None:
    s = connected(script)
    s.write(50_000, sends=...)
    s.inject(200, "E ack 1001", "ack 4001", sends=[])
    s.inject(200, "ack 6001", sends=["W 8001:9001 ECT0", "9001:10001 ECT0"])
    s.inject(200, "ack 7001", sends=["10001:11001 ECT0"])


def test_a_loss_is_told_of_by_cwr_and_is_not_answered_twice(script: MakeScript) -> None:
    # section 6.1.2: a reduction for any reason; one per window, whether by loss or by mark
    s = connected(script, recovery="sack")
    s.write(50_000, sends=...)
    s.inject(200, "E ack 1 sack 1001:4001", sends=["1:1001"], cwnd=4000, ssthresh=4000)
    s.inject(210, "E ack 1 sack 1001:7001", sends=["W 8001:9001 ECT0", "9001:10001 ECT0"])
    s.inject(300, "E ack 8001", ecn_reductions=0)
    assert s.ssthresh == 4000


def test_a_timeout_counts_as_a_reduction(script: MakeScript) -> None:
    s = connected(script)
    s.write(8000, sends=...)
    s.expect(1100, "1:1001", ssthresh=4000)
    s.inject(1200, "E ack 1001", sends=...)
    assert (s.ssthresh, s.connection.counters.ecn_reductions) == (4000, 0)


def test_the_window_stays_at_one_segment_at_least(script: MakeScript) -> None:
    s = connected(script, initial_window=1)
    s.write(50_000, sends=...)
    for ack in range(1001, 20_001, 1000):
        s.inject(200 + ack / 100, f"E ack {ack}", sends=...)
        assert s.cwnd >= 1000
