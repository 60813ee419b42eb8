"""The search for the parameters that COHERENCE does not give, by its clues (`clues.py`).

    python -m experiments.coherence.search --out DIR

Rules kept
- A candidate's score is `clues.fit` of its runs and nothing else; who has the most goodput is not looked at.
- Two stages: candidates drawn from the grid, each with few and short runs; then the best of them, changed in one
  parameter at a time for as long as that fits better, with longer runs of more seeds.
- Seeds are 1 to 5, those of the published figures 1001 and later. Counts are scaled to 500 s.
- The same seed and options give the same candidates and scores.
- A run is computed once for all candidates that agree in what its scheme sees: drop-tail queues have no threshold,
  Snoop has no link ARQ.
"""

import argparse
import csv
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from experiments.coherence import clues, parameters
from experiments.coherence.cells import SCHEME_WORDS
from experiments.coherence.jobs import Transfer
from experiments.coherence.radio_path_runs import PathCase, PathSettings
from testbed.papers.results import Sample

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
    """A candidate, the stage that tried it, and the credit of each clue."""

    stage: str
    candidate: Candidate
    credits: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def score(self) -> float:
        """The mean credit."""
        return fmean(self.credits)

    @property
    def fitted(self) -> int:
        """The number of clues that are fitted."""
        return sum(each == 1 for each in self.credits)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The extent of a search."""

    seed: int = 1
    coarse: int = 60
    coarse_s: float = 50.0
    coarse_seeds: tuple[int, ...] = (1,)
    #: best candidates of the coarse stage that the local one starts from
    starts: int = 2
    local_s: float = 100.0
    local_seeds: tuple[int, ...] = (2,)
    #: at most so many rounds through all parameters
    rounds: int = 3


def search(plan: Plan, lab: Lab, told: Callable[[Scored], None] = lambda scored: None) -> list[Scored]:
    """Return all candidates tried, in their order; `told` gets each at once. The last stage's best is the result."""
    tried: list[Scored] = []

    def score(stage: str, candidate: Candidate, duration_s: float, seeds: Sequence[int]) -> Scored:
        for known in tried:
            if (known.stage, known.candidate) == (stage, candidate):
                return known
        seen = lab.observe(settings_of(candidate, duration_s), seeds)
        earned = tuple(clue.credit(seen) for clue in clues.CLUES)
        scored = Scored(stage, candidate, earned, tuple(clue.value(seen) for clue in clues.CLUES))
        tried.append(scored)
        told(scored)
        return scored

    draw = random.Random(plan.seed)
    for _ in range(plan.coarse):
        candidate = tuple(draw.choice(values) for values in GRID.values())
        score("coarse", candidate, plan.coarse_s, plan.coarse_seeds)
    coarse = sorted(tried, key=lambda each: each.score, reverse=True)
    for start in coarse[: plan.starts]:
        best = score("local", start.candidate, plan.local_s, plan.local_seeds)
        for _ in range(plan.rounds):
            before = best
            for at, values in enumerate(GRID.values()):
                for value in neighbours(values, best.candidate[at]):
                    changed = (*best.candidate[:at], value, *best.candidate[at + 1 :])
                    other = score("local", changed, plan.local_s, plan.local_seeds)
                    if other.score > best.score:
                        best = other
            if best is before:
                break
    return tried


def neighbours(values: Sequence[Any], value: Any) -> list[Any]:
    """Return the values of the grid beside one."""
    at = values.index(value)
    return [values[each] for each in (at - 1, at + 1) if 0 <= each < len(values)]


def best(tried: Iterable[Scored]) -> Scored:
    """Return the candidate of the local stage that fits best, the first of equals."""
    return max((each for each in tried if each.stage == "local"), key=lambda each: each.score)


HEAD: Final = ("stage", *GRID, "score", "fitted", *(clue.name for clue in clues.CLUES))


def row(scored: Scored) -> list[str]:
    """Return a line of the table: parameters, score, and the value of each clue."""
    given = ["/".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in scored.candidate]
    return [scored.stage, *given, f"{scored.score:.4f}", str(scored.fitted), *(f"{v:.4g}" for v in scored.values)]


def main() -> None:
    """Search, and write `search.csv`."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    defaults = Plan()
    for name in ("seed", "coarse", "starts", "rounds"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    for name in ("coarse-s", "local-s"):
        parser.add_argument(f"--{name}", type=float, default=getattr(defaults, name.replace("-", "_")))
    parser.add_argument("--out", type=Path, required=True, help="folder of search.csv")
    given = vars(parser.parse_args())
    folder = given.pop("out")
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
    main()
