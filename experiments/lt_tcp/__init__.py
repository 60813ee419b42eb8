"""LT-TCP's tables II and III and its component study (figure 4), in virtual time."""

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
    findings=findings.findings,
    tables=tables.tables,
    plots=figures.draw,
    appendix=tables.schemes,
    brief=("goodput/*", "timeouts/*"),
    main_plots=("figure5.png", "figure9.png"),
    quick=Quick(
        # the statements of section 4; of the component study the steps that are larger than luck
        gates={"reached": 3, "goal": 2, "collapse": 8, "components/goodput": 3, "components/timeouts": 3},
        # where the others collapse, and the highest PER
        only=("*/10", "*/20", "*/50"),
        # 100 s are 2000 round trips of ten flows
        settings=("seconds=100",),
        replications=3,
    ),
)
