"""The 22 test cases of the appendix of BBR's draft, in virtual time."""

from experiments.bbr_cases import findings, jobs, parameters, tables
from testbed.papers.paper import Paper, Quick

PAPER = Paper(
    name="bbr_cases",
    title="Cardwell, Swett, Beshay, BBR congestion control, draft-ietf-ccwg-bbr-06, appendix A, 2026",
    heading="The test cases of BBR's draft, in virtual time",
    notes=(
        "Each replication has a path of its own; medians and quartiles. Facts are 1 where they hold, 0 where not; what "
        "a replication does not get to is infinite.",
    ),
    parameters={"all": parameters.NETWORK},
    read=findings.read,
    job=jobs.job,
    state=findings.statements,
    tables=tables.tables,
    appendix=tables.paths,
    brief=("a01/*", "a10/*"),
    # at least 17: a number with two bounds could not fail with fewer
    quick=Quick(replications=18),
)
