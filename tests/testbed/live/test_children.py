"""The processes of a run."""

import os
import signal
from ast import literal_eval
from contextlib import suppress
from pathlib import Path

import pytest

from hosts.messages import FlowBroken, Pause
from testbed.live.children import Child, ChildError
from testbed.paths import root


def test_python_path_of_a_child_is_checkout_then_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "given.py").write_text(
        "import sys\nfrom hosts.jsonlines import write_message\nfrom hosts.messages import FlowBroken\n"
        "write_message(FlowBroken(flow='', error=repr(sys.path)))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = Child("given", "given")
    try:
        [message] = child.read()
    finally:
        child.end()
    assert isinstance(message, FlowBroken)
    path = literal_eval(message.error)
    assert path.index(str(root())) < path.index(str(tmp_path))


def test_log_of_a_child_is_kept_unless_it_is_empty(tmp_path: Path) -> None:
    for module, said in (("colorsys", ""), ("no_such_module_at_all", "No module named no_such_module_at_all")):
        log = tmp_path / f"{module}.log"
        child = Child("given", module, log=log)
        with suppress(ChildError):
            child.read()
        child.end()
        assert log.exists() is bool(said)
        assert not said or said in log.read_text()


def test_stopped_child_does_not_keep_its_run_from_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.live.children._SEND_TIMEOUT_S", 0.1)
    child = Child("host h1", "hosts.agent_process")
    os.kill(child.pid, signal.SIGSTOP)
    try:
        # a pipe holds 64 KiB
        with pytest.raises(ChildError, match="host h1: takes no messages for 0 s: stopped or stuck"):
            any(child.send(Pause(paused=True)) for _ in range(10_000))  # type: ignore[func-returns-value]
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.end()
