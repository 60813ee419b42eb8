"""Lockstep airs: time goes by what receivers take, and two runs with one seed give the same bits."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from channel.delay_profiles import Kind, Tap
from flowgraphs.air import Air
from tests.harness.radio_process import Message
from tests.vusrp.conftest import Bench, noise_like

N = 150_000


def set_up_fading(air: Air) -> None:
    """Everything that depends on where a block begins, if anything does."""
    air.set_receiver("*", noise_dbm_hz=-150.0)
    air.set_clock_offset("V1", 3.0)
    taps = (
        Tap(kind=Kind.RAYLEIGH, doppler_hz=400.0),
        Tap(delay_ns=3_300.0, power_db=-3.0, kind=Kind.RAYLEIGH, doppler_hz=90.0),
    )
    air.set_link("*", "*", gain_db=-50, delay_ns=1_250, cfo_hz=333.0, taps=taps)


def run(bench: Bench, tx_chunk: int, rx_chunks: tuple[int, int]) -> list[NDArray[np.complex64]]:
    """Let V1 send without times, while V2 and V3 receive side by side; return what they got."""
    set_up_fading(bench.air)
    tx = bench.radio("V1")
    receivers = [bench.radio("V2"), bench.radio("V3")]
    for rx, chunk in zip(receivers, rx_chunks, strict=True):
        rx.start(N, at=2_000)
        rx.begin("collect", N, chunk)
    tx.begin("send", noise_like(2 * N, seed=1), chunk=tx_chunk)
    heard = [rx.finish()[0] for rx in receivers]
    for rx in receivers:
        rx.close()
    assert tx.finish() == 2 * N
    return heard


@pytest.mark.parametrize("bench", [1], indirect=True)
def test_two_runs_hear_the_same_bits_whatever_the_chunks(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = run(bench, tx_chunk=10_000, rx_chunks=(4_096, 4_096))
    bench.close()
    again = Bench(
        tmp_path_factory.mktemp("again"), Air.create(bench.air.name, clock="lockstep", seed=5, wait_streams=1)
    )
    second = run(again, tx_chunk=777, rx_chunks=(1_000, 33))
    again.close()
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()
    assert np.mean(np.abs(first[0][10_000:]) ** 2) > 1e-3  # more than noise
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize("bench", [1], indirect=True)
def test_time_waits_for_the_bursts_it_was_told_of(bench: Bench) -> None:
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=50.0)
    rx.start()
    rx.begin("collect", 5_000)
    time.sleep(0.3)
    assert bench.air.now_ns == 0
    tx.send(np.full(1_000, 0.5, np.complex64))
    heard = np.abs(rx.finish()[0])
    assert np.flatnonzero(heard)[[0, -1]].tolist() == [1_000, 1_999]  # a lead of 1 ms


def test_time_jumps_to_the_start_of_the_only_stream(bench: Bench) -> None:
    radio = bench.radio("V1")
    begun = time.monotonic()
    radio.start(1_000, at=3_600_000_000)
    radio.collect(1_000)
    assert time.monotonic() - begun < 600.0
    assert bench.air.now_ns == 3_600_001_000_000


def test_time_stands_still_while_receivers_are_idle(bench: Bench) -> None:
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=50.0)
    tx.send(np.full(40_000, 0.5, np.complex64), at=2_000)
    rx.start(10_000)
    rx.collect(10_000)
    now_ns = bench.air.now_ns
    time.sleep(0.3)
    assert bench.air.now_ns == now_ns
    heard = np.abs(rx.listen(40_000)[0])
    assert heard == pytest.approx(np.repeat([0.5, 0.0], [32_000, 8_000]), abs=1e-6)


def test_send_that_waits_gives_up_soon_after_the_last_receiver_goes_idle(bench: Bench) -> None:
    """It began to wait while one was active, so that it was ready to wait for half a minute."""
    tx, rx = bench.radio("V1"), bench.radio("V2")
    rx.start()
    rx.collect(1_000)
    tx.begin("send", np.zeros(2_000_000, np.complex64), end=False, timeout=0.1)
    time.sleep(1.0)
    rx.stop()
    idle = time.monotonic()
    assert tx.finish() < 2_000_000
    assert time.monotonic() - idle < 15.0


@pytest.mark.parametrize("bench", [1], indirect=True)
def test_nothing_is_late_however_slow_a_transmitter_is(bench: Bench) -> None:
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=50.0)
    rx.start(50_000)
    rx.begin("collect", 50_000)
    sent = noise_like(40_000, seed=2)
    for k in range(8):
        time.sleep(0.05)
        tx.send(sent[k * 5_000 : (k + 1) * 5_000], start=k == 0, end=k == 7)
    heard = rx.finish()[0]
    assert heard[1_000:41_000] == pytest.approx(sent, abs=1e-6)
    assert tx.message() == Message("burst_ack", 41_000, 0)


@pytest.mark.parametrize("rate", [200e6 / 4096, 25e6])
def test_rates_from_end_to_end_run(bench: Bench, rate: float) -> None:
    tx, rx = bench.radio("V1", rate=rate), bench.radio("V2", rate=rate, rx_gain=50.0)
    start = int(rate)
    tx.send(np.full(5_000, 0.5, np.complex64), at=start + 1_000)
    heard = np.abs(rx.listen(8_000, at=start)[0])
    assert heard == pytest.approx(np.repeat([0.0, 0.5, 0.0], [1_000, 5_000, 2_000]), abs=1e-6)


@pytest.mark.parametrize("bench", [1], indirect=True)
def test_a_killed_transmitter_does_not_hold_receivers(bench: Bench) -> None:
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=50.0)
    tx.send(np.full(5_000, 0.5, np.complex64), end=False)
    rx.start(20_000)
    rx.begin("collect", 20_000)
    time.sleep(0.2)
    tx.kill()
    heard = np.abs(rx.finish()[0])
    assert heard == pytest.approx(np.repeat([0.0, 0.5, 0.0], [1_000, 5_000, 14_000]), abs=1e-6)
    assert [device.serial for device in bench.air.devices()] == ["V2"]


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_a_receiver_that_ends_does_not_hold_the_others(bench: Bench, way: str) -> None:
    leaving, staying = bench.radio("V1"), bench.radio("V2")
    leaving.start()
    staying.start(100_000)
    staying.begin("collect", 100_000)
    time.sleep(0.2)
    getattr(leaving, way)()
    assert staying.finish().shape == (1, 100_000)


def test_transmitters_go_on_alone_when_all_receivers_have_gone(bench: Bench) -> None:
    tx, rx = bench.radio("V1"), bench.radio("V2")
    rx.start(1_000)
    rx.collect(1_000)
    tx.begin("send", np.zeros(3_000_000, np.complex64))
    rx.close()
    assert tx.finish() == 3_000_000
