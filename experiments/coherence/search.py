"""The search for the parameters that COHERENCE does not give, by its clues (`clues.py`).

    python -m experiments.coherence.search --out DIR
    python -m experiments.coherence.search --compare

Rules kept
- A candidate's score is `clues.fit` of its runs and nothing else; who has the most goodput is not looked at.
- Three stages: candidates drawn from the grid, each with short runs; then the best values and the best candidates,
  changed in one parameter at a time for as long as that fits better, with longer runs of another seed; then the best of
  these once more, with the seeds left.
- Seeds are 1 to 5, those of the published figures 1001 and later. Counts are scaled to 500 s.
- The same seed and options give the same candidates and scores.
- A run is computed once for all candidates that agree in what its scheme sees: drop-tail queues have no threshold,
  Snoop has no link ARQ.
"""

import argparse
import csv
import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from experiments.coherence import clues, parameters
from experiments.coherence.cells import SCHEME_WORDS
from experiments.coherence.jobs import Transfer
from experiments.coherence.radio_path_runs import PathCase, PathSettings
from testbed.cli.app import status_of
from testbed.papers.results import Sample

#: all that may be used here
SEEDS: Final = (1, 2, 3, 4, 5)
#: seconds of the published runs, to which counts are scaled
FULL_S: Final = 500.0
#: that grow with the duration; the others are averages and rates
_GROWING: Final = frozenset(
    {"wireless_frames", "wireless_losses", "congestion_losses", "residual_losses", "timeouts", "retransmissions"}
    | {"marks", "guesses"}
)
_PACKET_BYTES: Final = 960
#: values of each parameter that the paper does not give; `timers` are least RTO and tick, ms
GRID: Final[Mapping[str, tuple[Any, ...]]] = {
    "buffer_packets": (5, 6, 8, 10, 12, 15, 20, 25, 30, 50),
    "mark_share": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "window_packets": (10, 15, 20, 32, 64, 1000),
    "timers": ((60, 0), (100, 0), (200, 0), (500, 0), (1000, 0), (200, 100), (1000, 500)),
    "retries": (2, 3, 5, 100),
    "delayed_ack_ms": (0, 100, 200),
    "limited_transmit": (False, True),
    "one_reduction_per_window": (False, True),
    "cross_ect": (False, True),
    "ack_losses": (False, True),
    "wireless_buffer_packets": (0, 50),
    "link_frames": (8, 64, 1024),
}
#: a value per parameter of the grid, in its order
Candidate = tuple[Any, ...]
Run = Callable[[PathCase, PathSettings, int], Sample]
#: what a scheme's runs do not depend on, set to one value
_UNSEEN: Final[Mapping[str, Mapping[str, Any]]] = {
    "tcp": {"mark_packets": 0, "cross_ect": False},
    "dda": {"mark_packets": 0, "cross_ect": False},
    "snoop": {"mark_packets": 0, "cross_ect": False, "retries": 0, "link_frames": 1},
}


def settings_of(candidate: Candidate, duration_s: float) -> PathSettings:
    """Return the settings of a candidate's runs."""
    given = dict(zip(GRID, candidate, strict=True))
    share, packets, timers = (given.pop(name) for name in ("mark_share", "window_packets", "timers"))
    return parameters.settings(
        {
            **given,
            "duration_s": duration_s,
            "mark_packets": max(1, round(share * given["buffer_packets"])),
            "receive_buffer_bytes": packets * _PACKET_BYTES,
            "min_rto_ms": timers[0],
            "tick_ms": timers[1],
        }
    )


def simulate(case: PathCase, settings: PathSettings, seed: int) -> Sample:
    """Run one transfer."""
    return Transfer(case, settings)(seed)


