"""Tests on a busy machine: a pytest plugin that notices, waits for quiet and lets the test try again.

A test is *real-time* when it is marked `net`, `radio`, `realtime` or `light` and not `patient`: what it asserts holds
only while the machine keeps up. Such tests run alone; those marked `light`, which take little of it, run beside each
other. Beside them a small process asks to be woken every few milliseconds. How late it wakes says how busy the machine
is, whatever the test does or asserts.

Rules kept
- A failed real-time test is tried again only when the machine was busy: the probe woke `LATE_S` late, or a run of the
  test was late by its own count (`busy.late`) and the probe by `RUN_LATE_S`. A run that is late on a machine that wakes
  others on time is late by a fault of ours, and excuses nothing. A test that fails on a quiet machine fails.
- Any other test is tried again only when the machine itself stood still: the probe woke `STOOD_STILL_S` late, which no
  load explains. No bound of a program, ours or a library's, is meant for that.
- The new attempt begins once the probe has woken on time for `QUIET_S`, or after `WAIT_S` of waiting, and asserts
  the same. Fixtures that the file's tests share are made anew for it: a late run is not judged twice. There are
  `ATTEMPTS` attempts at most.
- Each new attempt is listed at the end, with its reason.
"""

import gc
import os
import re
import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

import pytest
import pytest_rerunfailures as rerunfailures

from common.compiled import IS_COMPILED, state
from tests.harness.lateness import Probe

#: a normal process of a machine with a processor to spare is never that late
LATE_S = 0.05
#: no load makes a process that late: the machine itself did not run
STOOD_STILL_S = 2.0
#: the bound of a run's events (`timing.late_bound_ms`): the probe has less priority than stations, so that what makes
#: their events late beyond it makes the probe late, too
RUN_LATE_S = 0.01
QUIET_S = 1.0
WAIT_S = 60.0
ATTEMPTS = 3

#: what `--part` chooses
_PARTS = ("quick", "parallel", "compiled", "light", "realtime", "cores")
#: tests of cores, which `--part compiled` runs against the compiled ones
_OF_CORES = (
    "channel",
    "common",
    "conformance",
    "hosts/engine",
    "hosts/tcp",
    "hosts/workloads",
    "linklayer",
    "tcpip",
    "testbed/model",
)
#: but these, which are of files, schemas, documents and radios
_NOT_OF_CORES = (
    "conformance/test_hostile_files",
    "conformance/test_options",
    "conformance/test_papers",
    "conformance/test_phys",
    "common/test_registry",
)
#: results that compiled and interpreted cores must give alike: slow tests, too, run with both
_WITH_BOTH = "tests/testbed/model/test_frozen.py"
#: marks of tests that `--part quick` leaves out
_NOT_QUICK = ("patient", "slow")
#: a file without one of these has no real-time tests, and their parts do not import it
_NAMES_REALTIME = re.compile(r"\bmark\.(net|radio|realtime|light)\b|\b(needs_network|live_bench)\b")
#: under this name a test's report carries what is said of it in the end
_PROPERTY = "busy machine"


class Busy:
    """Whether the machine is too busy for the present attempt at a test."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        #: why the machine counts as busy: of this attempt, and of what the tests of its file share
        self._own: list[str] = []
        self._shared: list[str] = []
        self._file: Path | None = None
        #: whether the present attempt needs the machine for itself
        self._is_realtime = True
        #: of the probe, since the attempt began
        self._worst_s = 0.0

    def begin(self, file: Path, *, again: bool, realtime: bool) -> None:
        """Forget what was before this attempt, but for what is shared with the last one."""
        if again or file != self._file:
            self._shared.clear()
        self._file = file
        self._own.clear()
        self._is_realtime = realtime
        self._probe.worst_s()
        self._worst_s = 0.0

    def share(self) -> None:
        """Keep what is known so far for the file: what was just set up may serve its other tests, too."""
        self._look()
        self._shared += self._own
        self._own.clear()

    def late(self, reason: str, than_s: float) -> None:
        """Note that a run was late by its own count, if another process was later than this meanwhile."""
        self._look()
        if self._is_realtime and self._worst_s > than_s:
            self._own.append(reason)

    def reasons(self) -> str:
        """Why the machine counts as busy during this attempt; empty when it does not."""
        self._look()
        return ", ".join(dict.fromkeys(self._shared + self._own))

    def _look(self) -> None:
        worst_s = self._probe.worst_s()
        self._worst_s = max(self._worst_s, worst_s)
        if worst_s > self._bound_s():
            self._own.append(f"a process woke {1e3 * worst_s:.0f} ms late")

    def _bound_s(self) -> float:
        return LATE_S if self._is_realtime else STOOD_STILL_S

    def wait_for_quiet(self) -> str:
        """Return once processes have woken on time for a while, or when that takes too long; says which."""
        began = time.monotonic()
        quiet = False
        while not quiet and time.monotonic() < began + WAIT_S:
            self._probe.worst_s()
            time.sleep(QUIET_S)
            quiet = self._probe.worst_s() <= self._bound_s()
        return f"{'quiet' if quiet else 'not quiet'} after {time.monotonic() - began:.0f} s, tried again"


#: of this pytest process, while tests run
_busy: Busy | None = None


def late(reason: str, *, than_s: float | None = None) -> None:
    """Note that a run of the present test was late by its own count.

    `than_s`: what the run bears, if that is less than the bound of a run's events.
    """
    if _busy is not None:
        _busy.late(reason, RUN_LATE_S if than_s is None else than_s)


# -- pytest's hooks ------------------------------------------------------------------------------------------


def is_realtime(item: pytest.Item) -> bool:
    """Whether a test needs the machine for itself."""
    return _marked(item, "net", "radio", "realtime", "light") and not _marked(item, "patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        choices=_PARTS,
        help="quick: what needs no root, radio or browser; compiled: tests of cores, compiled; parallel: all others "
        "and the quick ones of cores; light, realtime: real-time tests; cores: the quick ones of cores alone",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: what is collected stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spare a part the import of files that have none of its tests, unless they are named."""
    if not collection_path.match("test_*.py") or _may_have(collection_path, config.getoption("--part")):
        return None
    named = (config.invocation_params.dir / word.split("::")[0] for word in config.args)
    return None if collection_path in named else True


