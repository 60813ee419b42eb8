"""What a busy machine allows a real-time test: attempts by pytest itself, in a process of its own."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import busy
from tests.harness.lateness import Probe

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

SUITE = """
import os
import signal
import time
from pathlib import Path

import pytest
from tests.harness.busy import late

attempts = []

def busy_once():
    attempts.append(1)
    if len(attempts) == 1:
        late("9 of 10 events were late")
        raise AssertionError("too late")

@pytest.fixture(scope="module")
def flow():
    busy_once()

@pytest.mark.realtime
def test_a_busy_machine_is_forgiven(flow):
    assert len(attempts) == 2

runs = []

@pytest.fixture(scope="module")
def run():
    runs.append(1)
    if len(runs) == 1:
        late("8 of 10 events were late")
    return len(runs)

@pytest.mark.realtime
def test_that_uses_a_run_passes(run):
    assert run == 1

@pytest.mark.realtime
def test_that_shares_a_late_run_gets_another(run):
    assert run == 2

@pytest.mark.realtime
def test_a_quiet_machine_is_not():
    raise AssertionError("too slow")

@pytest.mark.realtime
def test_a_machine_that_stays_busy_is_not():
    late("all events were late")
    raise AssertionError("never")

def test_that_keeps_no_clock_fails():
    late("all events were late")
    raise AssertionError("wrong")
