"""The ranking as a map: which scheme has the most goodput, and CC's margin, over (buffer, threshold).

    python -m experiments.coherence.ranking_map --out DIR

Rules kept
- All other parameters are the fitted ones. Seeds are 1 to 5, those of the search; goodputs are means.
- A margin is CC's goodput over the best other scheme's, less 1; the plot has its median over the error rates too.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from experiments.coherence import clues, parameters
from experiments.coherence.cells import SCHEME_WORDS
from experiments.coherence.search import Lab
from testbed.cli.app import status_of
from testbed.papers.plots import save, subplots, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BUFFERS: Final = (6, 10, 15, 20, 30, 50)
#: thresholds as shares of the buffer
SHARES: Final = (0.2, 0.4, 0.6, 0.8, 0.9)
SEEDS: Final = (1, 2)
DURATION_S: Final = 100.0


class Point(NamedTuple):
    """Goodputs of all schemes (packets in 500 s) with one buffer, threshold and error rate.

    `fit` is the score of the clues (`clues.fit`), one for all error rates.
    """

    buffer_packets: int
    mark_share: float
    per: float
    fit: float
    #: in the order of SCHEME_WORDS
    goodputs: tuple[float, ...]

    @property
    def winner(self) -> str:
        """The scheme with the most."""
        return max(zip(self.goodputs, SCHEME_WORDS, strict=True))[1]

    @property
    def margin(self) -> float:
        """CC's over the best other's, less 1."""
        by_scheme = dict(zip(SCHEME_WORDS, self.goodputs, strict=True))
        return by_scheme.pop("cc") / max(by_scheme.values()) - 1


def survey(lab: Lab, *, duration_s: float = DURATION_S, seeds: Sequence[int] = SEEDS) -> Iterator[Point]:
    """Yield all points."""
    for buffer in BUFFERS:
        for share in SHARES:
            changes = {"buffer_packets": buffer, "mark_packets": max(1, round(share * buffer))}
            seen = lab.observe(parameters.settings({**changes, "duration_s": duration_s}), seeds)
            for per in clues.CLUE_PERS:
                yield Point(
                    buffer, share, per, clues.fit(seen), tuple(seen[scheme, per]["goodput"] for scheme in SCHEME_WORDS)
                )


HEAD: Final = ("buffer_packets", "mark_share", "per", "fit", *SCHEME_WORDS, "winner", "cc_margin")


def write(points: Iterable[Point], target: Path) -> list[Point]:
    """Write the map as CSV while it is made, and return it."""
    made = []
    with target.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for point in points:
            made.append(point)
            goodputs = (f"{each:.0f}" for each in point.goodputs)
            head = (point.buffer_packets, point.mark_share, f"{point.per:g}", f"{point.fit:.3f}")
            writer.writerow((*head, *goodputs, point.winner, f"{point.margin:.4f}"))
            file.flush()
    return made


def read(source: Path) -> list[Point]:
    """Return a map that `write` has written."""
    with source.open(newline="") as file:
        return [
            Point(
                int(line["buffer_packets"]),
                float(line["mark_share"]),
                float(line["per"]),
                float(line["fit"]),
                tuple(float(line[scheme]) for scheme in SCHEME_WORDS),
            )
            for line in csv.DictReader(file)
        ]


def draw(points: Sequence[Point]) -> "Figure":
    """Return the map: the winner and CC's margin at each error rate, and the median margin."""
    pers = sorted({point.per for point in points})
    figure, axes = subplots(1, len(pers) + 1, figsize=(3.4 * (len(pers) + 1), 4.6), sharey=True)
    for axis, per in zip(axes, pers, strict=False):
        here = [point for point in points if point.per == per]
        words = {(p.buffer_packets, p.mark_share): f"{SCHEME_WORDS[p.winner]}\n{100 * p.margin:+.1f}" for p in here}
        margins = {(p.buffer_packets, p.mark_share): p.margin for p in here}
        _panel(axis, margins, words)
        axis.set_title(f"PER {per:g}", loc="left", fontsize=10)
    places = {(point.buffer_packets, point.mark_share) for point in points}
    middle = {place: median(p.margin for p in points if (p.buffer_packets, p.mark_share) == place) for place in places}
    fits = {(point.buffer_packets, point.mark_share): point.fit for point in points}
    words = {place: f"{100 * margin:+.1f}\nfit {fits[place]:.2f}" for place, margin in middle.items()}
    _panel(axes[-1], middle, words)
    axes[-1].set_title("median of the PERs, and fit of the clues", loc="left", fontsize=10)
    axes[0].set_ylabel("buffer (packets)")
    title(figure, "COHERENCE: scheme with the most goodput, and CC's margin over the best other (%)")
    return figure


def _panel(axis: "Axes", margins: dict[tuple[int, float], float], words: dict[tuple[int, float], str]) -> None:
    buffers = sorted({buffer for buffer, _ in margins})
    shares = sorted({share for _, share in margins})
    grid = [[100 * margins[buffer, share] for share in shares] for buffer in buffers]
    axis.imshow(grid, cmap="RdBu", vmin=-20, vmax=20, aspect="auto", origin="lower")
    for (buffer, share), text in words.items():
        shade = "white" if abs(margins[buffer, share]) > 0.13 else "black"
        axis.text(shares.index(share), buffers.index(buffer), text, ha="center", va="center", fontsize=7, color=shade)
    axis.set_xticks(range(len(shares)), [f"{share:g}" for share in shares])
    axis.set_yticks(range(len(buffers)), [str(buffer) for buffer in buffers])
    axis.set_xlabel("threshold (share of the buffer)")
    axis.grid(False)


def main() -> None:
    """Compute the map, and write `map.csv` and `map.png`."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of map.csv and map.png")
    parser.add_argument("--plot-only", action="store_true", help="draw the map.csv that is there")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    table = given.out / "map.csv"
    points = read(table) if given.plot_only else write(survey(Lab()), table)
    save(draw(points), given.out / "map.png")


if __name__ == "__main__":
    sys.exit(status_of(main))
