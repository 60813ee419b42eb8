"""The choice of each frame's mode on a radio, between two invented transceivers with the modes of PHY `ofdm`."""

from collections import deque
from random import Random
from typing import Any

import pytest

from flowgraphs.phy import Phy, Received
from flowgraphs.phys import make_phy
from linklayer.adaptive.mode_report import REPORT_BYTES
from linklayer.adaptive.modes import Mode
from testbed.errors import FadelabError
from testbed.live.media.on_air import check_phy
from testbed.live.mode_control import ModeControl
from testbed.live.usrp_radio import OnAirRadio, frame_bytes_of
from testbed.paths import root
from testbed.scenario.file import load
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import Plan
from tests.harness.scripted_hop import BOUND_NS, DELAY_NS, MS, frames_of, scripted_hop

RATE_SPS = 1e6
PHY = make_phy("ofdm", rate_sps=RATE_SPS)
CURVES = {mode.phy.mode(): Mode(mode.phy.mode(), mode.snr_db, mode.width_db) for mode in PHY.modes()}


def test_each_mode_is_faster_than_all_that_bear_more_noise() -> None:
    modes = PHY.modes()
    assert [mode.snr_db for mode in modes] == sorted(mode.snr_db for mode in modes)
    samples = [mode.phy.frame_samples(1500) for mode in modes]
    assert samples == sorted(set(samples), reverse=True)


class Transceiver:
    """Puts frames on an air with an SNR; `far` takes those that arrive."""

    def __init__(self, snr_db: float, seed: int) -> None:
        self.phy, self.snr_db = PHY, snr_db
        self.air: deque[tuple[Received, str]] = deque()
        self._rng = Random(seed)
        self._count = 0

    def airtime_ns(self, nbytes: int, phy: Phy) -> int:
        return round(phy.frame_samples(nbytes) * 1e9 / RATE_SPS)

    def send(self, frame: bytes, mode: str) -> None:
        if self._rng.random() >= CURVES[mode].loss(self.snr_db):
            received = Received(frame, True, self._count, 0, 0, snr_db=self.snr_db, mode=mode)
            self.air.append((received, mode))
        self._count += 1


def cost(loss: float) -> float:
    return 1 / (1 - loss)


def sent_at(snr_db: float, frames: int = 300) -> tuple[list[str], list[bytes]]:
    """Send both ways in turn; return the modes of the frames that came one way, and these."""
    radios: list[Any] = [Transceiver(snr_db, 1), Transceiver(snr_db, 2)]
    controls = [ModeControl(radio, cost, 0) for radio in radios]
    modes, came = [], []
    for at in range(frames):
        now = at * 10 * MS
        for own in range(2):
            controls[own].send(b"%04d" % at + bytes(1500), now)
        for own in range(2):
            while radios[own].air:
                received, mode = radios[own].air.popleft()
                frame = controls[1 - own].take(received, now)
                if own == 0:
                    modes.append(mode)
                    came.append(frame)
    return modes, came


@pytest.mark.parametrize(
    ("snr_db", "mode"), [(7.5, "qpsk golay2412"), (14.0, "qpsk"), (20.5, "qam16"), (30.0, "qam64")]
)
def test_two_stations_find_the_mode_of_their_snr(snr_db: float, mode: str) -> None:
    modes, came = sent_at(snr_db)
    # the first goes in the sturdiest, for nobody knows better
    assert modes[0] == "bpsk golay2412"
    assert modes[100:].count(mode) > 0.9 * len(modes[100:])
    assert all(len(frame) == 1504 for frame in came)
    assert came == sorted(came)


def test_damaged_frames_tell_nothing_and_lose_their_report() -> None:
    radio: Any = Transceiver(30.0, 1)
    control = ModeControl(radio, cost, 0)
    control.send(b"frame", 0)
    damaged = Received(b"frame" + bytes([255] * REPORT_BYTES), False, 0, 0, 0, snr_db=30.0)
    assert control.take(damaged, MS) == b"frame"
    assert control.take(Received(b"abc", True, 1, 0, 0), MS) == b""
    control.send(b"frame", 2 * MS)
    assert [mode for _, mode in radio.air] == ["bpsk golay2412"] * 2


def test_a_radio_sends_with_reports_and_takes_them_off() -> None:
    transceiver: Any = Transceiver(30.0, 1)
    control = ModeControl(transceiver, cost, 0)
    transceiver.rx, transceiver.acknowledged = _Receiver(), lambda: 0
    onair = OnAirRadio(
        scripted_hop((), buffer=100_000, delay_ns=DELAY_NS),
        transceiver,
        max_frame_bytes=1500,
        late_bound_ns=BOUND_NS,
        modes=control,
    )
    transceiver.check, transceiver.counters = lambda: None, lambda: _Counters()
    [frame] = frames_of([1000])
    assert onair.send(frame, 1000 * MS)
    onair.handle_deadline(2000 * MS)
    [(received, _)] = transceiver.air
    assert received.payload == frame + bytes(REPORT_BYTES)
    transceiver.receive = lambda: received
    assert onair.receive() == frame


class _Receiver:
    gain_db, gain_range_db = 30.0, (0.0, 60.0)


class _Counters:
    overflows = underflows = lost_ns = 0


def plan(*settings: str) -> Plan:
    return resolve(load(root() / "scenarios" / "modes.yaml", settings))


def test_the_ceiling_is_that_of_the_fastest_mode() -> None:
    check_phy(plan())
    assert frame_bytes_of(plan()) == frame_bytes_of(plan("radio.modes=off")) + REPORT_BYTES
    with pytest.raises(FadelabError, match=r"ofdm qam64 at 1 Msps carries 2\.75 Mbit/s .* less than channel.rate_bps"):
        check_phy(plan("channel.rate_bps=2800000"))


def test_a_phy_without_modes_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # also where gr-ieee802-11 is missing
    monkeypatch.setattr("flowgraphs.phys.wifi.modem._ieee802_11", lambda: None)
    with pytest.raises(FadelabError, match=r"^radio.modes: PHY wifi has no modes .*: set radio.modes to off$"):
        check_phy(plan("radio.phy=wifi", "mtu=1400"))
