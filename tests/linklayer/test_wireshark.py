"""The dissector in tshark, frame by frame: every field, every kind of damage, and whatever octets may come.

One rule holds for all of them: what Wireshark's info column says before IP has a word is what `describe` says.
"""

import re
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import cast

import pytest

from common.sequence import MASK
from linklayer import plain
from linklayer.adaptive import frames as adaptive
from linklayer.arq import frames as arq
from linklayer.schemes import LINKTYPE_USER0, LINKTYPE_USER1, LINKTYPE_USER5, LINKTYPE_USER6, SCHEMES
from linklayer.slacp import wire
from linklayer.slacp.describe import describe
from linklayer.slacp.frames import Ack, Data, Fec, Frame, Hello, Sync
from tcpip.segment import ACK, Flow, Segment
from tcpip.wire import emit
from tests.harness.octets import changed
from tests.harness.slacp_pair import documented_frames, sealed
from tests.harness.tshark import DISSECTOR, Row, capture, needs_tshark, rows, tshark

pytestmark = [needs_tshark, pytest.mark.slow]

TAG = 0x5EED0001


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "air.pcapng"


def infos(path: Path) -> list[str]:
    return [row["_ws.col.Info"][0] for row in rows(path, "_ws.col.Info")]


def own_words(info: str) -> str:
    """What the dissector itself says."""
    return info.split(" | ")[0]


def expected(frame: Frame) -> Row:
    """The fields of a frame, by its object."""
    flags = ("retransmission", "repeat", "established")
    names = {field.name for field in fields(frame)} - {"payload", "shard", "received"}
    shown = {f"flags.{name}" if name in flags else name: getattr(frame, name) for name in names}
    if isinstance(frame, Data):
        shown |= {"base": (frame.seq - frame.back) % 2**32, "flags.block": frame.block is not None}
        if frame.block is None:
            del shown["block"], shown["index"]
    elif isinstance(frame, Fec):
        shown["redundancy"] = frame.index - frame.actual + 1
    kinds = {Data: 1, Fec: 2, Sync: 3, Ack: 4, Hello: 5}
    shown |= {"version": 1, "type": kinds[type(frame)], "check.status": 1, "crc.status": 1}
    return {f"slacp.{name}": [str(int(value))] for name, value in shown.items()}


# -- whole frames --------------------------------------------------------------------------------------------


def random_frames(count: int) -> Iterator[Frame]:
    rng = Random(5)
    for _ in range(count):
        tag, channel, tx, seq = rng.getrandbits(32), rng.randrange(16), rng.getrandbits(32), rng.getrandbits(32)
        payload = rng.randbytes(rng.choice((0, 1, 20, 60, 1500)))
        back, block = rng.getrandbits(16), rng.getrandbits(16)
        actual = rng.randint(1, 200)
        yield from (
            Data(tag, channel, tx, seq, back, payload),
            Data(tag, channel, tx, seq, back, payload, True),
            Data(tag, channel, tx, seq, back, payload, True, block, rng.randrange(255)),
            Fec(tag, channel, tx, seq, block, actual, rng.randint(actual, 255), payload),
            Sync(tag, channel, tx, seq),
            Ack(tag, channel, tx, seq, rng.getrandbits(300) << 1, rng.random() < 0.5),
            Hello(tx, seq, tag, rng.random() < 0.5, rng.getrandbits(32)),
        )


def test_random_frames_with_padding(path: Path) -> None:
    frames = [*(frame for frame, _ in documented_frames()), *random_frames(40)]
    octets = [wire.emit(frame) for frame in frames]
    padding = [b"", b"\0", b"anything\xff"]
    capture(path, [frame + padding[number % 3] for number, frame in enumerate(octets)])
    wanted = [expected(frame) for frame in frames]
    for row, found in zip(wanted, rows(path, *sorted({name for each in wanted for name in each})), strict=True):
        # a flag is shown with every type; those that are set are what counts
        assert {name: [str(int(value, 0)) for value in found[name]] for name in row} == row
    assert [own_words(info) for info in infos(path)] == [describe(frame).words for frame in octets]
    shown = [row.get("slacp.padding", [""])[0].replace(":", "") for row in rows(path, "slacp.padding")]
    assert shown == [padding[number % 3].hex() for number in range(len(frames))]
    assert rows(path, "frame.number", where="slacp.octets") == []


