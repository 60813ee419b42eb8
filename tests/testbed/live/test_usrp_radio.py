"""The radio of the tiers with radios, in simulated time and on an invented transceiver."""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowgraphs.gain import FRAMES, HIGH_DBFS, HOLD_NS, SEARCH_NS, STEP_DB, TARGET_DBFS, WINDOW_NS
from flowgraphs.gaps import Lost
from flowgraphs.phy import Received
from flowgraphs.transceiver import DeviceCounters
from linklayer.station_counts import Lateness
from testbed.errors import FadelabError
from testbed.live.media.on_air import check_phy
from testbed.live.receiver_stats import ReceiverStats
from testbed.live.usrp_radio import LEAD_NS, OnAirRadio, check_capacity, radio_delay_ns
from testbed.paths import root
from testbed.scenario.file import load
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import Plan
from testbed.scenario.schema import Scenario
from tests.harness.scenarios import scenario
from tests.harness.scripted_hop import BOUND_NS, DELAY_NS, MS, frames_of, scripted_hop

#: the radio is slower than the hop: a full frame takes 3 ms
AIRTIME_NS_PER_BYTE = 2000
START = 1_000 * MS


class Burst(NamedTuple):
    frame: bytes
    #: frames that were in the radio when it came
    ahead: int
    starts_at: int
    ends_at: int
    came_at: int


@dataclass
class Receiver:
    gain_db: float = 30.0
    gain_range_db: tuple[float, float] = (0.0, 60.0)
    asked_db: list[float] = field(default_factory=list)

    def set_gain(self, gain_db: float) -> None:
        self.gain_db = gain_db
        self.asked_db.append(gain_db)


@dataclass
class Transceiver:
    """Puts one frame after the other on the air, `gap_ns` apart, each LEAD_NS after it came at the earliest."""

    now: int = START
    bursts: list[Burst] = field(default_factory=list)
    heard: deque[Received] = field(default_factory=deque)
    rx: Receiver = field(default_factory=Receiver)
    lost: DeviceCounters = field(default_factory=DeviceCounters)
    peak: float = -30.0
    checks: int = 0
    gap_ns: int = 0
    #: acknowledgements come so late; None: never
    ack_ns: int | None = None

    def acknowledged(self) -> int:
        late_ns = self.ack_ns
        return 0 if late_ns is None else sum(burst.ends_at + late_ns <= self.now for burst in self.bursts)

    def send(self, frame: bytes) -> None:
        ahead = sum(burst.ends_at > self.now for burst in self.bursts)
        starts_at = max([self.now + LEAD_NS, *(burst.ends_at + self.gap_ns for burst in self.bursts[-1:])])
        self.bursts.append(Burst(frame, ahead, starts_at, starts_at + self.airtime_ns(len(frame)), self.now))

    def receive(self) -> Received | None:
        return self.heard.popleft() if self.heard else None

    def fileno(self) -> int:
        return 7

    def airtime_ns(self, nbytes: int) -> int:
        return nbytes * AIRTIME_NS_PER_BYTE

    def peak_dbfs(self) -> float:
        return self.peak

    def counters(self) -> DeviceCounters:
        return self.lost

    def lost_before(self, received: Received) -> Lost:
        return Lost()

    def check(self) -> None:
        self.checks += 1

    @property
    def frames(self) -> list[bytes]:
        return [burst.frame for burst in self.bursts]


def radio(*, buffer: int = 100_000, delay_ns: int = DELAY_NS, **options: Any) -> tuple[OnAirRadio, Transceiver]:
    hop = scripted_hop((), buffer=buffer, delay_ns=delay_ns)
    transceiver: Any = Transceiver()
    return OnAirRadio(hop, transceiver, max_frame_bytes=1500, late_bound_ns=BOUND_NS, **options), transceiver


def drive(onair: OnAirRadio, transceiver: Transceiver, until: int, late_ns: Sequence[int] = (0,)) -> None:
    """Go from deadline to deadline, each handled so late."""
    for late in itertools.cycle(late_ns):
        at = onair.next_deadline()
        assert at is not None
        if at > until:
            transceiver.now = max(transceiver.now, until)
            return
        transceiver.now = max(transceiver.now, at) + late
        onair.handle_deadline(transceiver.now)