@dataclass
class Lab:
    """Runs candidates, each run once."""

    run: Run = simulate
    known: dict[tuple[PathCase, PathSettings, int], Sample] = field(default_factory=dict)

    def sample(self, scheme: str, per: float, settings: PathSettings, seed: int) -> Sample:
        """Return a run with the wireless link as the last hop."""
        case = PathCase(position="last", per=per, scheme=parameters.SCHEMES[scheme])
        key = (case, replace(settings, **_UNSEEN.get(scheme, {})), seed)
        if key not in self.known:
            self.known[key] = self.run(*key)
        return self.known[key]

    def observe(
        self, settings: PathSettings, seeds: Sequence[int], pers: Sequence[float] = clues.CLUE_PERS
    ) -> clues.Observed:
        """Return the means over seeds of all schemes, scaled to 500 s."""
        factor = FULL_S / settings.duration_s
        return {
            (scheme, per): scaled([self.sample(scheme, per, settings, seed) for seed in seeds], factor)
            for scheme in SCHEME_WORDS
            for per in pers
        }


def scaled(samples: Sequence[Sample], factor: float) -> dict[str, float]:
    """Return the means of counters over samples; those that grow with the duration are multiplied by `factor`."""
    names = samples[0].counts
    means = {name: fmean(sample.counts.get(name, 0.0) for sample in samples) for name in names}
    growing = {name: mean * factor for name, mean in means.items() if name in _GROWING}
    return {**means, **growing, "goodput": fmean(sample.value for sample in samples) * factor}