def test_an_acknowledgement_lists_what_has_come_and_what_has_not(path: Path) -> None:
    top = 2**32 - 2
    acks = [
        Ack(TAG, 0, tx_high=9, cum=5, received=0b1101_0110, repeat=False),
        Ack(TAG, 0, tx_high=29, cum=12, received=0, repeat=True),
        Ack(TAG, 0, tx_high=29, cum=top, received=0b1111_1010, repeat=True),
    ]
    capture(path, [wire.emit(ack) for ack in acks])
    found = rows(path, "slacp.received", "slacp.missing")
    assert found == [
        {"slacp.received": ["6-7, 9, 11-12"], "slacp.missing": ["5", "8", "10"]},
        {},
        {"slacp.received": [f"{top + 1}, 1-5"], "slacp.missing": [str(top), "0"]},
    ]


# -- packets -------------------------------------------------------------------------------------------------


def segment(seq: int, payload: bytes = b"") -> bytes:
    return emit(Segment(Flow(0x0A000001, 5001, 0x0A000002, 6001), seq, 1, ACK, 1000, len(payload), payload or None))


def test_a_packet_goes_to_ip_without_the_blocks_fields(path: Path) -> None:
    frames = [
        Data(TAG, 0, 0, 0, 0, segment(1, b"abc")),
        Data(TAG, 0, 1, 1, 0, segment(4, b"defg"), True),
        Data(TAG, 0, 2, 2, 0, segment(8, b"hi"), True, 3, 1),
        Data(TAG, 1, 3, 0, 0, bytes((0x60, *(5 for _ in range(39))))),
    ]
    capture(path, [wire.emit(frame) for frame in frames])
    found = rows(path, "tcp.seq_raw", "tcp.len", "ipv6.version", "_ws.col.Protocol")
    shown = [(row.get("tcp.seq_raw"), row.get("tcp.len")) for row in found]
    assert shown == [(["1"], ["3"]), (["4"], ["4"]), (["8"], ["2"]), (None, None)]
    assert found[3]["ipv6.version"] == ["6"]
    assert found[0]["_ws.col.Protocol"] == ["SLACP/TCP"]
    assert infos(path)[2].startswith("retransmission of packet 2, in block 3 | 5001 → 6001 [ACK] Seq=")


def test_a_packet_that_came_before_is_pointed_to_and_not_given_to_ip_again(path: Path) -> None:
    packet = segment(1, b"abc")
    sent = Data(TAG, 0, 0, 0, 0, packet)
    again = Data(TAG, 0, 2, 0, 0, packet, True, 0, 0)
    damaged = changed(wire.emit(Data(TAG, 0, 1, 1, 0, segment(4, b"d"))), -1)
    late = Data(TAG, 0, 3, 1, 0, segment(4, b"d"), True)
    other_session = Data(TAG + 1, 0, 0, 0, 0, segment(5, b"e"))
    octets = [wire.emit(sent), damaged, *(wire.emit(frame) for frame in (again, late, other_session))]
    capture(path, octets)
    found = rows(path, "slacp.earlier", "slacp.later", "tcp.seq_raw", passes=2)
    assert found == [
        {"slacp.later": ["3"], "tcp.seq_raw": ["1"]},
        # damaged: nobody has seen that packet
        {},
        {"slacp.earlier": ["1"]},
        {"tcp.seq_raw": ["4"]},
        {"tcp.seq_raw": ["5"]},
    ]
    assert rows(path, "frame.number", where="tcp.analysis.flags") == []


