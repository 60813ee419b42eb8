"""irtt: a UDP packet of 160 octets every 20 ms there and back, as of a telephone; the delay is the mean round trip."""

import json

from hosts.engine.programs import Command
from hosts.engine.results import Told
from hosts.workloads.programs import Place, Program


def _server(place: Place) -> Command:
    return Command(words=("irtt", "server", "-b", f"0.0.0.0:{place.port}", "-i", "0"))


def _client(place: Place) -> Command:
    to = f"{place.address}:{place.port}"
    length = ("-i", "20ms", "-l", "160", "-d", f"{place.duration_s:f}s")
    return Command(words=("irtt", "client", "-Q", *length, "-o", "-", to))


def _parse(output: str) -> Told:
    stats = json.loads(output)["stats"]
    return Told(
        bytes=stats["bytes_received"],
        duration_s=stats["duration"] / 1e9,
        delay_ms=stats["rtt"]["mean"] / 1e6 if stats["packets_received"] else None,
        lost=stats["packets_sent"] - stats["packets_received"],
    )


PROGRAM = Program(
    name="irtt",
    summary="a UDP packet of 160 octets every 20 ms, there and back",
    package="irtt",
    ready="starting IPv4 listener",
    server=_server,
    client=_client,
    parse=_parse,
    reserved=("-d", "-o"),
)
