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
        "Medians. Of the paper's plots only the labels on the axes are left: its statements are what is compared. The "
        "parameters that it does not give are those that fit its clues, whoever wins with them. With a "
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
        # both ends of the error rates and their middle; numbers of packets need all 500 s
        only=("figure*/*/0.001", "figure*/*/0.01", "figure*/*/0.1"),
        settings=("duration_s=60",),
        replications=18,
        statements=(
            *("figure8/ecn_tcp", "figure8/dda_*", "figure8/cc_best", "figure9/share", "figure10/more"),
            *("figure10/tcp_falls", "figure11/kept", "figure12/most", "figure12/tcp_ecn", "figure12/alike"),
            *("figure13/cc_fewest", "figure14/cc_least"),
        ),
    ),
)
