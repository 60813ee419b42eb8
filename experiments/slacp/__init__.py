"""The SLACP paper's tables 2, 3 and 4 and its figures 3 and 4, in virtual time.

| file | what it is |
|---|---|
| `parameters.py` | every choice, the paper's and ours: the one place to turn a knob |
| `cells.py` | which cells there are, and the paper's figures for them (`reference/`) |
| `jobs.py` | a cell's scenario, and what is measured in a run of it |
| `findings.py` | ours against the paper's: how many medians agree, in which rows the order does |
| `traces.py` | figure 3: one transfer, segment by segment |
| `report.py` | tables in Markdown, and plots |
"""

from experiments.slacp.paper import PAPER

__all__ = ["PAPER"]