def test_a_malformed_packet_is_said_to_be_one(path: Path) -> None:
    frames = [Data(TAG, 0, 0, 0, 0, b"hello"), Data(TAG, 0, 1, 1, 0, segment(1)[:30]), Data(TAG, 0, 2, 2, 0, b"\x09no")]
    capture(path, [wire.emit(frame) for frame in frames])
    assert [own_words(info) for info in infos(path)] == [f"packet {number}" for number in range(3)]
    # what is no IP is no malformed IP
    bad = rows(path, "frame.number", where="slacp.packet.bad || _ws.malformed")
    assert [row["frame.number"] for row in bad] == [["1"], ["2"]]


# -- damage --------------------------------------------------------------------------------------------------


def damaged_frames() -> list[bytes]:
    """Bits flipped in every place of every kind of frame."""
    frames = [octets for _, octets in documented_frames()]
    return [changed(octets, at, 0x80 >> at % 8) for octets in frames for at in range(len(octets))]


def cut_frames() -> list[bytes]:
    """Every beginning of every kind of frame."""
    return [octets[:length] for _, octets in documented_frames() for length in range(1, len(octets))]


def strange_frames() -> list[bytes]:
    """Frames whose checks hold and whose contents cannot be."""
    rng = Random(8)
    strange = []
    for _, octets in documented_frames():
        for _ in range(40):
            changed = bytearray(octets[:-4] + rng.randbytes(rng.randrange(8)) + octets[-4:])
            changed[0] = 0x10 | rng.randrange(8)
            changed[1] = rng.getrandbits(8)
            changed[2:4] = (len(changed) - 24).to_bytes(2, "big")
            for _ in range(rng.randrange(4)):
                changed[rng.randrange(4, len(changed))] = rng.getrandbits(8)
            strange.append(sealed(bytes(changed[:18]), bytes(changed[20:-4])))
    return strange


def noise() -> list[bytes]:
    rng = Random(9)
    return [rng.randbytes(rng.randrange(1, 120)) for _ in range(500)]


@pytest.mark.parametrize("make", [damaged_frames, cut_frames, strange_frames, noise])
def test_what_is_wrong_with_a_frame_is_said_as_describe_says_it(make: Callable[[], list[bytes]], path: Path) -> None:
    frames = make()
    capture(path, frames)
    wanted = [describe(frame).words for frame in frames]
    assert [own_words(info) for info in infos(path)] == wanted
    # the whole tree, in which a fault of the script would show (`tshark` looks for it)
    assert tshark(path, "-V").count("Frame Number:") == len(frames)
    bad = {row["frame.number"][0] for row in rows(path, "frame.number", where="_ws.expert.severity == error")}
    intact = {str(number) for number, frame in enumerate(frames, 1) if describe(frame).intact}
    # an intact frame may carry a packet that is none
    assert {str(number) for number in range(1, len(frames) + 1)} - intact <= bad


def test_damage_shows_in_the_checks(path: Path) -> None:
    whole = wire.emit(Data(TAG, 0, 7, 5, 2, segment(1)))
    # header, header check, body, CRC
    capture(path, [*(changed(whole, at, 4) for at in (9, 19, 30, -1)), whole[:40]])
    found = rows(path, "slacp.check.status", "slacp.crc.status", "slacp.seq", "slacp.tx", "tcp.seq")
    nothing = {"slacp.check.status": ["0"]}
    header = {"slacp.check.status": ["1"], "slacp.crc.status": ["0"], "slacp.seq": ["5"], "slacp.tx": ["7"]}
    assert found == [nothing, nothing, header, header, header]
    check, crc, cut = "slacp.check.bad", "slacp.crc.bad", "slacp.cut"
    assert [[*row] for row in rows(path, check, crc, cut)] == [[check], [check], [crc], [crc], [cut]]


# -- bare frames ---------------------------------------------------------------------------------------------


