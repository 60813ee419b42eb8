"""The demo's sentence: what it is about, by the records, and by scenes that stand for them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from common.units import MS, SECOND
from dashboard.breaks import BREAKS
from dashboard.commentary import Comment, Scene, comment_on, scene_of
from dashboard.curves import Curves
from telemetry.records import ControlRecord, FlowRecord, Record
from tests.harness.dashboard_runs import LINK
from tests.harness.records import recorded

FADE, BURST, INTERFERER = BREAKS
#: both under way for a while, on a good channel
BARE = Scene("none", time_s=60.0, goodput_bps=1.5e6, usual_bps=1.5e6)
REPAIRED = replace(BARE, scheme="slacp")


def kind(bare: dict[str, Any], repaired: dict[str, Any] | None = None) -> str:
    """The topic, for changes to the run without repair and to the one with it; by default the same."""
    scenes = replace(BARE, **bare), replace(REPAIRED, **(bare if repaired is None else repaired))
    # the order of the runs makes no difference
    assert comment_on(scenes) == comment_on(scenes[::-1])
    return comment_on(scenes).kind


def result(bare_bps: float | None, repaired_bps: float | None, **both: Any) -> Comment:
    over = {"live": False, "settled": True, **both}
    return comment_on([replace(BARE, result_bps=bare_bps, **over), replace(REPAIRED, result_bps=repaired_bps, **over)])


# -- the sentence ------------------------------------------------------------------------------------------------


def test_sentence_follows_a_run_from_start_to_result() -> None:
    assert kind({"time_s": None, "goodput_bps": None}) == "waiting"
    assert kind({"time_s": 2.0}) == "begin"
    assert kind({}) == "clear"
    assert kind({"loss": 0.1}) == "lossy"
    assert kind({"broken": FADE}) == "fade"
    assert kind({"broken": BURST}) == "burst"
    assert kind({"broken": INTERFERER}) == "interferer"
    assert kind({"mended_s": 1.0}) == "recovery"
    assert kind({"mended_s": 60.0}) == "clear"
    assert kind({"goodput_bps": 0.0}, {}) == "silent"
    assert kind({}, {"left": 0.05}) == "deep"
    assert kind({"live": False}, {}) == "half"
    assert kind({"live": False}) == "counting"
    assert kind({"live": False, "settled": True}) == "over"


def test_break_is_said_even_at_the_start() -> None:
    assert kind({"time_s": 2.0, "broken": BURST}) == "burst"


def test_slow_sender_without_repair_is_part_of_the_sentence() -> None:
    slow = replace(BARE, goodput_bps=0.5e6)
    for changes in ({"loss": 0.1}, {"broken": FADE}, {"broken": INTERFERER}, {"mended_s": 1.0}, {}):
        one, other = (comment_on([replace(bare, **changes), replace(REPAIRED, **changes)]) for bare in (BARE, slow))
        assert one.kind == other.kind
        assert "without" in other.plain.lower()
        assert one.plain != other.plain


def test_waiting_sender_is_said_after_a_break() -> None:
    silent = comment_on([replace(BARE, goodput_bps=0.0, mended_s=1.0), replace(REPAIRED, mended_s=1.0)])
    assert "still waits" in silent.plain
    assert "retransmission timeout" in silent.terms


@pytest.mark.parametrize(
    ("loss", "words"), [(0.1, "one packet in 10."), (0.25, "one packet in 4."), (0.9, "nearly every")]
)
def test_loss_is_said_as_packets(loss: float, words: str) -> None:
    comment = comment_on([replace(BARE, loss=loss), REPAIRED])
    assert words in comment.plain
    assert f"PER {100 * loss:.0f} %" in comment.terms


def test_result_names_the_ratio_and_both_goodputs() -> None:
    better = result(0.8e6, 1.52e6)
    assert "1.9 times as much" in better.plain
    assert "SLACP 1.52 Mbit/s, no repair 0.80 Mbit/s" in better.terms
    assert "about the same" in result(1.5e6, 1.52e6).plain
    assert "less" in result(1.5e6, 1.0e6).plain
    for bare_bps, repaired_bps in ((0.0, 1e6), (1e6, 0.0), (None, 1e6)):
        assert "not both" in result(bare_bps, repaired_bps).plain
    assert "failed" in result(1e6, None, failed=True).plain


def test_other_runs_are_named() -> None:
    assert comment_on([]).kind == "none"
    assert comment_on([REPAIRED]).plain == "Under way: SLACP."
    assert comment_on([REPAIRED, replace(REPAIRED, scheme="snoop")]).plain == "Under way: SLACP and Snoop."
    assert comment_on([replace(BARE, live=False)]).kind == "over"


def test_every_sentence_can_be_read_across_a_room() -> None:
    """All states crossed: each has a sentence, in words without terms, short enough for two lines."""
    losses, goodputs, times = (0.0, 0.005, 0.1, 1.0), (None, 0.0, 0.5e6, 1.5e6), (None, 1.0, 60.0)
    breaks, mended = (None, *BREAKS), (None, 1.0, 60.0)
    ends: tuple[dict[str, bool], ...] = ({}, {"live": False}, {"live": False, "settled": True})
    said = set()
    for loss, goodput, time_s, broken, mended_s, end in product(losses, goodputs, times, breaks, mended, ends):
        common: dict[str, Any] = {"loss": loss, "time_s": time_s, "broken": broken, "mended_s": mended_s, **end}
        bare = replace(BARE, goodput_bps=goodput, result_bps=goodput, **common)
        said.add(comment_on([bare, replace(REPAIRED, result_bps=1e6, left=loss / 10, **common)]))
    assert len({comment.kind for comment in said}) > 10
    for comment in said:
        assert len(comment.plain) <= 115, comment
        assert len(comment.terms) <= 125, comment
        for term in ("SLACP", "TCP", "PER", "cwnd", "RTO", "SNR", "frame", "goodput"):
            assert term not in comment.plain
        for line in (comment.plain, comment.terms):
            assert line[0].isupper()
            assert line.endswith(".")


# -- the records -------------------------------------------------------------------------------------------------


def curves_of(records: Sequence[Record]) -> Curves:
    curves = Curves()
    curves.take(records)
    return curves


def described(**changes: Any) -> dict[str, Any]:
    return {"scheme": "none", "tcp": "", "live": True, "ended": None, **changes}


def test_scene_has_the_figures_of_the_last_seconds() -> None:
    records: list[Record] = []
    # 1 Mbit/s for 20 s, then nothing; in the last 10 s each fifth frame is lost, half of the losses for good
    for step in range(300):
        time_ns = step * 100 * MS
        received = 12_500 * min(step, 200)
        records.append(recorded(FlowRecord, time_ns=time_ns, host="h2", flow="bulk", bytes_received=received))
        lost = 2 * max(0, step - 200)
        sent = replace(LINK, time_ns=time_ns, frames=10 * step, packets=10 * step)
        records.append(replace(sent, corruption_losses=lost, residual_losses=lost // 2))
        records.append(replace(LINK, time_ns=time_ns, link="down", throughput_bps=1e3))
    early, late = (scene_of(described(), curves_of(records[:end])) for end in (3 * 150, len(records)))
    assert early.goodput_bps == pytest.approx(1e6, rel=0.01)
    assert (early.loss, early.left) == (0, 0)
    assert late.time_s == pytest.approx(29.9)
    assert late.goodput_bps == 0
    assert late.usual_bps == pytest.approx(1e6, rel=0.01)
    assert late.loss == pytest.approx(0.2)
    assert late.left == pytest.approx(0.1)


def test_scene_without_records_is_that_of_the_run() -> None:
    ended = {"error": None, "summary": {"goodput_bps": 2e6}}
    assert scene_of(described(), Curves()) == Scene("none")
    assert scene_of(described(live=False, ended=ended), Curves()) == Scene(
        "none", live=False, settled=True, result_bps=2e6
    )
    failed = scene_of(described(live=False, ended={"error": "no air", "summary": None}), Curves())
    assert (failed.failed, failed.result_bps) == (True, None)


def test_break_is_seen_by_the_changes_of_controls() -> None:
    def scene(*changes: tuple[float, str, str]) -> Scene:
        notes = [
            recorded(ControlRecord, time_ns=int(at * SECOND), name=name, value=value) for at, name, value in changes
        ]
        return scene_of(
            described(), curves_of([*notes, replace(LINK, time_ns=20 * SECOND), replace(LINK, time_ns=21 * SECOND)])
        )

    assert (scene().broken, scene().mended_s) == (None, None)
    # somebody moves a slider, but not to the value of a break
    assert scene((5, "snr_db", "14.0")).broken is None
    assert scene((5, "snr_db", f"{FADE.value}")).broken is FADE
    over = scene((5, "snr_db", f"{FADE.value}"), (11, "snr_db", "15.0"))
    assert (over.broken, over.mended_s) == (None, 10.0)
    again = scene((5, "snr_db", f"{FADE.value}"), (11, "snr_db", "15.0"), (15, "per", f"{INTERFERER.value}"))
    assert (again.broken, again.mended_s) == (INTERFERER, None)
