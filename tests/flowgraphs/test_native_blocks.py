"""The native blocks beside the PHY's: frames into a flowgraph and out of it, and the meter of samples."""

import os
import select
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pmt
import pytest
from gnuradio import blocks, gr

from flowgraphs.native import native
from flowgraphs.phy import Received, Samples, received_pdu
from tests.harness.bursts import frame_pdu
from tests.harness.waiting import wait_for

FIRST = Received(b"first", True, 1, 100, 50, snr_db=12.5, evm_db=-13.0, cfo_hz=-40.0, rssi_db=-20.0, mode="qpsk")
#: a PHY that knows no figures, the largest numbers
BARE = Received(b"\0\xff", False, (1 << 32) - 1, 1 << 62, 1)


class Poster(gr.basic_block):
    """Sends messages to a box, and keeps what the box sends."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "poster", in_sig=None, out_sig=None)
        self.heard: list[bytes] = []
        self.modes: list[Any] = []
        self.message_port_register_in(pmt.intern("in"))
        self.set_msg_handler(pmt.intern("in"), self._take)
        for port in ("received", "events", "departed"):
            self.message_port_register_out(pmt.intern(port))

    def post(self, port: str, message: object) -> None:
        self.message_port_pub(pmt.intern(port), message)

    def _take(self, message: object) -> None:
        about = pmt.car(message)
        self.modes.append(
            pmt.to_python(pmt.dict_ref(about, pmt.intern("mode"), pmt.PMT_NIL) if pmt.is_dict(about) else about)
        )
        self.heard.append(bytes(pmt.u8vector_elements(pmt.cdr(message))))


class Boxed:
    """A box in a running flowgraph."""

    def __init__(self) -> None:
        self.box, self.poster, self._top = native().frame_box(), Poster(), gr.top_block()
        self._top.msg_connect((self.box, "send"), (self.poster, "in"))
        for port in ("received", "events", "departed"):
            self._top.msg_connect((self.poster, port), (self.box, port))
        self._top.start()

    def close(self) -> None:
        self._top.stop()
        self._top.wait()
        self.box.close()

    def readable(self, seconds: float = 0.0) -> bool:
        return bool(select.select([self.box.eventfd], [], [], seconds)[0])

    def taken(self, count: int) -> list[Received]:
        frames: list[Received] = []
        while len(frames) < count:
            assert self.readable(10.0)
            frames += [Received(*fields) for fields in self.box.take()]
        return frames


@pytest.fixture
def boxed() -> Iterator[Boxed]:
    with closing(Boxed()) as made:
        yield made


def test_a_received_frame_keeps_every_figure(boxed: Boxed) -> None:
    for frame in (FIRST, BARE):
        boxed.poster.post("received", received_pdu(frame))
    assert boxed.taken(2) == [FIRST, BARE]


def test_frames_that_come_together_are_taken_together(boxed: Boxed) -> None:
    for _ in range(5):
        boxed.poster.post("received", received_pdu(FIRST))
    # the sixth comes behind them in the same queue
    boxed.poster.post("events", late("underflow"))
    wait_for(lambda: boxed.box.late == 1)
    assert len(boxed.box.take()) == 5


def test_the_descriptor_is_readable_until_the_box_was_seen_empty(boxed: Boxed) -> None:
    assert not boxed.readable()
    boxed.poster.post("received", received_pdu(FIRST))
    assert boxed.readable(10.0)
    assert len(boxed.box.take()) == 1
    assert boxed.readable()
    assert boxed.box.take() == []
    assert not boxed.readable()
    boxed.poster.post("received", received_pdu(FIRST))
    assert boxed.readable(10.0)


def test_posted_frames_leave_in_their_order(boxed: Boxed) -> None:
    sent = [bytes([n]) * n for n in range(1, 50)]
    for frame in sent:
        boxed.box.send(frame, "qam16 golay2412" if len(frame) % 2 else "")
    wait_for(lambda: len(boxed.poster.heard) == len(sent))
    assert boxed.poster.heard == sent
    assert boxed.poster.modes == ["qam16 golay2412" if len(frame) % 2 else None for frame in sent]


@pytest.mark.parametrize(
    "message", [pmt.PMT_NIL, pmt.intern("text"), frame_pdu(b"sent, not received"), pmt.cons(pmt.PMT_NIL, pmt.PMT_NIL)]
)
def test_messages_that_are_no_received_frames_are_left_out(boxed: Boxed, message: Any) -> None:
    boxed.poster.post("received", message)
    boxed.poster.post("received", received_pdu(FIRST))
    assert boxed.taken(1) == [FIRST]


def late(*codes: str) -> Any:
    """A message of gr-uhd's sink."""
    events = pmt.list1(pmt.intern(codes[0]))
    for code in codes[1:]:
        events = pmt.list_add(events, pmt.intern(code))
    return pmt.cons(pmt.intern("uhd_async_msg"), pmt.dict_add(pmt.make_dict(), pmt.intern("event_code"), events))


