"""The cells: a number of a case each. And the statements: the range in which the draft has it."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf

from experiments.bbr_cases.cases import CASES, FACT, Number
from experiments.bbr_cases.parameters import REPLICATIONS
from testbed.papers.results import NO_FIGURE, Cell, Quartiles
from testbed.papers.statements import Figure, Holds, Statement


def read() -> Iterator[Cell]:
    """Yield all cells, in the draft's order; a cell has a figure where the draft has one."""
    for name, case in sorted(CASES.items()):
        for number in case.numbers:
            cell = partial(
                Cell,
                f"{name}/{number.name}",
                replications=REPLICATIONS,
                case=(name, number.name),
                unit=number.unit,
                counter=number.name,
            )
            low, high = number.low, number.high
            if number.whose == "ours" or number.unit == FACT or low is None or high is None:
                yield cell(paper=NO_FIGURE)
            else:
                yield cell(paper=Quartiles(None, (low + high) / 2, None), near_by=(high - low) / 2)


def statements(cells: Sequence[Cell]) -> Iterator[Statement]:
    """Yield a statement for each number."""
    for name, case in sorted(CASES.items()):
        for number in case.numbers:
            bounds = [bound for bound in (number.low, number.high) if bound is not None]
            yield Statement(
                name=f"{name}/{number.name}",
                place=f"A.{int(name[1:])}, step {number.step}" + (" (bound ours)" if number.whose == "ours" else ""),
                words=f"{case.title}: {number.words}",
                cases=[((name, number.name), *map(Figure, bounds))],
                holds=_holds(number),
                disagrees={"*": number.disagrees} if number.disagrees else {},
            )


def _holds(number: Number) -> Holds | tuple[Holds, Holds]:
    """Return the condition that a number is in its range; infinite is in none."""
    if number.low is None:
        return lambda ours, high: ours <= high
    if number.high is None:
        return lambda ours, low: low <= ours < inf
    return (lambda ours, low, high: ours >= low, lambda ours, low, high: ours <= high)
