"""The options of plugins: dataclasses whose fields have a unit in their names and a range in their types.

The scenario's schema is built from them (`testbed/scenario/plugin_options.py`), so a range stands in one place. What
concerns several fields at once, the dataclass checks in `__post_init__` by a ValueError of one line. No float is
infinite.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le

Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Probability = Annotated[float, Ge(0), Le(1)]
Bytes = Annotated[int, Gt(0)]
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class NoOptions:
    """Of a plugin that has none."""


@dataclass(frozen=True)
class OneOf:
    """A string that is one of `names`; pydantic asks what it is to check."""

    names: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.literal_schema(list(self.names))


@dataclass(frozen=True)
class InOrder:
    """A pair whose first is not above its second; pydantic asks what it is to check."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(in_order, handler(source))


def in_order(ends: tuple[float, float]) -> tuple[float, float]:
    """Return a range (shortest, longest) as it is; raises ValueError when it is none."""
    if ends[0] > ends[1]:
        raise ValueError(f"{ends[0]:g} to {ends[1]:g} is no range: the shortest comes first")
    return ends


#: shortest and longest
Span = Annotated[tuple[NotNegative, NotNegative], InOrder()]
