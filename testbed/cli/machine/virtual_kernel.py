"""The kernels of machines in virtual time: there, or built and fetched with a progress bar."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.scenario.schema import Scenario


def prepare_clock(scenario: "Scenario") -> None:
    """Have the kernel that a scenario with a virtual clock needs. Raises FadelabError."""
    from testbed.scenario.resolver import resolve
    from testbed.virtual.kinds import QEMU, kind_of

    plan = resolve(scenario)
    if plan.clock != "virtual" or plan.tier.simulated:
        return
    if kind_of(plan) is QEMU:
        _ensure_stock_kernel()
    else:
        ensure_kernel()


def ensure_kernel() -> None:
    """Build the kernel of virtual time unless it is built. Raises FadelabError."""
    from testbed.cli.bar import bar
    from testbed.virtual import kernel

    if kernel.built() is None:
        with bar("building the kernel of virtual time", "files") as told:
            kernel.build(told)


def _ensure_stock_kernel() -> None:
    from testbed.cli.bar import bar
    from testbed.virtual import qemu, stock_kernel

    # before 34 MB come for nothing
    qemu.check()
    if stock_kernel.fetched() is None:
        with bar("fetching the kernel of QEMU's machine", "modules") as told:
            stock_kernel.fetch(told)
