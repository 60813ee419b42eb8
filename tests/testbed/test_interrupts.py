"""Signals that end a command, where something on their way drops what they raise."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from testbed import interrupts
from testbed.live.children import ChildGroup
from tests.harness.live_runs import Capture

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Handlers as they were, and nothing asked for, at the end."""
    monkeypatch.setattr(interrupts, "_asked", None)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


class Dropping:
    """Calls something when it goes, where exceptions are dropped."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def __del__(self) -> None:
        self._call()


def drop(signum: signal.Signals) -> None:
    """Get a signal where its exception is dropped."""
    Dropping(lambda: os.kill(os.getpid(), signum))


def wait() -> bool:
    with ChildGroup() as group:
        return group.receive_until(lambda child, message: None, lambda: False, timeout_s=0.3)


@pytest.mark.parametrize(("signum", "raised"), [(SIGNALS[0], KeyboardInterrupt), (SIGNALS[1], SystemExit)])
def test_a_run_ends_by_a_signal_that_was_dropped(signum: signal.Signals, raised: type[BaseException]) -> None:
    interrupts.install()
    assert not wait()
    drop(signum)
    with pytest.raises(raised) as caught:
        wait()
    if isinstance(caught.value, SystemExit):
        assert caught.value.code == 128 + signum
        # a second one would end the process at once
        assert signal.getsignal(signum) is signal.SIG_DFL


def test_signals_that_are_ignored_stay_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts.install()
    os.kill(os.getpid(), signal.SIGINT)
    assert not wait()


def test_nothing_is_said_of_what_is_raised_again_and_of_other_faults_all(capsys: Capture) -> None:
    interrupts.install()
    drop(signal.SIGINT)
    assert capsys.readouterr().err == ""

    def fail() -> None:
        raise ValueError("a fault")

    Dropping(fail)
    assert "ValueError: a fault" in capsys.readouterr().err


def test_other_threads_go_on() -> None:
    interrupts.install()
    drop(signal.SIGINT)
    ended: list[bool] = []
    thread = threading.Thread(target=lambda: ended.append(wait()))
    thread.start()
    thread.join()
    assert ended == [False]
