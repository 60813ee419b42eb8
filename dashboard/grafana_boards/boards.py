"""The boards, row by row. A chart without a row comes last, on the board of its records."""

import json
from collections.abc import Iterator
from typing import Any

from common.sides import SIDES
from dashboard.charts import ALL, Line, Percentile, Share
from dashboard.grafana_boards import influxql
from dashboard.grafana_boards.alerts import alerting
from dashboard.grafana_boards.campaigns import campaigns
from dashboard.grafana_boards.frame import OLDEST_SCHEMA, Row, board
from dashboard.grafana_boards.influxql import COMPARED, REPEATED, RUN, SEVERAL
from dashboard.grafana_boards.panels import (
    LOSS,
    SNR,
    Panel,
    bars,
    bars_of_two,
    charts,
    from_zero,
    headline,
    states,
    table_of_runs,
)
from dashboard.grafana_boards.provisioning import DASHBOARDS, DATASOURCES
from telemetry.records import AccessRecord, BeliefRecord, FlowRecord, LinkRecord, PhyRecord, StationRecord, TcpRecord

#: the boards of one run, by uid
OF_RUN = {
    "fadelab-overview": "Overview",
    "fadelab-tcp": "TCP",
    "fadelab-link": "Link layer",
    "fadelab-radio": "Radio and stations",
}


#: where a chart is that no row names, by the records of its first line
_FURTHER = {
    LinkRecord: "link",
    BeliefRecord: "link",
    TcpRecord: "tcp",
    FlowRecord: "tcp",
    PhyRecord: "radio",
    AccessRecord: "radio",
    StationRecord: "radio",
}


def files(*, named_in: str | None = None) -> dict[str, str]:
    """Return Grafana's files by their paths below `dashboard/grafana`; `named_in`: as `make` takes it."""
    found = {
        "provisioning/datasources/fadelab.yaml": DATASOURCES,
        "provisioning/dashboards/fadelab.yaml": DASHBOARDS,
        "provisioning/alerting/fadelab.yaml": alerting(),
    }
    for name, made in make(OLDEST_SCHEMA, named_in=named_in).items():
        found[f"boards/{name}.json"] = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    return found


def make(schema: int, *, named_in: str | None = None) -> dict[str, dict[str, Any]]:
    """Return all boards by their names, for one of Grafana's schemas; with `named_in` without charts that it lacks."""
    makers = {
        "runs": ("Runs", "Every run in the database, with links to its boards.", _runs(), ()),
        "overview": ("Overview", "One run at a glance.", _overview(), ("run", "flow")),
        "tcp": ("TCP", "The senders as they see it, and what receivers get.", _tcp(), ("run", "flow")),
        "link": ("Link layer", "Each direction as its sending station counts it.", _link(), ("run",)),
        "radio": (
            "Radio and stations",
            "Each direction as its receiver hears it, and what stations need. No radio on tiers without one.",
            _radio(),
            ("run",),
        ),
        "compare": (
            "Two runs",
            "Figures of two whole runs, and both from their begin; below, over time, if they ran at the same time.",
            _compare(),
            ("run", "other", "flow"),
        ),
        "several": (
            "Several runs",
            "Figures of any number of whole runs, and each from its begin.",
            _several(),
            ("runs",),
        ),
        "campaigns": (
            "Campaigns",
            "Campaigns as they go on and afterwards: their points with intervals, and every run by its seed.",
            campaigns(),
            ("campaign", "metric"),
        ),
    }
    everything = [panel["title"] for _, _, rows, _ in makers.values() for _, panels in rows for panel in panels]
    for chart in ALL.values():
        panels = list(charts(chart.name))
        titles = {panel["title"] for panel in panels}
        if titles.isdisjoint(everything) and (named_in is None or any(title in named_in for title in titles)):
            makers[_FURTHER[chart.lines[0].record]][2].append((chart.title, panels))
    return {
        name: board(f"fadelab-{name}", f"fadelab: {title}", description, rows, variables, schema=schema)
        for name, (title, description, rows, variables) in makers.items()
    }


def _runs() -> list[Row]:
    return [("All runs", [table_of_runs("Runs", "Click on a run.", influxql.runs(), OF_RUN, height=18)])]


