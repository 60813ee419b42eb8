"""An invented USRP behind gr-uhd's interface, for faults that no virtual USRP has. It streams nothing.

Read first: UHD's `b200_impl.cpp`, `b200_io_impl.cpp` (`set_auto_tick_rate`), `ad936x_manager.cpp` and
`rx_dsp_core_3000.cpp` (`get_host_rates`), whose master clock it has: 16 MHz at first, then the largest power of two of
the sample rates' least common multiple, unless the device arguments fix it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

_MOST_TICKS_HZ = 61.44e6


@dataclass
class Range:
    """UHD's meta_range_t."""

    values: list[float]

    def start(self) -> float:
        return min(self.values)

    def stop(self) -> float:
        return max(self.values)

    def step(self) -> float:
        return 0.0

    def clip(self, value: float, _steps: bool = False) -> float:
        return min(self.values, key=lambda own: abs(own - value))


@dataclass
class Board:
    """One device. What a test changes is named by the fault it makes."""

    #: None: chosen by the sample rates
    fixed_hz: float | None = None
    clock_source: str = "internal"
    time_source: str = "internal"
    #: sources of 10 MHz that are there
    present: tuple[str, ...] = ("internal",)
    oscillator_locks: bool = True
    #: added to every carrier and gain that is set
    off_hz: float = 0.0
    off_db: float = 0.0
    #: whether a new rate of one half moves the clock of both, whatever the other half needs
    selfish: bool = False
    rates: dict[str, float] = field(default_factory=dict)
    opened: list[tuple[str, str, Any]] = field(default_factory=list)
    #: called when a half is opened
    on_open: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.tick_hz = 16e6 if self.fixed_hz is None else self.fixed_hz

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "Board":
        """Let front ends find this device, whatever their arguments are."""

        def opened(half: str) -> Callable[..., Any]:
            def make(args: str, stream: Any, *_: Any) -> Half:
                self.on_open()
                self.opened.append((half, args, stream))
                asked = dict(pair.split("=", 1) for pair in args.split(",")).get("master_clock_rate")
                if asked is not None:
                    self.fixed_hz = self.tick_hz = float(asked)
                return Half(self, half)

            return make

        uhd = SimpleNamespace(
            stream_args=lambda **given: SimpleNamespace(**given),
            tune_request=lambda hz, offset_hz: SimpleNamespace(hz=hz, offset_hz=offset_hz),
            usrp_source=opened("rx"),
            usrp_sink=opened("tx"),
        )
        monkeypatch.setattr("flowgraphs.frontend.gr_uhd", lambda: uhd)
        return self

    def host_rates(self) -> Range:
        decimations = [*range(512, 256, -4), *range(256, 128, -2), *range(128, 0, -1)]
        return Range([self.tick_hz / decimation for decimation in decimations])

    def set_rate(self, half: str, rate_sps: float) -> None:
        if self.fixed_hz is None:
            wanted = {half: rate_sps} if self.selfish else {**self.rates, half: rate_sps}
            common = math.lcm(*(math.floor(rate + 0.5) for rate in wanted.values()))
            if common <= _MOST_TICKS_HZ:
                self.tick_hz = common * 2.0 ** math.floor(math.log2(_MOST_TICKS_HZ / common))
        self.rates[half] = rate_sps
        for each, rate in self.rates.items():
            self.rates[each] = self.host_rates().clip(rate)


class Half:
    """gr-uhd's source or sink of a board."""

    def __init__(self, board: Board, name: str) -> None:
        self._board, self._name = board, name
        self._hz = self._gain_db = 0.0
        self._bandwidth_hz = 56e6
        #: the calls of settings, with their arguments
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("set_antenna", "set_subdev_spec", "set_recv_timeout", "set_max_noutput_items"):
            return lambda *args: self.calls.append((name, *args))
        raise AttributeError(name)

    def get_clock_rate(self, _board: int) -> float:
        return self._board.tick_hz

    def set_clock_source(self, source: str, _board: int) -> None:
        self.calls.append(("set_clock_source", source))
        self._board.clock_source = source

    def get_clock_source(self, _board: int) -> str:
        return self._board.clock_source

    def set_time_source(self, source: str, _board: int) -> None:
        self._board.time_source = source

    def get_time_source(self, _board: int) -> str:
        return self._board.time_source

    def get_mboard_sensor_names(self, _board: int) -> list[str]:
        return ["ref_locked"]

    def get_mboard_sensor(self, _name: str, _board: int) -> Any:
        return SimpleNamespace(to_bool=lambda: self._board.clock_source in self._board.present)

    def get_sensor_names(self) -> list[str]:
        return ["lo_locked"]

    def get_sensor(self, _name: str) -> Any:
        return SimpleNamespace(to_bool=lambda: self._board.oscillator_locks)

    def set_samp_rate(self, rate_sps: float) -> None:
        self._board.set_rate(self._name, rate_sps)

    def get_samp_rate(self) -> float:
        return self._board.rates.get(self._name, self._board.tick_hz / 128)

    def get_samp_rates(self) -> Range:
        return self._board.host_rates()

    def get_freq_range(self) -> Range:
        return Range([50e6, 6e9])

    def set_center_freq(self, request: Any) -> None:
        self.calls.append(("set_center_freq", request))
        self._hz = getattr(request, "hz", request) + self._board.off_hz

    def get_center_freq(self) -> float:
        return self._hz

    def set_bandwidth(self, hz: float) -> None:
        self._bandwidth_hz = max(hz, 200e3)

    def get_bandwidth(self) -> float:
        return self._bandwidth_hz

    def get_gain_range(self) -> Range:
        return Range([0.0, 76.0])

    def set_gain(self, gain_db: float) -> None:
        self._gain_db = round(gain_db) + self._board.off_db

    def get_gain(self) -> float:
        return self._gain_db
