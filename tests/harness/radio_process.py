"""A virtual USRP driven through UHD's Python API, in a process of its own.

`RadioProcess` is used by tests; its methods are those of `Radio`, which lives in the child (UHD's two Python bindings
cannot share a process, and a process of its own can be killed). Times are device times counted in samples.
"""

import ctypes
import multiprocessing
import os
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowgraphs.air import LIBRARY

MODULES = LIBRARY.parent / "uhd"
Samples = NDArray[Any]

#: how long to wait for what must come: long enough for a busy machine
PATIENCE_S = 30.0

_PART = {"fc32": np.complex64, "fc64": np.complex128, "sc16": np.int16, "sc8": np.int8}


@dataclass(frozen=True)
class Piece:
    """What one recv() gave: how many samples, and its metadata."""

    n: int
    error: str
    at: int
    start_of_burst: bool
    end_of_burst: bool
    more_fragments: bool


@dataclass(frozen=True)
class Message:
    event: str
    at: int
    channel: int


class Radio:
    """One device with a receive and a transmit streamer, made when they are first used."""

    def __init__(self, args: str, rate: float | None, freq: float, tx_gain: float, rx_gain: float) -> None:
        import uhd

        self._uhd = uhd
        self._usrp = uhd.usrp.MultiUSRP(args)
        self._rate = rate or 1e6
        for channel in (0, 1) if rate else ():
            self._usrp.set_rx_rate(rate, channel)
            self._usrp.set_tx_rate(rate, channel)
            self.tune("rx", freq, channel)
            self.tune("tx", freq, channel)
            self._usrp.set_rx_gain(rx_gain, channel)
            self._usrp.set_tx_gain(tx_gain, channel)
        self._streams: dict[str, Any] = {}
        self._formats: dict[str, str] = {}

    def call(self, method: str, *args: Any) -> Any:
        result = getattr(self._usrp, method)(*args)
        return result if isinstance(result, int | float | str | bool | list | None) else str(result)

    def evaluate(self, expression: str) -> Any:
        """Return what an expression of `usrp` and `uhd` gives."""
        return eval(expression, {"usrp": self._usrp, "uhd": self._uhd})

    def tune(self, direction: str, freq: float, channel: int = 0, at: int | None = None) -> float:
        """Tune a channel, at a time if one is given, and return what it got."""
        return self._set(f"{direction}_freq", self._uhd.types.TuneRequest(freq), channel, at)

    def gain(self, direction: str, gain: float, channel: int = 0, at: int | None = None) -> float:
        """Set a channel's gain, at a time if one is given, and return what it got."""
        return self._set(f"{direction}_gain", gain, channel, at)

    def _set(self, what: str, value: Any, channel: int, at: int | None) -> float:
        if at is not None:
            self._usrp.set_command_time(self._time(at))
        getattr(self._usrp, f"set_{what}")(value, channel)
        if at is not None:
            self._usrp.clear_command_time()
        return float(getattr(self._usrp, f"get_{what}")(channel))

    def now(self) -> int:
        return int(self._usrp.get_time_now().to_ticks(self._rate))

    def set_now(self, at: int) -> None:
        self._usrp.set_time_now(self._time(at))

    def set_next_pps(self, at: int) -> None:
        self._usrp.set_time_next_pps(self._time(at))

    def last_pps(self) -> int:
        """Return what the device's time was at the last whole second of the air."""
        return int(self._usrp.get_time_last_pps().to_ticks(self._rate))

    def open(
        self, direction: str, channels: Iterable[int] = (0,), cpu: str = "fc32", args: str = "", wire: str = "sc16"
    ) -> int:
        """Make the streamer of one direction; return the most samples of a packet."""
        wanted = self._uhd.usrp.StreamArgs(cpu, wire)
        wanted.channels = list(channels)
        wanted.args = args
        self._formats[direction] = cpu
        self._streams[direction] = getattr(self._usrp, f"get_{direction}_stream")(wanted)
        return int(self._streams[direction].get_max_num_samps())

    def start(self, n: int | None = None, at: int | None = None, more: bool = False) -> None:
        modes = self._uhd.types.StreamMode
        command = self._uhd.types.StreamCMD(
            modes.start_cont if n is None else modes.num_more if more else modes.num_done
        )
        command.num_samps = n or 0
        command.stream_now = at is None
        if at is not None:
            command.time_spec = self._time(at)
        self._stream("rx").issue_stream_cmd(command)

    def stop(self) -> None:
        self._stream("rx").issue_stream_cmd(self._uhd.types.StreamCMD(self._uhd.types.StreamMode.stop_cont))

    def recv(self, n: int, timeout: float = PATIENCE_S) -> tuple[Samples, Piece]:
        """Call recv() once for n samples per channel; return those it gave."""
        stream = self._stream("rx")
        part = _PART[self._formats["rx"]]
        whole = np.issubdtype(part, np.integer)
        buffer = np.zeros((stream.get_num_channels(), 2 * n if whole else n), part)
        metadata = self._uhd.types.RXMetadata()
        # integers are given to UHD as one item of four or two octets per sample
        view = buffer.view({2: np.uint32, 1: np.uint16}[buffer.itemsize]) if whole else buffer
        got = stream.recv(view, metadata, timeout)
        at, flags = int(metadata.time_spec.to_ticks(self._rate)), ("start_of_burst", "end_of_burst", "more_fragments")
        piece = Piece(got, metadata.error_code.name, at, *(getattr(metadata, flag) for flag in flags))
        return buffer[:, : 2 * got if whole else got], piece

    def collect(self, n: int | None, chunk: int = 4096, timeout: float = PATIENCE_S) -> Samples:
        """Receive n samples per channel in pieces of `chunk`, or all that a stopped stream has left.

        Raises RuntimeError for anything but samples.
        """
        pieces: list[Samples] = []
        left = n
        while left is None or left:
            samples, piece = self.recv(chunk if left is None else min(chunk, left), timeout)
            if piece.error != "none":
                raise RuntimeError(f"recv gave {piece.error} with {left or 'more'} samples to come")
            pieces.append(samples)
            if left is not None:
                left -= piece.n
            elif piece.end_of_burst:
                left = 0
        return np.concatenate(pieces, axis=1)

    def listen(self, n: int, at: int | None = None, chunk: int = 4096) -> Samples:
        """Receive n samples per channel, from a time on or from now; raise RuntimeError for anything but samples."""
        self.start(n, at=at)
        return self.collect(n, chunk)

    def send(
        self,
        samples: Samples,
        at: int | None = None,
        start: bool = True,
        end: bool = True,
        chunk: int | None = None,
        timeout: float = PATIENCE_S,
    ) -> int:
        """Send samples, one row per channel, as a burst or part of one, in pieces of `chunk`; return how many went."""
        rows = np.atleast_2d(samples)
        n = rows.shape[1]
        chunk = chunk or max(n, 1)
        sent = 0
        for first in range(0, max(n, 1), chunk):
            metadata = self._uhd.types.TXMetadata()
            metadata.start_of_burst = start and first == 0
            metadata.end_of_burst = end and first + chunk >= n
            metadata.has_time_spec = at is not None and first == 0
            if metadata.has_time_spec:
                metadata.time_spec = self._time(at or 0)
            part = np.ascontiguousarray(rows[:, first : first + chunk])
            sent += self._stream("tx").send(part, metadata, timeout)
        return sent

    def message(self, timeout: float = PATIENCE_S) -> Message | None:
        metadata = self._uhd.types.TXAsyncMetadata()
        if not self._stream("tx").recv_async_msg(metadata, timeout):
            return None
        return Message(metadata.event_code.name, int(metadata.time_spec.to_ticks(self._rate)), metadata.channel)

    def _stream(self, direction: str) -> Any:
        if direction not in self._streams:
            self.open(direction)
        return self._streams[direction]

    def _time(self, at: int) -> Any:
        return self._uhd.types.TimeSpec.from_ticks(at, self._rate)


