"""A recorded capacity: a packet-delivery trace of Mahimahi.

Read first: R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, section 4 (mm-link).
A trace is text with one whole number per line: the ms at which the link can deliver one packet of 1504 octets. The
numbers never decrease, and several lines may name the same ms. At its end, the last number, the trace begins again.

Rules kept here

- In each interval the rate is that of the interval's opportunities, served evenly. Unused capacity is lost.
- The trace begins with the first frame.
- A trace that is faster than the direction's `rate_bps` in some interval is refused: the rates of a run stay within
  `rate_bps`, which buffers and timers are made for.

Ours: an opportunity is spread over its interval, where mm-link delivers 1504 octets at an instant. A rate is rounded
down to a whole bit/s.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from channel.capacity import Capacity, CapacityModel
from common.options import Milliseconds
from common.units import MS, ns

#: octets of one opportunity (mm-link's packet size: an MTU of 1500 and four octets of a TUN header)
PACKET_BYTES: Final = 1504
_SECOND_NS: Final = 1_000_000_000
#: the longest trace, a day; a longer file is not a trace in ms
_LONGEST_MS: Final = 86_400_000


def parse_opportunities(text: str) -> list[int]:
    """Return the times of a trace in ms. Raises ValueError, in one line, that names the line at fault."""
    times_ms: list[int] = []
    last_ms = 0
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word:
            continue
        if not (word.isascii() and word.isdecimal()):
            raise ValueError(f"line {number} is {word[:20]!r}; a trace of Mahimahi has a whole number of ms per line")
        if len(word) > 12 or int(word) > _LONGEST_MS:
            raise ValueError(f"line {number} is {word[:20]}; a trace lasts a day, {_LONGEST_MS} ms, at most")
        time_ms = int(word)
        if time_ms < last_ms:
            raise ValueError(f"line {number} is {time_ms} after {last_ms}; the times of a trace never decrease")
        last_ms = time_ms
        times_ms.append(time_ms)
    if not last_ms:
        raise ValueError("there is no time above 0; a trace of Mahimahi needs one at least")
    return times_ms


def read_opportunities(path: Path) -> list[int]:
    """Return the times of the trace in a file, in ms. Raises ValueError in one line."""
    try:
        return parse_opportunities(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is no text") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def rates_of(times_ms: Sequence[int], interval_ns: int) -> list[int]:
    """Return the rate of each interval of a trace, in bit/s; the last interval may be shorter than the others."""
    period_ns = times_ms[-1] * MS
    counts = [0] * -(-period_ns // interval_ns)
    for time_ms in times_ms:
        # an opportunity at t ends the ms from t - 1 to t, so that the last one lies within the period
        counts[max(time_ms - 1, 0) * MS // interval_ns] += 1
    bits = PACKET_BYTES * 8 * _SECOND_NS
    last_ns = period_ns - (len(counts) - 1) * interval_ns
    return [count * bits // interval_ns for count in counts[:-1]] + [counts[-1] * bits // last_ns]


class Opportunities(Capacity):
    """The rates of a trace, again and again.

    Raises ValueError when an interval is faster than `rate_bps`, or all of it has no rate.
    """

    def __init__(self, times_ms: Sequence[int], interval_ns: int, rate_bps: int) -> None:
        rates = rates_of(times_ms, interval_ns)
        if max(rates) > rate_bps:
            raise ValueError(
                f"rate_bps is {rate_bps}; the trace has up to {max(rates)} bit/s in one interval: "
                "set rate_bps to that, or interval_ms higher"
            )
        if not max(rates):
            raise ValueError("the trace has less than 1 bit/s in every interval: set interval_ms lower")
        self._period_ns = times_ms[-1] * MS
        #: where the rate changes within the period, and the rate from there on
        changes = [0, *(index for index, (a, b) in enumerate(pairwise(rates), 1) if a != b)]
        self._starts = [index * interval_ns for index in changes]
        self._rates = [rates[index] for index in changes]
        self._began_at = -1
        self._rate_bps = 0
        self._backlog_bits = 0
        #: when the rate changes; None: nothing waits
        self._change_at: int | None = None

    def rate_bps(self) -> int:
        return self._rate_bps

    def handle_backlog(self, backlog_bits: int, now: int) -> None:
        """Take note of the backlog; the first bits to wait wake the terminal at once."""
        self._backlog_bits = backlog_bits
        if backlog_bits and self._change_at is None:
            if self._began_at < 0:
                self._began_at = now
            self._change_at = now

    def next_deadline(self) -> int | None:
        return self._change_at

    def handle_deadline(self, now: int) -> None:
        if self._change_at is None or now < self._change_at:
            return
        if not self._backlog_bits:
            self._rate_bps, self._change_at = 0, None
            return
        since = now - self._began_at
        at = since % self._period_ns
        index = bisect_right(self._starts, at) - 1
        self._rate_bps = self._rates[index]
        ends = self._starts[index + 1] if index + 1 < len(self._starts) else self._period_ns
        self._change_at = now - at + ends


@dataclass(frozen=True, kw_only=True)
class MahimahiOptions:
    """A packet-delivery trace; a relative `path` starts at the scenario's folder."""

    #: a packet-delivery trace of mahimahi; None: is refused, since there is no default trace
    path: Path | None = None
    #: each interval's opportunities are served evenly
    interval_ms: Milliseconds = 10


def _make(options: MahimahiOptions, rate_bps: int) -> Capacity:
    if options.path is None:
        raise ValueError("assignment mahimahi: path is missing: name the file of the trace")
    times_ms = read_opportunities(options.path)
    try:
        return Opportunities(times_ms, ns(options.interval_ms), rate_bps)
    except ValueError as error:
        raise ValueError(f"{options.path}: {error}") from None


CAPACITY_MODEL = CapacityModel(
    name="mahimahi",
    summary="that of a packet-delivery trace of Mahimahi, within `rate_bps`",
    options=MahimahiOptions,
    make=lambda options, rate_bps, rng: _make(options, rate_bps),
    example={"path": "trace.mahimahi", "interval_ms": 100},
)
