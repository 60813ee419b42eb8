"""Makes the packets of a timeline of TCP's segments, and takes a link's frames apart.

Imports the link schemes' frames, which `timeline.py` does without.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from common.sequence import MASK, unwrap
from linklayer.arq.code import CountedFragment
from tcpip.options import has_eln
from tcpip.segment import ACK, CWR, ECE, FIN, PSH, RST, SYN, URG, Flow, Segment
from testbed.exports.timeline import Packet

_LETTERS: Final = ((SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ACK, "."), (URG, "U"), (ECE, "E"), (CWR, "W"))
#: JSON's numbers are doubles in most readers
_EXACT: Final = 1 << 53


class Packets:
    """Numbers packets as they are first seen. `ports`: the flow of each port (`Workload.ports`)."""

    def __init__(self, ports: Mapping[int, str]) -> None:
        self._ports = ports
        self.found: list[Packet] = []
        #: initial sequence number and last offset, per direction of a connection
        self._starts: dict[Flow, int] = {}
        self._offsets: dict[Flow, int] = {}
        #: the connections of each flow
        self._named: Counter[str] = Counter()
        self._connections: dict[frozenset[tuple[int, int]], tuple[str, int]] = {}

    def add(self, packet: Segment | None, nbytes: int, flow: str = "") -> int:
        """Return the number of a new packet; `packet` is None when it is no TCP segment."""
        number = len(self.found)
        if packet is None:
            self.found.append(Packet(number=number, flow=flow, nbytes=nbytes))
            return number
        name, connection = self._connection(packet.flow)
        letters = "".join(letter for bit, letter in _LETTERS if packet.flags & bit)
        self.found.append(
            Packet(
                number=number,
                flow=name,
                nbytes=nbytes,
                connection=connection,
                flags=letters,
                seq=packet.seq,
                ack=packet.ack,
                length=packet.length,
                offset=self._offset(packet),
                eln=has_eln(packet),
            )
        )
        return number

    def flow_of(self, flow: Flow) -> str:
        """Return the name of the workload's flow between these ports; empty: none."""
        return self._ports.get(flow.destination_port) or self._ports.get(flow.source_port) or ""

    def _connection(self, flow: Flow) -> tuple[str, int]:
        ends = frozenset(((flow.source, flow.source_port), (flow.destination, flow.destination_port)))
        if ends not in self._connections:
            name = self.flow_of(flow)
            self._connections[ends] = name, self._named[name]
            self._named[name] += 1
        return self._connections[ends]

    def _offset(self, packet: Segment) -> int | None:
        flow = packet.flow
        if packet.flags & SYN:
            self._starts[flow] = packet.seq + 1
            self._offsets[flow] = 0
            return 0
        if flow not in self._starts:
            return None
        last = self._offsets[flow]
        offset = unwrap(packet.seq - self._starts[flow] & MASK, last)
        self._offsets[flow] = max(last, offset)
        return offset


def content_of(frame: Any) -> tuple[str, dict[str, Any], Any]:
    """Return a frame's kind, its fields for JSON, and its payload (None: it carries no packet).

    The payload of a fragment of a packet without octets is the packet.
    """
    names = [field.name for field in fields(frame)] if is_dataclass(frame) else []
    values = {name: getattr(frame, name) for name in names if name not in ("payload", "shard")}
    shown = {name: _plain(value) for name, value in values.items() if isinstance(value, bool | int | float | str)}
    kind = type(frame).__name__.lower()
    payload = getattr(frame, "payload", None)
    if isinstance(payload, CountedFragment):
        payload = payload.packet
    return "packet" if kind == "plainframe" else kind, shown, payload or None


def _plain(value: Any) -> Any:
    return hex(value) if isinstance(value, int) and abs(value) >= _EXACT else value
