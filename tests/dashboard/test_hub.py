"""Live runs in memory: what pages get, and that they cost runs nothing."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from dashboard.hub import RUNS, Feed, Hub, Reader
from telemetry.records import TcpRecord
from telemetry.views import PhyView
from tests.harness.dashboard_runs import EPOCH_NS, LINK, TCP, RecordingControls, info
from tests.harness.made_up_runs import MadeUpRun

S = 1_000_000_000
VIEW = PhyView(S, "up", 2.4e9, 2.5e6, (-90.0, -60.04), ((0.70711, -0.70711),), "qpsk")


def read(reader: Reader, run: str = "a-run") -> dict[str, Any]:
    """What is new of a run."""
    frame = reader.frame()
    return {} if frame is None else frame["runs"].get(run, {})


def reader(hub: Hub, *names: str, **options: Any) -> Reader:
    return Reader(hub, names or ("a-run",), **({"history_s": 600.0, "views": True} | options))


def cwnd(part: dict[str, Any]) -> list[float]:
    times: list[float] = part.get("series", {}).get("cwnd", {}).get("bulk", {"t": []})["t"]
    return times


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
def feed(hub: Hub) -> Feed:
    return hub.open(info())


def feed_of(hub: Hub, times: range) -> Feed:
    feed = hub.open(info())
    feed.begin(EPOCH_NS)
    for t in times:
        feed.write(replace(TCP, time_ns=t * S))
    return feed


def test_a_page_gets_what_is_there_and_then_what_is_new(hub: Hub) -> None:
    feed = feed_of(hub, range(3))
    with reader(hub) as page:
        first = read(page)
        assert first["fresh"] is True
        assert first["info"]["epoch_ns"] == EPOCH_NS
        assert first["info"]["live"] is True
        assert cwnd(first) == [0, 1, 2]
        assert page.frame() is None
        feed.write(replace(TCP, time_ns=3 * S))
        second = read(page)
        assert cwnd(second) == [3]
        assert {"fresh", "info", "controls"}.isdisjoint(second)


def test_the_first_frame_goes_back_so_far_only(hub: Hub) -> None:
    feed_of(hub, range(300))
    with reader(hub, history_s=120.0) as page:
        assert cwnd(read(page)) == list(range(179, 300))


def test_a_run_of_the_same_name_takes_the_place(hub: Hub) -> None:
    feed_of(hub, range(5))
    with reader(hub) as page:
        page.frame()
        feed_of(hub, range(2))
        again = read(page)
    assert again["fresh"] is True
    assert cwnd(again) == [0, 1]


def test_a_run_that_is_over_says_so_and_stays(hub: Hub) -> None:
    feed = hub.open(info(), RecordingControls())
    with reader(hub) as page:
        page.frame()
        feed.close()
        feed.ended({"goodput_bps": 1.0}, None)
        part = read(page)
    assert part["info"]["live"] is False
    assert part["info"]["controlled"] is False
    assert part["info"]["ended"] == {"error": None, "summary": {"goodput_bps": 1.0}}
    assert [control["why_not"] for control in part["controls"]] == ["the run is over"]
    assert [run["name"] for run in hub.runs()] == ["a-run"]


def test_newer_runs_push_out_those_that_are_over(hub: Hub) -> None:
    live = hub.open(info("live"))
    for number in range(RUNS + 5):
        hub.open(info(f"over-{number}")).close()
    assert hub.find("live") is live
    # the newest was live when it came
    assert [run["name"] for run in hub.runs()] == [
        *(f"over-{number}" for number in range(RUNS + 4, 3, -1)),
        "live",
    ]


def test_a_name_that_is_no_name_is_refused() -> None:
    with pytest.raises(ValueError, match="letters"):
        Hub().open(info("../etc"))


def test_changed_controls_are_told_once() -> None:
    hub, controls = Hub(), RecordingControls()
    feed = hub.open(info(), controls)
    with reader(hub) as page:
        assert [control["value"] for control in read(page)["controls"]] == [20.0]
        controls.set("snr_db", 5.0)
        feed.describe_controls(fresh=True)
        assert [control["value"] for control in read(page)["controls"]] == [5.0]
        assert page.frame() is None


def test_marks_come_once(hub: Hub, feed: Feed) -> None:
    feed.write(LINK)
    feed.write(replace(LINK, time_ns=S, corruption_losses=2))
    with reader(hub) as page:
        part = read(page)
        assert part["marks"] == [{"t": 1.0, "cause": "corruption", "link": "up", "count": 2}]
        assert page.frame() is None


def test_links_tell_the_newest_state(hub: Hub, feed: Feed) -> None:
    feed.write(LINK)
    feed.write(replace(LINK, time_ns=S, frames=40, packets=30, corruption_losses=2, queue_bytes=7, scheme="none"))
    with reader(hub) as page:
        assert read(page)["links"]["up"] == {
            "scheme": "none",
            "established": True,
            "throughput_bps": 2e6,
            "goodput_bps": 1e6,
            "per": 0.05,
            "residual": 0.0,
            "snr_db": None,
            "queue_bytes": 7,
            "losses": {"corruption": 2, "given up": 0, "congestion": 0},
        }


def test_a_run_knows_whether_its_radios_are_watched(hub: Hub, feed: Feed) -> None:
    with reader(hub) as page, reader(hub, views=False) as blind:
        page.frame()
        blind.frame()
        assert feed.watched
        feed.show(VIEW)
        assert read(page)["views"]["up"]["spectrum_db"] == [-90.0, -60.0]
        assert blind.frame() is None
        assert page.frame() is None
    assert not feed.watched


def test_a_page_that_stalls_costs_the_run_nothing(hub: Hub, feed: Feed) -> None:
    """A page holds the curves for as long as the run writes ten thousand records; the run does not notice."""
    begun, let_go = threading.Event(), threading.Event()

    def stall() -> None:
        with feed.curves():
            begun.set()
            let_go.wait(60)

    page = threading.Thread(target=stall)
    page.start()
    try:
        assert begun.wait(60)
        for n in range(10_000):
            feed.write(replace(TCP, time_ns=n * S // 10))
        assert page.is_alive()
    finally:
        let_go.set()
        page.join()
    with reader(hub) as reading:
        times = cwnd(read(reading))
    assert times[-1] == 999.9
    assert times[0] <= 999.9 - 599


def test_pages_and_runs_at_once(hub: Hub) -> None:
    """Three pages read two runs while both write: each page has every point once, in order."""
    feeds = [hub.open(info(name)) for name in ("one", "two")]
    seen: list[dict[str, list[float]]] = [{"one": [], "two": []} for _ in range(3)]
    written = threading.Event()

    def write(feed: Feed) -> None:
        for n in range(3000):
            feed.write(replace(TCP, time_ns=n * S // 10))

    def watch(seen: dict[str, list[float]]) -> None:
        with reader(hub, "one", "two") as page:
            while True:
                last = written.is_set()
                for name, part in (page.frame() or {"runs": {}})["runs"].items():
                    seen[name] += cwnd(part)
                if last:
                    break

    with ThreadPoolExecutor(len(feeds) + len(seen)) as pool:
        pages = [pool.submit(watch, page) for page in seen]
        wait([pool.submit(write, feed) for feed in feeds])
        written.set()
    assert not any(page.exception() for page in pages)
    everything = [n / 10 for n in range(3000)]
    assert seen == [{"one": everything, "two": everything}] * 3


def test_what_nobody_reads_does_not_pile_up(hub: Hub, feed: Feed) -> None:
    for n in range(50_000):
        feed.write(replace(TCP, time_ns=n * S // 100))
    assert len(feed._inbox) < 2_000
    with feed.curves() as curves:
        assert all(len(curve.times) < 12_000 for curve in curves.curves.values())
    assert len(feed.records(TcpRecord)) == 30_000


def test_who_waits_is_woken(hub: Hub, feed: Feed) -> None:
    version = hub.wait(-1, 0)
    woken: list[int] = []
    waiting = threading.Thread(target=lambda: woken.append(hub.wait(version, 60)))
    waiting.start()
    time.sleep(0.05)
    assert not woken
    feed.write(TCP)
    waiting.join(60)
    assert woken
    assert woken[0] != version


def test_made_up_records_have_the_types_that_they_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the browser tests show must be what a run may send: a truth value is no number there."""
    run = MadeUpRun(Hub(), "made-up", "slacp", 1)
    written: list[Any] = []
    monkeypatch.setattr(run.feed, "write", written.append)
    run.step(0.1)
    assert len(written) > 4
    for record in written:
        for name, kind in get_type_hints(type(record)).items():
            if name not in ("measurement", "tags"):
                TypeAdapter(kind).validate_python(getattr(record, name), strict=True)
