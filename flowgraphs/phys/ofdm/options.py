"""The options of PHY `ofdm`."""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Le, MultipleOf

from common.options import OneOf
from flowgraphs.phys import PhyOptions

MODULATIONS: Final = ("bpsk", "qpsk", "qam16", "qam64")
FEC: Final = (
    "none",
    "rep3",
    "rep5",
    "hamming74",
    "hamming84",
    "hamming128",
    "golay2412",
    "secded2216",
    "secded3932",
    "secded7264",
)

#: modes that may be best at some SNR, the sturdiest first, and their loss over SNR as `flowgraphs.phy.PhyMode` has it:
#: 10 % point and width, by `benchmarks.ofdm_waterfall` (200 frames per point, seed 1, steps of 0.25 dB)
LADDER: Final = (
    ("bpsk", "golay2412", 3.1, 1.4),
    ("bpsk", "secded7264", 6.0, 1.1),
    ("qpsk", "golay2412", 6.4, 1.1),
    ("qpsk", "hamming128", 8.7, 1.4),
    ("qpsk", "secded7264", 9.2, 1.1),
    ("qpsk", "none", 11.5, 1.5),
    ("qam16", "hamming128", 15.4, 1.3),
    ("qam16", "secded3932", 15.8, 1.2),
    ("qam16", "secded7264", 16.1, 1.2),
    ("qam16", "none", 18.5, 1.5),
    ("qam64", "secded7264", 22.3, 1.3),
    ("qam64", "none", 24.5, 1.5),
)


@dataclass(frozen=True, kw_only=True)
class OfdmOptions(PhyOptions):
    """Modulation and block code of the payload, and the shape of an OFDM symbol in samples."""

    modulation: Annotated[str, OneOf(MODULATIONS)] = "qpsk"
    fec: Annotated[str, OneOf(FEC)] = "none"
    subcarriers: Annotated[int, Ge(16), Le(2048), MultipleOf(2)] = 64
    cyclic_prefix: Annotated[int, Ge(4)] = 16
    #: samples over which one symbol fades into the next
    taper: Annotated[int, Ge(0)] = 4

    def __post_init__(self) -> None:
        most = self.subcarriers // 2
        if self.cyclic_prefix > most:
            raise ValueError(f"cyclic_prefix is {self.cyclic_prefix}: must be half the subcarriers, {most}, at most")
        if self.taper >= self.cyclic_prefix:
            raise ValueError(f"taper is {self.taper}: must be less than cyclic_prefix, {self.cyclic_prefix}")

    def mode(self) -> str:
        return mode(self.modulation, self.fec)


def mode(modulation: str, fec: str) -> str:
    """Return modulation and code in a few words."""
    return modulation if fec == "none" else f"{modulation} {fec}"
