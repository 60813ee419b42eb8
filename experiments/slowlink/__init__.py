"""SLOWLINK's two tables, in virtual time: TCP enhancements on a slow link with a short queue and excessive delays."""

from experiments.slowlink import cells, figures, findings, jobs, parameters, tables
from testbed.papers.paper import Paper, Quick

PAPER = Paper(
    name="slowlink",
    title='Sarolahti, "Performance evaluation of TCP enhancements for slow wireless links"',
    unit="s",
    heading="SLOWLINK's tables, in virtual time",
    notes=(
        "Seconds, medians with quartiles. The figures of the paper are lost in our copy of its text. So all numbers of "
        "the set-up are ours, and its findings are what is compared.",
    ),
    parameters={
        "all": parameters.SCENARIO,
        **{f"*/{name}/*": choices for name, choices in parameters.DELAYS.items() if choices},
    },
    read=cells.read,
    job=jobs.job,
    state=lambda cells: findings.STATEMENTS,
    tables=tables.tables,
    plots=figures.draw,
    appendix=tables.variants,
    brief=("one/*", "four/*"),
    main_plots=("one.png", "four.png"),
    quick=Quick(replications=20),
)
