"""irtt: small UDP packets there and back, at a constant rate."""

import json
from dataclasses import dataclass

from typing_extensions import override

from hosts.engine.programs import Command
from hosts.engine.results import Told
from hosts.workloads.programs import Place, Program


@dataclass(frozen=True, kw_only=True)
class Irtt(Program):
    """A packet of 160 octets every 20 ms, as of a telephone; the delay is the mean round trip."""

    @override
    def server(self, place: Place) -> Command:
        return Command(words=("irtt", "server", "-b", f"0.0.0.0:{place.port}", "-i", "0"))

    @override
    def client(self, place: Place) -> Command:
        to = f"{place.address}:{place.port}"
        length = ("-i", "20ms", "-l", "160", "-d", f"{place.duration_s:g}s")
        return Command(words=("irtt", "client", "-Q", *length, "-o", "-", to))

    @override
    def parse(self, output: str) -> Told:
        stats = json.loads(output)["stats"]
        return Told(
            bytes=stats["bytes_received"],
            duration_s=stats["duration"] / 1e9,
            delay_ms=stats["rtt"]["mean"] / 1e6 if stats["packets_received"] else None,
            lost=stats["packets_sent"] - stats["packets_received"],
        )


PROGRAM = Irtt(
    name="irtt",
    summary="a UDP packet of 160 octets every 20 ms, there and back",
    package="irtt",
    ready="starting IPv4 listener",
)