def _may_have(file: Path, part: str | None) -> bool:
    if part == "compiled":
        return _is_of_cores(file.as_posix())
    if part == "cores":
        return _is_in_folder_of_cores(file.as_posix())
    return part not in ("light", "realtime") or bool(_NAMES_REALTIME.search(file.read_text()))


def _is_of_cores(path: str) -> bool:
    return _is_in_folder_of_cores(path) and not any(f"tests/{other}.py" in path for other in _NOT_OF_CORES)


def _is_in_folder_of_cores(path: str) -> bool:
    return any(f"tests/{core}/" in path for core in _OF_CORES)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the chosen part, and allow them another attempt."""
    part = config.getoption("--part")
    # `./fadelab test` asks for compiled cores so
    asked = part == "compiled" or (part is not None and os.environ.get("FADELAB_PURE") == "0")
    if asked and not IS_COMPILED:
        raise pytest.UsageError(f"the cores are {state()}: run `./fadelab compile`")
    if part is not None:
        config.hook.pytest_deselected(items=[item for item in items if not _is_of(item, part)])
        chosen = [item for item in items if _is_of(item, part)]
        items[:] = chosen if part == "realtime" else _ordered(chosen)
    for item in items:
        if IS_COMPILED and _marked(item, "interpreted"):
            item.add_marker(pytest.mark.skip(reason="needs interpreted cores"))
        if is_realtime(item) and not _may_have(item.path, "realtime"):
            raise pytest.UsageError(f"{item.path}: has real-time tests, but does not name their mark")
        item.add_marker(pytest.mark.flaky(reruns=ATTEMPTS - 1, condition=partial(_excused, item)))


def _ordered(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Order files for several workers, so that none is left with a long file when the others have ended.

    Files of slow tests come first, among these the files of few tests, which are the longest tests. Then come quick
    files, those of many tests first.
    """
    files = defaultdict[Path, list[pytest.Item]](list)
    for item in items:
        files[item.path].append(item)

    def place(tests: list[pytest.Item]) -> tuple[float, int]:
        slow = sum(_marked(item, *_NOT_QUICK) for item in tests) / len(tests)
        return -slow, len(tests) if slow else -len(tests)

    return [item for tests in sorted(files.values(), key=place) for item in tests]


def _is_of(item: pytest.Item, part: str) -> bool:
    if IS_COMPILED and _marked(item, "interpreted"):
        return False
    if is_realtime(item):
        return part == ("light" if _marked(item, "light") else "realtime")
    quick = not _marked(item, *_NOT_QUICK)
    compiled = _is_of_cores(item.nodeid) and not _marked(item, "interpreted", "patient")
    if part == "compiled":
        return compiled
    if part == "cores":
        return quick and _is_in_folder_of_cores(item.nodeid)
    interpreted = quick or not compiled or item.nodeid.startswith(_WITH_BOTH)
    return (part == "quick" and quick) or (part == "parallel" and interpreted)


def _marked(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def _excused(item: pytest.Item, error: BaseException | None) -> bool:
    """Whether the machine was busy during the attempt that has just failed."""
    reasons = "" if _busy is None else _busy.reasons()
    if reasons:
        _tell(item, reasons)
    return bool(reasons)


def _tell(item: pytest.Item, what: str) -> None:
    """Keep a line for the summary, with the test's report, which reaches it from other processes, too."""
    item.user_properties.append((_PROPERTY, what))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Keep a probe while there are tests to run; a process that hands them to workers has none."""
    global _busy
    if not getattr(session, "items", ()):
        return (yield)
    probe = Probe()
    _busy = Busy(probe)
    try:
        return (yield)
    finally:
        probe.close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Begin an attempt; a second one waits for quiet first, and makes anew what the tests of its file share."""
    if _busy is None:
        return (yield)
    again = getattr(item, "execution_count", 1) > 1
    if again:
        # pytest-rerunfailures has put aside how to end what is shared, so as to keep it
        rerunfailures._restore_suspended_finalizers(item)
        # all but the session itself: it is an item's last collector that may stay
        item.session._setupstate.teardown_exact(item.session)  # type: ignore[arg-type]
        _tell(item, _busy.wait_for_quiet())
    _busy.begin(item.path, again=again, realtime=is_realtime(item))
    outcome = yield
    _busy.share()
    return outcome


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told = {
        report.nodeid: "; ".join(str(value) for name, value in report.user_properties if name == _PROPERTY)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "teardown"
    }
    if any(told.values()):
        terminalreporter.section("the machine was busy")
        for name, what in told.items():
            if what:
                terminalreporter.write_line(f"{name}: {what}")
