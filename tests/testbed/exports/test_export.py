"""A run for other programs: an octet of TCP is followed to its frames and samples, in three formats."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import testbed.api as fadelab
from common.sides import SIDES, STATIONS
from linklayer import arq
from linklayer.schemes import SCHEMES
from linklayer.slacp import wire
from linklayer.slacp.frames import Ack, Data, Fec
from tcpip.segment import ACK, SYN, Flow, Segment
from tcpip.wire import emit
from telemetry.parquet import ParquetSink
from telemetry.pcapng import Direction, PcapngWriter
from telemetry.records import LinkRecord
from testbed.errors import FadelabError
from testbed.exports.packets import content_of
from testbed.exports.perfetto import to_perfetto
from testbed.exports.qlog import to_qlog
from testbed.exports.source import timeline_of
from testbed.exports.timeline import Frame, Passing, Timeline
from testbed.results.store import RunFolder
from tests.harness.live_runs import Capture, done, refused
from tests.harness.scenarios import scenario

pytestmark = pytest.mark.slow

LOSSY = fadelab.root() / "scenarios" / "lossy-link.yaml"
EPOCH = 1_700_000_000_000_000_000
MS = 1_000_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, fadelab.Run]:
    """Short runs of tier model at 5 % loss, by their scheme."""
    out = tmp_path_factory.mktemp("runs")
    return {
        scheme: fadelab.run(
            LOSSY,
            tier="model",
            settings={"workloads.0.duration_s": seconds, "channel.per": 0.05, "link.scheme": scheme},
            out=out,
        )
        for scheme, seconds in (("none", 3), ("slacp", 2), ("hybrid", 0.3))
    }


@pytest.fixture(scope="module")
def timelines(runs: dict[str, fadelab.Run]) -> dict[str, Timeline]:
    """The timelines of these runs."""
    return {scheme: timeline_of(run.folder) for scheme, run in runs.items()}


def has_data(frame: Frame, timeline: Timeline) -> bool:
    return frame.packet is not None and bool(timeline.packets[frame.packet].length)


def carriers(timeline: Timeline, octet: int) -> list[Frame]:
    """The frames that carry an octet of flow bulk."""
    return [frame for frame in timeline.following("bulk", octet).frames if frame.kind != "fec"]


@pytest.mark.parametrize("scheme", ["none", "slacp", "hybrid"])
def test_frames_are_those_of_the_channel_traces(
    scheme: str, runs: dict[str, fadelab.Run], timelines: dict[str, Timeline]
) -> None:
    timeline = timelines[scheme]
    for side in SIDES:
        trace = runs[scheme].records(f"trace-{side}").polars()
        frames = [frame for frame in timeline.frames if frame.side == side]
        assert [frame.start_ns for frame in frames] == trace["time_ns"].to_list()
        assert [frame.nbytes for frame in frames] == trace["nbytes"].to_list()
        assert [frame.fate == "ok" for frame in frames] == [outcome == "ok" for outcome in trace["outcome"]]


@pytest.mark.parametrize("scheme", ["none", "slacp"])
def test_each_delivered_octet_was_carried_and_sent_again_when_lost(
    scheme: str, runs: dict[str, fadelab.Run], timelines: dict[str, Timeline]
) -> None:
    timeline = timelines[scheme]
    [flow] = runs[scheme].summary["flows"]
    again = 0
    for octet in (0, 1, flow["bytes"] // 2, flow["bytes"] - 1):
        part = timeline.following("bulk", octet)
        assert all(packet.has(octet) for packet in part.packets)
        # either a carrier arrived, or redundancy restored the packet
        assert any(frame.fate == "ok" for frame in part.frames), octet
    for octet in range(0, flow["bytes"], 1448):
        frames = carriers(timeline, octet)
        again += len(frames) - 1
        assert len(frames) == 1 or frames[0].fate == "erased"
    assert again > 1


def test_retransmissions_of_link_and_of_tcp_are_told_apart(timelines: dict[str, Timeline]) -> None:
    bare, slacp = timelines["none"], timelines["slacp"]
    numbers = [frame.packet for frame in slacp.frames if frame.fields.get("retransmission")]
    assert numbers
    assert all(sum(frame.packet == number for frame in slacp.frames) > 1 for number in numbers)
    data = [packet for packet in bare.packets if packet.length]
    assert len(data) > len({packet.offset for packet in data})
    for packet in data:
        assert sum(frame.packet == packet.number for frame in bare.frames) <= 1


def records(text: str) -> list[dict[str, Any]]:
    """The records of a JSON text sequence (RFC 7464)."""
    first, *parts = text.split("\x1e")
    assert first == ""
    assert all(part.endswith("\n") for part in parts)
    return [json.loads(part) for part in parts]


def test_qlog_begins_with_the_first_event_though_the_run_does_later() -> None:
    frame = Frame(
        number=0, side="up", start_ns=-2501 * MS, sent_ns=-2500 * MS, arrived_ns=None, nbytes=9, kind="data",
        fate="erased", fields={}, packet=None,
    )  # fmt: skip
    header, *events = records("".join(to_qlog(Timeline("run", "vusrp", "none", EPOCH, (), (), (), [frame], {}), "1")))
    fields = header["trace"]["common_fields"]
    # the run began at 22:13:20
    assert fields["reference_time"]["wall_clock_time"] == "2023-11-14T22:13:17.500Z"
    assert fields["run_time_0_ms"] == 2500
    assert [event["time"] for event in events] == [0, 0]


def test_qlog_has_every_event_in_order(runs: dict[str, fadelab.Run], timelines: dict[str, Timeline]) -> None:
    timeline = timelines["slacp"]
    _, *events = records("".join(to_qlog(timeline, "1.2.3")))
    times = [event["time"] for event in events]
    assert times == sorted(times)
    assert times[0] >= 0
    names = [event["name"] for event in events]
    assert names.count("link:frame_sent") == len(timeline.frames)
    assert names.count("link:frame_lost") == sum(frame.fate != "ok" for frame in timeline.frames)
    assert names.count("tcp:segment_sent") == len(timeline.sent)
    assert names.count("tcp:metrics_updated") == runs["slacp"].records("tcp").arrow.num_rows
    # a frame's packet is that of the host's event
    sent = {event["data"]["packet"]: event["data"] for event in events if event["name"] == "tcp:segment_sent"}
    frames = [event["data"].get("packet") for event in events if event["name"] == "link:frame_sent"]
    assert any(packet == sent.get(packet["packet"]) for packet in frames if packet is not None)


def slices(events: list[dict[str, Any]]) -> Iterator[tuple[tuple[int, int], list[dict[str, Any]]]]:
    """The slices of each track, in order."""
    tracks = sorted({(event["pid"], event["tid"]) for event in events if event["ph"] == "X"})
    for track in tracks:
        found = [event for event in events if event["ph"] == "X" and (event["pid"], event["tid"]) == track]
        yield track, sorted(found, key=lambda event: event["ts"])


def check_perfetto(timeline: Timeline) -> list[dict[str, Any]]:
    """Check what every trace keeps to; return its events."""
    trace = json.loads("".join(to_perfetto(timeline, "1.2.3")))
    events: list[dict[str, Any]] = trace["traceEvents"]
    assert trace["otherData"]["run"] == timeline.run
    assert all(event["ts"] >= 0 for event in events if event["ph"] != "M")
    named = {(event["pid"], event.get("tid")) for event in events if event["ph"] == "M"}
    for (process, track), found in slices(events):
        assert {(process, None), (process, track)} <= named
        for first, second in pairwise(found):
            assert first["ts"] + first["dur"] <= second["ts"] + 1e-6
        # arrows begin and end in slices
        starts = {event["ts"] for event in found}
        for event in events:
            if event["ph"] in "stf" and (event["pid"], event["tid"]) == (process, track):
                assert event["ts"] in starts
    begun = {(event["cat"], event["id"]) for event in events if event["ph"] == "s"}
    assert {(event["cat"], event["id"]) for event in events if event["ph"] in "tf"} <= begun
    return events


def test_perfetto_draws_frames_on_tracks_with_arrows_and_counters(
    runs: dict[str, fadelab.Run], timelines: dict[str, Timeline]
) -> None:
    timeline = timelines["slacp"]
    events = check_perfetto(timeline)
    frames = [event for event in events if event.get("cat", "").startswith("link")]
    assert len(frames) == len(timeline.frames)
    erased = sum(event["name"].startswith("ERASED") for event in frames)
    assert erased == sum(frame.fate == "erased" for frame in timeline.frames)
    # the first frame begins before the run's time 0, and so does the file; a frame's end is exact
    zero_ns = timeline.frames[0].start_ns
    assert zero_ns < 0
    ends_us = [event["ts"] + event["dur"] for event in frames]
    assert ends_us == pytest.approx([(frame.sent_ns - zero_ns) / 1000 for frame in timeline.frames])
    assert sum(event.get("cat") == "tcp" for event in events) == len([*timeline.sent, *timeline.received])
    cwnd = [event["args"]["value"] for event in events if event["ph"] == "C" and "cwnd" in event["name"]]
    assert cwnd == runs["slacp"].records("tcp").polars()["cwnd_bytes"].to_list()


H1, H2 = Flow(0x0A000001, 40000, 0x0A000002, 5001), Flow(0x0A000002, 5001, 0x0A000001, 40000)


def recorded(tmp_path: Path, *, annotations: list[dict[str, Any]] | None = None) -> Path:
    """A run's folder, with hand-made captures: octets 0 to 99 are lost on the air, sent again, and repaired by FEC."""
    made = scenario(tier="vusrp", capture=True, radio={"record": True})
    port = next(iter(made.make_workloads()[0].ports()))
    there = H1._replace(destination_port=port)
    folder = RunFolder.create(tmp_path, made).path
    record = LinkRecord(
        time_ns=0, link="up", scheme="slacp", established=True, throughput_bps=0.0, goodput_bps=0.0, packets=0,
        frames=0, retransmissions=0, fec_frames=0, fec_repairs=0, residual_losses=0, queue_bytes=0, congestion_losses=0,
        corruption_losses=0,
    )  # fmt: skip
    with ParquetSink(folder, {}) as sink:
        sink.begin(EPOCH)
        sink.write(record)
    syn = emit(Segment(there, 0xFFFFFFF0, 0, SYN, 1000))
    data = emit(Segment(there, 0xFFFFFFF1, 1, ACK, 1000, 100, b"x" * 100))
    up: list[tuple[Data | Fec, str]] = [
        (Data(1, 0, 0, 0, 0, syn), ""),
        (Data(1, 0, 1, 1, 0, data), ""),
        (Data(1, 0, 2, 1, 0, data, True, 9, 0), "; erased by the channel"),
        (Fec(1, 0, 3, 1, 9, 1, 1, b"s" * 120), ""),
    ]
    for side in SIDES:
        with PcapngWriter(folder / f"air-{STATIONS[side]}.pcapng", application="test") as writer:
            interface = writer.interface(147, name="slacp", description="")
            for number, (frame, fate) in enumerate(up):
                at = EPOCH + (10 * number + (0 if side == "up" else 5)) * MS
                if side == "up":
                    writer.packet(interface, at, wire.emit(frame), direction=Direction.OUTBOUND, comment=f"up{fate}")
                elif number in (0, 3):
                    writer.packet(interface, at, wire.emit(frame), direction=Direction.INBOUND, comment="up")
    if annotations is not None:
        metadata = {"global": {"core:sample_rate": 1e6}, "captures": [], "annotations": annotations}
        (folder / "iq-up.sigmf-meta").write_text(json.dumps(metadata))
    return folder


