"""The tables and the figure of docs/adaptive.md.

    python -m experiments.adaptive [--residual 1e-4] [--plot FILE.png]

Computed, not simulated; on one core it takes ten seconds.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from experiments.adaptive.bound import Link, bound, one_coded_round, rounds_within
from testbed.cli.app import status_of
from testbed.papers.plots import COLOURS, save, subplots, title
from testbed.papers.report import table

LOSSES: Final = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
#: in link round trips
BUDGETS: Final = (2, 3, 4, 6)
GROUPS: Final = (1, 4, 20)
#: packets whose last chances overlap on `scenarios/lossy-link.yaml`
GROUP: Final = 4
#: what TCP needs at 100 and at 400 ms
RESIDUALS: Final = (5e-3, 3e-4)
#: what `one_coded_round` is asked: uncoded rounds
UNCODED: Final = (1, 2, 3, 5)


def shares(links: Iterable[Link], residual: float) -> list[str]:
    """Return the bounds of some links as entries of a table."""
    return [f"{bound(link, residual).share:.3f}" for link in links]


def _percent(loss: float) -> str:
    return f"{100 * loss:g} %"


def groups(residual: float) -> Iterator[str]:
    """Yield the bound over loss, budget and group."""
    yield from table(
        ["loss", *(f"{budget} rt, k = {group}" for budget in BUDGETS for group in GROUPS)],
        (
            [
                _percent(loss),
                *shares((Link(loss, rounds_within(budget), group) for budget in BUDGETS for group in GROUPS), residual),
            ]
            for loss in LOSSES
        ),
    )


def residuals(residual: float) -> Iterator[str]:
    """Yield the bound over the residual loss."""
    del residual
    yield from table(
        ["loss", *(f"{budget} rt, {wanted:g}" for budget in BUDGETS for wanted in RESIDUALS)],
        (
            [
                _percent(loss),
                *(
                    f"{bound(Link(loss, rounds_within(budget), GROUP), wanted).share:.3f}"
                    for budget in BUDGETS
                    for wanted in RESIDUALS
                ),
            ]
            for loss in LOSSES
        ),
    )


def proactive(residual: float) -> Iterator[str]:
    """Yield what the rule "uncoded while a round is left" reaches, and the bound."""
    yield from table(
        ["loss", *(f"{budget} rt: rule, bound" for budget in BUDGETS)],
        (
            [
                _percent(loss),
                *(
                    ", ".join(
                        shares(
                            (Link(loss, rounds_within(budget), GROUP, proactive=yes) for yes in (False, True)), residual
                        )
                    )
                    for budget in BUDGETS
                ),
            ]
            for loss in LOSSES
        ),
    )


def codes(residual: float) -> Iterator[str]:
    """Yield what a systematic MDS code reaches."""
    budgets = (2, 3)
    yield from table(
        ["loss", *(f"{budget} rt, k = {group}" for budget in budgets for group in GROUPS)],
        (
            [
                _percent(loss),
                *shares(
                    (
                        Link(loss, rounds_within(budget), group, systematic=True)
                        for budget in budgets
                        for group in GROUPS
                    ),
                    residual,
                ),
            ]
            for loss in LOSSES
        ),
    )


def feedback(residual: float) -> Iterator[str]:
    """Yield the bound where acknowledgements are lost like frames, each sent once or more often."""
    copies = (1, 2, 3)
    budgets = (3, 4, 6)
    yield from table(
        ["loss", *(f"{budget} rt, {words}" for budget in budgets for words in (*map(str, copies), "all"))],
        (
            [
                _percent(loss),
                *shares(
                    (
                        Link(loss, rounds_within(budget), GROUP, feedback_loss=lost)
                        for budget in budgets
                        for lost in (*(loss**sent for sent in copies), 0.0)
                    ),
                    residual,
                ),
            ]
            for loss in LOSSES
        ),
    )


def points(residual: float) -> Iterator[str]:
    """Yield the points of uncoded rounds and one coded round."""
    losses = (0.1, 0.2, 0.3, 0.5)
    yield from table(
        ["loss", *(f"{uncoded} uncoded, k = {packets}" for uncoded in UNCODED for packets in (1, 20))],
        (
            [
                _percent(loss),
                *(
                    f"{one_coded_round(loss, uncoded, packets, residual):.3f}"
                    for uncoded in UNCODED
                    for packets in (1, 20)
                ),
            ]
            for loss in losses
        ),
    )


TABLES: Final = {
    "groups": groups,
    "codes": codes,
    "points": points,
    "residuals": residuals,
    "proactive": proactive,
    "feedback": feedback,
}


def plot(residual: float, target: Path) -> None:
    """Draw the bound over loss, and over the group at three round trips."""
    figure, (over_loss, over_group) = subplots(1, 2, figsize=(11, 4), sharey=True)
    losses = [step / 100 for step in range(1, 61)]
    for budget, colour in zip(BUDGETS, COLOURS, strict=False):
        one, few, many = (_curve(losses, rounds_within(budget), group, residual) for group in GROUPS)
        over_loss.fill_between(losses, one, many, color=colour, alpha=0.15, linewidth=0)
        over_loss.plot(losses, few, color=colour, label=f"{budget} round trips")
    over_loss.set(xlabel="frame loss", ylabel="share of (1 − loss) · rate", ylim=(0, 1.02))
    over_loss.set_title(f"groups of {GROUP}; shaded: {GROUPS[0]} to {GROUPS[-1]}", fontsize=9)
    over_loss.legend(frameon=False, fontsize=9, loc="lower left")
    sizes = range(1, 21)
    for loss, colour in zip((0.1, 0.2, 0.3, 0.5), COLOURS, strict=False):
        found = [bound(Link(loss, 3, group), residual).share for group in sizes]
        over_group.plot(sizes, found, color=colour, label=_percent(loss))
    over_group.set(xlabel="packets of a group", xticks=(1, 4, 8, 12, 16, 20))
    over_group.set_title("3 round trips", fontsize=9)
    over_group.legend(frameon=False, fontsize=9, loc="lower right", title="frame loss")
    title(figure, f"What a delay budget leaves, residual loss {residual:g}")
    save(figure, target)


def _curve(losses: Sequence[float], rounds: int, group: int, residual: float) -> list[float]:
    return [bound(Link(loss, rounds, group), residual).share for loss in losses]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.adaptive", description=__doc__)
    parser.add_argument("--residual", type=float, default=1e-4, help="share of packets that miss their deadline")
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    arguments = parser.parse_args()
    for name, lines in TABLES.items():
        if arguments.only in (None, name):
            print(f"\n{name}\n", *lines(arguments.residual), sep="\n", flush=True)
    if arguments.plot:
        plot(arguments.residual, arguments.plot)


if __name__ == "__main__":
    sys.exit(status_of(main))