def test_events_of_lateness_are_counted(boxed: Boxed) -> None:
    for codes in (["underflow"], ["burst_ack"], ["time_error", "seq_error"], ["seq_error"]):
        boxed.poster.post("events", late(*codes))
    boxed.poster.post("events", pmt.PMT_NIL)
    boxed.poster.post("received", received_pdu(FIRST))
    boxed.taken(1)
    assert (boxed.box.late, boxed.box.acknowledged) == (3, 1)


def test_departed_frames_are_counted_and_wake_the_program(boxed: Boxed) -> None:
    for frames in (3, 2):
        boxed.poster.post("departed", pmt.from_long(frames))
    wait_for(lambda: boxed.box.departed == 5)
    assert boxed.readable(10.0)
    assert boxed.box.take() == []
    assert not boxed.readable()


def test_a_closed_box_has_no_descriptor() -> None:
    boxed = Boxed()
    descriptor = boxed.box.eventfd
    boxed.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    assert boxed.box.take() == []


def test_silence_fills_the_gaps_between_whole_bursts() -> None:
    sent = [noise(count) for count in (1, 700, 64, 5000)]
    starts = np.cumsum([0, *map(len, sent)]).tolist()
    tags = [tag(start, "packet_len", len(burst)) for start, burst in zip(starts, sent, strict=False)]
    source = blocks.vector_source_c(np.concatenate(sent).tolist(), False, 1, tags)
    filler, pace, sink, top = native().idle_filler(256), blocks.throttle(8, 1e6), blocks.vector_sink_c(), gr.top_block()
    top.connect(source, filler, pace, sink)
    top.start()
    # the source may begin late: until then there is silence, however long
    wait_for(lambda: np.count_nonzero(np.array(sink.data(), np.complex64)) == sum(map(len, sent)))
    top.stop()
    top.wait()
    heard = np.array(sink.data(), np.complex64)
    assert not sink.tags()
    # noise has no zeros
    assert np.array_equal(heard[heard != 0], np.concatenate(sent))
    inside = np.flatnonzero(heard)
    for start, burst in zip(starts, sent, strict=False):
        assert inside[start + len(burst) - 1] - inside[start] == len(burst) - 1


@pytest.mark.parametrize(("head", "tail"), [(0, 0), (50, 0), (0, 30), (9000, 40_000)])
def test_guard_puts_silence_around_bursts(head: int, tail: int) -> None:
    sent = [noise(count) for count in (1, 700, 64, 5000)]
    starts = np.cumsum([0, *map(len, sent)]).tolist()
    tags = [tag(start, "packet_len", len(burst)) for start, burst in zip(starts, sent, strict=False)]
    source = blocks.vector_source_c(np.concatenate(sent).tolist(), False, 1, tags)
    guard, sink, top = native().burst_guard(head, tail), blocks.vector_sink_c(), gr.top_block()
    top.connect(source, guard, sink)
    top.run()
    heard = np.array(sink.data(), np.complex64)
    bursts = sorted((made.offset, pmt.to_long(made.value)) for made in sink.tags())
    assert [length for _, length in bursts] == [len(burst) + head + tail for burst in sent]
    assert [at for at, _ in bursts] == [start + n * (head + tail) for n, start in enumerate(starts[:-1])]
    for (at, _), burst in zip(bursts, sent, strict=True):
        whole = np.concatenate([np.zeros(head), burst, np.zeros(tail)])
        assert np.array_equal(heard[at : at + len(whole)], whole)