def annotation(sequence: int, start: int, *, crc_ok: bool = True) -> dict[str, Any]:
    names = ("core:sample_start", "core:sample_count", "fadelab:sequence", "fadelab:crc_ok", "fadelab:snr_db")
    return dict(zip(names, (start, 700, sequence, crc_ok, 7.5), strict=True))


#: of the radio's frames the third is the redundancy: the medium erased one before
MARKS = [annotation(0, 50_000), annotation(1, 60_000, crc_ok=False), annotation(2, 80_200)]


def capture(folder: Path, station: str, scheme: str, direction: Direction, frames: list[bytes]) -> None:
    """Write a station's capture anew, a frame each ns."""
    with PcapngWriter(folder / f"air-{station}.pcapng", application="test") as writer:
        interface = writer.interface(147, name=scheme, description="")
        for number, octets in enumerate(frames):
            writer.packet(interface, EPOCH + number, octets, direction=direction, comment="up")


def test_an_octet_leads_to_the_samples_of_its_frames(tmp_path: Path) -> None:
    timeline = timeline_of(recorded(tmp_path, annotations=MARKS))
    part = timeline.following("bulk", 42)
    assert [packet.words() for packet in part.packets] == ["octets 0 to 99"]
    fates = [(frame.kind, frame.fate) for frame in part.frames]
    assert fates == [("data", "damaged"), ("data", "erased"), ("fec", "ok")]
    assert [None if frame.samples is None else frame.samples.start for frame in part.frames] == [60_000, None, 80_200]
    # the second frame was sent at 10 ms; the third at 30 ms is heard 20.2 ms after the second
    assert [frame.heard_ns for frame in part.frames] == [10 * MS, None, 30 * MS + 200_000]
    assert (part.frames[-1].sent_ns, part.frames[-1].arrived_ns) == (30 * MS, 35 * MS)
    events = check_perfetto(timeline)
    assert sum(event["ph"] == "f" and event["cat"] == "samples" for event in events) == 3
    heard = [event for event in records("".join(to_qlog(timeline, ""))) if event.get("name") == "radio:frame_heard"]
    assert [event["data"]["sample_start"] for event in heard] == [50_000, 60_000, 80_200]


