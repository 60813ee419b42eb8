"""The queue that a scheme has by default, and the scenarios that set one themselves."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from linklayer.queues.drop_tail import DropTail
from linklayer.queues.fq_codel import FqCoDel
from linklayer.queues.red import Red
from linklayer.schemes import SCHEMES
from testbed.results.store import RunFolder
from testbed.scenario.file import load, plan_of
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import LinkOptions, Scenario
from testbed.scenario.settings import ScenarioError
from tests.harness.campaigns import plan
from tests.harness.scenarios import raw_scenario, scenario, written

OWN = {"kind": "fq-codel", "max_wait_ms": 150, "target_ms": 20}
SIZE = 256_000


@pytest.fixture(autouse=True)
def _schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`own` is SLACP with its own queue and size, `own-size` with its own size alone."""
    for name, fields in (("own", {"queue": OWN, "ip_queue_bytes": SIZE}), ("own-size", {"ip_queue_bytes": SIZE})):
        monkeypatch.setitem(SCHEMES._plugins(), name, replace(SCHEMES["slacp"], name=name, **fields))


def made(**link: Any) -> Scenario:
    return scenario(link=link)


def queue_of(run: Scenario) -> Any:
    queues = resolve(run).stations["up"].make_queues()
    assert len({type(queue) for queue in queues}) == 1
    return queues[0]


def test_a_scenario_without_a_queue_has_the_schemes() -> None:
    run = made(scheme="own")
    assert isinstance(queue_of(run), FqCoDel)
    assert {key: getattr(run.link.queue, key) for key in OWN} == OWN
    assert resolve(run).stations["down"].ip_queue_bytes == SIZE
    assert isinstance(queue_of(made(scheme="own-size")), DropTail)
    assert made(scheme="own-size").link.ip_queue_bytes == SIZE


def test_a_scheme_without_its_own_queue_has_drop_tail() -> None:
    run = made(scheme="slacp")
    assert isinstance(queue_of(run), DropTail)
    assert run.link == LinkOptions()
    assert run.plain() == raw_scenario()


@pytest.mark.parametrize(
    ("queue", "expected"),
    [("drop-tail", DropTail), ({"kind": "drop-tail"}, DropTail), ("red", Red), ({"kind": "red", "max_p": 0.2}, Red)],
)
def test_a_queue_that_the_scenario_names_is_used(queue: Any, expected: type[Any]) -> None:
    run = made(scheme="own", queue=queue, ip_queue_bytes=64_000)
    assert type(queue_of(run)) is expected
    assert run.link.ip_queue_bytes == 64_000


def test_a_named_queue_has_its_own_defaults_and_not_the_schemes() -> None:
    queue = made(scheme="own", queue="fq-codel").link.queue
    assert queue.option_values(["max_wait_ms", "target_ms"]) == {"max_wait_ms": None, "target_ms": 5}


@pytest.mark.parametrize("queue", [{"flows": 16}, {"flows": 16, "kind": None}, {"flows": 16, "target_ms": None}])
def test_options_without_a_kind_change_the_schemes_queue(queue: dict[str, Any]) -> None:
    changed = made(scheme="own", queue=queue).link.queue
    assert changed.option_values([*OWN, "flows"]) == {**OWN, "flows": 16}


def test_null_gives_the_schemes() -> None:
    assert made(scheme="own", queue=None, ip_queue_bytes=None) == made(scheme="own")


@pytest.mark.parametrize(
    "link",
    [
        {"scheme": "own"},
        {"scheme": "own", "queue": "drop-tail", "ip_queue_bytes": 64_000},
        {"scheme": "own", "queue": {"max_wait_ms": 80}},
        {"scheme": "own-size", "ip_queue_bytes": 64_000},
        {"scheme": "own-size", "queue": "red"},
        {"scheme": "slacp", "queue": "codel"},
    ],
)
def test_every_copy_of_a_scenario_has_its_queue(link: dict[str, Any], tmp_path: Path) -> None:
    run = made(**link)
    # a station's process
    plain = json.loads(json.dumps(run.plain()))
    assert plan_of(plain).stations == resolve(run).stations
    # a stored run, and its repetition
    folder = RunFolder.create(tmp_path, run).path
    assert load(folder / "scenario.yaml").link == run.link
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["queue"] == yaml.safe_load((folder / "scenario.yaml").read_text())["link"]["queue"]
    assert manifest["queue"]["kind"] == resolve(run).stations["up"].queue.plugin.name
    # whatever the schemes say then
    SCHEMES._plugins().update({name: replace(SCHEMES["slacp"], name=name) for name in ("own", "own-size")})
    assert load(folder / "scenario.yaml").link == run.link
    assert plan_of(plain).stations["up"].queue == resolve(run).stations["up"].queue


def test_settings_change_the_queue(tmp_path: Path) -> None:
    (tmp_path / "sample.yaml").write_text(yaml.safe_dump({**raw_scenario(), "link": {"scheme": "own"}}))

    def queue(*settings: str) -> dict[str, Any]:
        found = load(tmp_path / "sample.yaml", settings).link.queue.model_dump(exclude_none=True)
        return {key: value for key, value in found.items() if key in ("kind", "target_ms", "max_wait_ms")}

    assert queue() == OWN
    assert queue("link.queue=drop-tail") == queue("link.queue.kind=drop-tail") == {"kind": "drop-tail"}
    assert queue("link.queue.max_wait_ms=90") == {**OWN, "max_wait_ms": 90}
    assert queue("link.queue.kind=codel", "link.queue.target_ms=9") == {"kind": "codel", "target_ms": 9}
    assert queue("link.scheme=slacp") == {"kind": "drop-tail"}
    with pytest.raises(ScenarioError, match=r"link\.queue\.max_p: is no key here"):
        queue("link.queue.max_p=0.1")
    with pytest.raises(ScenarioError, match=r"link: scheme 'osn' is unknown: choose from arq"):
        queue("link.scheme=osn")


def test_the_points_of_a_campaign_have_their_schemes_queues() -> None:
    points = plan(sweep={"grid": {"link.scheme": ["own", "slacp"]}}).points
    assert [point.scenario["link"]["queue"]["kind"] for point in points] == ["fq-codel", "drop-tail"]
    assert [point.scenario["link"]["ip_queue_bytes"] for point in points] == [SIZE, 64_000]


def test_a_written_scenario_is_read_again(tmp_path: Path) -> None:
    run = made(scheme="own")
    assert load(written(tmp_path / "sample.yaml", run)).link == run.link
