"""Carriers, gains and losses: what is set is what the receiver finds, and the gain control finds a gain that works."""

import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flowgraphs.gain import CLIP_DBFS, LOW_DBFS, WINDOW_NS
from flowgraphs.gaps import Lost
from flowgraphs.phy import Received
from hil_tests.bench import DUPLEX_HZ, Bench, Pair, frames
from hil_tests.conftest import Figures
from testbed.live.usrp_radio import OnAirRadio
from testbed.scenario.resolver import resolve

pytestmark = pytest.mark.radio

#: of QPSK without a code, frames of 1500 octets: a tenth is lost
THRESHOLD_DB = 11.5
#: where hardly any of the frames used here is lost, and noise hardly adds to the level
SAFE_DB = 17.0
#: highest SNR at which the loss is compared
HIGH_DB = 25.0
#: short frames, since their number counts here
FRAMES = frames(30, 300)
#: how far above clipping a strong signal lies
CLIPPING_DB = 6.0
#: what a device's gain may be off
GAIN_ERROR_DB = 1.5
STEP_DB = 4.0
CARRIERS = 7
#: bound on how long the gain control may take: a search through the range of any device
SETTLED_WITHIN_S = 30.0
#: the gain stays as long when the gain control has nothing more to try
STEADY_S = 2 * WINDOW_NS / 1e9 + 0.5


def test_frames_cross_on_carriers_over_the_whole_range(bench: Bench) -> None:
    if bench.options.region is not None:
        pytest.skip("by antenna no radio may use its whole range: --cabled")
    with bench.pair() as pair:
        ranges = [block.get_freq_range() for end in (pair.a, pair.b) for block in (end.tx.block, end.rx.block)]
    lowest_hz = max(span.start() for span in ranges) + DUPLEX_HZ
    highest_hz = min(span.stop() for span in ranges)
    ratio = (highest_hz / lowest_hz) ** (1 / (CARRIERS - 1))
    heard = {}
    for up_hz in (lowest_hz * ratio**n for n in range(CARRIERS)):
        with bench.pair(up_hz=min(up_hz, highest_hz)) as pair:
            heard[up_hz] = len([received for received in pair.exchange(FRAMES).heard if received.crc_ok])
    assert all(count == len(FRAMES) for count in heard.values()), heard


@pytest.mark.parametrize(
    ("end", "snr_db", "step_db"), [("transmitter", SAFE_DB + 4 * STEP_DB, -STEP_DB), ("receiver", SAFE_DB, STEP_DB)]
)
def test_the_level_follows_either_gain(bench: Bench, figures: Figures, end: str, snr_db: float, step_db: float) -> None:
    with bench.pair() as pair:
        pair.set_snr(snr_db)
        transmits = end == "transmitter"
        first_db = float(pair.a.tx.block.get_gain()) if transmits else pair.b.rx.gain_db
        set_gain = pair.set_tx_gain if transmits else pair.set_rx_gain
        gains_db, levels_db = [], []
        for step in range(5):
            gains_db.append(set_gain(first_db + step * step_db))
            pair.b.peak_dbfs()
            levels_db.append(pair.exchange(FRAMES).rssi_db)
            assert pair.b.peak_dbfs() < CLIP_DBFS, "put in an attenuator: the receiver clips"
    figures.check("error of the level", moves_apart_db(gains_db, levels_db), "dB", most=GAIN_ERROR_DB)


def test_snr_falls_with_the_cables_loss(bench: Bench, figures: Figures) -> None:
    with bench.pair() as pair:
        figures.check("SNR without loss", pair.clear_snr_db, "dB")
        losses_db, snrs_db = [], []
        for wanted_db in (min(pair.clear_snr_db, HIGH_DB), 22.0, 19.0, 16.0, THRESHOLD_DB + 1.0):
            losses_db.append(pair.set_snr(wanted_db))
            snrs_db.append(pair.exchange(FRAMES).snr_db)
        best_db, apart_db = fit_snr(losses_db, snrs_db)
        figures.check("SNR that the radios' own noise and distortion leave", best_db, "dB")
        figures.check("error of the SNR", apart_db, "dB", most=1.0)
        pair.set_snr(THRESHOLD_DB - 4.0)
        figures.check("PER 4 dB below the threshold", pair.exchange(frames(30)).per, least=0.9)


def moves_apart_db(set_db: list[float], found_db: list[float]) -> float:
    """Return by how much what was found, from the first on, does not rise and fall as what was set."""
    assert abs(set_db[-1] - set_db[0]) > 10, f"hardly anything was moved: {set_db}"
    return max(abs((found - found_db[0]) - (given - set_db[0])) for given, found in zip(set_db, found_db, strict=True))