def a_frame(sequence: int = 0, *, crc_ok: bool = True, rssi_db: float | None = -20.0) -> Received:
    return Received(b"frame %d" % sequence, crc_ok, sequence, 1000 * sequence, 900, rssi_db=rssi_db)


def test_an_idle_radio_sends_a_frame_when_it_is_due() -> None:
    onair, transceiver = radio()
    [frame] = frames_of([1000])
    assert onair.send(frame, START)
    due_at = START + MS + DELAY_NS
    drive(onair, transceiver, due_at - 1)
    assert transceiver.bursts == []
    drive(onair, transceiver, due_at)
    assert transceiver.bursts == [Burst(frame, 0, due_at + LEAD_NS, due_at + LEAD_NS + 2 * MS, due_at)]


def test_busy_radio_sends_back_to_back_with_two_frames_at_most() -> None:
    assert ahead_of_frames([1500] * 8) == [0] + 7 * [1]


def test_short_frames_are_back_to_back_though_a_radio_is_slow_to_begin() -> None:
    assert max(ahead_of_frames([100] * 60, late_ns=[MS])) > 5


def ahead_of_frames(sizes: list[int], late_ns: Sequence[int] = (0,)) -> list[int]:
    """What was in the radio before each of these frames, which go out in order and back to back."""
    onair, transceiver = radio()
    frames = frames_of(sizes)
    for frame in frames:
        assert onair.send(frame, START)
    drive(onair, transceiver, START + 100 * MS, late_ns)
    assert transceiver.frames == frames
    assert all(second.starts_at == first.ends_at for first, second in itertools.pairwise(transceiver.bursts))
    return [burst.ahead for burst in transceiver.bursts]


@given(
    st.lists(st.tuples(st.integers(1, 1500), st.integers(0, 4 * MS)), max_size=30),
    st.lists(st.integers(0, 3 * MS), min_size=1, max_size=5),
)
def test_driven_at_its_deadlines_everything_is_sent_in_order(
    offered: list[tuple[int, int]], late_ns: list[int]
) -> None:
    onair, transceiver = radio()
    frames = frames_of([nbytes for nbytes, _ in offered])
    for frame, (_, pause_ns) in zip(frames, offered, strict=True):
        drive(onair, transceiver, transceiver.now + pause_ns, late_ns)
        assert onair.send(frame, transceiver.now)
    drive(onair, transceiver, transceiver.now + 1000 * MS, late_ns)
    assert transceiver.frames == frames
    assert all(burst.ahead <= 1 or burst.starts_at <= burst.came_at + 3 * LEAD_NS for burst in transceiver.bursts)
    assert onair.has_room()


@pytest.mark.parametrize("ack_ns", [0, 5 * MS])
def test_backlog_of_a_slow_device_is_bounded_by_its_acknowledgements(ack_ns: int) -> None:
    """The device pauses for a tenth of a frame, which its airtime does not tell."""
    onair, transceiver = radio()
    transceiver.gap_ns, transceiver.ack_ns = 300_000, ack_ns
    frames = frames_of([1500] * 300)
    for frame in frames:
        while not onair.send(frame, transceiver.now):
            drive(onair, transceiver, transceiver.now + MS)
    drive(onair, transceiver, transceiver.now + 1000 * MS)
    assert transceiver.frames == frames
    assert max(burst.starts_at - burst.came_at for burst in transceiver.bursts) <= 30 * MS
    # and it is never without a frame
    pairs = itertools.pairwise(transceiver.bursts)
    assert all(second.starts_at - first.ends_at == transceiver.gap_ns for first, second in pairs)


def test_lost_acknowledgements_stop_a_radio_for_a_tenth_of_a_second_only() -> None:
    onair, transceiver = radio(buffer=1_000_000)
    transceiver.ack_ns = 0
    first, *rest = frames_of([1500] * 20)
    onair.send(first, START)
    drive(onair, transceiver, START + 20 * MS)
    transceiver.ack_ns = 10**12
    transceiver.acknowledged = lambda: 1  # type: ignore[method-assign]
    for frame in rest:
        onair.send(frame, transceiver.now)
    drive(onair, transceiver, transceiver.now + 1000 * MS)
    assert transceiver.frames == [first, *rest]


