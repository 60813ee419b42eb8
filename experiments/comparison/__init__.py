"""COMPARISON's tables 2 to 5 and figure 12, in virtual time."""

from experiments.comparison import cells, figures, findings, jobs, parameters, tables
from testbed.papers.paper import Paper, Quick

PAPER = Paper(
    name="comparison",
    title=(
        "Balakrishnan, Padmanabhan, Seshan, Katz, "
        '"A comparison of mechanisms for improving TCP performance over wireless links", ToN 1997'
    ),
    heading="COMPARISON's tables, in virtual time",
    notes=("Medians, ours / the paper's; bold: throughput more than 20 %, or goodput more than 2 points, apart.",),
    parameters={"all": parameters.SCENARIO, **parameters.SETTINGS},
    read=cells.read,
    job=jobs.job,
    state=findings.statements,
    tables=tables.tables,
    plots=figures.draw,
    brief=("table[234]/*/throughput", "table5/*"),
    main_plots=("throughput.png", "figure12.png"),
    quick=Quick(only=("table[234]/*",), replications=20),
    appendix=tables.schemes,
)