def _this_run() -> Row:
    """Where the run is in time: a run that was chosen by its name may lie outside of the time shown."""
    hint = "Nothing below? Click on the run's name: it leads to its time."
    return "Run", [
        table_of_runs("Run: a click on its name leads to its time", hint, influxql.chosen_run(), OF_RUN, height=4)
    ]


def _overview() -> list[Row]:
    return [
        _this_run(),
        ("Figures: means of the last three seconds, or of a time range that is over", [*_headlines()]),
        ("Traffic", [*charts("goodput", "cwnd", "throughput")]),
        ("Losses and repairs", [*charts("per", "repairs")]),
        ("Link", [*_link_states()]),
    ]


def _headlines() -> Iterator[Panel]:
    yield headline(
        "Goodput of all flows", "Payload that receivers get of the chosen flows.", "goodput", 1, colour="green"
    )
    yield headline("On the air", "All bits each direction sends.", "throughput", colour="blue")
    yield headline("Lost before repair", "Share of frames the medium took.", "per", 0, colour=LOSS)
    yield headline("Lost after repair", "Share of packets that stayed lost.", "per", 1, colour=LOSS)
    yield headline("SNR", "At each receiver.", "snr", 0, colour=SNR)
    yield headline("Retransmitted by TCP", "Segments sent again, by flow.", "tcp-retransmits", 0, colour="orange")


def _tcp() -> list[Row]:
    return [
        _this_run(),
        ("Window", [*charts("cwnd", "acknowledged")]),
        ("Time", [*charts("srtt", "rtt")]),
        ("Losses", [*charts("tcp-retransmits", "timeouts")]),
        ("At the receivers", [*charts("goodput")]),
    ]


def _link() -> list[Row]:
    return [
        _this_run(),
        ("On the air", [*charts("throughput", "link-goodput", "frames")]),
        ("Losses and repairs", [*charts("per", "fec")]),
        ("Packets", [*charts("packets", "queue")]),
        (
            "Beliefs of links that tune themselves",
            [*charts("believed-loss", "burst-correlation", "redundancy", "budget-met", "missed", "budget")],
        ),
        ("State", [*_link_states()]),
    ]


def _link_states() -> Iterator[Panel]:
    session = {"true": ("connected", "green"), "false": ("no session", "red")}
    asked = influxql.state("established", LinkRecord, RUN)
    yield states("Session", "Whether packets can cross, in each direction.", asked, session)
    asked = influxql.state("scheme", LinkRecord, RUN)
    yield states("Scheme", "The link scheme the stations run.", asked)


def _radio() -> list[Row]:
    mode = influxql.state("mode", PhyRecord, RUN)
    return [
        _this_run(),
        ("Signal", [*charts("snr", "cfo", "level", "overflows")]),
        (
            "Frames",
            [
                *charts("frames-lost"),
                states("Mode", "Modulation and code of the newest frame that each direction's receiver heard.", mode),
            ],
        ),
        ("Stations", [*charts("processor", "memory")]),
    ]