"""


#: what the machine is like today does not count
QUIET = "import tests.harness.busy as busy\nbusy.LATE_S = float('inf')\nbusy.QUIET_S = 0.1\n"


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makeini("[pytest]\nmarkers =\n  net\n  radio\n  realtime\n  light\n  patient\n  slow\n")
    return pytester


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["here", "in a worker"])
def test_only_a_busy_machine_gives_another_attempt(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeconftest(f"{QUIET}busy.RUN_LATE_S = -1")
    result = pytester.runpytest_subprocess("-p", "tests.harness.busy", *workers)
    assert result.parseoutcomes() == {"passed": 3, "failed": 3, "rerun": 4}
    result.stdout.fnmatch_lines(
        [
            "*the machine was busy*",
            "*::test_a_busy_machine_is_forgiven: 9 of 10 events were late; *quiet after * s, tried again",
            "*::test_that_shares_a_late_run_gets_another: 8 of 10 events were late; *quiet after * s, tried again",
            "*::test_a_machine_that_stays_busy_is_not: all events were late; *all events were late*",
        ]
    )
    for name in ("test_a_quiet_machine_is_not", "test_that_keeps_no_clock_fails"):
        result.stdout.no_fnmatch_line(f"*::{name}: *")


def test_any_test_gives_another_attempt_where_the_machine_stood_still(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeconftest(f"{QUIET}busy.STOOD_STILL_S = -1\nbusy.WAIT_S = 0")
    result = pytester.runpytest_subprocess("-p", "tests.harness.busy", "-k", "keeps_no_clock")
    assert result.parseoutcomes() == {"failed": 1, "rerun": 2, "deselected": 5}
    result.stdout.fnmatch_lines(["*::test_that_keeps_no_clock_fails: a process woke * ms late; *, tried again*"])


def test_late_run_on_a_machine_that_is_on_time_gives_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeconftest(f"{QUIET}busy.RUN_LATE_S = float('inf')")
    result = pytester.runpytest_subprocess("-p", "tests.harness.busy")
    # the run that was late once serves all tests of the file
    assert result.parseoutcomes() == {"passed": 1, "failed": 4, "errors": 1}
    result.stdout.no_fnmatch_line("*the machine was busy*")


@pytest.mark.parametrize(
    ("part", "chosen"),
    [
        ("quick", {"pure"}),
        ("parallel", {"pure", "slow", "patient"}),
        ("light", {"light", "light_net"}),
        ("realtime", {"net", "radio", "realtime"}),
    ],
)
def test_every_test_is_in_one_part(pytester: pytest.Pytester, part: str, chosen: set[str]) -> None:
    marks: dict[str, tuple[str, ...]] = {
        "pure": (),
        "slow": ("slow",),
        "patient": ("net", "patient"),
        "light": ("light",),
        "light_net": ("net", "light"),
        **{name: (name,) for name in ("net", "radio", "realtime")},
    }
    code = ["import pytest"]
    for name, its in marks.items():
        code += [*(f"@pytest.mark.{mark}" for mark in its), f"def test_{name}(): pass"]
    items: list[pytest.Item] = pytester.getitems("\n".join(code))
    dropped: list[pytest.Item] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items))
    config: Any = SimpleNamespace(getoption=lambda name: part, hook=hook)
    busy.pytest_collection_modifyitems(config, items)
    assert {item.name.removeprefix("test_") for item in items} == chosen
    assert {item.name.removeprefix("test_") for item in dropped} == marks.keys() - chosen


@pytest.mark.parametrize(
    ("test", "marks", "parts"),
    [
        ("tests/channel/test_hop.py::test", (), {"quick", "parallel", "compiled", "cores"}),
        ("tests/common/test_registry.py::test", (), {"quick", "parallel", "cores"}),
        ("tests/telemetry/test_sinks.py::test", (), {"quick", "parallel"}),
        ("tests/channel/test_hop.py::test", ("slow",), {"compiled"}),
        ("tests/channel/test_hop.py::test", ("slow", "interpreted"), {"parallel"}),
        ("tests/channel/test_hop.py::test", ("net", "patient"), {"parallel"}),
        ("tests/testbed/model/test_frozen.py::test", ("slow",), {"parallel", "compiled"}),
        ("tests/conformance/test_papers.py::test", ("slow",), {"parallel"}),
    ],
)
def test_slow_tests_of_cores_run_compiled_alone_but_for_frozen_results(
    test: str, marks: tuple[str, ...], parts: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy, "IS_COMPILED", False)
    item: Any = SimpleNamespace(nodeid=test, get_closest_marker=lambda name: name in marks)
    assert {part for part in busy._PARTS if busy._is_of(item, part)} == parts


def test_tests_of_interpreted_cores_are_of_no_part_with_compiled_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "IS_COMPILED", True)
    item: Any = SimpleNamespace(nodeid="tests/channel/test_hop.py::test", get_closest_marker="interpreted".__eq__)
    assert not any(busy._is_of(item, part) for part in busy._PARTS)


@pytest.mark.parametrize(("part", "pure"), [("compiled", ""), ("parallel", "0")])
def test_cores_that_should_be_compiled_and_are_not_are_refused(
    part: str, pure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy, "IS_COMPILED", False)
    monkeypatch.setenv("FADELAB_PURE", pure)
    config: Any = SimpleNamespace(getoption=lambda name: part)
    with pytest.raises(pytest.UsageError, match=r"run `\./fadelab compile`"):
        busy.pytest_collection_modifyitems(config, [])


def test_long_files_come_before_files_that_fill_the_end() -> None:
    def tests(file: str, count: int, marks: tuple[str, ...] = ()) -> list[Any]:
        return [SimpleNamespace(path=Path(file), get_closest_marker=lambda name: name in marks) for _ in range(count)]

    mixed = tests("mixed", 3) + tests("mixed", 1, ("patient",))
    given = [*tests("few", 1), *tests("many", 9), *mixed, *tests("slow", 5, ("slow",)), *tests("longest", 1, ("slow",))]
    ordered = busy._ordered(given)
    assert list(dict.fromkeys(item.path.name for item in ordered)) == ["longest", "slow", "mixed", "many", "few"]
    assert sorted(map(id, ordered)) == sorted(map(id, given))


def test_the_probe_tells_how_long_it_could_not_run() -> None:
    probe = Probe()
    try:
        probe.worst_s()
        os.kill(probe.pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(probe.pid, signal.SIGCONT)
        assert probe.worst_s() > 0.15
    finally:
        probe.close()
