"""Each impairment of a device's radio, measured on the air by numpy alone; on lockstep airs without noise."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from flowgraphs.air import Air, AirError, Chain, Impairments
from testbed.cli import app
from tests.vusrp.conftest import Bench, noise_like

Samples = NDArray[np.complex64]

RATE = 1e6
CARRIER = 1e9
N = 100_000

EVERYTHING = Impairments(
    rx=Chain(0.3, 2.0, -45.0, 12.0, 70_000.0, -60.0, ((1e3, -85.0), (1e5, -105.0))),
    tx=Chain(-0.2, 1.0, -40.0, 12.0, -90_000.0, -55.0, ((1e3, -80.0), (1e5, -100.0))),
    warm_up_ppm=0.5,
    warm_up_s=0.1,
    walk_ppm=0.05,
    p1db_dbm=-2.0,
    ramp_us=3.0,
    noise_figure_lowest_db=30.0,
    noise_figure_highest_db=8.0,
    settling_us=50.0,
    slope_db=0.5,
    edge_db=1.0,
    wideband=1.0,
    isolation_db=60.0,
)


def tone(n: int, cycles_per_sample: float, level: float = 0.5) -> Samples:
    return (level * np.exp(2j * np.pi * cycles_per_sample * np.arange(n))).astype(np.complex64)


def of_side(side: str, chain: Chain) -> Impairments:
    return Impairments(tx=chain) if side == "tx" else Impairments(rx=chain)


def dbfs(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(np.abs(samples.astype(complex)) ** 2)))


def line_dbfs(samples: Samples, cycles_per_sample: float) -> float:
    """Return the level of a tone that turns whole times in the samples."""
    turned = samples * np.exp(-2j * np.pi * cycles_per_sample * np.arange(len(samples)))
    return float(20 * np.log10(abs(np.mean(turned.astype(complex)))))


def heard(bench: Bench, sent: Samples, flaws: Impairments, at: str = "V1", rx_gain: float = 50.0) -> Samples:
    """Return what V2 hears of what V1 sends, sample by sample at the level it was sent with; `at` is impaired."""
    bench.air.set_impairments(at, flaws)
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=rx_gain)
    begun = min(len(sent), 500_000)  # time waits for the rest of a burst that has begun
    tx.send(sent[:begun], at=1_000, end=begun == len(sent))
    tx.begin("send", sent[begun:], start=False)
    rx.start(1_000 + len(sent))
    samples: Samples = rx.collect(1_000 + len(sent))[0]
    tx.finish()
    return samples[1_000:]


@pytest.mark.parametrize("side", ["tx", "rx"])
@pytest.mark.parametrize(("gain_db", "phase_deg"), [(0.5, 0.0), (0.0, 2.0), (-0.3, -1.5)])
def test_an_imbalance_makes_an_image(bench: Bench, side: str, gain_db: float, phase_deg: float) -> None:
    """Image rejection of g e^(j phi): |1 + g e^(-j phi)|^2 over |1 - g e^(j phi)|^2."""
    flaws = of_side(side, Chain(iq_gain_db=gain_db, iq_phase_deg=phase_deg))
    samples = heard(bench, tone(N, 0.12), flaws, "V1" if side == "tx" else "V2")
    askew = 10 ** (gain_db / 20) * np.exp(1j * np.radians(phase_deg))
    rejection_db = 20 * np.log10(abs(1 + askew) / abs(1 - askew))
    assert line_dbfs(samples, 0.12) - line_dbfs(samples, -0.12) == pytest.approx(rejection_db, abs=0.05)


def test_a_carrier_leaks_within_and_between_bursts(bench: Bench) -> None:
    bench.air.set_impairments("V1", Impairments(tx=Chain(leakage_dbfs=-40.0)))
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=50.0)
    rx.tune("rx", CARRIER - 50_000)
    tx.send(tone(20_000, 0.1), at=10_000)
    tx.send(tone(20_000, 0.1), at=60_000)
    rx.start(90_000)
    samples = rx.collect(90_000)[0]
    assert not samples[:10_000].any()  # the transmitter was never on
    for part in (slice(10_000, 30_000), slice(32_000, 52_000), slice(60_000, 80_000)):
        assert line_dbfs(samples[part], 0.05) == pytest.approx(-40.0, abs=0.1)
    assert line_dbfs(samples[10_000:30_000], 0.15) == pytest.approx(20 * np.log10(0.5), abs=0.01)
    tx.gain("tx", 30.0)
    rx.start(20_000)
    assert dbfs(rx.collect(20_000)[0][4_000:]) == pytest.approx(-50.0, abs=0.1)


def test_a_receiver_has_a_dc_offset_and_a_spur(bench: Bench) -> None:
    flaws = Impairments(rx=Chain(leakage_dbfs=-45.0, spur_hz=-30_000.0, spur_dbfs=-62.0))
    samples = heard(bench, np.zeros(N, np.complex64), flaws, "V2")
    assert line_dbfs(samples, 0.0) == pytest.approx(-45.0, abs=0.02)
    assert line_dbfs(samples, -0.03) == pytest.approx(-62.0, abs=0.02)


@pytest.mark.parametrize("smoothness", [2.0, 3.0])
def test_an_amplifier_compresses_by_1_db_at_its_point(bench: Bench, smoothness: float) -> None:
    """Full scale is 0 dBm at the transmitter: 40 dB of gain."""
    levels = 10 ** (np.array([-40.0, -9.0, -3.0, 0.0]) / 20)
    sent = np.concatenate([tone(5_000, 0.1, level) for level in levels])
    flaws = Impairments(p1db_dbm=-4.0, smoothness=smoothness)
    got = [dbfs(part[500:-500]) for part in heard(bench, sent, flaws).reshape(4, -1)]
    assert got[0] == pytest.approx(-40.0, abs=0.01)
    assert got[2] == pytest.approx(-4.0, abs=0.01)  # -3 dBm less 1 dB
    # Rapp: saturation from the point of 1 dB, then the other levels
    saturation = 10 ** (-3 / 20) / (10 ** (smoothness / 10) - 1) ** (1 / (2 * smoothness))
    for level, output in ((levels[1], got[1]), (levels[3], got[3])):
        expected = level / (1 + (level / saturation) ** (2 * smoothness)) ** (1 / (2 * smoothness))
        assert output == pytest.approx(20 * np.log10(expected), abs=0.01)


@pytest.mark.parametrize("side", ["tx", "rx"])
@pytest.mark.parametrize("bits", [6, 8, 12])
def test_a_converter_has_the_noise_of_its_steps(bench: Bench, side: str, bits: int) -> None:
    """A twelfth of a step's square for each part."""
    sent = noise_like(N, seed=3)
    samples = heard(bench, sent, of_side(side, Chain(bits=bits)), "V1" if side == "tx" else "V2")
    step = 2.0 ** (1 - bits)
    assert dbfs(samples - sent) == pytest.approx(10 * np.log10(2 * step**2 / 12), abs=0.1)
    assert np.allclose(samples / step, np.round(samples / step), atol=0.01)


