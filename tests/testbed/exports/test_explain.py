"""The story of each loss: it agrees with the channel's records, TCP's records, its packets and the captures."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

import testbed.api as fadelab
from channel.replay import Outcome
from channel.trace import TraceWriter
from common.sides import SIDES, Side
from tcpip.segment import Segment
from testbed.errors import FadelabError
from testbed.exports.losses import Losses
from testbed.exports.source import timeline_of
from testbed.exports.story import (
    Acknowledged,
    Carried,
    Crossed,
    Dropped,
    Dupacks,
    Ended,
    Replaced,
    Sent,
    Story,
    Told,
    Window,
)
from testbed.model.watch import Watch
from testbed.scenario.file import load
from testbed.simulation import simulate
from tests.harness.live_runs import Capture, done, refused
from tests.testbed.exports.test_export import MARKS, MS, recorded

pytestmark = pytest.mark.slow

LOSSY = fadelab.root() / "scenarios" / "lossy-link.yaml"
#: how a story ends
ENDS = (Acknowledged, Crossed, Replaced, Ended)
DOWN = [{"kind": "bulk", "direction": "down", "duration_s": 5}]
RUNS: Mapping[str, Mapping[str, Any]] = {
    "none": {"workloads.0.duration_s": 8},
    "slacp": {"workloads.0.duration_s": 5},
    "arq": {"workloads.0.duration_s": 3},
    "hybrid": {"workloads.0.duration_s": 0.5},
    "slacp-adaptive": {"workloads.0.duration_s": 3},
    "snoop": {"workloads": DOWN},
    "split": {"workloads": DOWN},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, fadelab.Run]:
    """Runs of tier model in which a tenth of the frames are lost, by scheme."""
    out = tmp_path_factory.mktemp("runs")
    return {
        scheme: fadelab.run(LOSSY, tier="model", settings={"channel.per": 0.1, "link.scheme": scheme, **more}, out=out)
        for scheme, more in RUNS.items()
    }


@pytest.fixture(scope="module")
def losses(runs: Mapping[str, fadelab.Run]) -> Mapping[str, Losses]:
    return {scheme: Losses(timeline_of(run.folder)) for scheme, run in runs.items()}


@pytest.fixture(scope="module")
def stories(losses: Mapping[str, Losses]) -> Mapping[str, list[Story]]:
    """The story of every loss."""
    return {scheme: [found.story(number) for number in range(1, len(found) + 1)] for scheme, found in losses.items()}


class Seen(Watch):
    """What the engines tell of a run while it is made once more."""

    def __init__(self) -> None:
        self.sent_at: Counter[tuple[int, int]] = Counter()
        self.acks_at: Counter[tuple[int, int]] = Counter()
        self.crossed_at: set[tuple[Side, int]] = set()

    @override
    def sent(self, flow: str, segment: Segment, now: int) -> None:
        self.sent_at[now, segment.seq] += 1

    @override
    def received(self, flow: str, segment: Segment, now: int) -> None:
        self.acks_at[now, segment.ack] += 1

    @override
    def left(self, side: Side, packet: Any, now: int) -> None:
        self.crossed_at.add((side, now))


# -- every loss has a story ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", RUNS)
def test_losses_are_as_many_as_the_summary_counts_and_those_of_the_channel_trace(
    scheme: str, runs: Mapping[str, fadelab.Run], losses: Mapping[str, Losses]
) -> None:
    found, run = losses[scheme].all, runs[scheme]
    assert [loss.number for loss in found] == [*range(1, len(found) + 1)]
    times = [loss.frame.sent_ns for loss in found]
    assert times == sorted(times)
    for side in SIDES:
        here = [loss.frame for loss in found if loss.frame.side == side]
        assert len(here) == run.summary["link"][side]["corruption_losses"] > 0
        trace = run.records(f"trace-{side}").polars()
        lost = trace.filter(trace["outcome"] != "ok")
        assert [frame.start_ns for frame in here] == lost["time_ns"].to_list()
        assert [frame.nbytes for frame in here] == lost["nbytes"].to_list()


@pytest.mark.parametrize("scheme", RUNS)
def test_every_loss_has_a_story_that_begins_contains_it_and_ends(
    scheme: str, losses: Mapping[str, Losses], stories: Mapping[str, list[Story]]
) -> None:
    for loss, story in zip(losses[scheme].all, stories[scheme], strict=True):
        times = [event.time_ns for event in story.events]
        assert times == sorted(times)
        assert loss.number in story.losses
        [frame] = [each for each in story.events if isinstance(each, Carried) and each.frame == loss.frame.number]
        assert (frame.fate, frame.time_ns) == (loss.frame.fate, loss.frame.sent_ns)
        assert any(isinstance(event, ENDS) for event in story.events)
        # the lost frames of the story are the losses that it names
        lost = [each for each in story.events if isinstance(each, Carried) and each.fate in ("erased", "damaged")]
        assert {each.frame for each in lost} >= {losses[scheme].all[number - 1].frame.number for number in story.losses}
        assert story.sentence().endswith(".")
        json.dumps(story.plain(), allow_nan=False)


@pytest.mark.parametrize("scheme", RUNS)
def test_the_fate_of_data_follows_from_its_packets_frames_and_acks(
    scheme: str, runs: Mapping[str, fadelab.Run], stories: Mapping[str, list[Story]]
) -> None:
    timeline = timeline_of(runs[scheme].folder).with_passings()
    fates: Counter[str] = Counter()
    for story in stories[scheme]:
        if story.octets is None or story.packet is None:
            continue
        octet = story.octets[0]
        packets = [each for each in timeline.packets if each.flow == story.flow and each.has(octet)]
        numbers = {each.number for each in packets}
        lost = sum(frame.packet in numbers and frame.fate != "ok" for frame in timeline.frames)
        first = packets[0]
        assert first.seq is not None
        assert first.offset is not None
        next_seq = (first.seq - first.offset + octet + 1) % 2**32
        acked = any(
            (timeline.packets[each.packet].ack or 0) - next_seq & 1 << 31 == 0
            for each in timeline.received
            if timeline.packets[each.packet].ack
        )
        expected = "open" if not acked else "by TCP" if len(packets) > 1 else "by the link"
        assert (story.fate, story.transmissions, story.lost_frames) == (expected, len(packets), lost)
        fates[story.fate] += 1
    assert fates


def test_who_repairs_depends_on_the_scheme(stories: Mapping[str, list[Story]]) -> None:
    fates = {scheme: Counter(story.fate for story in told if story.octets) for scheme, told in stories.items()}
    # without a link protocol no frame is sent again
    assert set(fates["none"]) <= {"by TCP", "open"}
    assert fates["slacp"]["by the link"] > 10 * fates["slacp"]["by TCP"]


# -- the parts of a story --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["none", "slacp", "slacp-adaptive"])
def test_packets_acks_and_crossings_are_those_that_the_engines_tell(
    scheme: str, runs: Mapping[str, fadelab.Run], stories: Mapping[str, list[Story]]
) -> None:
    seen = Seen()
    simulate(load(runs[scheme].folder / "scenario.yaml"), watch=seen)
    events = [event for story in stories[scheme] for event in story.events]
    sent = [event for event in events if isinstance(event, Sent) and event.at_host]
    assert len(sent) > 5
    assert all(seen.sent_at[event.time_ns, event.seq] for event in sent)
    assert all(event.place == "h1" for event in sent)
    acked = [event for event in events if isinstance(event, Acknowledged)]
    assert len(acked) > 5
    assert all(seen.acks_at[event.time_ns, event.ack] for event in acked)
    crossed = [event for event in events if isinstance(event, Crossed)]
    assert len(crossed) > 5
    assert all(("up" if event.place == "BAS" else "down", event.time_ns) in seen.crossed_at for event in crossed)
    assert all(event.frame is not None and (event.held_ms or 0) >= 0 for event in crossed)


def test_a_packet_is_restored_once_enough_frames_of_its_block_have_come(
    losses: Mapping[str, Losses], stories: Mapping[str, list[Story]], runs: Mapping[str, fadelab.Run]
) -> None:
    frames = timeline_of(runs["slacp"].folder).frames
    restored = [(story, event) for story in stories["slacp"] for event in story.events if isinstance(event, Crossed)]
    restored = [(story, event) for story, event in restored if event.restored and story.packet is not None]
    assert len(restored) > 2
    for story, event in restored:
        carried = [each for each in story.events if isinstance(each, Carried) and each.packet == event.packet]
        assert all(each.fate != "ok" for each in carried)
        [block] = {frames[each.frame].fields.get("block") for each in carried} - {None}
        of_block = [each for each in frames if each.side == story.side and each.fields.get("block") == block]
        [actual] = {each.fields["actual"] for each in of_block if each.kind == "fec"}
        came = [each for each in of_block if each.fate == "ok" and (each.arrived_ns or 0) <= event.time_ns]
        # symbols of the block that TCP's octets arrived with: never more than were needed when the frame named came
        assert event.frame is not None
        assert len([each for each in came if (each.arrived_ns or 0) <= (frames[event.frame].arrived_ns or 0)]) == actual


def test_link_acks_tell_of_the_loss_before_the_retransmission_and_of_the_packet_after_it(
    stories: Mapping[str, list[Story]], runs: Mapping[str, fadelab.Run]
) -> None:
    frames = timeline_of(runs["slacp"].folder).frames
    told = 0
    for story in stories["slacp"]:
        # the link sends again what an ACK without REPEAT has shown to be missing
        for event in story.events:
            if not isinstance(event, Carried) or event.packet is None or "again" not in event.content:
                continue
            acks = [each for each in story.events if isinstance(each, Told) and each.time_ns <= event.start_ns]
            if acks:
                assert not acks[-1].has
                told += 1
        for event in story.events:
            if isinstance(event, Told):
                assert frames[event.frame].kind == "ack"
                assert frames[event.frame].fate == "ok"
                assert event.time_ns == frames[event.frame].arrived_ns
                came = [each.time_ns - (each.held_ms or 0) * MS for each in story.events if isinstance(each, Crossed)]
                if event.has:
                    # it may wait there for those before it
                    assert came[0] < event.time_ns
    assert told > 20


@pytest.mark.parametrize("scheme", ["none", "slacp", "snoop"])
def test_windows_are_those_of_the_tcp_records(
    scheme: str, runs: Mapping[str, fadelab.Run], stories: Mapping[str, list[Story]]
) -> None:
    records = {row["time_ns"]: row for row in runs[scheme].records("tcp").polars().to_dicts()}
    times = sorted(records)
    windows = [(story, event) for story in stories[scheme] for event in story.events if isinstance(event, Window)]
    assert len(windows) > 5
    for story, event in windows:
        before, after = records[event.since_ns], records[event.time_ns]
        assert (event.cwnd_before, event.cwnd_after) == (before["cwnd_bytes"], after["cwnd_bytes"])
        assert event.retransmits == after["retransmits"] - before["retransmits"] >= 0
        assert event.timeouts == after["timeouts"] - before["timeouts"] >= 0
        again = [each.time_ns for each in story.events if isinstance(each, Sent) and each.transmission > 1]
        if again:
            # no record lies between, but for those of a further retransmission
            assert any(event.since_ns <= at < event.time_ns for at in again)
            assert times.index(event.time_ns) == times.index(event.since_ns) + 1


def test_reasons_are_timeouts_where_tcp_counts_one(stories: Mapping[str, list[Story]]) -> None:
    reasons = Counter(
        event.reason
        for story in stories["none"]
        for event in story.events
        if isinstance(event, Sent) and event.transmission > 1 and story.octets
    )
    assert reasons["timeout"] > 0
    assert reasons["loss recovery"] > 0
    for story in stories["none"]:
        sent = [event for event in story.events if isinstance(event, Sent)]
        for first, second in pairwise(sent):
            if second.reason == "timeout":
                # the least RTO of this profile
                assert second.time_ns - first.time_ns >= 200 * MS


def test_dupacks_repeat_the_number_of_the_octet_asked_for(
    runs: Mapping[str, fadelab.Run], stories: Mapping[str, list[Story]]
) -> None:
    seen = Seen()
    simulate(load(runs["none"].folder / "scenario.yaml"), watch=seen)
    checked = 0
    for story in stories["none"]:
        sent = next((event for event in story.events if isinstance(event, Sent)), None)
        groups = [event for event in story.events if isinstance(event, Dupacks)]
        if sent is None or not groups:
            continue
        acked = [event.time_ns for event in story.events if isinstance(event, Acknowledged)]
        until_ns = acked[0] if acked else 1 << 62
        # by other means: all ACKs with this number while the octet was under way, but the first
        again = [at for (at, ack), count in seen.acks_at.items() for _ in range(count) if ack == sent.seq]
        within = [at for at in sorted(again)[1:] if sent.time_ns <= at < until_ns]
        early = sorted(again)[0] >= sent.time_ns
        assert groups[-1].total == sum(group.count for group in groups) == len(within), (story.sentence(), early)
        checked += 1
    assert checked > 3


def test_an_octet_dropped_by_a_queue_has_a_transmission_without_a_frame(runs: Mapping[str, fadelab.Run]) -> None:
    found = Losses(timeline_of(runs["slacp"].folder))
    dropped = runs["slacp"].summary["link"]["up"]["congestion_losses"]
    assert dropped > 0
    timeline = timeline_of(runs["slacp"].folder)
    carried = {frame.packet for frame in timeline.frames}
    without = [timeline.packets[each.packet] for each in timeline.sent if each.packet not in carried]
    told = 0
    for packet in without:
        assert packet.offset is not None
        if not packet.length:
            continue
        events = found.of_octet("bulk", 0, packet.offset).events
        told += any(isinstance(event, Dropped) and event.dropped and event.packet == packet.number for event in events)
    assert told == dropped


def test_eln_shows_in_the_dupacks(tmp_path: Path) -> None:
    settings = {"link.scheme": "none", "link.filters": ["eln-ends"], "workloads": DOWN, "channel.per": 0.08}
    run = fadelab.run(LOSSY, tier="model", settings=settings, out=tmp_path)
    found = Losses(timeline_of(run.folder))
    told = [found.story(number) for number in range(1, len(found) + 1)]
    marked: set[tuple[int, int]] = {
        (event.time_ns, event.eln) for story in told for event in story.events if isinstance(event, Dupacks)
    }
    marks = sum(run.summary["link"][side]["eln_marks"] for side in SIDES)
    assert 0 < sum(eln for _, eln in marked) <= marks
    assert any("with ELN" in event.words() for story in told for event in story.events)


# -- sentences ---------------------------------------------------------------------------------------------------


def test_the_sentence_says_who_repaired_and_when(stories: Mapping[str, list[Story]]) -> None:
    quiet = [
        each
        for each in stories["slacp"]
        if not any(
            isinstance(event, Dupacks) or (isinstance(event, Window) and event.retransmits) for event in each.events
        )
    ]
    story = next(each for each in quiet if each.fate == "by the link" and each.octets and each.lost_frames == 1)
    lost = next(each for each in story.events if isinstance(each, Carried) and each.fate == "erased")
    crossed = next(each for each in story.events if isinstance(each, Crossed))
    assert story.octets is not None
    assert story.sentence() == (
        f"Octets {story.octets[0]} to {story.octets[1]} of flow bulk (h1 to h2) were lost on the air once, "
        f"repaired by the link {(crossed.time_ns - lost.time_ns) / 1e6:.1f} ms later, and TCP never noticed."
    )
    story = next(each for each in stories["none"] if each.fate == "by TCP" and each.octets)
    first, second, *_ = (each for each in story.events if isinstance(each, Sent))
    after = f"TCP sent them again {(second.time_ns - first.time_ns) / 1e6:.0f} ms after the first time ({second.reason}"
    assert after in story.sentence()
    assert "repaired by the link" not in story.sentence()


def test_a_lost_syn_is_told_with_all_its_transmissions(
    runs: Mapping[str, fadelab.Run], losses: Mapping[str, Losses]
) -> None:
    # RFC 6298 section 2.1: the first RTO is 1 s
    found = [loss for each in losses.values() for loss in each.all if loss.packet and "S" in (loss.packet.flags or "")]
    assert found
    for scheme, each in losses.items():
        for loss in each.all:
            if loss.packet is None or "S" not in (loss.packet.flags or ""):
                continue
            story = each.story(loss.number)
            sent = [event for event in story.events if isinstance(event, Sent)]
            assert [event.transmission for event in sent] == [*range(1, story.transmissions + 1)]
            if scheme == "none" and story.fate == "by TCP":
                assert sent[1].time_ns - sent[0].time_ns >= 1000 * MS
                assert story.sentence().startswith("SYN")


def test_an_octet_that_was_never_lost_crossed_at_once(runs: Mapping[str, fadelab.Run]) -> None:
    timeline = timeline_of(runs["slacp"].folder)
    found = Losses(timeline)
    lost = {frame.packet for frame in timeline.frames if frame.lost}
    carried = {frame.packet for frame in timeline.frames}
    packet = next(each for each in timeline.packets if each.length and each.number in carried - lost)
    story = found.of_octet("bulk", 0, packet.offset or 0)
    assert (story.fate, story.loss, list(story.losses)) == ("at once", None, [])
    assert "crossed at once, and were acknowledged after" in story.sentence()


# -- captures ----------------------------------------------------------------------------------------------------


def test_samples_and_figures_are_those_of_the_recording(tmp_path: Path) -> None:
    found = Losses(timeline_of(recorded(tmp_path, annotations=MARKS)))
    assert [loss.frame.fate for loss in found.all] == ["damaged", "erased"]
    story = found.story(1)
    assert list(story.losses) == [1, 2]
    frames = [event for event in story.events if isinstance(event, Carried)]
    assert [(each.fate, each.sample_start, each.sample_count) for each in frames] == [
        ("damaged", 60_000, 700),
        ("erased", None, None),
        ("ok", 80_200, 700),
    ]
    assert "SNR 7.5 dB, samples 60000 to 60699" in frames[0].words()
    [crossed] = [event for event in story.events if isinstance(event, Crossed)]
    assert (crossed.restored, crossed.frame, crossed.time_ns) == (True, 3, 35 * MS)


#: outcome and SNR of the radio's frames: the modelled medium erased the third of four before
ON_AIR = [("ok", 9.0), ("payload", 2.5), ("ok", 8.0)]


@pytest.mark.parametrize("heard", [0, 1])
def test_without_a_recording_the_channel_trace_tells_fates_and_snr(tmp_path: Path, heard: int) -> None:
    folder = recorded(tmp_path)
    sizes = [frame.nbytes for frame in timeline_of(folder).frames if frame.fate != "erased"]
    with TraceWriter(folder / "trace-up.parquet", link="up", producer="a test") as writer:
        # a receiver's trace begins with the first frame that it heard
        for size, (outcome, snr_db) in list(zip(sizes, ON_AIR, strict=True))[heard:]:
            writer.write(0, size, Outcome(outcome), snr_db, None)
    timeline = timeline_of(folder)
    assert [frame.fate for frame in timeline.frames] == ["ok", "damaged", "erased", "ok"]
    assert [frame.snr_db for frame in timeline.frames] == [9.0 if not heard else None, 2.5, None, 8.0]
    frames = [event for event in Losses(timeline).story(1).events if isinstance(event, Carried)]
    assert frames[0].exact
    assert frames[0].words().endswith("damaged, SNR 2.5 dB")


def test_a_trace_of_other_frames_tells_nothing(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    with TraceWriter(folder / "trace-up.parquet", link="up", producer="a test") as writer:
        for _ in range(3):
            writer.write(0, 5, Outcome.OK, 9.0, None)
    assert [frame.fate for frame in timeline_of(folder).frames] == ["ok", "unheard", "erased", "ok"]
    (folder / "trace-up.parquet").write_bytes(b"PAR1")
    with pytest.raises(FadelabError, match=r"trace-up\.parquet: not a complete Parquet file"):
        timeline_of(folder)


def test_frames_behind_the_last_that_arrived_were_under_way_and_are_not_lost(tmp_path: Path) -> None:
    timeline = timeline_of(recorded(tmp_path))
    assert [frame.fate for frame in timeline.frames] == ["ok", "unheard", "erased", "ok"]
    last = timeline.frames[-1]
    assert not replace(last, fate="under way").lost
    # the same, but that the end of the other station's capture came before the last frame
    other = tmp_path / "other"
    folder = recorded(other)
    capture = folder / "air-bas.pcapng"
    capture.write_bytes(capture.read_bytes()[: -(len(_last_block(capture)))])
    fates = [frame.fate for frame in timeline_of(folder).frames]
    assert fates == ["ok", "under way", "erased", "under way"]
    assert [loss.frame.fate for loss in Losses(timeline_of(folder)).all] == ["erased"]


def _last_block(capture: Path) -> bytes:
    """The last block of a pcapng file: its total length stands at its end."""
    octets = capture.read_bytes()
    return octets[-int.from_bytes(octets[-4:], "little") :]


# -- the command -------------------------------------------------------------------------------------------------


def test_without_a_selector_it_lists_the_losses_with_data(
    runs: Mapping[str, fadelab.Run], losses: Mapping[str, Losses], capsys: Capture
) -> None:
    folder = runs["none"].folder
    shown = done(capsys, "explain", folder)
    with_data = [loss for loss in losses["none"].all if loss.packet is not None and loss.packet.length]
    for loss in with_data[:30]:
        octets = loss.plain()["octets"]
        assert any(
            line.split()[:4] == [str(loss.number), f"{loss.frame.sent_ns / 1e9:.3f}", "up", "bulk"]
            and f"{octets[0]} to {octets[1]}" in line
            for line in shown.splitlines()
        )
    assert f"{len(with_data)} lost frames with data of TCP" in shown
    every = done(capsys, "explain", folder, "--all")
    numbers = [int(line.split()[0]) for line in every.splitlines() if line.strip()[:1].isdigit() and "erased" in line]
    assert numbers == [*range(1, len(losses["none"]) + 1)]


def test_json_has_the_same_losses_and_stories(
    runs: Mapping[str, fadelab.Run], losses: Mapping[str, Losses], capsys: Capture
) -> None:
    folder = runs["slacp"].folder
    told = json.loads(done(capsys, "explain", folder, "--json"))
    assert told["lost_frames"] == len(told["losses"]) == len(losses["slacp"])
    narrowed = json.loads(done(capsys, "explain", folder, "--direction", "down", "--fate", "by-the-link", "--json"))
    assert narrowed["losses"] == [
        each for each in told["losses"] if (each["direction"], each["fate"]) == ("down", "by the link")
    ]
    number = next(each["loss"] for each in told["losses"] if each["octets"])
    story = json.loads(done(capsys, "explain", folder, "--loss", str(number), "--json"))
    assert story["loss"] == number
    assert [event["time_ns"] for event in story["events"]] == sorted(event["time_ns"] for event in story["events"])
    kinds = {event["event"] for event in story["events"]}
    assert {"sent", "carried", "crossed", "acknowledged"} <= kinds
    by_octet = json.loads(done(capsys, "explain", folder, "--octet", str(story["octets"][0]), "--json"))
    assert by_octet["events"] == story["events"]
    assert (by_octet["loss"], by_octet["losses"]) == (None, story["losses"])


def test_a_time_leads_to_the_nearest_loss(
    runs: Mapping[str, fadelab.Run], losses: Mapping[str, Losses], capsys: Capture
) -> None:
    nearest = min(losses["slacp"].all, key=lambda loss: abs(loss.frame.sent_ns - 2_000_000_000))
    told = json.loads(done(capsys, "explain", runs["slacp"].folder, "--time", "2", "--json"))
    assert told["loss"] == nearest.number
    down = [loss for loss in losses["slacp"].all if loss.frame.side == "down"]
    nearest = min(down, key=lambda loss: abs(loss.frame.sent_ns - 2_000_000_000))
    told = json.loads(done(capsys, "explain", runs["slacp"].folder, "--time", "2", "--direction", "down", "--json"))
    assert told["loss"] == nearest.number


def test_the_story_on_the_screen_is_a_sentence_and_a_table(
    runs: Mapping[str, fadelab.Run], stories: Mapping[str, list[Story]], capsys: Capture
) -> None:
    story = next(each for each in stories["none"] if each.octets)
    shown = done(capsys, "explain", runs["none"].folder, "--loss", str(story.loss))
    words = " ".join(shown.split())
    assert words.startswith(story.sentence())
    for event in story.events:
        assert f"{event.time_ns / 1e9:.6f}" in words
        # words are wrapped within their column
        assert event.words().split()[0] in words


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--loss", "99999"), "loss 99999: there is none; "),
        (("--loss", "1", "--time", "2"), "--loss, --octet and --time each choose a story: give one of them"),
        (("--octet", "99999999999"), "no packet of flow 'bulk' has octet 99999999999; the flows are bulk"),
        (("--flow", "nothing"), "--flow nothing: there is none; the flows are bulk"),
        (("--connection", "1"), "--connection chooses an octet: give --octet, too"),
        (("--loss", "1", "--direction", "up"), "--direction is of the list, and one story is asked for"),
        (("--loss", "1", "--flow", "bulk"), "--flow is of the list"),
        (("--octet", "1", "--fate", "open"), "--fate is of the list"),
        (("--time", "1", "--all"), "--all is of the list"),
        (("--time", "1", "--fate", "not-sent"), "no such frame was lost"),
        (("--fate", "eaten"), "'eaten' is not one of"),
        (("--time", "nan"), "nan is not a finite number"),
    ],
)
def test_wrong_requests_are_one_line(
    words: tuple[str, ...], complaint: str, runs: Mapping[str, fadelab.Run], capsys: Capture
) -> None:
    assert complaint in refused(capsys, "explain", runs["none"].folder, *words)


def test_runs_without_what_is_needed_say_what_to_do(tmp_path: Path, capsys: Capture) -> None:
    folder = recorded(tmp_path)
    (folder / "air-bas.pcapng").unlink()
    assert "run its scenario again with --set capture=true" in refused(capsys, "explain", folder)
    assert "there is no such run" in refused(capsys, "explain", "nothing", "--out", tmp_path)


def test_a_run_without_losses_has_none_to_tell(tmp_path: Path, capsys: Capture) -> None:
    settings = {"workloads.0.duration_s": 0.5, "channel.per": 0}
    folder = fadelab.run(LOSSY, tier="model", settings=settings, out=tmp_path).folder
    assert "0 lost frames with data of TCP; 0 without." in done(capsys, "explain", folder)
    assert "has no losses" in refused(capsys, "explain", folder, "--loss", "1")
