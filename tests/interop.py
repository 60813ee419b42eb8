"""What Wireshark says of our TCP and Linux's in a capture of a run: what they agreed on, and whether all is well."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.tshark import rows

_CHECKSUMS = ("-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE")
#: Linux writes a checksum of 0 as 0xffff, which is as good a zero but not the one Wireshark computes
_WRONG = (
    "_ws.malformed || (tcp.checksum.status == 0 && tcp.checksum != 0xffff) || ip.checksum.status == 0"
    " || tcp.option.len.invalid"
    " || tcp.options.wscale.shift.invalid || tcp.suboption_malformed"
)
_FIELDS = (
    "tcp.flags.ack", "tcp.flags.ece", "tcp.flags.cwr", "tcp.options.mss_val", "tcp.options.wscale.shift",
    "tcp.options.sack_perm", "tcp.options.timestamp.tsval", "tcp.checksum.status",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Handshake:
    """What one connection's SYN asked for and its SYN-ACK agreed to."""

    timestamps: bool
    sack: bool
    window_scaling: bool
    ecn: bool
    #: of SYN and SYN-ACK
    mss: tuple[int, int]


def wrong(path: Path, ports: Iterable[int]) -> int:
    """How many frames of a capture Wireshark finds anything wrong with.

    To these ports go random octets, which must not be taken for a malformed something else.
    """
    more = [part for port in ports for part in ("-d", f"tcp.port=={port},data")]
    return len(rows(path, "frame.number", where=_WRONG, more=[*_CHECKSUMS, *more]))


def handshake(path: Path, port: int) -> Handshake:
    """The handshake of the connection to a port; both segments must be in the capture and have good checksums."""
    where = f"tcp.port == {port} && tcp.flags.syn == 1"
    found = rows(path, *_FIELDS, where=where, more=_CHECKSUMS)
    asked = next(row for row in found if row["tcp.flags.ack"] == ["0"])
    agreed = next(row for row in found if row["tcp.flags.ack"] == ["1"])
    both = (asked, agreed)
    assert all(row["tcp.checksum.status"] == ["1"] for row in both)

    def have(field: str) -> bool:
        return all(field in row for row in both)

    flags = tuple((row["tcp.flags.ece"][0], row["tcp.flags.cwr"][0]) for row in both)
    return Handshake(
        timestamps=have("tcp.options.timestamp.tsval"),
        sack=have("tcp.options.sack_perm"),
        window_scaling=have("tcp.options.wscale.shift"),
        ecn=flags == (("1", "1"), ("1", "0")),
        mss=(int(asked["tcp.options.mss_val"][0]), int(agreed["tcp.options.mss_val"][0])),
    )
