"""iperf3 3.5 or later, whose results in JSON have both ends' sums: a bulk transfer over the kernel's TCP."""

import json
from math import ceil

from hosts.engine.programs import Command
from hosts.engine.results import Told
from hosts.workloads.programs import Place, Program


def _server(place: Place) -> Command:
    # its output is not a terminal: without a flush its lines come late
    return Command(words=("iperf3", "--server", "--port", f"{place.port}", "--forceflush"))


def _client(place: Place) -> Command:
    # of 0.5 s iperf3 would make 0, which is for ever
    limit = ("--time", f"{ceil(place.duration_s)}") if place.bytes is None else ("--bytes", f"{place.bytes}")
    return Command(words=("iperf3", "--client", place.address, "--port", f"{place.port}", "--json", *limit))


def _parse(output: str) -> Told:
    end = json.loads(output)["end"]
    received, sender = end["sum_received"], end["streams"][0]["sender"]
    return Told(
        bytes=received["bytes"],
        duration_s=received["seconds"],
        retransmissions=end["sum_sent"].get("retransmits"),
        # in µs; of the first of several connections
        delay_ms=sender["mean_rtt"] / 1e3 if sender.get("mean_rtt") else None,
    )


PROGRAM = Program(
    name="iperf3",
    summary="a bulk transfer over TCP, limited by whole seconds or by size",
    package="iperf3",
    limit="either",
    ready="^Server listening",
    server=_server,
    client=_client,
    parse=_parse,
    reserved=(
        *("-c", "--client", "-s", "--server", "-p", "--port", "-t", "--time", "-n", "--bytes", "-k", "--blockcount"),
        *("-R", "--reverse", "--bidir", "-J", "--json"),
    ),
    flags="46NVZdu",
)
