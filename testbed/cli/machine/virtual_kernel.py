"""The kernel of machines in virtual time: there, or built with a progress bar."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.scenario.schema import Scenario


def prepare_clock(scenario: "Scenario") -> None:
    """Have the kernel that a scenario with a virtual clock needs. Raises FadelabError."""
    from testbed.scenario.resolver import resolve

    plan = resolve(scenario)
    if plan.clock == "virtual" and not plan.tier.simulated:
        ensure_kernel()


def ensure_kernel() -> None:
    """Build the kernel of virtual time unless it is built. Raises FadelabError."""
    from testbed.cli.bar import bar
    from testbed.virtual import kernel

    if kernel.built() is None:
        with bar("building the kernel of virtual time", "files") as told:
            kernel.build(told)
