"""The SLACP paper's tables 2, 3 and 4 and its figures 3 and 4, in virtual time."""

from experiments.slacp import cells, figures, findings, jobs, parameters, tables
from testbed.papers.paper import Paper, Quick

PAPER = Paper(
    name="slacp",
    title=(
        "Kojo, Astuti, Daniel, Nyrhinen, Raatikainen, "
        '"Improving TCP performance over wireless WANs using TCP/IP-friendly link layer", ICETE 2004'
    ),
    unit="s",
    heading="The SLACP paper's tables, in virtual time",
    notes=(
        "Seconds, ours / the paper's, with quartiles; bold: more than 25 % apart.",
        "`never`: not finished within three hours.",
    ),
    parameters={"all": parameters.SCENARIO},
    read=cells.read,
    job=jobs.job,
    findings=findings.findings,
    tables=tables.tables,
    plots=figures.draw,
    brief=("table[24]/*",),
    main_plots=("table2.png",),
    quick=Quick(
        # three quarters of the rows in order, and of the medians near the paper's
        gates={
            "table2/order_but_ties": 27,
            "table2/within_25_percent": 108,
            "table3/within_25_percent": 12,
            "table4/within_25_percent": 18,
        },
    ),
)
