"""ELN for the kernel's TCP in one run: loaded, given to its hosts, and gone with it.

Read first: docs/kernel-eln.md; `libbpf.py` and `cgroups.py` for what a killed run leaves: its group, no more.

A congestion control's name is taken once per machine: the run that comes first has `fadelab_eln`, those beside it
have `fadelab_eln_1` and so on.
"""

import errno
from dataclasses import replace
from pathlib import Path

from hosts.errors import HostError
from hosts.kernel.bpf.build import build
from hosts.kernel.bpf.cgroups import Cgroup
from hosts.kernel.bpf.libbpf import Libbpf, Object
from hosts.kernel.profiles import ELN_CONTROL, TcpProfile

#: runs that can have one side by side
_MOST = 32


class Eln:
    """Gives the TCP of one run's hosts explicit loss notification; objects are kept below `cache`."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._group: Cgroup | None = None
        self._objects: list[Object] = []
        #: of its congestion control, once loaded
        self.name = ""

    def load(self, run: str) -> None:
        """Build the missing objects, and load them once. Raises HostError in one line."""
        if self._group is not None:
            return
        library = Libbpf()
        try:
            self._group = Cgroup(run)
            options = self._open(library, build("options", self._cache))
            options.load()
            options.attach_cgroup("hear_eln", self._group.fd)
            self._register(library, options)
        except OSError as error:
            raise HostError(_in_words(error, library)) from None

    def add(self, pid: int) -> None:
        """Let a process hear: the connections it opens from now on. Raises HostError."""
        assert self._group is not None, "loaded"
        self._group.add(pid)

    def of(self, profile: TcpProfile) -> TcpProfile:
        """The profile with the congestion control as it is called in this run."""
        return replace(profile, congestion_control=self.name) if needs_eln(profile) else profile

    def close(self) -> None:
        """Unload all of it; idempotent. Connections that are open keep their congestion control until they end."""
        while self._objects:
            self._objects.pop().close()
        if self._group is not None:
            self._group.remove()
            self._group = None

    def _register(self, library: Libbpf, options: Object) -> None:
        for index in range(_MOST):
            name = f"{ELN_CONTROL}_{index}" if index else ELN_CONTROL
            control = self._open(library, build("control", self._cache, CONTROL_NAME=name))
            control.share_map("marks", options)
            control.load("control")
            try:
                control.attach_struct_ops("control")
            except FileExistsError:
                self._objects.pop().close()
            else:
                self.name = name
                return
        raise HostError(f"{_MOST} runs have a congestion control {ELN_CONTROL} already: wait until one has ended")

    def _open(self, library: Libbpf, path: Path) -> Object:
        self._objects.append(Object(library, path))
        return self._objects[-1]


def needs_eln(profile: TcpProfile) -> bool:
    """Whether a profile's congestion control is one that has to be loaded first."""
    return profile.congestion_control == ELN_CONTROL


def _in_words(error: OSError, library: Libbpf) -> str:
    if error.errno == errno.EPERM:
        return "the kernel does not let us load BPF programs: run with sudo or as root (a container needs CAP_BPF)"
    return f"the kernel does not take the ELN programs ({_why(library)}, {error.strerror}); Linux 6.4 is needed"


def _why(library: Libbpf) -> str:
    """The verifier's verdict, the last line of its log but for statistics; or libbpf's last message."""
    for complaint in library.complaints:
        before, ended, _ = complaint.partition("\nprocessed ")
        if ended:
            return before.splitlines()[-1]
    return library.complaints[-1] if library.complaints else "no reason given"