def test_noise_falls_with_the_gain_to_the_figure_at_the_highest(bench: Bench) -> None:
    """Friis: the first stage's factor, and that of the stages behind the gain over the gain."""
    flaws = Impairments(noise_figure_lowest_db=28.0, noise_figure_highest_db=7.0)
    bench.air.set_impairments("V2", flaws)
    bench.air.set_receiver("V2", noise_dbm_hz=-167.0)  # kT and 7 dB
    rx = bench.radio("V2", rx_gain=60.0)
    # of factors 5.01 and 631: behind the gain are 626, and 1.56 of them are left above 26 dB of gain
    for gain_db, figure_db in ((60.0, 7.0), (26.0, 8.2), (10.0, 18.3), (0.0, 28.0)):
        rx.gain("rx", gain_db)
        rx.start(N)
        got_dbm_hz = dbfs(rx.collect(N)[0][5_000:]) - 10 - gain_db - 10 * np.log10(RATE)
        assert got_dbm_hz == pytest.approx(-174.0 + figure_db, abs=0.1)


MASK = ((1e3, -75.0), (1e4, -90.0), (1e5, -110.0), (3e5, -118.0))


def spectrum_dbc_hz(samples: Samples, segment: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return offsets and single-sideband noise beside the carrier at 0, by Welch with a Blackman-Harris window."""
    cosines = np.arange(4)[:, None] * 2 * np.pi * np.arange(segment) / segment
    window = np.array([0.35875, -0.48829, 0.14128, -0.01168]) @ np.cos(cosines)
    pieces = np.lib.stride_tricks.sliding_window_view(samples.astype(complex), segment)[:: segment // 2]
    power = np.mean(np.abs(np.fft.fft(pieces * window, axis=1)) ** 2, axis=0) / np.sum(window**2) / RATE
    half = segment // 2
    both = 0.5 * (power[1:half] + power[:half:-1])
    return np.arange(1, half) * RATE / segment, 10 * np.log10(both / np.mean(np.abs(samples) ** 2))


def degrees_of(mask: tuple[tuple[float, float], ...], low_hz: float, high_hz: float) -> float:
    """Return the root mean square of the phase noise between two offsets, both sidebands."""
    offsets = np.geomspace(low_hz, high_hz, 10_001)
    level = np.interp(np.log10(offsets), np.log10([hz for hz, _ in mask]), [dbc for _, dbc in mask])
    return float(np.degrees(np.sqrt(2 * np.trapz(10 ** (level / 10), offsets))))


@pytest.mark.parametrize("side", ["tx", "rx"])
def test_phase_noise_follows_its_mask(bench: Bench, side: str) -> None:
    n = 500_000
    samples = heard(bench, tone(n, 0.0), of_side(side, Chain(mask=MASK)), "V1" if side == "tx" else "V2")
    assert np.abs(samples) == pytest.approx(np.full(n, 0.5), abs=1e-5)
    offsets, level = spectrum_dbc_hz(samples, 1 << 13)
    logs = np.log10([hz for hz, _ in MASK])
    for low, high in itertools.pairwise(np.geomspace(1_200, 450_000, 16)):
        band = (offsets >= low) & (offsets < high)
        assert band.sum() >= 4
        wanted = np.interp(np.log10(offsets[band]), logs, [dbc for _, dbc in MASK])
        # a bin's mean over 121 half-overlapping pieces is 0.5 dB off, and there are four or more
        assert np.mean(level[band] - wanted) == pytest.approx(0.0, abs=1.0)


@pytest.mark.parametrize("side", ["tx", "rx"])
def test_a_carrier_warms_up(bench: Bench, side: str) -> None:
    n = 500_000
    flaws = Impairments(warm_up_ppm=2.0, warm_up_s=0.2)
    phase = np.unwrap(np.angle(heard(bench, tone(n, 0.0), flaws, "V1" if side == "tx" else "V2").astype(complex)))
    sense = 1 if side == "tx" else -1
    for at in (50_000, 200_000, 450_000):
        ppm = sense * (phase[at + 1_000] - phase[at - 1_000]) / 2_000 / (2 * np.pi) * RATE / CARRIER * 1e6
        assert ppm == pytest.approx(2.0 * math.exp(-(at + 1_000) / RATE / 0.2), abs=0.01)


def test_a_carrier_walks_at_random(bench: Bench) -> None:
    """Over a tenth of a second it moves by walk_ppm / sqrt 10: 400 normal steps, whose rms is 3.5 % off."""
    bench.air.set_impairments("V1", Impairments(walk_ppm=0.2))
    rate = 200e6 / 4096
    tx, rx = bench.radio("V1", rate=rate), bench.radio("V2", rate=rate, rx_gain=50.0)
    n = int(40.5 * rate)
    tx.send(tone(500_000, 0.0), at=1_000, end=False)
    tx.begin("send", tone(n - 500_000, 0.0), start=False)
    rx.start(n)
    phase = np.unwrap(np.angle(rx.collect(n)[0][1_000:].astype(complex)))
    tx.finish()
    instants = np.round(np.arange(0.1, 40.2, 0.1) * rate).astype(int) - 1_000
    ppm = (phase[instants + 100] - phase[instants - 100]) / 200 / (2 * np.pi) * rate / CARRIER * 1e6
    assert np.sqrt(np.mean(np.diff(ppm) ** 2)) == pytest.approx(0.2 * math.sqrt(0.1), rel=0.18)


def test_a_device_has_one_oscillator(bench: Bench) -> None:
    """Its own signal comes back without an offset, however its carriers wander."""
    bench.air.set_impairments("V1", Impairments(warm_up_ppm=2.0, walk_ppm=1.0))
    radio = bench.radio("V1", rx_gain=50.0)
    radio.send(tone(N, 0.0), at=1_000)
    assert radio.listen(N, at=1_000)[0][5_000:] == pytest.approx(np.full(N - 5_000, 0.5), abs=1e-4)


def delay_of(samples: Samples, apart: float, block: int) -> NDArray[np.float64]:
    """Return how many samples late two tones are, `apart` and -`apart` cycles per sample, block by block."""
    at = np.arange(len(samples))
    both = [
        np.mean((samples * np.exp(-2j * np.pi * cycles * at)).reshape(-1, block), axis=1) for cycles in (apart, -apart)
    ]
    return np.unwrap(np.angle(both[1] / both[0])) / (2 * np.pi * 2 * apart)


@pytest.mark.parametrize("side", ["tx", "rx"])
def test_the_sample_clock_warms_up_with_the_carrier(bench: Bench, side: str) -> None:
    """A fast clock sends early and hears late: by 4 us in the end. At 10 MHz the carrier is off by 200 Hz at most."""
    n, at = 1_000_000, "V1" if side == "tx" else "V2"
    bench.air.set_impairments(at, Impairments(warm_up_ppm=20.0, warm_up_s=0.2))
    tx, rx = bench.radio("V1", freq=10e6), bench.radio("V2", freq=10e6, rx_gain=50.0)
    sent = tone(n, 0.2, 0.25) + tone(n, -0.2, 0.25)
    tx.send(sent[:500_000], at=1_000, end=False)
    tx.begin("send", sent[500_000:], start=False)
    rx.start(n)
    late = delay_of(rx.collect(n)[0][2_000:], 0.2, 500)
    tx.finish()
    times = 2e-3 + (np.arange(len(late)) + 0.5) * 500 / RATE
    expected = 20.0 * 0.2 * (1 - np.exp(-times / 0.2)) * (-1 if side == "tx" else 1)
    # the first blocks have been on the way for 2 ms
    assert late - late[0] == pytest.approx(expected - expected[0], abs=0.01)


def test_the_sample_clock_walks_as_its_carrier(bench: Bench) -> None:
    """One oscillator: what the carrier has turned is the same number of parts as what the samples are late."""
    bench.air.set_impairments("V1", Impairments(walk_ppm=10.0))
    rate = 200e6 / 1000
    tx = bench.radio("V1", rate=rate, freq=20e6)
    rx = bench.radio("V2", rate=rate, freq=20e6, rx_gain=50.0)
    n = 800_000  # 4 s
    sent = tone(n, 0.2, 0.25) + tone(n, -0.2, 0.25)
    tx.send(sent[:500_000], at=1_000, end=False)
    tx.begin("send", sent[500_000:], start=False)
    rx.start(n)
    samples = rx.collect(n)[0][2_000:]
    tx.finish()
    early_s = -delay_of(samples, 0.2, 50) / rate
    at = np.arange(len(samples))
    turned = np.mean((samples * np.exp(-0.4j * np.pi * at)).reshape(-1, 50), axis=1)
    # a tone 40 kHz above the carrier: the carrier's turns, and the tone's own
    turns = np.unwrap(np.angle(turned)) / (2 * np.pi)
    assert np.ptp(early_s) > 2e-6
    both = (turns - turns[0]) - (20e6 + 0.2 * rate) * (early_s - early_s[0])
    assert both == pytest.approx(np.zeros_like(both), abs=0.05 * np.ptp(turns))


@pytest.mark.parametrize(("slope_db", "edge_db"), [(3.0, 0.0), (-1.5, 0.0), (0.0, 6.0), (2.0, 3.0)])
def test_filters_have_a_slope_and_lose_their_edges(bench: Bench, slope_db: float, edge_db: float) -> None:
    """Tones at both quarters of the rate differ by the slope; at the edges the loss is that of the middle."""
    cycles = (0.25, -0.25, 0.0, 0.4995, -0.4995)
    sent = np.sum([tone(N, one, 0.15) for one in cycles], axis=0)
    samples = heard(bench, sent.astype(np.complex64), Impairments(slope_db=slope_db, edge_db=edge_db), "V2")
    upper, lower, middle, *edges = (line_dbfs(samples[2_000:-2_000], one) for one in cycles)
    assert upper - lower == pytest.approx(slope_db, abs=0.02)
    assert middle == pytest.approx(20 * np.log10(0.15), abs=0.02)
    for edge in edges:
        assert middle - edge == pytest.approx(edge_db, abs=0.05)


def test_a_gain_settles_with_its_time_constant(bench: Bench) -> None:
    """From -26 to -6 dBFS, and back to -16: in dB, an exponential each."""
    bench.air.set_impairments("V2", Impairments(settling_us=200.0))
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=30.0)
    tx.send(tone(40_000, 0.0), at=1_000)
    rx.gain("rx", 50.0, at=15_000)
    rx.gain("rx", 40.0, at=25_000)
    rx.start(36_000, at=4_000)
    level = 20 * np.log10(np.abs(rx.collect(36_000)[0]))
    at = np.arange(10_000)
    assert level[:11_000] == pytest.approx(np.full(11_000, 20 * np.log10(0.05)), abs=0.01)
    for begin, before, after in ((11_000, -20.0, 0.0), (21_000, 0.0, -10.0)):
        expected = 20 * np.log10(0.5) + after + (before - after) * np.exp(-at / 200)
        assert level[begin : begin + 10_000] == pytest.approx(expected, abs=0.05)


def test_clocks_differ_within_their_tolerance(bench: Bench) -> None:
    bench.air.set_impairments("*", Impairments(tolerance_ppm=2.0))
    drawn = [bench.air.clock_offset_ppm(f"V{i}") for i in range(200)]
    assert max(map(abs, drawn)) <= 2.0
    # uniform: standard deviation 2 / sqrt 3; that of 200 draws is 3.2 % off
    assert np.std(drawn) == pytest.approx(2 / math.sqrt(3), rel=0.16)
    samples = heard(bench, tone(N, 0.0), Impairments(tolerance_ppm=2.0))
    offset = np.polyfit(np.arange(N), np.unwrap(np.angle(samples.astype(complex))), 1)[0] / (2 * np.pi) * RATE
    v1, v2 = (bench.air.clock_offset_ppm(serial) for serial in ("V1", "V2"))
    assert offset == pytest.approx((v1 - v2) * 1e-6 * CARRIER, abs=0.1)
    bench.air.set_clock_offset("V1", 0.5)
    assert bench.air.clock_offset_ppm("V1") == 0.5


def test_the_own_transmitter_leaks_by_its_isolation(bench: Bench) -> None:
    bench.air.set_impairments("V1", Impairments(isolation_db=35.0))
    radio = bench.radio("V1", rx_gain=20.0)  # full at -30 dBm; full scale leaves with 0 dBm
    radio.send(tone(N, 0.1, 0.5), at=1_000)
    samples = radio.listen(N, at=1_000)[0]
    assert dbfs(samples[2_000:-2_000]) == pytest.approx(20 * np.log10(0.5) - 35.0 + 30.0, abs=0.05)


def test_a_strong_signal_beyond_the_band_blocks_a_wideband_converter(bench: Bench) -> None:
    """Beside a blocker of 4 times full scale the wanted signal keeps what a limiter of both parts leaves of it."""
    wanted, blocker, rx = bench.radio("V1"), bench.radio("V3", tx_gain=60.0), bench.radio("V2", rx_gain=50.0)
    blocker.tune("tx", CARRIER + 5e6)
    bench.air.set_link("V3", "V2", gain_db=-68)  # +20 dBm, -68 dB, full at -60 dBm: 12 dB above full scale
    wanted.send(tone(N, 0.1, 0.1), at=1_000)
    blocker.send(np.ones(N, np.complex64), at=1_000)
    levels = {}
    for when, flaws in enumerate((Impairments(), Impairments(wideband=1.0))):
        bench.air.set_impairments("V2", flaws)
        samples = rx.listen(20_000, at=5_000 + 40_000 * when)[0]
        levels[flaws.wideband] = line_dbfs(samples, 0.1)
    assert levels[0.0] == pytest.approx(-20.0, abs=0.05)
    # the blocker far away from the wanted signal, both clipped, and the wanted one's line
    turns = np.arange(64 * 4096) / 4096
    slow = np.exp(2j * np.pi * turns)
    both = 0.1 * slow + 10 ** (12 / 20) * np.exp(2j * np.pi * turns * 4096 * 0.381966)
    left = np.mean((np.clip(both.real, -1, 1) + 1j * np.clip(both.imag, -1, 1)) * slow.conj())
    assert levels[1.0] == pytest.approx(20 * np.log10(abs(left)), abs=0.1)


def test_a_burst_rises_with_the_ramp(bench: Bench) -> None:
    samples = heard(bench, np.full(2_000, 0.5, np.complex64), Impairments(ramp_us=50.0))
    assert np.abs(samples) == pytest.approx(0.5 * (1 - np.exp(-np.arange(2_000) / 50)), abs=1e-4)


def test_wifi_bursts_have_their_level_share_and_spaces(bench: Bench, tmp_path: Path) -> None:
    """Full scale arrives with -50 dBm where the receiver is full at -60 dBm: bursts are 0.25 times 10 dB higher."""
    lines = ["air", "wifi", str(tmp_path / "wifi"), "--rate", "1e6", "--freq", "1e9", "--busy", "0.4", "--seconds", "2"]
    assert app.main(lines) == 0
    recording = tmp_path / "wifi.sigmf-data"
    rx = bench.radio("V2", rx_gain=50.0)
    bench.air.set_interference("V2", recording, rate_sps=RATE, freq_hz=CARRIER, level_dbm=-70.0)
    rx.start(2_000_000)
    on = np.abs(samples := rx.collect(2_000_000)[0]) > 0
    assert dbfs(samples[on]) == pytest.approx(20 * np.log10(0.25) - 10.0, abs=0.1)
    assert np.mean(on) == pytest.approx(0.4, abs=0.04)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], on, [False])).astype(int)))
    begins, ends = edges[::2], edges[1::2]
    lengths, spaces = ends - begins, begins[1:] - ends[:-1]
    # every other burst is an acknowledgement of 28 us behind 16 us of silence; a data frame waits for 34 us at least
    assert set(lengths[1::2]) <= {27, 28, 29}
    assert np.all(np.abs(spaces[::2] - 16) <= 1)
    assert spaces[1::2].min() >= 33
    assert lengths[::2].max() == pytest.approx(20 + 4 * 513, abs=1)  # 1536 octets at 6 Mbit/s


def test_hiccups_lose_samples_and_tell(bench: Bench) -> None:
    bench.air.set_impairments("V1", Impairments(hiccups_hz=5.0, hiccup_ms=7.0))
    rx = bench.radio("V1")
    rx.start()
    gaps, at = [], None
    while at is None or at < 2_000_000:
        piece = rx.recv(2_040)[1]
        if piece.error == "overflow":
            gaps.append(piece.at)
            continue
        assert piece.error == "none"
        if at is not None and piece.at != at:
            assert gaps
            assert piece.at - gaps[-1] == pytest.approx(7_000 + 2_040, abs=1)
        at = piece.at + piece.n
    assert 3 <= len(gaps) <= 20  # ten are expected


@pytest.mark.parametrize(("profile", "words"), [("b210", "unplugged"), ("n210-sbx", "timeout")])
def test_a_device_is_unplugged(bench: Bench, profile: str, words: str) -> None:
    radio = bench.family(profile)
    radio.start()
    radio.collect(10_000)
    bench.air.unplug("V1")
    with pytest.raises(RuntimeError, match=words):
        radio.collect(1_000_000, timeout=0.5)
    if profile == "b210":
        with pytest.raises(RuntimeError, match="unplugged"):
            radio.send(np.zeros(100, np.complex64))
    else:
        assert radio.send(np.zeros(100, np.complex64), timeout=0.1) == 0


def run(bench: Bench, tx_chunk: int, rx_chunk: int) -> Samples:
    bench.air.set_receiver("*", noise_dbm_hz=-150.0)
    bench.air.set_impairments("*", EVERYTHING)
    tx, rx = bench.radio("V1"), bench.radio("V2")
    rx.start(N, at=2_000)
    rx.begin("collect", N, rx_chunk)
    tx.begin("send", noise_like(2 * N, seed=1), chunk=tx_chunk)
    samples: Samples = rx.finish()[0]
    rx.close()
    assert tx.finish() == 2 * N
    return samples


@pytest.mark.parametrize("bench", [1], indirect=True)
def test_two_runs_hear_the_same_bits_whatever_the_chunks(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = run(bench, tx_chunk=10_000, rx_chunk=4_096)
    bench.close()
    again = Bench(
        tmp_path_factory.mktemp("again"), Air.create(bench.air.name, clock="lockstep", seed=5, wait_streams=1)
    )
    second = run(again, tx_chunk=777, rx_chunk=1_000)
    again.close()
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("family", ["ideal", "b200", "b210", "n210-sbx", "x310-ubx", "n310"])
def test_a_family_has_typical_flaws_until_the_air_says_others(bench: Bench, family: str) -> None:
    bench.radio("V1", rate=None, args=f",profile={family}")
    bench.family(family, "V2")
    typical = bench.air.impairments("V1")
    assert (typical == Impairments()) == (family == "ideal")
    assert bench.air.impairments("V2") == Impairments()
    assert abs(bench.air.clock_offset_ppm("V1")) <= typical.tolerance_ppm
    wanted = replace(typical, tolerance_ppm=0.5)
    bench.air.set_impairments("V1", wanted)
    assert bench.air.impairments("V1") == wanted
    bench.air.set_impairments("V1", None)
    assert bench.air.impairments("V1") == typical


@pytest.mark.parametrize(
    ("family", "full_dbm", "degrees", "image_db", "leak_dbfs"),
    [("b210", -39.75, 0.37, 35.0, -50.0), ("n310", -10.0, 0.24, 50.0, -55.0)],
)
def test_a_typical_transmitter_on_the_air(
    bench: Bench, family: str, full_dbm: float, degrees: float, image_db: float, leak_dbfs: float
) -> None:
    """Heard by a perfect receiver: the figures that the profile names; `full_dbm` is full scale at 40 dB of gain."""
    tx, rx = bench.radio("V1", args=f",profile={family}", tx_gain=40.0), bench.radio("V2", rx_gain=60.0)
    bench.air.set_link("V1", "V2", gain_db=-70.0 - full_dbm)  # amplitude 1 is amplitude 1 again
    bench.air.set_clock_offset("V1", 0.0)
    bench.air.set_impairments("V1", replace(bench.air.impairments("V1"), warm_up_ppm=0.0, walk_ppm=0.0))
    tx.send(tone(N, 0.12), at=1_000)
    rx.start(N)
    samples = rx.collect(N)[0][1_500:-500].astype(complex)
    [sender, receiver] = bench.air.devices()
    offset = (sender.tx[0].freq_hz - receiver.rx[0].freq_hz) / RATE
    at = np.arange(len(samples))
    samples *= np.exp(-2j * np.pi * offset * at)
    cut = len(samples) // 25 * 25  # whole turns
    assert line_dbfs(samples[:cut], 0.12) - line_dbfs(samples[:cut], -0.12) == pytest.approx(image_db, abs=1.0)
    assert line_dbfs(samples[:cut], 0.0) == pytest.approx(leak_dbfs, abs=0.5)
    turned = samples[:cut] * np.exp(-2j * np.pi * 0.12 * at[:cut])
    quiet = np.convolve(turned, np.ones(5) / 5, "valid")[::5]  # without image and leakage
    phase = np.degrees(np.angle(quiet / np.mean(quiet)))
    mask = bench.air.impairments("V1").tx.mask
    assert degrees_of(mask, 100.0, 100e6) == pytest.approx(degrees, rel=0.02)
    assert np.std(phase) == pytest.approx(degrees_of(mask, 10.0, 0.1 * RATE), rel=0.15)


def test_settings_are_kept_and_checked(bench: Bench) -> None:
    air = bench.air
    assert air.impairments("V1") == Impairments()
    air.set_impairments("*", EVERYTHING)
    air.set_impairments("V2", replace(EVERYTHING, walk_ppm=0.0))
    assert (air.impairments("V1"), air.impairments("V2").walk_ppm) == (EVERYTHING, 0.0)
    air.set_impairments("*", None)
    assert air.impairments("V1") == Impairments()
    for wrong, words in (
        (Impairments(tx=Chain(bits=1.5)), "bits"),
        (Impairments(rx=Chain(mask=((1e4, -80.0), (1e3, -90.0)))), "mask"),
        (Impairments(rx=Chain(mask=((1e3, -80.0),) * 7)), "impairments of V1"),
        (Impairments(warm_up_s=0.0), "warm_up_s"),
        (Impairments(noise_figure_highest_db=5.0), "noise figures"),
        (Impairments(slope_db=7.0), "slope_db"),
        (Impairments(edge_db=-1.0), "edge_db"),
        (Impairments(settling_us=-1.0), "settling_us"),
    ):
        with pytest.raises(AirError, match=words):
            air.set_impairments("V1", wrong)
