"""The stories of a real run: they agree with its captures as tshark reads them, and with the run's counters."""

import pytest

from common.sides import SIDES
from testbed.exports.losses import Losses
from testbed.exports.source import timeline_of
from testbed.exports.story import Acknowledged, Carried, Sent
from testbed.results.summary import Summary
from testbed.running import run_once
from tests.harness.live_runs import folder_of, tell_lateness
from tests.harness.scenarios import scenario
from tests.harness.tshark import needs_tshark, rows
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, needs_tshark, pytest.mark.light]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    made = scenario(
        capture=True, channel={"per": 0.1}, link={"scheme": "slacp"}, workloads=[{"kind": "bulk", "duration_s": 4}]
    )
    summary = run_once(made, tmp_path_factory.mktemp("runs"), lambda progress: None)
    tell_lateness(summary)
    return summary


def test_stories_agree_with_the_captures_as_tshark_reads_them(run: Summary) -> None:
    folder = folder_of(run)
    timeline = timeline_of(folder)
    found = Losses(timeline)
    told = [found.story(number) for number in range(1, len(found) + 1)]
    assert len(told) == sum(run.link[side].corruption_losses for side in SIDES) > 20
    assert timeline.epoch_ns is not None
    for side, station in (("up", "st"), ("down", "bas")):
        #: sequence number, fate, IP identification, by the frame's time; the sender's own capture
        on_air: dict[int, tuple[str, str, str]] = {}
        fields = ("frame.time_epoch", "frame.comment", "tcp.seq_raw", "ip.id")
        sent_here = "frame.packet_flags_direction == 2"
        for row in rows(folder / f"air-{station}.pcapng", *fields, where=sent_here):
            seconds, _, nanoseconds = row["frame.time_epoch"][0].partition(".")
            at = int(seconds) * 10**9 + int(nanoseconds.ljust(9, "0")) - timeline.epoch_ns
            seq, ip_id = (row.get(field, [""])[0] for field in fields[2:])
            on_air[at] = row["frame.comment"][0], seq, ip_id
        lost = [at for at, (comment, _, _) in on_air.items() if "by the channel" in comment]
        assert [loss.frame.sent_ns for loss in found.all if loss.frame.side == side] == sorted(lost)
        for story in told:
            if story.side != side or story.octets is None:
                continue
            sent = {event.packet: event for event in story.events if isinstance(event, Sent)}
            assert len(sent) == story.transmissions
            ids = {}
            for event in story.events:
                if not isinstance(event, Carried):
                    continue
                comment, seq, ip_id = on_air[event.time_ns]
                assert ("erased by the channel" in comment) == (event.fate == "erased")
                if event.packet is None:
                    assert "FEC" in comment
                elif seq:
                    assert int(seq) == sent[event.packet].seq
                    assert sent[event.packet].time_ns == event.start_ns
                    ids[event.packet] = ip_id
                else:
                    # the dissector shows TCP a packet once
                    assert "retransmission of packet" in comment
            # TCP's retransmission is another IP packet
            assert len(set(ids.values())) == len(ids) == len(sent)


def test_acknowledgements_came_over_the_air(run: Summary) -> None:
    folder = folder_of(run)
    heard = {
        int(row["tcp.ack_raw"][0])
        for row in rows(folder / "air-st.pcapng", "tcp.ack_raw", where="frame.packet_flags_direction == 1")
        if "tcp.ack_raw" in row
    }
    found = Losses(timeline_of(folder))
    events = [event for number in range(1, len(found) + 1) for event in found.story(number).events]
    acked = [event for event in events if isinstance(event, Acknowledged)]
    assert len(acked) > 10
    assert {event.ack for event in acked} <= heard
    assert {event.place for event in acked} == {"ST"}
