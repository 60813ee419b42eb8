"""Ranges that the types of options declare: the least and the greatest value are in, those beside them are refused."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from annotated_types import Ge, Gt, Le, Lt, MinLen

from common.options import Matches, Span, check_ranges


@dataclass(frozen=True, kw_only=True)
class Options:
    above: Annotated[float, Gt(0)] = 1
    least: Annotated[int, Ge(3)] | None = 3
    most: Annotated[float, Le(1)] = 1
    below: Annotated[int, Lt(65_536)] = 0
    name: Annotated[str, MinLen(1)] = "name"
    word: Annotated[str, Matches("[a-z]+")] = "word"
    span_ms: Span = (0, 0)
    plain: int = 0


@pytest.mark.parametrize(
    "values",
    [
        {"above": 5e-324},
        {"least": 3},
        {"least": None},
        {"most": 1.0},
        {"below": 65_535},
        {"name": "a"},
        {"word": "a"},
        {"span_ms": (2, 2)},
        {"plain": -1},
    ],
)
def test_the_edge_of_a_range_is_in_it(values: dict[str, Any]) -> None:
    check_ranges(Options(**values))


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"above": 0}, "above is 0: must be above 0"),
        ({"above": float("nan")}, "above is nan: must be above 0"),
        ({"least": 2}, "least is 2: must be 3 or more"),
        ({"most": 1.5}, r"most is 1\.5: must be 1 or less"),
        ({"below": 65_536}, "below is 65536: must be below 65536"),
        ({"name": ""}, "name is '': must have 1 or more characters"),
        ({"word": "a1"}, r"'a1' does not match \[a-z\]\+"),
        ({"word": "a\n"}, r"'a\\n' does not match \[a-z\]\+"),
        ({"span_ms": (2, 1)}, "2 to 1 is no range: the shortest comes first"),
    ],
)
def test_what_lies_beside_a_range_is_one_line(values: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=f"^{line}$"):
        check_ranges(Options(**values))
