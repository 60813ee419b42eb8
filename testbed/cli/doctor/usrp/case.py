"""The case that `doctor --radio` looks at: this machine's files, and the radios' answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flowgraphs.frontend import arguments_of, is_virtual
from testbed.cli.doctor.look import RADIO_JOB, Check

#: what a run without late samples needs, beside what every run needs
ON_TIME = "samples in time"
#: bytes of a complex sample between device and computer: UHD's wire format sc16
SAMPLE_BYTES = 4
#: UHD's names of the devices on USB and on Ethernet (`type` in its lists of devices)
_USB = ("b200",)
_ETHERNET = ("usrp2", "x300", "n3xx", "e3xx", "x4xx", "mpmd")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a radio to `probe.py`; a fault is one line, empty where there is none."""

    #: the devices that its arguments fit, as UHD lists them
    fits: Sequence[Mapping[str, str]] = ()
    #: of opening it
    fault: str = ""
    #: of the scenario, which no device could have
    scenario_fault: str = ""
    #: of the scenario's rate, carriers, gains and other settings on this device; None: not tried
    settings_fault: str | None = None
    #: of the clock source
    clock_fault: str = ""
    #: what its halves say of themselves (`frontend.Receiver.about`)
    tx: Mapping[str, Any] = field(default_factory=dict)
    rx: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    serial: str = ""
    usb_version: int | None = None
    #: octets per second each way, between device and computer
    link_octets: float | None = None
    #: whether it has locked to its reference; None: it has no such sensor
    ref_locked: bool | None = None
    #: UHD's warnings
    said: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Radio:
    """One radio of the case."""

    #: the station that it is to be
    station: str
    #: UHD's device arguments
    args: str
    answer: Answer = Answer()

    def argument(self, name: str) -> str | None:
        """Return a device argument, or None."""
        return arguments_of(self.args).get(name)

    @property
    def virtual(self) -> bool:
        """Whether it is a virtual USRP, which has no cable."""
        return is_virtual(self.args)

    @property
    def kind(self) -> str | None:
        """UHD's name of the kind of device, or None where neither arguments nor UHD tell."""
        told = self.argument("type") or next((fit["type"] for fit in self.answer.fits if "type" in fit), None)
        return told or ("b200" if self.answer.usb_version is not None else None)

    @property
    def usb(self) -> bool:
        """Whether it is on USB, or may be."""
        return not self.virtual and (self.kind in _USB or (self.kind is None and self.address is None))

    @property
    def ethernet(self) -> bool:
        """Whether it is on Ethernet."""
        return not self.virtual and (self.kind in _ETHERNET or self.address is not None)

    @property
    def address(self) -> str | None:
        """Its address, or None where it has none."""
        return self.argument("addr") or next((fit["addr"] for fit in self.answer.fits if "addr" in fit), None)

    def check(
        self, what: str, fault: bool, seen: str, remedy: str, needed_for: tuple[str, ...] = (RADIO_JOB,)
    ) -> Check:
        """Return a check of this radio."""
        return made(f"{self.station}'s radio: {what}", fault, seen, remedy, needed_for)


def made(name: str, fault: bool, seen: str, remedy: str, needed_for: tuple[str, ...] = (RADIO_JOB,)) -> Check:
    """Return a check; the remedy is for the fault."""
    return Check(name, not fault, seen, remedy if fault else "", needed_for)


@dataclass(frozen=True, slots=True)
class Case:
    """The radios of a run, and the machine: the files below `root`, and what no file tells."""

    radios: tuple[Radio, ...]
    rate_sps: float
    #: the scenario's source of the reference; None: the device's own
    clock_source: str | None = None
    root: Path = Path("/")
    #: user id
    uid: int = 0
    #: value of UHD_IMAGES_DIR
    images: str = ""
    #: what `ethtool -g INTERFACE` writes; raises OSError
    rings: Callable[[str], str] = lambda interface: ""

    def path(self, path: str) -> Path:
        """Return where an absolute path of the machine is."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        """Return the text of a file, without white space at its ends; empty where it cannot be read."""
        try:
            return self.path(path).read_text(errors="replace").strip()
        except OSError:
            return ""