def _compare() -> list[Row]:
    whole = {letter: scope.over("run") for letter, scope in COMPARED.items()}

    def loss(counter: str, of: str) -> list[tuple[str, str]]:
        line = Line(LinkRecord, "link", "", Share(counter, of))
        return [(influxql.query(line, scope), f"{letter} $tag_link") for letter, scope in whole.items()]

    def rtt(percent: int) -> list[tuple[str, str]]:
        line = Line(TcpRecord, "flow", "", Percentile("srtt_ms", percent))
        return [(influxql.query(line, scope), f"{letter} p{percent} $tag_flow") for letter, scope in whole.items()]

    goodput = [(influxql.finished("goodput_bps", scope, 1e-6), letter) for letter, scope in whole.items()]
    timeouts = [(influxql.highest("timeouts", TcpRecord, scope), letter) for letter, scope in whole.items()]
    before, after = loss("corruption_losses", "frames"), loss("residual_losses", "packets")
    halves = "Median and 95th percentile of the smoothed round-trip times."
    figures = [
        bars_of_two(
            "Goodput of the run", "As in the runs' summaries; no figure before a run has ended.", "bit/s", *goodput
        ),
        bars_of_two("Loss before repair", "Share of frames the medium took.", "%", *before),
        bars_of_two("Loss after repair", "Share of packets that stayed lost.", "%", *after),
        bars_of_two("Round-trip time", halves, "ms", *rtt(50), *rtt(95)),
        bars_of_two("Timeouts", "Of all flows.", "timeouts", *timeouts),
        bars_of_two(
            "Link retransmissions", "Share of frames that were sent again.", "%", *loss("retransmissions", "frames")
        ),
    ]
    each = "Each second of both whole runs, over the time since its own begin."
    aligned = [
        from_zero(
            "Goodput of all flows from zero",
            each,
            "bit/s",
            {letter: influxql.aligned_goodput(letter, scope, 1e-6) for letter, scope in COMPARED.items()},
        ),
        from_zero(
            "Congestion window of all flows from zero",
            each,
            "bytes",
            {letter: influxql.aligned_total("cwnd_bytes", letter, scope, 1e-3) for letter, scope in COMPARED.items()},
        ),
        *(
            from_zero(
                f"Loss before repair from zero, {direction}",
                each,
                "%",
                {
                    letter: influxql.aligned_share("corruption_losses", "frames", letter, scope.only("link", direction))
                    for letter, scope in COMPARED.items()
                },
            )
            for direction in SIDES
        ),
    ]
    hint = "A click on the run's name leads to its boards, at its time."
    tables = [
        table_of_runs(f"Run {letter}", hint, asked, OF_RUN, height=4)
        for letter, asked in influxql.compared_runs().items()
    ]
    return [
        ("The runs", tables),
        ("Whole runs", figures),
        ("Over the time of each run", aligned),
        ("Side by side: TCP", [*charts("goodput", "cwnd", runs=COMPARED)]),
        ("Side by side: link", [*charts("throughput", "per", runs=COMPARED)]),
    ]


def _several() -> list[Row]:
    def figure(title: str, description: str, unit: str, asked: str) -> Panel:
        return bars(title, description, unit, (asked, "$tag_run"), width=6, height=8, long_names=True)

    def share(title: str, description: str, counter: str, of: str) -> Iterator[Panel]:
        line = Line(LinkRecord, "link", "", Share(counter, of))
        for direction in SIDES:
            asked = influxql.query(line, SEVERAL.only("link", direction))
            yield figure(f"{title}, {direction}", description, "%", asked)

    goodput = influxql.finished("goodput_bps", SEVERAL, 1e-6)
    p50, p95 = (influxql.percentile("srtt_ms", percent, TcpRecord, SEVERAL) for percent in (50, 95))
    timeouts = influxql.highest("timeouts", TcpRecord, SEVERAL)
    smoothed = "Of the smoothed round-trip times that all senders have recorded."
    figures = [
        figure("Goodput of the run", "As in the runs' summaries; no figure before a run has ended.", "bit/s", goodput),
        figure("Median round-trip time", smoothed, "ms", p50),
        figure("95th percentile of the round-trip time", smoothed, "ms", p95),
        figure("Timeouts", "Of all flows.", "timeouts", timeouts),
        *share("Loss before repair", "Share of frames the medium took.", "corruption_losses", "frames"),
        *share("Loss after repair", "Share of packets that stayed lost.", "residual_losses", "packets"),
        *share("Link retransmissions", "Share of frames that were sent again.", "retransmissions", "frames"),
    ]
    each = "Each second of the whole run, over the time since its begin."
    goodput_s = {"one": influxql.aligned_goodput("one", REPEATED, 1e-6)}
    cwnd_s = {"one": influxql.aligned_total("cwnd_bytes", "one", REPEATED, 1e-3)}
    hint = "A click on the run's name leads to its boards, at its time."
    return [
        ("The runs", [table_of_runs("Chosen runs", hint, influxql.chosen_runs(), OF_RUN, height=7)]),
        ("Whole runs", figures),
        (
            "$runs",
            [
                from_zero("Goodput of all flows from zero", each, "bit/s", goodput_s),
                from_zero("Congestion window of all flows from zero", each, "bytes", cwnd_s),
            ],
        ),
    ]
