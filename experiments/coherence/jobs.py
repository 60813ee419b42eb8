"""A cell's run, and the measurement in it.

Rules kept
- Goodput is the packets that d1's application has got, each once.
- The mistake rate is the paper's (section 4.2): the share of all losses, of the air and of queues, whose cause is
  mistaken. TCP and ECN take every loss for congestion. DDA takes none for it: its guesses and the truth are counted at
  third dupacks, as CC's are.
- A mistake of CC is, as in the paper, a congestion loss without a marked neighbour, for which dupacks wait.
  `needless_rate` is the other kind, which the paper does not count: losses of the air beside a mark, whose dupacks pass
  while the queue is long.

Left out: how a run works (`experiments/coherence/radio_path_runs.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from experiments.coherence import parameters
from experiments.coherence.cells import Case
from experiments.coherence.radio_path_runs import PathCase, PathOutcome, PathSettings, run
from testbed.papers.results import PaperError, Sample

_COUNTED = ("wireless_frames", "wireless_losses", "congestion_losses", "residual_losses", "mean_cwnd", "mean_queue",
            "timeouts", "retransmissions", "marks")  # fmt: skip
_BY_KEY = {choice.key: choice for choice in parameters.CHOICES}


@dataclass(frozen=True, slots=True)
class Transfer:
    """A job: one transfer with a replication's seed."""

    case: PathCase
    settings: PathSettings

    def __call__(self, seed: int) -> Sample:
        """Run one replication."""
        outcome = run(self.case, self.settings, seed)
        return Sample(outcome.goodput_packets, counts(outcome))


def job(case: Case, settings: Sequence[str] = ()) -> Transfer:
    """Return the computation of a replication of a cell. Raises PaperError in one line for bad settings."""
    given = [parsed(setting) for setting in settings]
    named = [value for key, value in given if key == parameters.SET]
    changes = {**(parameters.SETS[named[-1]] if named else {}), **dict(given)}
    changes.pop(parameters.SET, None)
    if case.place == "figure7":
        changes["duration_s"] = parameters.TRACE_S
    schemes = parameters.FIRST_HOP if case.position == "first" else parameters.SCHEMES
    path = PathCase(position=case.position, per=case.per, scheme=schemes[case.scheme])
    return Transfer(path, parameters.settings(changes))


def parsed(setting: str) -> tuple[str, Any]:
    """Return key and value of a setting. Raises PaperError."""
    key, equals, text = setting.partition("=")
    if key == parameters.SET:
        if text not in parameters.SETS:
            raise PaperError(f"--set {setting}: must be one of {', '.join(parameters.SETS)}")
        return key, text
    choice = _BY_KEY.get(key)
    if choice is None or not equals:
        raise PaperError(f"--set {setting}: must be KEY=VALUE with one of {', '.join(_BY_KEY)}")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = None
    if isinstance(choice.value, bool):
        fits = isinstance(value, bool)
    else:
        numbers = int if key.endswith(("_bps", "_bytes", "_packets", "_frames", "retries")) else (int, float)
        fits = isinstance(value, numbers) and not isinstance(value, bool) and value >= 0
    if not fits:
        raise PaperError(f"--set {setting}: {key} must be like {choice.value}")
    return key, value


def counts(outcome: PathOutcome) -> dict[str, float]:
    """Return the counters of a run, by which cells are named, and others that explain them."""
    losses = outcome.wireless_losses + outcome.congestion_losses
    found: dict[str, float] = {
        **{name: getattr(outcome, name) for name in _COUNTED},
        "mistake_rate": 100 * outcome.wireless_losses / losses if losses else 0.0,
        "wireless_rate": 100 * outcome.wireless_losses / outcome.wireless_frames if outcome.wireless_frames else 0.0,
    }
    for truth in outcome.confusion.values():
        guesses = sum(sum(guessed.values()) for guessed in truth.values())
        mistaken = sum(number for guess, number in truth["congestion"].items() if guess != "congestion")
        needless = truth["late"]["congestion"] + truth["corruption"]["congestion"]
        found["guesses"] = guesses
        found["mistake_rate"] = 100 * mistaken / guesses
        found["needless_rate"] = 100 * needless / guesses
    return found