def test_a_guarded_burst_begins_at_the_burst_s_time() -> None:
    sent = noise(300)
    tags = [tag(0, "packet_len", 100), tag(0, "tx_time", 7), tag(100, "packet_len", 200), tag(150, "rx_freq")]
    source = blocks.vector_source_c(sent.tolist(), False, 1, tags)
    guard, sink, top = native().burst_guard(20, 30), blocks.vector_sink_c(), gr.top_block()
    top.connect(source, guard, sink)
    top.run()
    made = {(made.offset, pmt.symbol_to_string(made.key), pmt.to_long(made.value)) for made in sink.tags()}
    assert made == {(0, "packet_len", 150), (0, "tx_time", 7), (150, "packet_len", 250)}


def test_receiver_refuses_a_reach_beyond_its_band() -> None:
    with pytest.raises(ValueError, match="reach is 17: must be 0 to 16"):
        native().ofdm_receiver(2e6, reach=17)


def test_guard_refuses_a_negative_length() -> None:
    with pytest.raises(ValueError, match="tail is -1: must be 0 or more"):
        native().burst_guard(0, -1)


@pytest.mark.parametrize("block", ["idle_filler", "sample_meter"])
def test_lots_of_nothing_are_refused(block: str) -> None:
    with pytest.raises(ValueError, match="lot is 0: must be 1 or more"):
        getattr(native(), block)(0)


def tag(offset: int, key: str, value: int = 0) -> Any:
    return gr.tag_utils.python_to_tag((offset, pmt.intern(key), pmt.from_long(value), pmt.PMT_F))


def metered(samples: Samples, tags: list[Any], lot: int = 64) -> Any:
    meter, top = native().sample_meter(lot), gr.top_block()
    top.connect(blocks.vector_source_c(samples.tolist(), False, 1, tags), meter)
    top.run()
    return meter


def noise(count: int) -> Samples:
    return np.random.default_rng(1).uniform(-0.5, 0.5, 2 * count).astype(np.float32).view(np.complex64)


@pytest.mark.parametrize("value", [-0.75, 0.9j, 0.8 - 0.2j])
@pytest.mark.parametrize("at", [0, 17, 639])
def test_the_peak_is_that_of_i_or_q_and_is_taken_once(value: complex, at: int) -> None:
    samples = noise(640)
    samples[at] = value
    meter = metered(samples, [])
    assert meter.take_peak() == pytest.approx(max(abs(value.real), abs(value.imag)))
    assert meter.take_peak() == 0


def rx_time(offset: int, seconds: int, fraction: float) -> Any:
    value = pmt.make_tuple(pmt.from_uint64(seconds), pmt.from_double(fraction))
    return gr.tag_utils.python_to_tag((offset, pmt.intern("rx_time"), value, pmt.PMT_F))


def test_the_newest_samples_are_kept_and_beginnings_with_their_times() -> None:
    samples = noise(640)
    tags = [rx_time(0, 7, 0.75), tag(100, "rx_freq"), rx_time(300, 8, 0.25), rx_time(301, 1007, 0.5)]
    meter = metered(samples, tags)
    assert np.array_equal(meter.newest, samples[-64:])
    assert meter.beginnings() == [(0, 0.0), (300, 0.5), (301, 999.75)]
    assert meter.beginnings(2) == [(301, 999.75)]
    unused = native().sample_meter()
    assert (len(unused.spectrum_db(512)), len(unused.newest), unused.take_peak(), len(unused.beginnings())) == (
        0,
        0,
        0,
        0,
    )


def test_the_spectrum_is_that_of_the_newest_samples() -> None:
    meter = metered(noise(640), [])
    assert np.array_equal(meter.spectrum_db(16), native().spectrum_db(meter.newest, 16))
    with pytest.raises(ValueError, match="64 samples are too few for 65 bins"):
        meter.spectrum_db(65)


@pytest.mark.parametrize("count", [16384, 40 * 1024])
def test_an_ofdm_receiver_measures_its_samples_itself(count: int) -> None:
    samples = noise(count)
    receiver, top = native().ofdm_receiver(2e6), gr.top_block()
    source = blocks.vector_source_c(samples.tolist(), False, 1, [tag(at, "rx_time") for at in (0, 5000, 5001)])
    top.connect(source, receiver)
    top.run()
    assert np.array_equal(receiver.newest, samples[-16384:])
    assert np.array_equal(receiver.spectrum_db(64), native().spectrum_db(samples[-16384:], 64))
    assert receiver.take_peak() == max(np.abs(samples.real).max(), np.abs(samples.imag).max())
    assert receiver.take_peak() == 0
    assert receiver.beginnings() == [(0, 0.0), (5000, 0.0), (5001, 0.0)]
