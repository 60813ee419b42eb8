"""Ground truth: losses and guesses, merged by time and counted."""

from typing import Any

import pytest

from common.sequence import MASK
from linklayer.filters.eln import Marker
from linklayer.filters.filter import Cause, Guess, Loss
from linklayer.filters.filtered import Filtered
from linklayer.plain import Plain
from linklayer.schemes import SCHEMES
from tcpip.access import Access, Objects, Octets
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment
from tcpip.wire import emit
from testbed.results.ground_truth import CAUSES, MAX_FLOWS, MAX_RANGES, GuessScore, LossGuessMerger, LossReporter
from testbed.simulation import simulate
from tests.harness.model_runs import model

FLOW = Flow(1, 10, 2, 20)
MSS = 100


def loss(at: int, seq: int, cause: Cause, flow: Flow = FLOW) -> Loss:
    return Loss(at, flow, seq & MASK, seq + MSS & MASK, cause)


def guess(at: int, seq: int, cause: Cause, by: str = "eln") -> Guess:
    return Guess(at, FLOW, seq & MASK, cause, by)


def counted(score: GuessScore) -> dict[tuple[str, Cause, Cause], int]:
    """All counts above 0, by filter, true cause and guessed cause."""
    return {
        (name, truth, guessed): n
        for name, rows in score.confusion().items()
        for truth, row in rows.items()
        for guessed, n in row.items()
        if n
    }


LATE_GUESS = ("eln", "late", "corruption")
RIGHT = {cause: ("eln", cause, cause) for cause in CAUSES}
#: numbers wrap in the segment from here on
WRAPS = MASK - MSS // 2


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        pytest.param(
            [
                *(loss(1, seq, "congestion") for seq in (0, MSS, 2 * MSS)),
                loss(2, MSS, "corruption"),
                guess(3, 0, "congestion"),
                *(guess(3, seq, "corruption") for seq in (MSS, 2 * MSS, 3 * MSS)),
            ],
            {
                RIGHT["congestion"]: 1,
                RIGHT["corruption"]: 1,
                ("eln", "congestion", "corruption"): 1,
                LATE_GUESS: 1,
            },
            id="the last loss counts",
        ),
        pytest.param(
            [
                loss(1, 0, "corruption"),
                *(guess(2, 0, "corruption", by) for by in ("eln", "eln", "snoop")),
                loss(3, 0, "corruption"),
                guess(4, 0, "corruption"),
            ],
            {RIGHT["corruption"]: 2, LATE_GUESS: 1, ("snoop", "corruption", "corruption"): 1},
            id="each guesses a loss once",
        ),
        pytest.param(
            [
                loss(1, 0, "corruption"),
                *(guess(2, 0, "late"), guess(3, 0, "late"), guess(4, 0, "corruption"), guess(5, 0, "corruption")),
            ],
            {("eln", "corruption", "late"): 2, RIGHT["corruption"]: 1, LATE_GUESS: 1},
            id="a loss taken for late can be guessed yet",
        ),
        pytest.param(
            [
                loss(1, WRAPS, "corruption"),
                *(loss(1, WRAPS + MSS, "congestion"), loss(1, WRAPS + MSS, "corruption", FLOW.reversed())),
                *(guess(2, WRAPS + MSS, "congestion"), guess(2, WRAPS, "corruption")),
            ],
            {RIGHT["congestion"]: 1, RIGHT["corruption"]: 1},
            id="numbers wrap and flows are apart",
        ),
    ],
)
def test_guesses_are_compared_with_losses(events: list[Loss | Guess], counts: dict[Any, int]) -> None:
    score = GuessScore()
    for event in events:
        score.handle_loss(event) if isinstance(event, Loss) else score.handle_guess(event)
    assert counted(score) == counts
    assert all(tuple(rows) == CAUSES for rows in score.confusion().values())


def test_what_is_remembered_is_bounded() -> None:
    score = GuessScore()
    for port in range(2 * MAX_FLOWS):
        score.handle_loss(loss(1, 0, "corruption", FLOW._replace(source_port=port)))
    for n in range(2 * MAX_RANGES):
        score.handle_loss(loss(1, 2 * n * MSS, "corruption"))
    assert len(score._losses._flows) == MAX_FLOWS
    assert len(score._losses._flows[FLOW].by_cause["corruption"]) == MAX_RANGES
    # the oldest went
    last = (4 * MAX_RANGES - 2) * MSS
    score.handle_guess(guess(2, 0, "corruption"))
    score.handle_guess(guess(2, last, "corruption"))
    score.handle_guess(guess(2, last - 2 * MSS, "corruption"))
    assert counted(score) == {("eln", "late", "corruption"): 1, ("eln", "corruption", "corruption"): 2}


def test_losses_well_below_a_guess_are_forgotten() -> None:
    score = GuessScore()
    for n in range(1000):
        score.handle_loss(loss(1, n * 10_000, "corruption"))
    score.handle_guess(guess(2, 9_990_000, "corruption"))
    score.handle_guess(guess(2, 9_000_000, "corruption"))
    score.handle_guess(guess(2, 9_800_000, "corruption"))
    assert counted(score) == {("eln", "late", "corruption"): 1, ("eln", "corruption", "corruption"): 2}
    assert len(score._losses._flows[FLOW].by_cause["corruption"]) < 30


def test_losses_and_guesses_of_several_stations_are_merged_by_time() -> None:
    score = GuessScore()
    merger = LossGuessMerger(score)
    # the guess comes in before the loss of the other station
    merger.handle(guess(10, 0, "corruption"))
    merger.handle(guess(10, MSS, "corruption"))
    merger.settle(10)
    assert counted(score) == {}
    merger.handle(loss(9, 0, "congestion"))
    merger.handle(loss(10, 0, "corruption"))
    merger.handle(loss(11, MSS, "corruption"))
    merger.settle(12)
    assert counted(score) == {("eln", "corruption", "corruption"): 1, ("eln", "late", "corruption"): 1}


