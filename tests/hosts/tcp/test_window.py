"""The sender and small segments: Nagle (RFC 896), silly windows, zero windows (RFC 9293 section 3.8.6)."""

import pytest

from common.units import SECOND
from tests.hosts.tcp.script import PLAIN, MakeScript

# -- Nagle -------------------------------------------------------------------------------------------------------------


def test_a_small_segment_waits_while_data_is_on_its_way_and_a_full_one_does_not(script: MakeScript) -> None:
    s = script(PLAIN)
    s.write(100, sends=["1:101"])
    s.write(100)
    s.write(200)
    s.expect(150)
    s.write(900, sends=["101:1101"])
    s.inject(200, "ack 1101", sends=["1101:1301"])


def test_nor_does_the_last(script: MakeScript) -> None:
    s = script(PLAIN)
    s.write(100, sends=...)
    s.write(100)
    s.close(sends=["F 101:201"])


def test_without_nagle_everything_leaves_at_once(script: MakeScript) -> None:
    s = script(PLAIN.but(nagle=False))
    for left in (1, 101, 201):
        s.write(100, sends=[f"{left}:{left + 100}"])


# -- silly windows -----------------------------------------------------------------------------------------------------


def test_a_window_smaller_than_a_segment_is_filled_when_the_persist_timer_expires(script: MakeScript) -> None:
    # section 3.8.6.2.1: less than a segment, less than half of the largest window
    s = script(PLAIN, window=8000)
    s.write(3000, sends=...)
    s.inject(200, "ack 3001 win 400")
    s.write(5000, sends=[])
    s.expect(1200, "3001:3401")
    s.inject(1300, "ack 3401 win 400", sends=[])
    # a segment's is filled at once
    s.inject(1400, "ack 3401 win 1000", sends=["3401:4401"])


def test_half_of_the_largest_window_is_enough(script: MakeScript) -> None:
    s = script(PLAIN, window=1200)
    s.write(5000, sends=["1:1001"])
    s.inject(200, "ack 1001 win 600", sends=["1001:1601"])


def test_the_congestion_window_makes_no_small_segments(script: MakeScript) -> None:
    s = script(PLAIN.but(initial_window=4, initial_ssthresh=4000))
    s.write(50_000)
    assert len(s.skip()) == 4
    s.inject(200, "ack 1001")
    # 4250 octets may be on their way
    s.expect(200, "4001:5001")


def test_a_window_that_shrinks_is_obeyed(script: MakeScript) -> None:
    # section 3.8.6: it should not, but a sender must be prepared
    s = script(PLAIN, window=3000)
    s.write(10_000, sends=["1:1001", "1001:2001", "2001:3001"])
    s.inject(200, "ack 1001 win 1000", sends=[])
    s.inject(300, "ack 3001 win 1000", sends=["3001:4001"])


@pytest.mark.parametrize(("older", "taken"), [("1:1 ack 1001 win 9000", False), ("1001:1001 ack 1001 win 9000", True)])
def test_an_older_segment_does_not_set_the_window(script: MakeScript, older: str, taken: bool) -> None:
    # section 3.10.7.4: SND.WL1, SND.WL2
    s = script(PLAIN.but(initial_window=10), window=2000)
    s.write(20_000, sends=...)
    s.inject(200, "1:1001 ack 1001 win 2000", sends=...)
    s.inject(210, older)
    assert (len(s.skip()) > 1) is taken


# -- zero windows ------------------------------------------------------------------------------------------------------


def test_a_zero_window_is_probed_with_backoff(script: MakeScript) -> None:
    # section 3.8.6.1: first after an RTO, then ever more slowly
    s = script(PLAIN.but(max_rto_ns=5 * SECOND), window=2000)
    s.write(5000, sends=["1:1001", "1001:2001"])
    s.inject(200, "ack 2001 win 0", sends=[])
    for at_ms in (1200, 3200, 7200, 12_200, 17_200):
        s.expect(at_ms, "2001:2002")
        s.inject(at_ms + 100, "ack 2001 win 0")
    assert s.connection.counters.zero_window_probes == 5
    # duplicates of probes are no losses
    assert (s.connection.counters.timeouts, s.connection.counters.fast_retransmits, s.ssthresh) == (0, 0, None)
    # as long as it is answered, for ever
    assert s.connection.error is None


@pytest.mark.parametrize("ack", [1001, 1002])
def test_the_answer_to_a_probe_opens_the_window_whether_its_octet_is_taken_or_not(script: MakeScript, ack: int) -> None:
    s = script(PLAIN, window=1000)
    s.write(3000, sends=["1:1001"])
    s.inject(200, "ack 1001 win 0")
    s.expect(1200, "1001:1002")
    s.inject(1300, f"ack {ack} win 5000", sends=[f"{ack}:{ack + 1000}", ...])
    s.inject(1400, f"ack {ack + 1000}", sends=...)
    s.inject(1500, "ack 3001")
    assert s.connection.drained


def test_an_opened_window_goes_on(script: MakeScript) -> None:
    s = script(PLAIN, window=1000)
    s.write(3000, sends=["1:1001"])
    s.inject(200, "ack 1001 win 0")
    s.inject(500, "ack 1001 win 4000", sends=["1001:2001", "2001:3001"])
    s.inject(600, "ack 3001 win 4000")
    assert s.connection.drained
    assert s.connection.next_deadline() is None


def test_a_window_that_shrinks_to_nothing_is_probed(script: MakeScript) -> None:
    # section 3.8.6: what it does not take any more is not sent again
    s = script(PLAIN, window=3000)
    s.write(5000, sends=["1:1001", "1001:2001", "2001:3001"])
    s.inject(200, "ack 1001 win 0")
    # the timer of 1001:2001, doubled by its expiry at 1200
    s.expect(3200, "1001:1002")
    s.inject(3300, "ack 1001 win 3000", sends=["1001:2001"])
    s.inject(3400, "ack 3001", sends=["3001:4001", "4001:5001"])


def test_the_fin_is_sent_into_a_zero_window_as_a_probe(script: MakeScript) -> None:
    s = script(PLAIN, window=1000)
    s.write(1000, sends=["1:1001"])
    s.inject(200, "ack 1001 win 0")
    s.close()
    s.expect(1200, "F 1001:1001")
    s.inject(1300, "ack 1001 win 0")
    s.expect(3200, "F 1001:1001")
    s.inject(3300, "ack 1002 win 0", state="FIN-WAIT-2")


def test_an_idle_connection_does_not_probe(script: MakeScript) -> None:
    s = script(PLAIN, window=1000)
    s.write(1000, sends=["1:1001"])
    s.inject(200, "ack 1001 win 0")
    assert s.connection.next_deadline() is None
    s.write(1000)
    s.expect(1200, "1001:1002")


@pytest.mark.parametrize("window", [100, 250, 499])
def test_a_peer_with_a_tiny_window_is_served(script: MakeScript, window: int) -> None:
    s = script(PLAIN, window=window)
    s.write(1000)
    right = 1
    at_ms = 100.0
    for _ in range(50):
        if s.connection.drained:
            break
        came = s.skip()
        assert came
        right = int(came[-1].split()[0].partition(":")[2])
        at_ms += 100
        s.inject(at_ms, f"ack {right}")
    assert s.connection.drained
