"""The options of plugins: dataclasses whose fields have a unit in their names and a range in their types.

The scenario's schema is built from them (`testbed/scenario/plugin_options.py`), so a range is written once. A
dataclass checks conditions on several fields in `__post_init__` and raises a ValueError of one line; `check_ranges`
there checks the ranges of a dataclass that is not built from a scenario. Floats are finite.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, get_args

from annotated_types import Ge, Gt, Le, Lt, MinLen

from common.compiled import hints_of

#: of a number that has no other limit: thirty thousand years, a terabit, and finite in the units of the cores
LARGEST: Final = 1e12
Positive = Annotated[float, Gt(0), Le(LARGEST)]
#: a time in ms of a nanosecond or more, the least that the cores know
Milliseconds = Annotated[float, Ge(1e-6), Le(LARGEST)]
NotNegative = Annotated[float, Ge(0), Le(LARGEST)]
Probability = Annotated[float, Ge(0), Le(1)]
Bytes = Annotated[int, Gt(0)]
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class NoOptions:
    """The options of a plugin without options."""


@dataclass(frozen=True)
class OneOf:
    """A string that is one of `names`, also as a pydantic type."""

    names: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.literal_schema(list(self.names))


@dataclass(frozen=True)
class InOrder:
    """A pair in ascending order, also as a pydantic type."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(in_order, handler(source))


def in_order(ends: tuple[float, float]) -> tuple[float, float]:
    """Return the range (shortest, longest) unchanged; raises ValueError when it is not in order."""
    if ends[0] > ends[1]:
        raise ValueError(f"{ends[0]:g} to {ends[1]:g} is no range: the shortest comes first")
    return ends


#: shortest and longest
Span = Annotated[tuple[NotNegative, NotNegative], InOrder()]


@dataclass(frozen=True)
class Matches:
    """A string that a regular expression matches as a whole."""

    pattern: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def check(self, text: str) -> str:
        """Return the text unchanged; raises ValueError when it does not match."""
        if re.fullmatch(self.pattern, text) is None:
            raise ValueError(f"{text!r} does not match {self.pattern}")
        return text


def check_ranges(options: Any) -> None:
    """Raise ValueError in one line when a field of a dataclass is out of the range that its type declares."""
    for name, limits in _limits(type(options)):  # type: ignore[arg-type]
        value = getattr(options, name)
        if value is not None:
            _check(name, value, limits)


@cache
def _limits(dataclass: type[Any]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The limits of each field that has any."""
    hints = hints_of(dataclass)
    found = ((name, tuple(_metadata(hint))) for name, hint in hints.items())
    return tuple((name, limits) for name, limits in found if limits)


def _metadata(hint: Any) -> Iterator[Any]:
    yield from getattr(hint, "__metadata__", ())
    if not hasattr(hint, "__metadata__"):
        for part in get_args(hint):
            yield from getattr(part, "__metadata__", ())


def _check(name: str, value: Any, limits: tuple[Any, ...]) -> None:
    for limit in limits:
        match limit:
            case Gt(gt=least) if not value > least:
                raise ValueError(f"{name} is {value}: must be above {least}")
            case Ge(ge=least) if not value >= least:
                raise ValueError(f"{name} is {value}: must be {least} or more")
            case Le(le=most) if not value <= most:
                raise ValueError(f"{name} is {value}: must be {most} or less")
            case Lt(lt=end) if not value < end:
                raise ValueError(f"{name} is {value}: must be below {end}")
            case MinLen(min_length=least) if len(value) < least:
                raise ValueError(f"{name} is {value!r}: must have {least} or more characters")
            case InOrder():
                in_order(value)
            case Matches():
                limit.check(value)
            case _:
                pass