def test_there_is_no_room_while_a_frame_waits_for_the_radio() -> None:
    onair, transceiver = radio(delay_ns=0)
    assert onair.has_room()
    for frame in frames_of([1500] * 3):
        onair.send(frame, START)
    # the hop passes one on every 1.5 ms, the radio begins after 2 ms and takes 3 ms for each
    drive(onair, transceiver, START + 3 * MS)
    assert len(transceiver.bursts) == 2
    assert onair.has_room()
    drive(onair, transceiver, START + 4_500_000)
    assert not onair.has_room()
    first_leaves_at = START + 1_500_000 + LEAD_NS + 3 * MS
    assert onair.next_deadline() == first_leaves_at
    drive(onair, transceiver, first_leaves_at)
    assert len(transceiver.bursts) == 3
    assert onair.has_room()


def test_there_is_no_room_in_a_full_mac_buffer() -> None:
    onair, _ = radio(buffer=4000)
    onair.send(bytes(2501), START)
    assert not onair.has_room()


def test_what_the_device_missed_counts_once() -> None:
    onair, transceiver = radio()
    transceiver.lost = DeviceCounters(overflows=1, underflows=2)
    drive(onair, transceiver, START)
    assert (onair.lateness.events, onair.lateness.late_events) == (3, 3)
    assert onair.lateness.max_ns > BOUND_NS
    drive(onair, transceiver, START + 500 * MS)
    assert onair.lateness.late_events == 3
    transceiver.lost = DeviceCounters(overflows=2, underflows=2)
    drive(onair, transceiver, START + 600 * MS)
    assert onair.lateness.late_events == 4
    # a run begins: what was missed before is nobody's
    onair.lateness = Lateness()
    drive(onair, transceiver, START + 700 * MS)
    assert onair.lateness == Lateness()


def test_lost_samples_count_as_late_time() -> None:
    onair, transceiver = radio()
    transceiver.lost = DeviceCounters(overflows=1, lost_ns=40 * MS)
    drive(onair, transceiver, START)
    assert onair.lateness == Lateness(1, 1, max_ns=40 * MS, lost_ns=40 * MS)
    transceiver.lost = DeviceCounters(overflows=2, lost_ns=41 * MS)
    drive(onair, transceiver, START + 100 * MS)
    assert onair.lateness == Lateness(2, 2, max_ns=40 * MS, lost_ns=41 * MS)
    onair.lateness = Lateness()
    drive(onair, transceiver, START + 200 * MS)
    assert onair.lateness.lost_ns == 0


def test_the_level_is_looked_at_all_the_time() -> None:
    onair, transceiver = radio(automatic_gain=True)
    transceiver.peak = 0.0
    # after a change, one peak is passed over
    drive(onair, transceiver, START + 500 * MS)
    assert transceiver.rx.asked_db == [30.0 - STEP_DB, 30.0 - 2 * STEP_DB, 0.0]
    transceiver.peak = -100.0
    drive(onair, transceiver, START + 500 * MS + HOLD_NS + SEARCH_NS)
    assert transceiver.rx.asked_db[3:5] == [60.0, 50.0]


