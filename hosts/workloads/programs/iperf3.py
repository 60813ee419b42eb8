"""iperf3: a bulk transfer over the kernel's TCP."""

import json
from dataclasses import dataclass

from typing_extensions import override

from hosts.engine.programs import Command
from hosts.engine.results import Told
from hosts.workloads.programs import Place, Program


@dataclass(frozen=True, kw_only=True)
class Iperf3(Program):
    """iperf3 3.5 or later, whose results in JSON have both ends' sums."""

    @override
    def server(self, place: Place) -> Command:
        # its output is not a terminal: without a flush its lines come late
        return Command(words=("iperf3", "--server", "--port", f"{place.port}", "--forceflush"))

    @override
    def client(self, place: Place) -> Command:
        limit = ("--time", f"{place.duration_s:g}") if place.bytes is None else ("--bytes", f"{place.bytes}")
        return Command(words=("iperf3", "--client", place.address, "--port", f"{place.port}", "--json", *limit))

    @override
    def parse(self, output: str) -> Told:
        end = json.loads(output)["end"]
        received, sender = end["sum_received"], end["streams"][0]["sender"]
        return Told(
            bytes=received["bytes"],
            duration_s=received["seconds"],
            retransmissions=end["sum_sent"].get("retransmits"),
            # in µs; of the first of several connections
            delay_ms=sender["mean_rtt"] / 1e3 if sender.get("mean_rtt") else None,
        )


PROGRAM = Iperf3(
    name="iperf3",
    summary="a bulk transfer over TCP, limited by time or by size",
    package="iperf3",
    ready="^Server listening",
)
