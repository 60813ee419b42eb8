"""COMPARISON's tables 2 to 5 and figure 12, in virtual time.

| file | what it is |
|---|---|
| `parameters.py` | every choice, the paper's and ours: the one place to turn a knob |
| `cells.py` | which cells there are, and the paper's figures for them (`reference/`) |
| `jobs.py` | a cell's scenario, and what is measured in a run of it |
| `findings.py` | ours against the paper's: what agrees, and which schemes are in the paper's order |
| `traces.py` | single transfers: segments, retransmissions and windows over time |
| `report.py` | tables in Markdown |
| `plots.py` | plots |
"""

from experiments.comparison.paper import PAPER

__all__ = ["PAPER"]