@pytest.mark.parametrize(("write", "fingerprint"), [(to_qlog, "153711933a581d76"), (to_perfetto, "14156105742682c6")])
def test_files_of_a_recording_are_what_they_were(
    write: Callable[[Timeline, str], Iterator[str]], fingerprint: str, tmp_path: Path
) -> None:
    timeline = timeline_of(recorded(tmp_path, annotations=MARKS))
    first, *others = timeline.frames
    tcp = {"flow": "bulk", "cwnd_bytes": 2896, "ssthresh_bytes": None, "srtt_ms": 12.5}
    timeline = replace(
        timeline,
        run="run",
        # it began before the run did, and the receiver's host saw its packet
        frames=[replace(first, start_ns=-1234, sent_ns=567), *others],
        received=[Passing(35 * MS, 1)],
        records={**timeline.records, "tcp": [{"time_ns": at, **tcp} for at in (0, MS)]},
    )
    text = "".join(write(timeline, "1.2.3"))
    # to be read where they differ
    (tmp_path / "text").write_text(text)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == fingerprint


@pytest.mark.parametrize(
    ("first", "fate"), [([annotation(0, 50_000, crc_ok=False)], "damaged"), ([], "unheard")], ids=["damaged", "missed"]
)
def test_of_two_copies_the_one_arrives_that_the_recording_has(
    tmp_path: Path, first: list[dict[str, Any]], fate: str
) -> None:
    folder = recorded(tmp_path, annotations=[*first, annotation(1, 60_000), annotation(2, 70_000)])
    copies = [wire.emit(Fec(1, 0, 3, 1, 9, 1, 1, b"s" * 120))] * 3
    for station, direction, octets in (
        ("st", Direction.OUTBOUND, copies),
        ("bas", Direction.INBOUND, copies[1:]),
    ):
        capture(folder, station, "slacp", direction, octets)
    timeline = timeline_of(folder)
    assert [frame.fate for frame in timeline.frames] == [fate, "ok", "ok"]
    assert [frame.arrived_ns for frame in timeline.frames] == [None, 0, 1]