class RadioProcess:
    """A `Radio` in a child. Its methods may be called on this; `begin` and `finish` split a call in two.

    Without a rate the device stays as it was opened.
    """

    def __init__(
        self,
        folder: Path,
        args: str,
        rate: float | None = 1e6,
        freq: float = 1e9,
        tx_gain: float = 40.0,
        rx_gain: float = 40.0,
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.harness.preloaded_uhd"])
        self._pipe, theirs = context.Pipe()
        serial = len(list(folder.glob("stderr-*")))
        self._stderr = folder / f"stderr-{serial}"
        radio = (args, rate, freq, tx_gain, rx_gain)
        self._process = context.Process(target=_serve, args=(theirs, self._stderr, radio), daemon=True)
        self._process.start()
        theirs.close()
        self.finish()

    def __getattr__(self, method: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            self.begin(method, *args, **named)
            return self.finish()

        return call

    def begin(self, method: str, *args: Any, **named: Any) -> None:
        self._pipe.send((method, args, named))

    def finish(self, timeout: float = 60.0) -> Any:
        """Return what a call that was begun returned, or raise what it raised as a RuntimeError."""
        if not self._pipe.poll(timeout):
            raise TimeoutError("the radio's process does not answer")
        failed, result = self._pipe.recv()
        if failed:
            raise RuntimeError(result)
        return result

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def close(self) -> None:
        self._pipe.close()
        self._process.join(PATIENCE_S)
        self._process.kill()
        self._process.join()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def said(self) -> str:
        """What UHD has written on standard error."""
        return self._stderr.read_text()


def _serve(pipe: Connection, stderr: Path, radio: tuple[Any, ...]) -> None:
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    _answer(pipe, radio)
    # unlike the end of a forked process, C's exit lets UHD write the rest of its log
    ctypes.CDLL(None).exit(0)


def _answer(pipe: Connection, radio: tuple[Any, ...]) -> None:
    try:
        served = Radio(*radio)
    except RuntimeError as error:
        pipe.send((True, str(error)))
        return
    pipe.send((False, None))
    while True:
        try:
            method, args, named = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((False, getattr(served, method)(*args, **named)))
        except RuntimeError as error:
            pipe.send((True, str(error)))