def fit_snr(losses_db: list[float], snrs_db: list[float]) -> tuple[float, float]:
    """Return the SNR of noise that does not depend on the loss, and by how many dB the SNR differs from such a sum."""
    assert max(losses_db) - min(losses_db) > 10, f"hardly anything was moved: {losses_db}"
    noise = 10 ** (-np.array(snrs_db) / 10)
    growing = 10 ** (np.array(losses_db) / 10)
    own, of_loss = np.linalg.lstsq(np.column_stack([1 / noise, growing / noise]), np.ones(len(noise)), rcond=None)[0]
    if own <= 0:
        own, of_loss = 0.0, 1 / np.mean(growing / noise)
    best_db = float(-10 * np.log10(own)) if own else np.inf
    return best_db, float(np.abs(10 * np.log10((own + of_loss * growing) / noise)).max())


# -- automatic gain ------------------------------------------------------------------------------------------


class Listener:
    """The receiver's end as a station has it: with automatic gain."""

    def __init__(self, bench: Bench, pair: Pair) -> None:
        self._heard: deque[Received] = deque()
        plan = resolve(bench.scenario())
        stats: Any = SimpleNamespace(handle_frame=self._handle_frame)
        self._radio = OnAirRadio(
            plan.stations["down"].hop.make(10_000),
            pair.b,
            max_frame_bytes=plan.max_frame_bytes,
            late_bound_ns=0,
            automatic_gain=True,
            stats=stats,
        )

    def _handle_frame(self, received: Received, lost: Lost) -> int:
        self._heard.append(received)
        # of the pair's frames, which have no numbers, no gap is seen
        return 0

    def receive(self) -> Received | None:
        self._radio.handle_deadline(time.monotonic_ns())
        while self._radio.receive() is not None:
            pass
        return self._heard.popleft() if self._heard else None


def settle(pair: Pair, listener: Listener) -> float:
    """Send until the gain stays and all is heard; return after how many seconds it has begun to."""
    began = steady_since = time.monotonic()
    give_up_at = steady_since + SETTLED_WITHIN_S
    while True:
        before_db = pair.b.rx.gain_db
        exchange = pair.exchange(FRAMES, listener.receive)
        if exchange.per > 0 or pair.b.rx.gain_db != before_db:
            steady_since = time.monotonic()
        if time.monotonic() - steady_since > STEADY_S:
            return steady_since - began
        assert time.monotonic() < give_up_at, f"at {before_db:g} dB {100 * exchange.per:.0f} % are lost still"


def test_automatic_gain_comes_down_for_a_strong_signal(bench: Bench, figures: Figures) -> None:
    with bench.pair() as pair:
        pair.set_loss(0)
        loudest_db = pair.set_rx_gain(pair.b.rx.gain_range_db[1])
        if (lacking_db := CLIP_DBFS + CLIPPING_DB - heard_peak_dbfs(pair)) > 0:
            pair.set_loss(-lacking_db)
        assert heard_peak_dbfs(pair) > CLIP_DBFS, "the receiver does not clip at its highest gain"
        listener = Listener(bench, pair)
        figures.check("gain comes down in", settle(pair, listener), "s", most=SETTLED_WITHIN_S)
        pair.b.peak_dbfs()
        figures.check("PER then", pair.exchange(frames(60), listener.receive).per, most=0.0)
        figures.check("peak then", pair.b.peak_dbfs(), "dBFS", most=CLIP_DBFS)
        assert pair.b.rx.gain_db < loudest_db


def heard_peak_dbfs(pair: Pair) -> float:
    pair.b.peak_dbfs()
    pair.exchange(FRAMES)
    return pair.b.peak_dbfs()


def test_automatic_gain_goes_up_for_a_weak_signal(bench: Bench, figures: Figures) -> None:
    with bench.pair() as pair:
        pair.set_snr(SAFE_DB)
        lowest_db = pair.set_rx_gain(pair.b.rx.gain_range_db[0])
        listener = Listener(bench, pair)
        figures.check("gain goes up in", settle(pair, listener), "s", most=SETTLED_WITHIN_S)
        exchange = pair.exchange(frames(60), listener.receive)
        figures.check("PER then", exchange.per, most=0.1)
        assert exchange.rssi_db >= LOW_DBFS or pair.b.rx.gain_db == pair.b.rx.gain_range_db[1]
        assert pair.b.rx.gain_db > lowest_db
