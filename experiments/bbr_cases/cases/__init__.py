"""The 22 test cases of appendix A of BBR's draft, each as a script over a path, and the numbers it is judged by.

Read first: draft-ietf-ccwg-bbr-06 (July 2026), appendix A; `../flow.py`; `case.py`. A script waits for a state of BBR,
changes the path or the application, and returns its numbers, by name. A number is infinite where the case did not get
there.

Rule kept: what is expected is the draft's, in our words, with the step that says it. Where a step has no number ("a
reasonable number of round trips"), the bound is ours, and `whose` says so.
"""

from typing import Final

from experiments.bbr_cases.cases import paths, probe_bw, probe_rtt, recovery, startup
from experiments.bbr_cases.cases.case import DECLARED, FACT, Case, Number

__all__ = ["CASES", "FACT", "Number"]

#: by name: the states of BBR in their order, then paths and losses
CASES: Final[dict[str, Case]] = {
    name: case
    for module in (startup, probe_bw, probe_rtt, paths, recovery)
    for name, case in DECLARED.items()
    if case.script.__module__ == module.__name__
}
