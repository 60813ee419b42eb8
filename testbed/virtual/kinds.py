"""The kinds of machines that a run in virtual time can be in, and which one a plan needs.

Read first: docs/virtual-time.md; `machine.py` and `qemu.py`.
"""

import os
import sys
from collections.abc import Callable, Mapping
from compileall import compile_file
from dataclasses import asdict, dataclass
from pathlib import Path

from hosts.kernel.bpf.eln import needs_eln
from hosts.kernel.profiles import kernel_profile
from hosts.workloads.program import ProgramTraffic
from testbed.errors import FadelabError
from testbed.paths import root
from testbed.scenario.run_plan import Plan
from testbed.source_files import walk
from testbed.virtual import kernel, machine, qemu, stock_kernel
from testbed.virtual.machine import Order, Take

#: variables that reach a run in user mode. The others (a terminal's size, a shell's depth) would move where processes
#: have their memory, on which the order of events within an instant may depend.
_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "HOME")
_PREFIXES = ("FADELAB_", "PYTHON", "UHD_", "GR_")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of machines."""

    #: raises FadelabError where no machine can be made for a plan
    check: Callable[[Plan], None]
    #: what a manifest says of the machine; raises FadelabError when its kernel is gone
    facts: Callable[[], Mapping[str, object]]
    #: boots a machine and returns the command's exit status, as `machine.run` does
    run: Callable[[Order, Take, Take], int]
    #: the interpreter within the machine
    python: Path
    #: the variables of a run within the machine, all of them
    environment: Callable[[], Mapping[str, str]]


def kind_of(plan: Plan) -> Kind:
    """Return the machine of a plan's runs: QEMU where a host's TCP is a BPF program, else Linux in user mode."""
    profiles = (kernel_profile(host.tcp, host.receive_buffer_bytes) for host in plan.hosts.values())
    return QEMU if any(map(needs_eln, profiles)) else USER_MODE


def _check_user_mode(plan: Plan) -> None:
    if kernel.built() is None:
        raise FadelabError("the kernel of virtual time is not built: `fadelab virtual -- true` builds it")
    machine.check()


def _user_mode_facts() -> Mapping[str, object]:
    built = kernel.built()
    if built is None:
        raise FadelabError("the kernel of virtual time is gone: start again")
    return {"kind": "user-mode-linux", **asdict(built)}


def _run_in_user_mode(order: Order, out: Take, err: Take) -> int:
    # what the machine compiles is gone with it
    for name, _ in walk(root()):
        if name.endswith(".py"):
            compile_file(root() / name, quiet=2)
    return machine.run(order, out, err)


def _user_mode_environment() -> Mapping[str, str]:
    chosen = {name: value for name, value in os.environ.items() if name in _VARIABLES or name.startswith(_PREFIXES)}
    # to load compiled cores takes longer there than they save, and the time they would save does not count
    return chosen | {"FADELAB_PURE": "1"}


def _check_qemu(plan: Plan) -> None:
    tcps = ", ".join(sorted({host.tcp for host in plan.hosts.values()}))
    if plan.tier.radio:
        raise FadelabError(
            f"TCP {tcps} has no virtual clock on tier {plan.tier.name}: its machine has no radios; take tier emulated"
        )
    if any(isinstance(workload, ProgramTraffic) for workload in plan.workloads):
        raise FadelabError(
            f"TCP {tcps} has no virtual clock with workload program: its machine has no programs of others"
        )
    qemu.check()
    if stock_kernel.fetched() is None:
        raise FadelabError(
            "the kernel of QEMU's machine is not there: `fadelab run SCENARIO --tcp eln --clock virtual` fetches it"
        )


def _qemu_environment() -> Mapping[str, str]:
    pure = {name: value for name, value in os.environ.items() if name == "FADELAB_PURE"}
    return pure | {
        "PATH": "/usr/sbin:/usr/bin",
        "HOME": "/root",
        "FADELAB_ROOT": str(qemu.PLACE),
        "PYTHONPATH": str(qemu.PLACE),
    }


USER_MODE = Kind(_check_user_mode, _user_mode_facts, _run_in_user_mode, Path(sys.executable), _user_mode_environment)
QEMU = Kind(_check_qemu, qemu.facts, qemu.run, qemu.PYTHON, _qemu_environment)
