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
    findings=findings.findings,
    tables=tables.tables,
    plots=figures.draw,
    appendix=tables.schemes,
    brief=("figure8/*", "first/*", "middle/*"),
    main_plots=("goodput.png", "details.png"),
    quick=Quick(
        # the statements on the order of the schemes, with all their pairs; the number of packets needs all 500 s
        gates={
            "figure8/cc_best": 12,
            "figure8/half": 2,
            "figure8/falls": 2,
            "figure10/ecn_fewer": 12,
            "figure11/kept": 3,
            "figure12/cc_fewest": 6,
            "figure13/cc_fewest": 12,
            "figure14/cc": 3,
            "first/cc_best": 4,
            "middle/cc_best": 4,
        },
        # both ends of the error rates and their middle
        only=("figure*/*/0.001", "figure*/*/0.01", "figure*/*/0.1", "first/*/0.01", "middle/*/0.01"),
        settings=("duration_s=200",),
        replications=3,
    ),
)
