"""Listen before talk: the machine in virtual time, its carrier sense, and the block between a radio and a PHY."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pmt
import pytest
from gnuradio import blocks, gr

from flowgraphs.native import native
from flowgraphs.phy import Samples
from flowgraphs.phys.ofdm.modem import OfdmPhy
from tests.harness.waiting import wait_for

DEFER, SLOT, LEAD, TURNAROUND, WINDOW, YIELD = 100, 900, 800, 20, 4, 4
STEP = 10
RATE_SPS = 1e6


@dataclass
class Station:
    """A station that hears what its rivals have on the air, and sends bursts of `length` while it has some."""

    seed: int
    length: int
    waiting: int = 0
    #: begin and end of its bursts
    bursts: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.access: Any = native().Contention(DEFER, SLOT, LEAD, TURNAROUND, WINDOW, YIELD, self.seed)

    def hear(self, now: int, busy: bool) -> None:
        deaf = now - STEP < self.access.deaf_until and now > self.access.deaf_from
        self.access.hear(now, busy and not deaf, self.waiting > 0)
        if self.waiting and self.access.free:
            begin = self.access.send(self.length)
            self.bursts.append((begin, begin + self.length))
            self.waiting -= 1

    def on_air(self, begin: int, end: int) -> bool:
        return any(first < end and begin < last for first, last in self.bursts[-1:])

    @property
    def collisions_heard(self) -> int:
        return int(self.access.counts[4])


def drive(stations: list[Station], until: int, since: int = 0) -> None:
    for now in range(since + STEP, until + STEP, STEP):
        busy = [station.on_air(now - STEP, now) for station in stations]
        for me, station in enumerate(stations):
            station.hear(now, any(busy[:me] + busy[me + 1 :]))


def collisions(one: Station, other: Station) -> int:
    return sum(a < d and c < b for a, b in one.bursts for c, d in other.bursts)


def test_first_burst_waits_for_an_idle_carrier_a_backoff_and_the_lead() -> None:
    begins = set()
    for seed in range(40):
        station = Station(seed, 5000, waiting=1)
        drive([station], 10_000)
        [(begin, _)] = station.bursts
        begins.add(begin)
    assert begins == {DEFER + slot * SLOT + LEAD for slot in range(WINDOW)}


def test_busy_carrier_is_waited_for_and_counted_as_a_deferral() -> None:
    station = Station(1, 5000, waiting=1)
    for now in range(STEP, 50_000, STEP):
        station.hear(now, True)
    assert station.bursts == []
    drive([station], 60_000, since=50_000)
    [(begin, _)] = station.bursts
    assert begin >= 50_000 - STEP + DEFER + LEAD
    bursts, deferrals, backoff, airtime, heard = station.access.counts
    assert (bursts, deferrals, airtime, heard) == (1, 1, 5000, 0)
    assert backoff == pytest.approx(begin - LEAD - 50_000, abs=2 * STEP)


def test_every_burst_begins_at_a_slot() -> None:
    """A burst that comes during a slot waits for the next one."""
    for late in range(5_000, 9_000, 130):
        station = Station(3, 5000)
        drive([station], late)
        station.waiting = 1
        drive([station], late + 5_000, since=late)
        [(begin, _)] = station.bursts
        assert (begin - LEAD - DEFER) % SLOT == 0
        assert late < begin <= late + STEP + SLOT + LEAD


@pytest.mark.slow
def test_stations_that_have_heard_each_other_take_turns_without_collision() -> None:
    one, other = Station(1, 12_000, waiting=1), Station(2, 3_000)
    drive([one, other], 5_000)
    one.waiting = other.waiting = 10_000
    drive([one, other], 4_000_000, since=5_000)
    assert collisions(one, other) == 0
    order = [name for _, name in sorted([(b, "one") for b, _ in one.bursts] + [(b, "other") for b, _ in other.bursts])]
    assert all(a != b for a, b in itertools.pairwise(order))
    # the carrier is idle for the defer time, 1.5 slots in the mean, and the lead
    busy = sum(end - begin for station in (one, other) for begin, end in station.bursts)
    gap = (4_000_000 - busy) / len(order)
    assert gap == pytest.approx(DEFER + (WINDOW - 1) / 2 * SLOT + LEAD, rel=0.1)


def test_last_sender_leaves_the_first_slots_to_others() -> None:
    station = Station(5, 1000, waiting=50)
    drive([station], 1_000_000)
    gaps = {b - a for (_, a), (b, _) in itertools.pairwise(station.bursts)}
    assert gaps == {DEFER + slot * SLOT + LEAD for slot in range(YIELD, YIELD + WINDOW + 1)}


@pytest.mark.slow
def test_collisions_are_heard_by_the_station_whose_burst_ends_first() -> None:
    """Stations that wake together collide when they draw the same slot, and stop doing so, as the draws differ."""
    met = 0
    for seed in range(60):
        short, long = Station(seed, 3_000, waiting=3), Station(1000 + seed, 9_000, waiting=3)
        drive([short, long], 100_000)
        found = collisions(short, long)
        met += found
        assert len(short.bursts) == len(long.bursts) == 3
        assert short.collisions_heard == found
        assert long.collisions_heard == 0
    # 1 in WINDOW of the first ones, and of those the next ones again
    assert 8 <= met <= 35


def test_foreign_signal_within_the_lead_is_a_collision() -> None:
    station = Station(1, 5000, waiting=1)
    now = 0
    while not station.bursts:
        now += STEP
        station.hear(now, False)
    station.hear(now + STEP, True)
    assert station.collisions_heard == 1
    station.hear(now + 2 * STEP, True)
    assert station.collisions_heard == 1


def test_nothing_is_sent_on_what_was_heard_before_a_gap() -> None:
    station = Station(1, 5000)
    drive([station], 20_000)
    station.access.miss(30_000)
    station.waiting = 1
    assert not station.access.free
    drive([station], 40_000, since=30_000)
    assert station.bursts[0][0] >= 30_000 + DEFER + LEAD


# -- carrier sense -------------------------------------------------------------------------------------------


def noise(count: int, db: float, seed: int = 1) -> Samples:
    rng = np.random.default_rng(seed)
    pair = rng.normal(size=(2, count)) * np.sqrt(10 ** (db / 10) / 2)
    return np.asarray(pair[0] + 1j * pair[1], np.complex64)


def test_carrier_sense_tells_signals_from_noise_by_the_threshold() -> None:
    sense = native().CarrierSense(32, 6.0, 40_000)
    # not known at first
    assert all(sense.busy(noise(3_200, -60.0)))
    assert not any(sense.busy(noise(200_000, -60.0, 2))[200:])
    assert 10 * np.log10(sense.noise) == pytest.approx(-60.0, abs=1.5)
    assert all(sense.busy(noise(3_200, -50.0, 3)))
    assert not any(sense.busy(noise(32_000, -60.0, 4)))
    assert sense.busy(np.full(32, np.nan, np.complex64)) == [True]


def test_carrier_sense_learns_a_louder_noise_when_the_memory_is_over() -> None:
    sense = native().CarrierSense(32, 6.0, 40_000)
    sense.busy(noise(50_000, -60.0))
    louder = sense.busy(noise(100_000, -45.0, 2))
    assert all(louder[:500])
    assert not any(louder[-500:])


# -- the block -----------------------------------------------------------------------------------------------


class Bench:
    """The block with a script of received samples; bursts of these lengths wait from the start."""

    def __init__(self, heard: Samples, bursts: list[int], **options: Any) -> None:
        self._top = gr.top_block()
        self.access = native().channel_access(RATE_SPS, **options)
        lengths, at = [], 0
        for length in bursts:
            tag = gr.tag_t()
            tag.offset, tag.key, tag.value = at, pmt.intern("packet_len"), pmt.from_long(length)
            lengths.append(tag)
            at += length
        samples = np.concatenate([np.full(n, i + 1, np.complex64) for i, n in enumerate(bursts)] or [heard[:0]])
        sending = blocks.vector_source_c(samples.tolist(), False, 1, lengths)
        began = gr.tag_t()
        began.offset, began.key = 0, pmt.intern("rx_time")
        began.value = pmt.make_tuple(pmt.from_uint64(7), pmt.from_double(0.25))
        receiving = blocks.vector_source_c(heard.tolist(), False, 1, [began])
        # real time, so that samples come as from a device
        pace = blocks.throttle(gr.sizeof_gr_complex, RATE_SPS)
        self._sent, self._passed, self._box = blocks.vector_sink_c(), blocks.vector_sink_c(), native().frame_box()
        self._top.connect(sending, (self.access, 0))
        self._top.connect(receiving, pace, (self.access, 1))
        self._top.connect((self.access, 0), self._sent)
        self._top.connect((self.access, 1), self._passed)
        self._top.msg_connect((self.access, "departed"), (self._box, "departed"))
        self._top.run()
        self.sent = np.asarray(self._sent.data(), np.complex64)
        self.passed = np.asarray(self._passed.data(), np.complex64)
        #: offset and value of the tags of what was sent
        self.lengths = [(t.offset, pmt.to_long(t.value)) for t in self._tags(self._sent, "packet_len")]
        self.times_s = [
            pmt.to_uint64(pmt.tuple_ref(t.value, 0)) + pmt.to_double(pmt.tuple_ref(t.value, 1))
            for t in self._tags(self._sent, "tx_time")
        ]
        self.departed = self._box.departed
        self._box.close()

    def _tags(self, sink: Any, key: str) -> list[Any]:
        return [tag for tag in sink.tags() if pmt.symbol_to_string(tag.key) == key]


#: samples may come late by half the lead
PATIENT = {
    "defer_us": 1000.0,
    "slot_us": 50_000.0,
    "lead_us": 49_000.0,
    "window": 1,
    "yield_slots": 1,
    "occupancy_us": 3000.0,
}


def test_block_joins_the_bursts_of_an_access_and_silences_the_receiver_meanwhile() -> None:
    heard = noise(1_000_000, -60.0)
    bench = Bench(heard, [1000, 1500, 700, 900], **PATIENT)
    # the first three do not fit into the occupancy
    assert bench.lengths == [(0, 2500), (2500, 1600)]
    assert bench.departed == 4
    assert np.array_equal(bench.sent, np.repeat([1, 2, 3, 4], [1000, 1500, 700, 900]).astype(np.complex64))
    spans = bench.access.take_spans()
    assert [begin for begin, _ in spans] == pytest.approx(bench.times_s, abs=1e-9)
    bursts, deferrals, _, airtime_s, heard_collisions = bench.access.counts
    assert (bursts, deferrals, heard_collisions) == (2, 0, 0)
    assert airtime_s == pytest.approx(4100 / RATE_SPS)
    silent = np.flatnonzero(bench.passed == 0)
    expected = [
        round((begin - 7.25) * RATE_SPS) + np.arange(length + 20)
        for begin, length in zip(bench.times_s, (2500, 1600), strict=True)
    ]
    assert np.array_equal(silent, np.concatenate(expected))
    others = np.setdiff1d(np.arange(len(heard)), silent)
    assert np.array_equal(bench.passed[others], heard[others])


def test_block_waits_while_others_are_on_the_carrier() -> None:
    heard = noise(900_000, -60.0)
    heard[100_000:250_000] += noise(150_000, -30.0, 2)
    bench = Bench(heard[90_000:], [1000], **PATIENT)
    assert [begin >= 7.25 + 0.16 + 0.05 for begin in bench.times_s] == [True]
    assert bench.access.counts[1] == 1


def test_ofdm_receiver_tells_until_when_a_frame_takes_the_carrier() -> None:
    phy = OfdmPhy(rate_sps=RATE_SPS)
    burst = phy.modulator().modulate(bytes(700))
    heard = np.concatenate([noise(5000, -60.0), burst, noise(5000, -60.0, 2)])
    top, receiver, told = gr.top_block(), phy.receiver(), blocks.message_debug()
    top.connect(blocks.vector_source_c(heard.tolist()), receiver)
    top.msg_connect((receiver, "busy"), (told, "store"))
    top.run()
    wait_for(lambda: told.num_messages() > 0)
    until = pmt.to_uint64(told.get_message(told.num_messages() - 1))
    assert until == pytest.approx(5000 + len(burst), abs=2 * (phy.subcarriers + phy.cyclic_prefix))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"slot_us": 100.0, "lead_us": 100.0}, "slot_us is 100.000000: must be more than lead_us"),
        ({"window": 0}, "window is 0: must be 1 or more"),
        ({"defer_us": -1.0}, "defer_us is -1.000000: must be 0 or more"),
    ],
)
def test_block_refuses_impossible_options(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        native().channel_access(RATE_SPS, **options)
