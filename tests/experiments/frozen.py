"""Results of the papers' cells, frozen: a few of each paper's, at one seed, as the SHA-256 of their samples.

A test of regression, not of the papers: it compares ours with ours, to the last digit. The papers' statements are in
`testbed/papers/gates.py`. `.venv/bin/python -m tests.experiments.frozen [PAPER …]` writes the results of these papers,
or of all, anew. A commit that does so says which results changed and why.
"""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.papers.computing import reproduce
from testbed.papers.paper import PAPERS, Paper
from testbed.papers.question import Question

FILE = Path(__file__).with_suffix(".json")
SEED = 7
#: cells of a paper, spread over all
_CELLS = 4
#: to make long runs short, by paper
_SETTINGS: Mapping[str, Sequence[str]] = {"coherence": ("duration_s=20",), "lt_tcp": ("seconds=5",)}


def digests(paper: Paper) -> dict[str, str]:
    """Return the digest of each chosen cell's sample by its name."""
    cells = paper.cells[:: max(1, len(paper.cells) // _CELLS)]
    question = Question(paper, cells, replications=1, first_seed=SEED, settings=_SETTINGS.get(paper.name, ()))
    found = {}
    for result in reproduce(question).cells:
        [sample] = result.samples
        text = json.dumps([repr(sample.value), {name: repr(value) for name, value in sorted(sample.counts.items())}])
        found[result.cell.name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def main() -> None:
    """Write the file."""
    frozen = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in sys.argv[1:] or PAPERS:
        frozen[name] = digests(PAPERS[name])
    FILE.write_text(json.dumps(dict(sorted(frozen.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
