"""LT-TCP's tables II to V and its component study (figure 4), in virtual time."""

from experiments.lt_tcp import cells, figures, findings, jobs, parameters, tables
from testbed.papers.paper import Paper, Quick

PAPER = Paper(
    name="lt_tcp",
    title=(
        'Tickoo, Subramanian, Kalyanaraman, Ramakrishnan, "LT-TCP: end-to-end framework to improve TCP performance '
        'over networks with lossy channels", 2005'
    ),
    heading="LT-TCP's tables, in virtual time",
    notes=("Aggregates of ten flows, medians, ours / the paper's; bold: more than 25 % apart.",),
    parameters={"all": parameters.NETWORK},
    read=cells.read,
    job=jobs.job,
    state=findings.statements,
    tables=tables.tables,
    plots=figures.draw,
    appendix=tables.schemes,
    brief=("goodput/*", "timeouts/*"),
    main_plots=("figure5.png", "figure9.png"),
    quick=Quick(
        # where the others collapse, and the highest PER
        only=("*/10", "*/20"),
        # 30 s are 600 round trips of ten flows
        settings=("seconds=30",),
        replications=16,
        statements=("more_than_sack", "collapse", "improved", "goal"),
    ),
)
