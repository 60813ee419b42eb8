"""Breaks that last until a test ends them, whatever the clock says."""

import threading

import pytest


@pytest.fixture
def held_breaks(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let a break last until the event is set."""
    end = threading.Event()

    class Timer(threading.Timer):
        def run(self) -> None:
            end.wait()
            self.function(*self.args, **self.kwargs)

    monkeypatch.setattr(threading, "Timer", Timer)
    return end
