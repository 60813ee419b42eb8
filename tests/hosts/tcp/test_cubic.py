"""CUBIC against the equations of RFC 9438."""

import pytest

from common.units import MS
from hosts.tcp.growth.cubic import CubicOptions
from tests.hosts.tcp.growing import SMSS, avoid, grown, lose, sender_of, time_out

BETA, C = CubicOptions().beta, CubicOptions().c


def test_cubic_keeps_seven_tenths() -> None:
    sender = sender_of(100)
    assert grown("cubic", sender).handle_loss(100 * SMSS) == 70 * SMSS


def test_the_window_follows_the_cubic_back_to_where_it_was_and_beyond() -> None:
    """A long path on which Reno is slower: equation 1, with its plateau at W_max after K seconds."""
    sender = sender_of(1000)
    growth = grown("cubic", sender)
    lose(growth)
    k_s = (1000 * (1 - BETA) / C) ** (1 / 3)
    course = avoid(growth, 2 * k_s)
    for time_s, window in course[2:]:
        # what is reached in a round trip is the target of a round trip later
        early, late = (C * (at - k_s) ** 3 + 1000 for at in (time_s - 0.2, time_s + 0.1))
        assert early - 1 <= window <= late + 1
    at_plateau = min(course, key=lambda point: abs(point[0] - k_s))
    assert at_plateau[1] == pytest.approx(1000, rel=0.005)
    assert course[-1][1] > 1200


def test_on_a_short_path_the_window_is_as_large_as_renos() -> None:
    """Section 4.3: with RTT 10 ms a Reno of the same decrease is faster than the cubic, and the window follows it."""
    sender = sender_of(40, srtt_ns=10 * MS)
    growth = grown("cubic", sender)
    lose(growth)
    course = avoid(growth, 0.5, rtt_ns=10 * MS)
    alpha = 3 * (1 - BETA) / (1 + BETA)
    # as long as it is below the window before the loss
    below = [window for _, window in course if window < 40]
    assert len(below) >= 15
    assert below == pytest.approx([28 + alpha * (n + 1) for n in range(len(below))], rel=0.03)


def test_a_flow_that_did_not_get_back_makes_room() -> None:
    """Section 4.7, fast convergence: the plateau is below the window at the second loss."""
    sender = sender_of(1000)
    growth = grown("cubic", sender)
    lose(growth)
    lose(growth)
    assert growth.cwnd == 490 * SMSS
    plateau = 700 * (1 + BETA) / 2
    k_s = ((plateau - 490) / C) ** (1 / 3)
    course = avoid(growth, k_s)
    assert course[-1][1] == pytest.approx(plateau, rel=0.01)


def test_after_a_timeout_there_is_no_plateau() -> None:
    """Section 4.8: congestion avoidance begins where slow start has ended."""
    sender = sender_of(1000)
    growth = grown("cubic", sender)
    time_out(growth)
    growth.hold(growth.ssthresh)
    course = avoid(growth, 1)
    # from the first ACK on C t^3 above it, or as much as Reno: not on the way to 1000
    assert course[-1][1] < 700 + 15


def test_whole_segments_are_rounded_down_as_linux_counts_them() -> None:
    """0.7 of 7 segments are 4.9: 4, and the window opens by whole segments, as fast as without rounding."""
    sender = sender_of(7)
    growth = grown("cubic", sender, whole_segments=True)
    lose(growth)
    assert growth.cwnd == 4 * SMSS
    course = avoid(growth, 5.0)
    assert all(window == int(window) for _, window in course)
    other = grown("cubic", sender_of(4))
    other.start(4 * SMSS, 4 * SMSS)
    assert course[-1][1] == pytest.approx(avoid(other, 5.0)[-1][1], rel=0.15)
