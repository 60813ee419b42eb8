"""COHERENCE's figures 7 to 14, in virtual time: telling congestion from corruption by ECN."""

from experiments.coherence import cells, figures, findings, jobs, parameters, tables
from testbed.papers.paper import Paper, Quick

PAPER = Paper(
    name="coherence",
    title=(
        'Liu, Jain, "Approaches of wireless TCP enhancement and a new proposal based on congestion coherence", '
        "HICSS 2003"
    ),
    heading="COHERENCE's figures, in virtual time",
    notes=(
        "Medians. The paper has plots, from which no number can be read: its statements are what is compared. With a "
        f"mobile sender ELN takes Snoop's place, and {cells.SCHEME_WORDS['cc']} is at the sender.",
    ),
    parameters={"all": parameters.CHOICES},
    read=cells.read,
    job=jobs.job,
    state=lambda cells: findings.statements(),
    tables=tables.tables,
    plots=figures.draw,
    appendix=tables.schemes,
    brief=("figure8/*", "first/*", "middle/*"),
    main_plots=("goodput.png", "details.png"),
    quick=Quick(
        # both ends of the error rates and their middle; the number of packets needs all 500 s
        only=("figure*/*/0.01", "figure*/*/0.1"),
        settings=("duration_s=60",),
        replications=18,
        statements=("*/cc_best", "figure10/*", "figure11/*", "figure13/*"),
    ),
)