@pytest.mark.parametrize("access", [Objects(), Octets()], ids=["objects", "octets"])
def test_losses_of_segments_without_sequence_numbers_are_not_reported(access: Access) -> None:
    losses: list[Loss] = []
    guesses: list[Guess] = []
    reporter = LossReporter(access, SCHEMES["snoop"], losses.append, guesses.append)

    def packet(flags: int, length: int) -> Any:
        segment = Segment(FLOW, MASK, 5, flags, 9, length, bytes(length))
        return emit(segment) if isinstance(access, Octets) else segment

    reporter.dropped(packet(ACK, 0), 1)
    reporter.dropped(packet(RST, 0), 1)
    reporter.dropped(b"", 1)
    reporter.dropped(packet(SYN, 0), 2)
    reporter.taken(packet(ACK, 10), 3)
    reporter.given_up(packet(ACK | FIN, 10), 4)
    assert losses == [
        Loss(2, FLOW, MASK, 0, "congestion"),
        Loss(3, FLOW, MASK, 9, "corruption"),
        Loss(4, FLOW, MASK, 10, "corruption"),
    ]
    reporter.guessed(Guess(5, FLOW, 7, "late"))
    reporter.guessed(guess(6, 7, "late"))
    assert [each.by for each in guesses] == ["snoop", "eln"]


def test_a_lost_frame_is_no_lost_segment_where_the_link_repairs() -> None:
    losses: list[Loss] = []
    reporter = LossReporter(Objects(), SCHEMES["slacp"], losses.append, lambda guess: None)
    reporter.taken(Segment(FLOW, 0, 0, ACK, 9, 10), 1)
    assert losses == []


@pytest.mark.parametrize("tcp", ["reno", "newreno", "sack"])
@pytest.mark.parametrize("scheme", ["none", "slacp"])
def test_eln_marker_guesses_the_losses_of_its_own_link(scheme: str, tcp: str) -> None:
    # on the air and in its queue
    run = model(
        tcp=tcp,
        link={"scheme": scheme, "eln": "ends", "ip_queue_bytes": 9000},
        channel={"rate_bps": 2_000_000, "delay_ms": 20, "per": 0.01 if scheme == "none" else 0.25},
        workloads=[{"kind": "bulk", "bytes": 700_000, "direction": "down", "start_s": start_s} for start_s in (0, 1)],
    )
    summary = simulate(run)
    assert summary.confusion is not None
    rows, link = summary.confusion["eln"], summary.link["down"]
    assert link.congestion_losses > 5
    assert link.residual_losses > 0
    assert rows["corruption"]["corruption"] > 0
    assert rows["congestion"]["congestion"] > 5
    # a segment that its queue drops and then the link loses, before any filter can notice, is two losses and one guess
    wrong = sum(n for truth, row in rows.items() for guessed, n in row.items() if guessed != truth)
    assert wrong <= 0.02 * sum(n for row in rows.values() for n in row.values()) + 1
    assert sum(rows["corruption"].values()) <= link.residual_losses
    assert sum(rows["congestion"].values()) <= link.congestion_losses
    assert link.eln_marks >= rows["corruption"]["corruption"]
    # the mobile end has sent nothing that could be lost but ACKs
    assert summary.link["up"].eln_marks == 0


def test_marker_at_base_alone_takes_queue_drops_of_mobile_end_for_corruption() -> None:
    workloads = [{"kind": "bulk", "bytes": 1_500_000, "direction": "up"}]
    channel = {"rate_bps": 2_000_000, "delay_ms": 20, "per": 0.02}
    found = {}
    for eln in ("ends", "base"):
        link = {"scheme": "none", "eln": eln, "ip_queue_bytes": 64_000}
        summary = simulate(model(link=link, channel=channel, workloads=workloads, mtu=1500))
        assert summary.confusion is not None
        found[eln] = summary.confusion["eln"]
        assert found[eln]["corruption"]["corruption"] > 5
        assert summary.link["up" if eln == "ends" else "down"].eln_marks > 5
        assert summary.link["down" if eln == "ends" else "up"].eln_marks == 0
    crowded = {**channel, "per": 0.0, "mac_buffer_bytes": 4000}
    link = {"scheme": "none", "eln": "base"}
    summary = simulate(model(link=link, channel=crowded, workloads=workloads))
    assert summary.confusion is not None
    assert summary.confusion["eln"]["congestion"]["corruption"] > 0


def test_filters_change_without_loss_under_way() -> None:
    marker = Marker(Objects())
    link = Filtered(Plain(), (marker,))
    assert link.flow_control
    marker.counters.eln_marks = 3
    first, second = Segment(FLOW, 0, 0, ACK, 9, 10), Segment(FLOW, 10, 0, ACK, 9, 10)
    link.handle_packet(first, 0)
    link.refit(())
    assert not link.flow_control
    assert link.counters().eln_marks == 3
    frames = [link.poll_frame(1)]
    link.handle_packet(second, 0)
    frames.append(link.poll_frame(2))
    assert [frame.payload for frame in frames if frame is not None] == [first, second]
    link.handle_frame(frames[0], 3)
    assert link.poll_packet() == (first, 0)
    again = Marker(Objects())
    again.counters.eln_marks = 2
    link.refit((again,))
    assert (link.flow_control, link.counters().eln_marks) == (True, 5)
    link.refit((again,))
    assert link.counters().eln_marks == 5
