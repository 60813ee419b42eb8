"""Tables and plots, from results and records made here."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from telemetry.parquet import ParquetSink
from telemetry.records import FlowRecord, LinkRecord, PhyRecord, TcpRecord
from testbed.results import show
from testbed.results.ground_truth import CAUSES
from testbed.results.summary import Summary
from testbed.run_hooks import Progress
from testbed.scenario.schema import error_part
from tests.harness.records import recorded
from tests.harness.scenarios import FLOW, LINK, scenario, summary


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (0, "0 bit/s"),
        (999, "999 bit/s"),
        (1000, "1.00 kbit/s"),
        (128_000, "128.00 kbit/s"),
        (2_000_000, "2.00 Mbit/s"),
        (1.5e9, "1.50 Gbit/s"),
    ],
)
def test_rate(bps: float, text: str) -> None:
    assert show.rate(bps) == text


def test_mean_rate_covers_the_last_window() -> None:
    times = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    totals = [0, 0, 125_000, 250_000, 250_000, 250_000]
    assert show.mean_rate(times, totals) == (times, [0.0, 0.0, 1.0, 2.0, 1.0, 0.0])


def test_flow_totals_add_up_over_flows(tmp_path: Path) -> None:
    with ParquetSink(tmp_path, {}) as sink:
        for time_ns, flow, received in ((1, "a", 10), (1, "b", 5), (2, "a", 20), (3, "b", 7)):
            sink.write(recorded(FlowRecord, time_ns=time_ns * 10**9, host="h2", flow=flow, bytes_received=received))
    assert show.flow_totals(tmp_path) == ([0, 1, 1, 2, 3], [0, 10, 15, 25, 27])


def test_errors_in_words() -> None:
    assert show.errors_in_words(error_part("bernoulli", per=0.05)) == "PER 5 %"
    words = show.errors_in_words(error_part("gilbert-elliott", good_ms=2000, bad_ms=60))
    assert words == "errors gilbert-elliott good_ms 2000.0 bad_ms 60.0 good_per 0.0 bad_per 1.0"


def printed(what: Any, width: int = 80) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(what)
    return console.export_text()


def rendered(summaries: list[Summary], width: int = 80) -> str:
    return printed(show.table(summaries, "the same 40 s without and with SLACP"), width)


def test_a_table_fits_80_columns() -> None:
    crowded = summary(
        goodput_bps=999_994_000.0,
        capacity_bps=1_000_000_000,
        duration_s=1799.9,
        finished=False,
        retransmissions=99_999,
        timeouts=999,
        late_events=0,
        link={"up": LINK.__class__(1e9, 9, 9, 99_999, 99_999, 1, 1, 1, 1, 0.999, 0.9999)},
    )
    for summaries in ([summary(), crowded], [summary(), summary(seed=2), summary(scheme="none", seed=100)]):
        text = rendered(summaries)
        assert "…" not in text
        for s in summaries:
            assert s.scheme in text
            assert show.rate(s.goodput_bps) in text
        assert max(map(len, text.splitlines())) <= 80


def test_a_table_says_what_happened() -> None:
    text = rendered([summary()])
    for piece in ("slacp", "2.00 Mbit/s", "91 %", "4.0 s", "10.0 %", "0.14 %"):
        assert piece in text
    assert "(cut)" not in text
    assert "(cut)" in rendered([summary(finished=False)], width=100)
    lost = "end-to-end ACK semantics are lost"
    assert lost not in " ".join(text.split())
    assert lost in " ".join(rendered([summary(end_to_end_acks=False)]).split())


def test_a_table_of_repetitions_has_medians() -> None:
    text = rendered([summary(seed=n, goodput_bps=n * 1e6) for n in (1, 2, 9)])
    [line] = [line for line in text.splitlines() if "median" in line]
    assert "2.00 Mbit/s" in line
    assert "seed 9" in text


def test_median_of_runs_that_were_cut_off_is_never() -> None:
    cut = {"finished": False, "flows": (replace(FLOW, finished=False),)}
    [line] = [line for line in rendered([summary(**cut), summary(**cut), summary()]).splitlines() if "median" in line]
    assert "never" in line
    [line] = [line for line in rendered([summary(**cut), summary(), summary()]).splitlines() if "median" in line]
    assert "4.0 s" in line


def test_warnings() -> None:
    assert show.warnings([summary()]) == []
    bad = summary(on_time=False, late_events=30, max_late_ms=44.4, intact=False, finished=False)
    late, cut = show.warnings([bad])
    assert "30 of 1000 events were late (worst 44 ms)" in late
    assert "limit_s" in cut
    assert show.warnings([bad], late=False) == [cut]
    assert "was changed 2 times while it ran" in show.warnings([summary(changes=2)])[0]
    [other] = show.warnings([summary(flows=(FLOW, replace(FLOW, flow="bulk-2", fallback="it was Reno")))])
    assert other.endswith(": flow bulk-2: it was Reno")


def test_lateness_of_all_runs_is_one_line() -> None:
    good = summary()
    few = summary(late_events=3, events=1000, max_late_ms=12.4)
    many = summary(late_events=34, events=2891, max_late_ms=44.4, on_time=False)
    labels = ["without SLACP", "with SLACP"]
    assert show.lateness(labels, [good, good]) == []
    [line] = show.lateness(labels, [good, few])
    words = "with SLACP 3 of 1000 (worst 12 ms); few enough to trust the figures"
    assert line == f"this machine was late for some events: {words}"
    [line] = show.lateness(labels, [many, few])
    assert "without SLACP 34 of 2891 (worst 44 ms), with SLACP 3 of 1000 (worst 12 ms); it did not keep up" in line


@pytest.mark.parametrize(
    ("bare_bps", "slacp_bps", "sentence"),
    [
        (0.5e6, 1.75e6, "SLACP carried [bold]3.5 times[/] the data in the same time."),
        (1, 1e6, "SLACP carried [bold]1000000.0 times[/] the data in the same time."),
        (1e6, 1.05e6, "SLACP carried [bold]1.1 times[/] the data in the same time."),
        (1e6, 1.04e6, "SLACP carried about as much data in the same time."),
        (1e6, 0.95e6, "SLACP carried about as much data in the same time."),
        (1e6, 0.94e6, "SLACP carried less: [bold]0.94 times[/] the data in the same time."),
        (1e6, 0.8e6, "SLACP carried less: [bold]0.8 times[/] the data in the same time."),
        (1e6, 3.4e4, "SLACP carried less: [bold]0.034 times[/] the data in the same time."),
        (0.0, 1.2e6, "Without SLACP no data got across; with SLACP [bold]1.20 Mbit/s[/] did."),
        (1.2e6, 0.0, "With SLACP no data got across; without it [bold]1.20 Mbit/s[/] did."),
        (0.0, 0.0, "Neither run carried any data."),
    ],
)
def test_demo_sentence_compares_goodputs(bare_bps: float, slacp_bps: float, sentence: str) -> None:
    assert show.comparison(bare_bps, slacp_bps) == sentence


@pytest.mark.parametrize(
    ("tier", "channel", "words"),
    [
        ("model", {"per": 0.1}, ", PER 10 %"),
        ("emulated", {}, ""),
        ("vusrp", {"snr_db": 12.5}, ", ofdm qpsk at 2.5 Msps, SNR 12.5 dB"),
        (
            "vusrp",
            {"fading": {"profile": "epa", "doppler_hz": 5}},
            ", ofdm qpsk at 2.5 Msps, SNR 40 dB, epa fading, Doppler 5 Hz",
        ),
        ("usrp", {}, ", ofdm qpsk at 2.5 Msps"),
    ],
)
def test_medium_in_words(tier: str, channel: dict[str, Any], words: str) -> None:
    assert show.medium_in_words(scenario(tier=tier, channel=channel)) == f"2.00 Mbit/s, 25 ms each way{words}"


@pytest.mark.slow
def test_plot_has_the_records_in_its_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ParquetSink(tmp_path, {}) as sink:
        sink.begin(0)
        for second in (1, 2, 3):
            now = {"time_ns": second * 1_000_000_000}
            sink.write(recorded(FlowRecord, **now, flow="a", bytes_received=second * 500_000))
            sink.write(recorded(TcpRecord, **now, flow="a", cwnd_bytes=second * 2048))
            for link in ("up", "down"):
                counters = {"corruption_losses": second, "residual_losses": 10 * second, "congestion_losses": 7}
                sink.write(recorded(LinkRecord, **now, link=link, **(counters if link == "up" else {})))
                of_up = {"snr_db": 20.0 + second, "per": second / 10}
                sink.write(recorded(PhyRecord, **now, link=link, **(of_up if link == "up" else {"per": 1.0})))
    figures: list[Any] = []
    monkeypatch.setattr(show.pyplot(), "close", figures.append)
    show.plot([("run", tmp_path)], tmp_path / "plot.png", "title")
    show.plot([("run", tmp_path)], tmp_path / "plot.png", "title", "down")
    figure, down = figures
    assert "Lost since the start, link down" in [axis.get_title("left") for axis in down.axes]
    assert {y for axis in down.axes[4:] for line in axis.lines for y in line.get_ydata() if y is not None} == {100}
    drawn = {axis.get_title("left"): axis for axis in figure.axes}
    lines = {
        title: [[tuple(point) for point in line.get_xydata()] for line in axis.lines if len(line.get_xdata())]
        for title, axis in drawn.items()
    }
    assert lines.pop("Goodput of all flows (1 s mean)") == [[(0, 0), (1, 4), (2, 4), (3, 4)]]
    assert lines.pop("Received by all flows") == [[(0, 0), (1, 0.5), (2, 1), (3, 1.5)]]
    assert lines.pop("cwnd") == [[(1, 2), (2, 4), (3, 6)]]
    assert lines.pop("Lost since the start, link up") == [
        [(1, 1), (2, 2), (3, 3)], [(1, 10), (2, 20), (3, 30)], [(1, 7), (2, 7), (3, 7)],
    ]  # fmt: skip
    assert lines.pop("SNR of the frames heard, link up") == [[(1, 21), (2, 22), (3, 23)]]
    # of the frames of the last second
    [per] = lines.pop("Frames lost on the air (1 s mean), link up")
    assert [round(share) for _, share in per] == [10, 15, 25]
    assert not lines
    assert [axis.get_ylabel() for axis in figure.axes] == ["Mbit/s", "MB", "KiB", "frames or packets", "dB", "%"]
    assert [axis.get_ylim()[0] == 0 for axis in figure.axes] == [True, True, True, True, False, True]


def test_plot_of_a_run_without_records(tmp_path: Path) -> None:
    target = tmp_path / "plot.png"
    show.plot([("nothing", tmp_path)], target, "nothing")
    assert target.stat().st_size > 1000


def test_progress_goes_to_stderr_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wall_s = 100.0
    monkeypatch.setattr(show, "monotonic", lambda: wall_s)
    with show.progress(["one", "two"]) as bars:
        for bar in bars:
            bar(Progress(phase="running", elapsed_s=3600.0))
        wall_s += 11
        for bar, expected in zip(bars, (20.0, None), strict=True):
            bar(Progress(phase="running", elapsed_s=11.0, expected_s=expected, bytes_received=5, goodput_bps=1e6))
    shown = capsys.readouterr()
    assert shown.out == ""
    one, two = shown.err.splitlines()
    assert one.split() == ["one:", "11.0", "s", "1.00", "Mbit/s", "55", "%"]
    assert two.split() == ["two:", "11.0", "s", "1.00", "Mbit/s"]


def test_guesses_of_several_runs_are_added_up() -> None:
    nothing = dict.fromkeys(CAUSES, 0)
    one = {"eln": {**dict.fromkeys(CAUSES, nothing), "corruption": {"corruption": 30, "congestion": 2, "late": 1}}}
    two = {
        "eln": {**dict.fromkeys(CAUSES, nothing), "corruption": {"corruption": 9, "congestion": 0, "late": 0}},
        "snoop": {**dict.fromkeys(CAUSES, nothing), "late": {"corruption": 4, "congestion": 0, "late": 0}},
    }
    grid = show.guesses([summary(confusion=each) for each in (one, two, {}, None)])
    lines = [line.split() for line in printed(grid).splitlines()]
    assert ["eln", "corruption", "39", "2", "1"] in lines
    assert ["snoop", "late", "4", "0", "0"] in lines
    # what nobody met has no line
    assert len([line for line in lines if line and line[0] in ("eln", "snoop")]) == 2


def test_unknown_truth_is_reported() -> None:
    assert show.guesses([summary(), summary()]) is None
    assert show.guesses([summary(confusion=None)]) == show.TRUTH_UNKNOWN


def test_a_dollar_sign_in_a_label_is_one(tmp_path: Path) -> None:
    show.plot([(r"$\x$", tmp_path)], tmp_path / "plot.png", r"costs $\x$")
    assert (tmp_path / "plot.png").stat().st_size > 10_000
    # axes of logarithms have powers, in figures of papers too
    figure, axis = show.pyplot().subplots()
    axis.set(xscale="log", xlim=(1e-3, 1))
    assert axis.get_xticklabels()[0].get_parse_math()
    show.pyplot().close(figure)