def test_bare_frames(path: Path) -> None:
    packet = segment(1, b"abc")
    whole = plain.emit(plain.PlainFrame(packet))
    frames = [whole, changed(whole, 10), whole[:20], b"1234", b"1", *noise()[:50]]
    capture(path, frames, LINKTYPE_USER1)
    assert [own_words(info) for info in infos(path)] == [plain.describe(frame).words for frame in frames]
    found = rows(path, "bareframe.crc.status", "tcp.len", "_ws.col.Protocol")
    assert found[0] == {"bareframe.crc.status": ["1"], "tcp.len": ["3"], "_ws.col.Protocol": ["BARE/TCP"]}
    for row in found[1:3]:
        assert row == {"bareframe.crc.status": ["0"], "_ws.col.Protocol": ["BARE"]}
    assert len(rows(path, "frame.number", where="bareframe.short")) == sum(len(frame) < 5 for frame in frames)
    assert tshark(path, "-V").count("Frame Number:") == len(frames)


# -- link ARQ ------------------------------------------------------------------------------------------------


def test_frames_of_link_arq(path: Path) -> None:
    packet = segment(1, b"abc")
    data, again = arq.Data(0x2A17, 1, 17, 15, packet), arq.Data(0x2A17, 1, 17, 17, packet)
    acks = [arq.Ack(0x2A17, 17, before) for before in (0, 5 << 40)]
    sound: list[arq.Frame] = [data, again, *acks]
    whole = [arq.emit(frame) for frame in sound]
    cut = [with_crc(octets) for octets in (b"\xaf" + bytes(30), b"\xa2" + bytes(30))]
    frames = [*whole, changed(whole[0], 20), *cut, b"1", *noise()[:50]]
    capture(path, frames, LINKTYPE_USER5)
    assert [own_words(info) for info in infos(path)] == [arq.describe(frame).words for frame in frames]
    found = rows(path, "linkarq.seq", "linkarq.base", "linkarq.before", "linkarq.crc.status", "tcp.len")
    shown = {"linkarq.seq": ["17"], "linkarq.crc.status": ["1"]}
    assert found[:4] == [
        {**shown, "linkarq.base": ["15"], "tcp.len": ["3"]},
        {**shown, "linkarq.base": ["17"]},
        {**shown, "linkarq.before": ["0x0000000000000000"]},
        {**shown, "linkarq.before": ["0x0000050000000000"]},
    ]
    assert found[4] == {"linkarq.crc.status": ["0"]}
    assert tshark(path, "-V").count("Frame Number:") == len(frames)


def test_fragments_of_link_arq(path: Path) -> None:
    fragment = arq.Fragment(0x2A17, 1, 17, 15, 2, 9, 9, 10, 30, b"abcd")
    impossible = [(5, 3, 5, 9, b"abc"), (1, 6, 5, 9, b"ab"), (1, 3, 5, 99, b"abc"), (1, 3, 5, 9, b"")]
    frames = [
        arq.emit(fragment),
        arq.emit(arq.Fragment(0x2A17, 0, 17, 15, 0, 1, 3, 5, 9, b"abc")),
        *(arq.emit(arq.Fragment(0x2A17, 0, 17, 15, 0, *values)) for values in impossible),
    ]
    capture(path, frames, LINKTYPE_USER5)
    assert infos(path) == [arq.describe(frame).words for frame in frames]
    names = ("session", "seq", "base", "copy", "index", "data", "total", "length")
    found = rows(path, *(f"linkarq.{name}" for name in names), "linkarq.fragment")
    assert {name: int(found[0][f"linkarq.{name}"][0], 0) for name in names} == {
        name: getattr(fragment, name) for name in names
    }
    assert found[0]["linkarq.fragment"] == [b"abcd".hex()]
    assert len(rows(path, "frame.number", where="linkarq.fragment.bad")) == len(impossible)


# -- slacp-adaptive ------------------------------------------------------------------------------------------


