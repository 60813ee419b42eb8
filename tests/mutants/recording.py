"""A pytest plugin that records which lines a test function runs, the processor time, and whether it starts processes.

`FADELAB_RECORD` names the folder of the records: coverage.py's data with a context for each test function, and
`times.*.jsonl`. coverage.py is not among the project's requirements; README.md says where it comes from.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.making import FOLDERS, ROOT

coverage: Any = importlib.import_module("coverage")

_FOLDER = Path(os.environ["FADELAB_RECORD"])
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")
_STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn")

# from the beginning: other plugins import the program, too
_coverage = coverage.Coverage(
    data_file=str(_FOLDER / "coverage"),
    data_suffix=_WORKER,
    branch=True,
    include=[f"{ROOT / name}/*" for name in FOLDERS],
    config_file=False,
    messages=False,
)
_coverage.start()


class Recorder:
    """Follows the tests of one process."""

    def __init__(self) -> None:
        self._times = (_FOLDER / f"times.{_WORKER}.jsonl").open("a", buffering=1)
        self._coverage = _coverage
        self._starts = False
        self._at = ""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: object) -> None:
        if event in _STARTS:
            self._starts = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record one test."""
        name = item.nodeid.split("[", 1)[0]
        if item.get_closest_marker("slow") or "frozen" in name:
            # case by case, for each is a run of its own
            name = item.nodeid
        if sys.gettrace() is None:
            # a test before this one has traced for itself
            self._coverage.stop()
            self._coverage.start()
        if name != self._at:
            self._at = name
            self._coverage.switch_context(name)
        self._starts = False
        began = time.process_time()
        try:
            return (yield)
        finally:
            row = {"test": name, "seconds": time.process_time() - began, "starts": self._starts}
            print(json.dumps(row), file=self._times)

    def pytest_sessionfinish(self) -> None:
        """Write the lines."""
        self._coverage.stop()
        self._coverage.save()
        self._times.close()


def pytest_configure(config: pytest.Config) -> None:
    """Record, unless this process only hands tests to others."""
    if "PYTEST_XDIST_WORKER" in os.environ or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Recorder())
    else:
        _coverage.stop()
