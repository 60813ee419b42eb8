"""The options of PHY `wifi`."""

from dataclasses import dataclass
from typing import Annotated, Final

from common.options import OneOf
from flowgraphs.phys import PhyOptions

#: data bits per OFDM symbol (IEEE 802.11-2016, table 17-4), in the order of gr-ieee802-11's numbers
ENCODINGS: Final = {
    "bpsk-1/2": 24,
    "bpsk-3/4": 36,
    "qpsk-1/2": 48,
    "qpsk-3/4": 72,
    "qam16-1/2": 96,
    "qam16-3/4": 144,
    "qam64-2/3": 192,
    "qam64-3/4": 216,
}
#: gr-ieee802-11's ways to follow the channel through a frame
EQUALIZERS: Final = ("ls", "lms", "comb", "sta")


@dataclass(frozen=True, kw_only=True)
class WifiOptions(PhyOptions):
    """Modulation and code rate.

    `equalizer` is the receiver's: "sta" follows a channel that changes during a frame, "ls" keeps the
    estimate from the preamble, which is better for 64-QAM over many paths.
    """

    encoding: Annotated[str, OneOf(tuple(ENCODINGS))] = "qpsk-1/2"
    equalizer: Annotated[str, OneOf(EQUALIZERS)] = "sta"

    def mode(self) -> str:
        return self.encoding