def adaptive_frames(count: int) -> Iterator[adaptive.Frame]:
    """Random ones, and a combination, an acknowledgement and a packet whose numbers wrap."""
    high = 2**32 - 2
    yield adaptive.Coded(0x2A17, 1, high, high, 65535, 255, high, 2**63 + 0b1101, 127, bytes(2))
    yield adaptive.Ack(0x2A17, 255, 1, 0b1101 << 1000, 1, 0b1101)
    yield adaptive.Data(0x2A17, 1, 0, high, 0, 0, 3, b"abc")
    rng = Random(6)
    for _ in range(count):
        tx, seq, session, channel = rng.getrandbits(32), rng.getrandbits(32), rng.getrandbits(16), rng.randrange(2)
        base = seq - rng.choice((0, 1, adaptive.MAX_WINDOW - 1)) & MASK
        patience, heard, payload = rng.getrandbits(16), rng.getrandbits(8), rng.randbytes(rng.choice((2, 60, 1500)))
        bitmaps = [rng.getrandbits(rng.choice((1, 9, 64, adaptive.MAX_BITS))) for _ in range(2)]
        yield from (
            adaptive.Data(session, channel, tx, base, patience, heard, seq, payload),
            adaptive.Coded(session, channel, tx, base, patience, heard, seq, rng.getrandbits(64) | 1, 9, payload),
            adaptive.Mark(session, 0, tx, base, patience, heard),
            adaptive.Ack(session, rng.getrandbits(8), tx, bitmaps[0], seq, bitmaps[1]),
        )


def adaptive_fields(frame: adaptive.Frame) -> Row:
    """The fields of a frame, by its object."""
    if isinstance(frame, adaptive.Ack):
        shown: dict[str, list[int]] = {name: [getattr(frame, name)] for name in ("session", "count", "tx", "top")}
        for name, newest, bits in (("lost", frame.tx, frame.frames), ("missing", frame.top, frame.packets)):
            holes = [newest - 1 - place & MASK for place in range(bits.bit_length()) if not bits >> place & 1]
            shown |= {name: holes} if holes else {}
        return {name: [str(value) for value in values] for name, values in shown.items()}
    names = {field.name for field in fields(frame)} - {"channel", "payload", "patience_ms"}
    shown = {name: [getattr(frame, name)] for name in names} | {"patience": [frame.patience_ms]}
    if isinstance(frame, adaptive.Coded):
        shown["member"] = [frame.first + offset & MASK for offset in adaptive.members_of(frame)]
    return {name: [str(value) for value in values] for name, values in shown.items()}


def test_frames_of_slacp_adaptive(path: Path) -> None:
    frames = list(adaptive_frames(40))
    octets = [adaptive.emit(frame) for frame in frames]
    capture(path, octets, LINKTYPE_USER6)
    assert [own_words(info) for info in infos(path)] == [adaptive.describe(frame).words for frame in octets]
    headers = ("session", "tx", "base", "patience", "heard", "seq", "first", "members", "member", "index")
    names = (*headers, "count", "top", "lost", "missing")
    found = rows(path, *(f"adaptive.{name}" for name in names))
    shown = [
        {name.removeprefix("adaptive."): [str(int(value, 0)) for value in values] for name, values in row.items()}
        for row in found
    ]
    assert shown == [adaptive_fields(frame) for frame in frames]
    assert [row["adaptive.crc.status"] for row in rows(path, "adaptive.crc.status")] == [["1"]] * len(frames)
    payloads = rows(path, "adaptive.symbol", where="adaptive.symbol")
    codeds = [frame for frame in frames if isinstance(frame, adaptive.Coded)]
    assert [row["adaptive.symbol"] for row in payloads] == [[cast(bytes, frame.payload).hex()] for frame in codeds]


