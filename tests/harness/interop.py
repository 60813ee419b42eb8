"""What Wireshark says of our TCP and Linux's in a capture of a run: what they agreed on, and whether all is well."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.harness.tshark import Row, rows

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


def handshakes(path: Path) -> dict[int, Handshake]:
    """The handshake of each connection in a capture, by its port; both segments must be there, their checksums good."""
    found = rows(path, "tcp.dstport", "tcp.srcport", *_FIELDS, where="tcp.flags.syn == 1", more=_CHECKSUMS)
    assert all(row["tcp.checksum.status"] == ["1"] for row in found)
    # a SYN that is sent again says the same
    asked = {int(row["tcp.dstport"][0]): row for row in found if row["tcp.flags.ack"] == ["0"]}
    agreed = {int(row["tcp.srcport"][0]): row for row in found if row["tcp.flags.ack"] == ["1"]}
    assert asked.keys() == agreed.keys()
    return {port: _handshake(asked[port], agreed[port]) for port in asked}


def _handshake(asked: Row, agreed: Row) -> Handshake:
    def have(field: str) -> bool:
        return field in asked and field in agreed

    flags = tuple((row["tcp.flags.ece"][0], row["tcp.flags.cwr"][0]) for row in (asked, agreed))
    return Handshake(
        timestamps=have("tcp.options.timestamp.tsval"),
        sack=have("tcp.options.sack_perm"),
        window_scaling=have("tcp.options.wscale.shift"),
        ecn=flags == (("1", "1"), ("1", "0")),
        mss=(int(asked["tcp.options.mss_val"][0]), int(agreed["tcp.options.mss_val"][0])),
    )