def test_fragments_carry_the_packet_that_they_are_cut_from(timelines: dict[str, Timeline], tmp_path: Path) -> None:
    part = timelines["hybrid"].following("bulk", 3000)
    [packet, *_] = part.packets
    fragments = [frame for frame in part.frames if frame.packet == packet.number]
    total = fragments[0].fields["total"]
    assert [frame.fields["index"] for frame in fragments[:total]] == [*range(total)]

    sent = emit(Segment(H1, 100, 0, ACK, 1000, 30, b"z" * 30))
    cut = arq.code.ReedSolomon().cut(sent, 3, 5)
    frames = [arq.frames.Fragment(7, 0, 4, 4, 0, index, 3, 5, len(sent), piece) for index, piece in enumerate(cut)]
    folder = recorded(tmp_path)
    capture(folder, "st", "hybrid", Direction.OUTBOUND, [SCHEMES["hybrid"].emit(frame) for frame in frames])
    capture(folder, "bas", "hybrid", Direction.INBOUND, [])
    timeline = timeline_of(folder)
    assert [frame.packet for frame in timeline.frames] == [0] * 5
    assert [packet.length for packet in timeline.packets] == [30]


def test_captures_without_a_recording_tell_what_was_heard(tmp_path: Path) -> None:
    timeline = timeline_of(recorded(tmp_path))
    assert [frame.fate for frame in timeline.frames] == ["ok", "unheard", "erased", "ok"]
    assert all(frame.samples is None for frame in timeline.frames)