def test_weak_frames_raise_the_gain_and_a_loud_one_lowers_it() -> None:
    onair, transceiver = radio(automatic_gain=True)
    for number in range(FRAMES):
        drive(onair, transceiver, START + number * WINDOW_NS // (FRAMES - 1))
        transceiver.heard.extend([a_frame(0, rssi_db=None), a_frame(1, rssi_db=-40.0)])
        assert onair.receive() is not None
        assert onair.receive() is not None
    assert transceiver.rx.asked_db == [30.0 + TARGET_DBFS + 40.0]
    drive(onair, transceiver, START + 2 * WINDOW_NS)
    transceiver.heard.append(a_frame(2, rssi_db=HIGH_DBFS + 1))
    onair.receive()
    assert transceiver.rx.gain_db == pytest.approx(30.0 + 40.0 + 2 * TARGET_DBFS - HIGH_DBFS - 1)


def test_gain_control_is_told_which_frames_are_lost() -> None:
    given: list[dict[str, Any]] = []
    onair, transceiver = radio(automatic_gain=True, stats=ReceiverStats("up", 1e6, None))
    control: Any = SimpleNamespace(handle_frame=lambda *_, **lost: given.append(lost))
    onair._gain = control
    transceiver.heard.extend([a_frame(0), a_frame(1, crc_ok=False), a_frame(5)])
    while onair.receive() is not None:
        pass
    assert [(lost["missed"], lost["damaged"]) for lost in given] == [(0, False), (0, True), (3, False)]


def test_a_fixed_gain_stays() -> None:
    onair, transceiver = radio()
    transceiver.peak = 0.0
    transceiver.heard.append(a_frame(rssi_db=-80.0))
    drive(onair, transceiver, START + 2 * SEARCH_NS)
    assert onair.receive() is not None
    assert transceiver.rx.asked_db == []


def test_frames_are_handed_up_damaged_or_not() -> None:
    seen: list[Received] = []
    onair, transceiver = radio(stats=SimpleNamespace(handle_frame=lambda received, _: seen.append(received)))
    frames = [a_frame(0), a_frame(1, crc_ok=False), a_frame(5)]
    assert onair.receive() is None
    transceiver.heard.extend(frames)
    assert [onair.receive() for _ in range(4)] == [b"frame 0", b"frame 1", b"frame 5", None]
    assert seen == frames
    assert onair.fileno() == transceiver.fileno()


def test_radio_delay_is_lead_and_airtime() -> None:
    transceiver: Any = Transceiver()
    assert radio_delay_ns(transceiver, 1500) == LEAD_NS + 3 * MS


class Phy:
    """Frames of so many samples a byte."""

    def __init__(self, samples_per_byte: int, max_frame_bytes: int = 4000, denser: Iterable[int] = ()) -> None:
        self._samples_per_byte = samples_per_byte
        self.max_frame_bytes = max_frame_bytes
        self._denser = denser

    def frame_samples(self, nbytes: int) -> int:
        return nbytes * self._samples_per_byte

    def denser(self) -> "Iterator[tuple[str, str, Phy]]":
        for samples_per_byte in self._denser:
            yield "mode", f"of-{samples_per_byte}", Phy(samples_per_byte, self.max_frame_bytes)

    def describe(self) -> str:
        return "morse"


def planned(**changes: Any) -> Plan:
    return resolve(scenario(**changes))


def test_a_phy_that_is_just_fast_enough_is() -> None:
    phy: Any = Phy(10)
    # 10 samples at 2.5 Msps are 4 us, as 8 bits at 2 Mbit/s
    check_capacity(planned(radio={"rate_sps": 2.5e6}), phy)
    with pytest.raises(FadelabError, match=r"^radio: morse at 2.5 Msps carries 2.00 Mbit/s in frames of 1534 b"):
        check_capacity(planned(channel={"rate_bps": 2_000_100}, radio={"rate_sps": 2.5e6}), phy)


def test_silence_around_bursts_counts_as_airtime() -> None:
    phy: Any = Phy(10)
    # at 1.96 Mbit/s a frame of 1534 bytes has 125 us more than its 6.136 ms, at 2.5 Msps 313 samples
    plan = planned(channel={"rate_bps": 1_960_000}, radio={"rate_sps": 2.5e6})
    check_capacity(plan, phy, 313)
    with pytest.raises(FadelabError, match=r"carries 1\.95 Mbit/s in frames of 1534 bytes") as caught:
        check_capacity(plan, phy, 360)
    advised_bps = int(str(caught.value).split("channel.rate_bps to ")[1])
    check_capacity(planned(channel={"rate_bps": advised_bps}, radio={"rate_sps": 2.5e6}), phy, 360)


@given(st.integers(2_000_000, 50_000_000), st.floats(0.1, 0.99))
def test_the_rate_it_advises_is_enough(rate_bps: int, share: float) -> None:
    def offered(sps: float) -> Any:
        return scenario(channel={"rate_bps": rate_bps}, radio={"rate_sps": sps, "up_hz": 5e9, "down_hz": 1e9})

    phy: Any = Phy(7)
    needed_sps = rate_bps * 7 / 8
    with pytest.raises(FadelabError) as caught:
        check_capacity(resolve(offered(share * needed_sps)), phy)
    advised_sps = int(str(caught.value).split("rate_sps to ")[1].split(" or ")[0])
    # a radio has it, and the next lower round one is too low
    assert 200_000_000 % advised_sps == 0
    assert needed_sps * 0.999 < advised_sps < 2 * needed_sps
    check_capacity(resolve(offered(advised_sps)), phy)
    advised_bps = int(str(caught.value).split("rate_bps to ")[1].split(" ")[0])
    assert share * rate_bps * 0.98 < advised_bps < share * rate_bps * 1.001
    check_capacity(planned(channel={"rate_bps": advised_bps}, radio=offered(share * needed_sps).radio), phy)


def test_a_device_that_is_named_is_not_told_a_virtual_ones_rates() -> None:
    devices = ["type=b200,serial=1", "type=b200,serial=2"]
    phy: Any = Phy(10)
    plan = planned(tier="usrp", channel={"rate_bps": 3_000_000}, radio={"rate_sps": 2.5e6, "devices": devices})
    with pytest.raises(FadelabError, match=r"set radio\.rate_sps to a rate of the device from 3750001 on or channel"):
        check_capacity(plan, phy)


def test_only_what_helps_is_advised() -> None:
    def refusal(phy: Any, **radio: float) -> str:
        channel = {"down": {"rate_bps": 50_000}}
        with pytest.raises(FadelabError) as caught:
            check_capacity(planned(channel=channel, radio={"rate_sps": 2.5e6, **radio}), phy)
        return str(caught.value).split(": set ")[1]

    # no mode is dense enough, and the carriers are too close for a higher rate
    assert refusal(Phy(20, denser=(12,)), up_hz=2.414e9) == "channel.up.rate_bps to 1000000"
    rates = "radio.rate_sps to 5000000 or channel.up.rate_bps to 1000000"
    assert refusal(Phy(20, denser=(12,))) == rates
    # the first mode that is dense enough
    assert refusal(Phy(20, denser=(12, 9, 5))) == f"radio.mode to of-9, {rates}"
    # both directions, each at its own rate
    both = planned(channel={"down": {"rate_bps": 1_500_000}}, radio={"rate_sps": 2.5e6})
    phy: Any = Phy(21)
    with pytest.raises(FadelabError, match=r" channel\.up\.rate_bps to 952000 and channel\.down\.rate_bps to 952000$"):
        check_capacity(both, phy)
    # beyond the highest rate
    assert refusal(Phy(220), up_hz=5e9) == "channel.up.rate_bps to 90900"


@pytest.fixture
def wifi_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """PHY `wifi` says how long frames are, also where gr-ieee802-11 is missing."""
    monkeypatch.setattr("flowgraphs.phys.wifi.modem._ieee802_11", lambda: None)


@pytest.mark.usefixtures("wifi_anywhere")
def test_the_wifi_scenario_fits_its_phy() -> None:
    shipped = load(root() / "scenarios" / "wifi-link.yaml")
    assert shipped.radio.phy == "wifi"
    check_phy(resolve(shipped))


@pytest.mark.usefixtures("wifi_anywhere")
def test_wifi_in_another_scenario_is_refused_once() -> None:
    def offered(*settings: str) -> Scenario:
        return load(root() / "scenarios" / "fading-link.yaml", ("radio.phy=wifi", *settings))

    with pytest.raises(FadelabError) as caught:
        check_phy(resolve(offered()))
    assert str(caught.value) == (
        "radio: wifi qpsk-1/2 carries frames of 1493 bytes, not 1534, and at 2.5 Msps carries 1.43 Mbit/s in frames "
        "of 1493 bytes, less than channel.rate_bps 2000000 (up) and 2000000 (down): set mtu to 1459, and "
        "radio.encoding to qpsk-3/4, radio.rate_sps to 4000000 or channel.rate_bps to 1430000"
    )
    for remedy in ("radio.encoding=qpsk-3/4", "radio.rate_sps=4000000", "channel.rate_bps=1430000"):
        check_phy(resolve(offered("mtu=1459", remedy)))
        with pytest.raises(FadelabError, match=r"not 1494: set mtu to 1459$"):
            check_phy(resolve(offered("mtu=1460", remedy)))


def test_the_radio_is_asked_every_fifty_milliseconds_whether_it_is_there() -> None:
    onair, transceiver = radio()
    drive(onair, transceiver, START + 1000 * MS)
    assert transceiver.checks == 21
