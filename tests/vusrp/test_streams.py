"""Streaming as UHD documents it: commands, packets and their metadata, bursts and the messages about them."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.radio_process import Message, Piece, RadioProcess
from tests.vusrp.conftest import LEAD, Bench

PACKET = 2040


def burst(n: int, level: float = 0.5) -> NDArray[np.complex64]:
    return np.full(n, level, np.complex64)


def event(radio: RadioProcess) -> str | None:
    message = radio.message()
    return None if message is None else message.event


def test_a_number_of_samples_comes_in_packets_with_their_times(bench: Bench) -> None:
    radio = bench.radio("V1")
    assert radio.open("rx") == PACKET
    radio.start(5_000, at=3_000)
    pieces = [radio.recv(PACKET)[1] for _ in range(3)]
    assert pieces == [
        Piece(2_040, "none", 3_000, start_of_burst=True, end_of_burst=False, more_fragments=False),
        Piece(2_040, "none", 5_040, start_of_burst=False, end_of_burst=False, more_fragments=False),
        Piece(920, "none", 7_080, start_of_burst=False, end_of_burst=True, more_fragments=False),
    ]
    assert radio.recv(1, timeout=0.0)[1].error == "timeout"


def test_a_packet_that_does_not_fit_comes_in_fragments(bench: Bench) -> None:
    radio = bench.radio("V1")
    radio.open("rx", args="spp=500")
    radio.start(1_000, at=2_000)
    pieces = [radio.recv(n)[1] for n in (300, 100, 100, 400, 5_000)]
    assert [(piece.n, piece.at, piece.more_fragments) for piece in pieces] == [
        (300, 2_000, True),
        (100, 2_300, True),
        (100, 2_400, False),
        (400, 2_500, True),
        (100, 2_900, False),
    ]
    assert [piece.end_of_burst for piece in pieces] == [False] * 4 + [True]


def test_continuous_streaming_ends_with_an_end_of_burst_after_stop(live_bench: Bench) -> None:
    radio = live_bench.radio("V1")
    radio.start()
    pieces = [radio.recv(PACKET)[1] for _ in range(5)]
    radio.stop()
    while not pieces[-1].end_of_burst:
        pieces.append(radio.recv(PACKET)[1])
    assert {piece.error for piece in pieces} == {"none"}
    starts = [piece.at for piece in pieces]
    assert np.diff(starts).tolist() == [piece.n for piece in pieces[:-1]]
    assert [piece.start_of_burst for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert radio.recv(1, timeout=0.0)[1].error == "timeout"


@pytest.mark.parametrize("n", [100, PACKET + 100, 5 * PACKET + 100, 20_000])
def test_recv_fills_what_it_is_given_whatever_the_packets(live_bench: Bench, n: int) -> None:
    radio = live_bench.radio("V1")
    radio.start()
    first, second = radio.recv(n)[1], radio.recv(n)[1]
    assert (first.n, second.n) == (n, n)
    assert second.at == first.at + n


def test_the_time_of_recv_is_that_of_a_packet(live_bench: Bench) -> None:
    """Ten packets take four times as long, and are no reason to give up."""
    radio = live_bench.radio("V1")
    radio.start()
    assert radio.recv(10 * PACKET, timeout=2.5 * PACKET / 1e6)[1].n == 10 * PACKET


def test_a_command_in_the_past_is_late(live_bench: Bench) -> None:
    radio = live_bench.radio("V1")
    radio.set_now(5_000_000)
    radio.start(100, at=4_000_000)
    assert radio.recv(100)[1].error == "late"
    assert radio.recv(100, timeout=0.0)[1].error == "timeout"


def test_commands_chain(bench: Bench) -> None:
    radio = bench.radio("V1")
    radio.start(100, at=2_000, more=True)
    radio.start(50, more=True)
    assert radio.recv(100)[1] == Piece(100, "none", 2_000, True, False, False)
    assert radio.recv(100)[1] == Piece(50, "none", 2_100, True, False, False)
    assert radio.recv(100)[1].error == "broken_chain"
    radio.start(10)
    assert radio.recv(100)[1].end_of_burst


def test_a_program_that_sleeps_loses_samples_and_is_told_where(live_bench: Bench) -> None:
    radio = live_bench.radio("V1", rate=10e6)
    radio.start()
    _, before = radio.recv(PACKET)
    time.sleep(0.25)  # 2^20 samples take 0.105 s
    _, gap = radio.recv(PACKET)
    _, after = radio.recv(PACKET)
    assert (gap.error, gap.n, gap.at) == ("overflow", 0, before.at + before.n)
    assert after.error == "none"
    assert after.at - gap.at > 2**20
    radio.close()
    assert "O" in radio.said


def test_a_finite_stream_ends_with_its_overflow(live_bench: Bench) -> None:
    radio = live_bench.radio("V1", rate=10e6)
    radio.start(10_000_000)
    time.sleep(0.25)
    assert radio.recv(PACKET)[1].error == "overflow"
    assert radio.recv(PACKET, timeout=0.0)[1].error == "timeout"


def test_timed_bursts_in_real_time_land_on_their_samples_and_are_acknowledged(live_bench: Bench) -> None:
    live_bench.air.set_link("V1", "V2", gain_db=-50)
    tx, rx = live_bench.radio("V1"), live_bench.radio("V2")
    rx.open("rx")
    tx.open("tx")
    start = rx.now() + LEAD
    sent = [tx.send(burst(1_000), at=start + k * 10_000) for k in range(20)]
    heard = np.abs(rx.listen(200_000, at=start)[0]).reshape(20, 10_000)
    assert sent == [1_000] * 20
    assert heard == pytest.approx(np.tile(np.repeat([0.5, 0.0], [1_000, 9_000]), (20, 1)), abs=1e-6)
    assert [tx.message() for _ in range(20)] == [Message("burst_ack", start + k * 10_000 + 1_000, 0) for k in range(20)]


def test_a_burst_that_runs_dry_underflows_and_the_next_packet_starts_anew(live_bench: Bench) -> None:
    radio = live_bench.radio("V1", tx_gain=40.0, rx_gain=50.0)
    radio.start()
    radio.send(burst(1_000, 0.25), end=False)
    assert event(radio) == "underflow"
    radio.send(burst(2_000, 0.5), start=False, end=True)
    assert event(radio) == "burst_ack"
    radio.stop()
    level = np.abs(radio.collect(None)[0])
    assert np.count_nonzero(np.isclose(level, 0.25, atol=1e-6)) == 1_000
    assert np.count_nonzero(np.isclose(level, 0.5, atol=1e-6)) == 2_000
    radio.close()
    assert "U" in radio.said


def test_the_next_burst_policy_drops_the_rest_of_a_burst_that_ran_dry(live_bench: Bench) -> None:
    radio = live_bench.radio("V1", tx_gain=40.0, rx_gain=50.0)
    radio.open("tx", args="underflow_policy=next_burst")
    radio.send(burst(1_000), end=False)
    assert event(radio) == "underflow"
    assert radio.send(burst(1_000), start=False, end=False) == 1_000
    assert radio.send(burst(1_000), start=False, end=True) == 1_000
    assert radio.message(timeout=0.0) is None
    radio.send(burst(1_000))
    assert event(radio) == "burst_ack"


def test_a_burst_in_the_past_is_late_and_never_heard(live_bench: Bench) -> None:
    radio = live_bench.radio("V1", tx_gain=40.0, rx_gain=50.0)
    radio.open("tx")
    radio.set_now(5_000_000)
    radio.start(60_000)
    assert radio.send(burst(1_000), at=4_000_000) == 1_000
    assert event(radio) == "time_error"
    assert not radio.collect(60_000).any()
    radio.close()
    assert "L" in radio.said


def test_send_blocks_while_a_quarter_million_samples_wait(live_bench: Bench) -> None:
    radio = live_bench.radio("V1")
    radio.open("tx")
    sent = radio.send(burst(400_000), at=radio.now() + 30_000_000, timeout=1.0)
    assert 262_144 - PACKET <= sent <= 262_144


def test_a_burst_of_two_channels_is_acknowledged_on_each(bench: Bench) -> None:
    radio = bench.radio("V1")
    radio.open("tx", (0, 1))
    radio.send(np.vstack([burst(100), burst(100)]), at=2_000)
    radio.start(4_000)
    radio.collect(4_000)
    assert [radio.message(), radio.message()] == [Message("burst_ack", 2_100, 0), Message("burst_ack", 2_100, 1)]


def test_the_rate_may_change_while_a_stream_runs(live_bench: Bench) -> None:
    radio = live_bench.radio("V1")
    radio.start()
    _, before = radio.recv(PACKET)
    radio.call("set_rx_rate", 2e6)
    _, after = radio.recv(PACKET)
    assert after.error == "none"
    assert after.at == pytest.approx(before.at + before.n, abs=1)
    assert radio.recv(PACKET)[1].at - after.at == PACKET / 2  # times are still counted at 1 Msps


def test_times_are_set_now_and_at_the_next_second(live_bench: Bench) -> None:
    air = live_bench.air
    radio, other = live_bench.radio("V1"), live_bench.radio("V2")
    begun_ns = air.now_ns
    radio.set_now(70_000_000)
    assert 0 <= radio.now() - 70_000_000 <= (air.now_ns - begun_ns) // 1000 + 1

    def second() -> int:
        return air.now_ns // 10**9

    set_in = -1
    while set_in != second():
        # once more when a second ended between the two, so that the next one is the same for both devices
        set_in = second()
        for one in (radio, other):
            one.set_next_pps(100_000_000)
    while set_in == second():
        time.sleep(0.05)
    earliest = second()
    last = {one.last_pps() for one in (radio, other)}
    assert last <= {100_000_000 + (later - set_in - 1) * 1_000_000 for later in range(earliest, second() + 1)}
    before, between, after = radio.now(), other.now(), radio.now()
    assert 100_000_000 < before <= between <= after


@pytest.mark.parametrize(
    ("asked", "got"), [(1e6, 1e6), (3e6, 200e6 / 67), (1.0, 200e6 / 4096), (190e6, 200e6), (1e9, 200e6)]
)
def test_rates_are_the_master_clock_over_a_whole_number(bench: Bench, asked: float, got: float) -> None:
    radio = bench.radio("V1")
    radio.call("set_rx_rate", asked)
    radio.call("set_tx_rate", asked, 1)
    assert radio.call("get_rx_rate") == got
    assert radio.call("get_tx_rate", 1) == got


def test_gains_and_frequencies_are_held_to_their_ranges(bench: Bench) -> None:
    radio = bench.radio("V1", args=",master_clock_rate=100e6")
    assert [radio.gain("rx", gain) for gain in (-5.0, 10.1, 99.0)] == [0.0, 10.0, 60.0]
    assert [radio.gain("tx", gain, 1) for gain in (-5.0, 10.3, 99.0)] == [0.0, 10.25, 60.0]
    assert radio.tune("rx", 2.4e9) == 2.4e9
    # the DSP reaches half the master clock beyond what the oscillator does
    assert radio.tune("rx", 9e9) <= 6e9 + 80e6
    assert radio.call("get_master_clock_rate") == 100e6