@dataclass(frozen=True)
class Scored:
    """A candidate, the stage that tried it, and the value of each clue."""

    stage: str
    candidate: Candidate
    values: tuple[float, ...]

    @property
    def score(self) -> float:
        """The mean credit."""
        return fmean(self._credits())

    @property
    def fitted(self) -> int:
        """The number of clues that are fitted."""
        return sum(each == 1 for each in self._credits())

    def _credits(self) -> list[float]:
        return [clues.credit(value, clue.low, clue.high) for value, clue in zip(self.values, clues.CLUES, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The extent of a search."""

    seed: int = 1
    coarse: int = 60
    coarse_s: float = 50.0
    coarse_seeds: tuple[int, ...] = (1,)
    #: starts of the local stage: the best value of each parameter in the coarse stage, then its best candidates
    starts: int = 2
    local_s: float = 100.0
    local_seeds: tuple[int, ...] = (2,)
    #: at most so many rounds through all parameters
    rounds: int = 2
    #: candidates of the last stage
    finalists: int = 6
    final_seeds: tuple[int, ...] = (3, 4, 5)


def search(plan: Plan, lab: Lab, told: Callable[[Scored], None] = lambda scored: None) -> list[Scored]:
    """Return all candidates tried, in their order; `told` gets each at once. The last stage's best is the result."""
    return decide(plan, lab, refine(plan, lab, screen(plan, lab, told), told), told)


def screen(plan: Plan, lab: Lab, told: Callable[[Scored], None]) -> list[Scored]:
    """Try candidates drawn from the grid."""
    draw = random.Random(plan.seed)
    tried = []
    for _ in range(plan.coarse):
        candidate = tuple(draw.choice(values) for values in GRID.values())
        tried.append(_score("coarse", candidate, lab, plan.coarse_s, plan.coarse_seeds))
        told(tried[-1])
    return tried


def refine(plan: Plan, lab: Lab, screened: Sequence[Scored], told: Callable[[Scored], None]) -> list[Scored]:
    """Change the best values, and then the best candidates, in one parameter at a time; return all that was tried."""
    tried = [*screened]

    def score(candidate: Candidate) -> Scored:
        for known in tried:
            if (known.stage, known.candidate) == ("local", candidate):
                return known
        tried.append(_score("local", candidate, lab, plan.local_s, plan.local_seeds))
        told(tried[-1])
        return tried[-1]

    screened = [each for each in screened if each.stage == "coarse"]
    ranked = sorted(screened, key=lambda each: each.score, reverse=True)
    for start in (best_values(screened), *(each.candidate for each in ranked))[: plan.starts]:
        reached = score(start)
        for _ in range(plan.rounds):
            before = reached
            for at, values in enumerate(GRID.values()):
                for value in neighbours(values, reached.candidate[at]):
                    other = score((*reached.candidate[:at], value, *reached.candidate[at + 1 :]))
                    if other.score > reached.score:
                        reached = other
            if reached is before:
                break
    return tried


def decide(plan: Plan, lab: Lab, tried: Sequence[Scored], told: Callable[[Scored], None]) -> list[Scored]:
    """Try the best candidates of the local stage once more, with other seeds; return all that was tried."""
    local = sorted((each for each in tried if each.stage == "local"), key=lambda each: each.score, reverse=True)
    finals = []
    for each in local[: plan.finalists]:
        finals.append(_score("final", each.candidate, lab, plan.local_s, plan.final_seeds))
        told(finals[-1])
    return [*tried, *finals]


def _score(stage: str, candidate: Candidate, lab: Lab, duration_s: float, seeds: Sequence[int]) -> Scored:
    seen = lab.observe(settings_of(candidate, duration_s), seeds)
    return Scored(stage, candidate, tuple(clue.value(seen) for clue in clues.CLUES))


def best_values(screened: Sequence[Scored]) -> Candidate:
    """Return, parameter by parameter, the value whose candidates have the best mean score."""
    chosen = []
    for at, values in enumerate(GRID.values()):
        scores = {value: [each.score for each in screened if each.candidate[at] == value] for value in values}
        chosen.append(max((value for value in values if scores[value]), key=lambda value: fmean(scores[value])))
    return tuple(chosen)


def neighbours(values: Sequence[Any], value: Any) -> list[Any]:
    """Return the values of the grid beside one."""
    at = values.index(value)
    return [values[each] for each in (at - 1, at + 1) if 0 <= each < len(values)]


def best(tried: Iterable[Scored]) -> Scored:
    """Return the candidate of the last stage that fits best, the first of equals."""
    return max((each for each in tried if each.stage == "final"), key=lambda each: each.score)


def word(value: Any) -> str:
    """Return a value of the grid as the table has it."""
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


HEAD: Final = ("stage", *GRID, "score", "fitted", *(clue.name for clue in clues.CLUES))


def row(scored: Scored) -> list[str]:
    """Return a line of the table: parameters, score, and the value of each clue."""
    return [
        scored.stage,
        *map(word, scored.candidate),
        f"{scored.score:.4f}",
        str(scored.fitted),
        *(f"{v:.4g}" for v in scored.values),
    ]


def compare(lab: Lab, duration_s: float) -> Iterator[str]:
    """Yield the clues as Markdown, with the values of the parameters in force and of ours, on all seeds."""
    sets = {
        name: lab.observe(parameters.settings({**changes, "duration_s": duration_s}), SEEDS)
        for name, changes in parameters.SETS.items()
    }
    yield f"| place | clue | bounds | {' | '.join(sets)} |"
    yield f"|---|---|---|{'---|' * len(sets)}"
    for clue in clues.CLUES:
        bounds = f"{clue.low:,g} or more" if math.isinf(clue.high) else f"{clue.low:,g} to {clue.high:,g}"
        values = []
        for seen in sets.values():
            words = f"{clue.value(seen):,.3g}" if clue.value(seen) < 1000 else f"{clue.value(seen):,.0f}"
            values.append(f"**{words}**" if clue.credit(seen) == 1 else words)
        yield f"| {clue.place} | {clue.words} | {bounds} | {' | '.join(values)} |"
    scores = (f"{clues.fit(seen):.3f}" for seen in sets.values())
    yield f"| | score | 0 to 1 | {' | '.join(scores)} |"


def main() -> None:
    """Search, and write `search.csv`; or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    defaults = Plan()
    for name in ("seed", "coarse", "starts", "rounds", "finalists"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    for name in ("coarse-s", "local-s"):
        parser.add_argument(f"--{name}", type=float, default=getattr(defaults, name.replace("-", "_")))
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="folder of search.csv")
    what.add_argument("--compare", action="store_true", help="print the clues with the values of both sets instead")
    given = vars(parser.parse_args())
    folder = given.pop("out")
    if given.pop("compare"):
        print("\n".join(compare(Lab(), given["local_s"])))
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "search.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)

        def told(scored: Scored) -> None:
            writer.writerow(row(scored))
            file.flush()

        found = best(search(Plan(**given), Lab(), told))
    for name, value in zip(GRID, found.candidate, strict=True):
        print(f"{name}: {value}")
    print(f"fitted {found.fitted} of {len(clues.CLUES)} clues, score {found.score:.3f}")


if __name__ == "__main__":
    sys.exit(status_of(main))