def test_a_packet_of_slacp_adaptive_goes_to_ip_once(path: Path) -> None:
    sent = [
        adaptive.Data(0x2A17, 0, 4, 17, 300, 0, 17, segment(1, b"abc")),
        adaptive.Data(0x2A17, 0, 5, 15, 300, 0, 17, segment(1, b"abc")),
        adaptive.Data(0x2A18, 0, 4, 17, 300, 0, 17, segment(1, b"defg")),
        adaptive.Data(0x2A18, 1, 5, 17, 300, 0, 18, b"\x09no"),
        adaptive.Data(0x2A18, 1, 6, 17, 300, 0, 19, segment(1)[:30]),
    ]
    capture(path, [adaptive.emit(frame) for frame in sent], LINKTYPE_USER6)
    found = rows(path, "tcp.len", "_ws.col.Protocol")
    assert [row.get("tcp.len") for row in found] == [["3"], None, ["4"], None, None]
    assert [row["_ws.col.Protocol"] for row in found[:2]] == [["ADAPTIVE/TCP"], ["ADAPTIVE"]]
    bad = rows(path, "frame.number", where="adaptive.packet.bad")
    assert bad == [{"frame.number": ["5"]}]


def test_what_is_wrong_with_a_frame_of_slacp_adaptive_is_said(path: Path) -> None:
    rng = Random(7)
    whole = [adaptive.emit(frame) for frame in adaptive_frames(1)]
    cut = [octets[:length] for octets in whole for length in range(1, 40)]
    strange = [with_crc(bytes((0xC0 + rng.randrange(7),)) + rng.randbytes(rng.randrange(13, 60))) for _ in range(300)]
    bitmaps = [bytes((0xC5,)) + bytes(11) + bytes((frames, packets)) for frames, packets in ((2, 1), (0, 1), (129, 0))]
    strange += [with_crc(head + bytes(head[-2] + head[-1] - 1) + last) for head in bitmaps for last in (b"\0", b"\1")]
    frames = [*cut, *(changed(octets, rng.randrange(len(octets))) for octets in whole), *strange, *noise()[:50]]
    capture(path, frames, LINKTYPE_USER6)
    wanted = [adaptive.describe(frame) for frame in frames]
    assert [own_words(info) for info in infos(path)] == [description.words for description in wanted]
    assert tshark(path, "-V").count("Frame Number:") == len(frames)
    said = "adaptive.short || adaptive.crc.bad || adaptive.kind.unknown || adaptive.body.bad"
    bad = {int(row["frame.number"][0]) for row in rows(path, "frame.number", where=said)}
    assert bad == {number for number, description in enumerate(wanted, 1) if not description.intact}
    # every fault that `parse` names is among them
    for words in ("bitmaps of", "tell nothing", "unknown kind", "a mark of", "without octets", "first member"):
        assert any(words in description.words for description in wanted), words


def with_crc(octets: bytes) -> bytes:
    return octets + zlib.crc32(octets).to_bytes(4, "big")


# -- the script ----------------------------------------------------------------------------------------------


def test_it_loads_from_the_personal_plugin_folder(path: Path, tmp_path: Path) -> None:
    plugins = tmp_path / ".local" / "lib" / "wireshark" / "plugins"
    plugins.mkdir(parents=True)
    shutil.copy(DISSECTOR, plugins)
    capture(path, [wire.emit(Sync(TAG, 0, 30, 12))])
    assert "SYNC from 12" in tshark(path, home=tmp_path, script=None)
    assert "SYNC" not in tshark(path, script=None)


@pytest.mark.skipif(shutil.which("luac5.3") is None, reason="needs luac5.3: apt-get install lua5.3")
def test_it_is_lua_of_later_wiresharks_too() -> None:
    # Debian's Wireshark has 5.2
    done = subprocess.run(["luac5.3", "-p", DISSECTOR], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_wire_format_has_a_link_type_and_words_of_its_own() -> None:
    formats = {(scheme.link_type, scheme.emit, scheme.parse, scheme.describe) for scheme in SCHEMES.values()}
    assert len({scheme.link_type for scheme in SCHEMES.values()}) == len(formats)
    assert len({scheme.emit for scheme in SCHEMES.values()}) == len(formats)
    for scheme in SCHEMES.values():
        assert not scheme.describe(b"").intact


def test_the_dissector_knows_the_link_type_of_every_scheme() -> None:
    known = {LINKTYPE_USER0 + int(number) for number in re.findall(r"wtap\.USER(\d+)", DISSECTOR.read_text())}
    assert known == {scheme.link_type for scheme in SCHEMES.values()}