def test_sequence_numbers_that_wrap_do_not_move_offsets(tmp_path: Path) -> None:
    packets = [(packet.seq, packet.offset, packet.length) for packet in timeline_of(recorded(tmp_path)).packets]
    assert packets == [(0xFFFFFFF0, 0, 0), (0xFFFFFFF1, 0, 100)]


@pytest.mark.parametrize("format_", ["qlog", "perfetto", "text"])
def test_the_command_writes_each_format(
    format_: str, runs: dict[str, fadelab.Run], tmp_path: Path, capsys: Capture
) -> None:
    target = tmp_path / "out"
    words = ("--format", format_, "-o", target, "--octet", "5000")
    assert done(capsys, "export", runs["slacp"].folder, *words).startswith(f"{target}: ")
    # the third packet of 1448 octets
    assert "4344" in target.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_text_follows_one_octet_through_loss_and_repair(
    runs: dict[str, fadelab.Run], timelines: dict[str, Timeline], capsys: Capture
) -> None:
    timeline = timelines["slacp"]
    lost = next(frame for frame in timeline.frames if (frame.kind, frame.side, frame.fate) == ("data", "up", "erased"))
    packet = timeline.packets[lost.packet or 0]
    words = ("--format", "text", "--octet", str(packet.offset))
    lines = done(capsys, "export", runs["slacp"].folder, *words).splitlines()
    octets = f"octets {packet.offset} to {(packet.offset or 0) + (packet.length or 0) - 1}"
    assert f"packet {packet.number} ({octets}" in lines[0]
    assert "leaves the sender's host" in lines[0]
    assert any(f"frame {lost.number} sent" in line and "fate erased" in line for line in lines)
    assert "arrives" in lines[-1]


def test_wrong_requests_are_one_line(runs: dict[str, fadelab.Run], tmp_path: Path, capsys: Capture) -> None:
    folder = runs["none"].folder
    wrong: tuple[tuple[list[str | Path], str], ...] = (
        ([folder, "--octet", "99999999999"], "no packet of flow 'bulk' has octet 99999999999; the flows are bulk"),
        ([folder, "--flow", "bulk"], "give --octet, too"),
        ([folder, "-o", tmp_path / "no" / "where"], "cannot be written"),
        (["nothing", "--out", tmp_path], "there is no such run"),
        ([RunFolder.create(tmp_path, scenario()).path], "has no link records with the run's time 0"),
    )
    for args, complaint in wrong:
        assert complaint in refused(capsys, "export", *args, "--format", "qlog")


@pytest.mark.parametrize("figure", ["retransmissions", "of_another_version"])
def test_a_run_that_this_checkout_does_not_repeat_is_refused(
    runs: dict[str, fadelab.Run], tmp_path: Path, figure: str
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in runs["none"].folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    summary = json.loads((copy / "summary.json").read_text())
    (copy / "summary.json").write_text(json.dumps({**summary, figure: 12345}))
    with pytest.raises(FadelabError, match=rf"another result \({figure} is .*, stored is 12345"):
        timeline_of(copy)


def test_a_run_without_captures_says_how_to_get_them(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    (folder / "air-bas.pcapng").unlink()
    with pytest.raises(FadelabError, match="run its scenario again with --set capture=true"):
        timeline_of(folder)
    (folder / "iq-up.sigmf-meta").write_text("{}")
    (folder / "air-bas.pcapng").write_bytes(b"?" * 20)
    with pytest.raises(FadelabError, match="is no capture of fadelab"):
        timeline_of(folder)


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_that_json_readers_round_are_hexadecimal(sign: int) -> None:
    # RFC 8259 section 6
    exact, others = sign * (2**53 - 1), [sign * 2**53, sign * (2**53 + 1)]
    told = [content_of(Ack(each, 0, 0, 0, 0, False))[1]["tag"] for each in (exact, *others)]
    assert told == [exact, *map(hex, others)]


def test_records_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    records = recorded(tmp_path) / "link.parquet"
    records.write_bytes(b"PAR1")
    with pytest.raises(FadelabError, match=r"link\.parquet is incomplete: the run was killed"):
        timeline_of(records.parent)
