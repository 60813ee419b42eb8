"""What a station's capture says of each frame, in simulated time."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from channel.errors import ERASED, INTACT, Fate, Verdict
from linklayer import plain
from linklayer.schemes.none import NONE
from linklayer.schemes.slacp import SLACP
from linklayer.slacp import wire
from linklayer.slacp.frames import Data, Sync
from testbed.live.capture import CapturedRadio, capture_path
from testbed.live.emulated_radio import EmulatedRadio
from tests.harness.scripted_hop import BOUND_NS, MS, scripted_hop
from tests.harness.tshark import column, needs_tshark, rows

pytestmark = [needs_tshark, pytest.mark.slow]

SENT = wire.emit(Data(1, 0, 0, 17, 0, bytes(76)))
RESENT = wire.emit(Data(1, 0, 1, 17, 0, bytes(72), True, 3, 0))
SYNC = wire.emit(Sync(1, 0, 2, 17))
BARE = plain.emit(plain.PlainFrame(bytes(96)))


@contextmanager
def captured(folder: Path, verdicts: Sequence[Verdict] = ()) -> Iterator[tuple[CapturedRadio, socket.socket]]:
    """ST's radio, and the socket at which the other station would be. Its MAC buffer takes 300 octets."""
    hop = scripted_hop(verdicts, buffer=300)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with closing(near), closing(far):
        radio = EmulatedRadio(hop, near, max_frame_bytes=100, late_bound_ns=BOUND_NS)
        with CapturedRadio(radio, folder, "up", SLACP) as made:
            yield made, far


def comments(folder: Path) -> list[str]:
    return column(capture_path(folder, "up"), "frame.comment")


def test_a_sent_frame_has_its_fate(tmp_path: Path) -> None:
    verdicts = [INTACT, ERASED, Verdict(Fate.DAMAGED, (3, 180, 181)), Verdict(Fate.DAMAGED, (0,))]
    with captured(tmp_path, verdicts) as (radio, _):
        for number, frame in enumerate((SENT, RESENT, SYNC, SYNC)):
            assert radio.send(frame, number * MS)
        radio.handle_deadline(100 * MS)
    assert comments(tmp_path) == [
        "up: packet 17",
        "up: retransmission of packet 17, in block 3; erased by the channel",
        "up: SYNC from 17; damaged by the channel: 3 bits",
        "up: SYNC from 17; damaged by the channel: 1 bit",
    ]
    # as sent: the damage is done on the way
    assert column(capture_path(tmp_path, "up"), "frame.comment", where="slacp.crc.status == 1") == comments(tmp_path)


def test_capture_time_is_when_the_last_bit_leaves(tmp_path: Path) -> None:
    with captured(tmp_path) as (radio, _):
        for frame in (SENT, RESENT):
            radio.send(frame, 0)
        radio.handle_deadline(50 * MS)
        radio.send(SYNC, 60 * MS)
        radio.handle_deadline(70 * MS)
    first, *later = (float(at) for at in column(capture_path(tmp_path, "up"), "frame.time_epoch"))
    # 100 octets each, then 24
    assert [at - first for at in later] == pytest.approx([0.000_1, 0.059_924], abs=1e-6)


def test_refused_frames_are_drops_of_the_next_captured_frame(tmp_path: Path) -> None:
    with captured(tmp_path) as (radio, _):
        assert [radio.send(SENT, 0) for _ in range(5)] == [True, True, True, False, False]
        radio.handle_deadline(10 * MS)
        radio.send(SYNC, 20 * MS)
        radio.handle_deadline(30 * MS)
    found = rows(capture_path(tmp_path, "up"), "frame.drop_count")
    assert [row.get("frame.drop_count") for row in found] == [["2"], None, None, None]


def test_heard_frames_are_described_and_damaged_ones_flagged(tmp_path: Path) -> None:
    damaged = bytearray(RESENT)
    damaged[40] ^= 1
    with captured(tmp_path) as (radio, far):
        radio.handle_deadline(MS)
        for frame in (SENT, bytes(damaged), b"noise"):
            far.send(frame)
            assert radio.receive() == frame
        assert radio.receive() is None
    assert comments(tmp_path) == [
        "down: packet 17",
        "down: damaged, retransmission of packet 17",
        "down: not a frame: 5 octets: too short for a frame",
    ]
    flags = ("frame.packet_flags_direction", "frame.packet_flags_crc_error")
    found = rows(capture_path(tmp_path, "up"), *flags)
    assert [[int(row[name][0], 0) for name in flags] for row in found] == [[1, 0], [1, 1], [1, 1]]


def test_a_frame_is_of_the_scheme_it_was_sent_or_heard_with(tmp_path: Path) -> None:
    with captured(tmp_path) as (radio, far):
        radio.send(SENT, 0)
        radio.send(SYNC, 0)
        # both wait in the MAC buffer still
        radio.switch(NONE)
        radio.send(BARE, 0)
        radio.handle_deadline(10 * MS)
        far.send(BARE)
        assert radio.receive() == BARE
        radio.switch(SLACP)
        far.send(BARE)
        assert radio.receive() == BARE
    fields = ("frame.interface_name", "frame.comment", "slacp.seq", "bareframe.crc.status")
    slacp, none = ["slacp"], ["none"]
    assert [[row.get(name) for name in fields] for row in rows(capture_path(tmp_path, "up"), *fields)] == [
        [slacp, ["up: packet 17"], ["17"], None],
        [slacp, ["up: SYNC from 17"], None, None],
        [none, ["up: packet of 96 bytes"], None, ["1"]],
        [none, ["down: packet of 96 bytes"], None, ["1"]],
        [slacp, ["down: not a frame: header check failed"], None, None],
    ]
