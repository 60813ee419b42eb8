"""The parts that benchmarks share: their options, and their results as a table or as JSON."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple


def parser(doc: str | None, *, seed: int | None = 1, repetitions: int | None = None) -> argparse.ArgumentParser:
    """Options of a benchmark with this docstring; `seed` and `repetitions` are defaults, None for no such option."""
    made = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    if seed is not None:
        made.add_argument("--seed", type=whole(0), default=seed, help=f"of the first run (default {seed})")
    if repetitions is not None:
        made.add_argument("--repetitions", type=whole(1), default=repetitions, help=f"default {repetitions}")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def whole(least: int, multiple_of: int = 1) -> Callable[[str], int]:
    """The type of an option: a whole number, no less than this."""

    def convert(text: str) -> int:
        number = int(text)
        if number < least or number % multiple_of:
            raise argparse.ArgumentTypeError(f"must be {least} or more, in steps of {multiple_of}")
        return number

    convert.__name__ = "whole number"
    return convert


class Column(NamedTuple):
    """One column of a table: its heading, and the format of a row's value, which is multiplied by `scale` first."""

    heading: str
    spec: str = ""
    scale: float = 1


class Results:
    """The rows of a benchmark: printed as they come, or all as one JSON object at the end.

    The first line names the tier, the seed and the unit; `columns` are by the key of a row.
    """

    def __init__(self, options: argparse.Namespace, tier: str, unit: str, columns: Mapping[str, Column]) -> None:
        self.rows: list[dict[str, Any]] = []
        self._options, self._tier, self._unit, self._columns = options, tier, unit, columns

    def add(self, **row: Any) -> dict[str, Any]:
        """Take a row, and print it unless JSON is wanted; returns it."""
        if not self.rows:
            seed = getattr(self._options, "seed", None)
            self.say(f"tier {self._tier}{'' if seed is None else f', seed {seed}'}: {self._unit}")
            self.say("".join(self._cell(column, column.heading) for column in self._columns.values()).rstrip())
        self.rows.append(row)
        cells = (self._cell(column, _text(row.get(key), column)) for key, column in self._columns.items())
        self.say("".join(cells).rstrip())
        return row

    def say(self, line: str) -> None:
        """Print a line that is not for JSON."""
        if not self._options.json:
            print(line, flush=True)

    def finish(self, **about: Any) -> None:
        """Print the JSON object, if it is wanted: the options, `about`, and the rows."""
        if self._options.json:
            settings = {name: value for name, value in vars(self._options).items() if name != "json"}
            print(json.dumps({"tier": self._tier, **settings, **about, "results": self.rows}, default=str))

    def _cell(self, column: Column, text: str) -> str:
        if column is next(iter(self._columns.values())):
            return f"{text:<34}"
        return f"  {text:>{max(7, len(column.heading))}}"


def _text(value: Any, column: Column) -> str:
    if value is None:
        return ""
    return f"{value * column.scale:{column.spec}}" if column.spec else str(value)


def spread(name: str, values: Sequence[float]) -> dict[str, int]:
    """Median, least and most of some values, under the names `median_NAME`, `min_NAME` and `max_NAME`."""
    return {f"{how.__name__}_{name}": round(how(values)) for how in (median, min, max)}


def crossing(curve: Sequence[tuple[float, float]], loss: float) -> float:
    """The SNR at which a curve of (SNR, loss) falls to `loss` for good, on straight lines between its points."""
    for (snr0, per0), (snr1, per1) in reversed(list(pairwise(curve))):
        if per0 >= loss > per1:
            return snr0 + (per0 - loss) / (per0 - per1) * (snr1 - snr0)
    raise ValueError(f"no point at which {loss:.0%} are lost")
