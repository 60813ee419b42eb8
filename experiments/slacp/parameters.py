"""Every choice behind the SLACP paper's tables: one set for all cells.

Read first: SLACP section 4; docs/channel.md and docs/slacp.md for what the models' own parameters do.

Rule kept: cells differ in what the paper's tables name (assignment, error model, TCP, workload, link layer) and in
nothing else.
"""

from collections.abc import Mapping
from typing import Literal

from testbed.papers.runs import Parameter

#: the choices that all cells share
SCENARIO: tuple[Parameter, ...] = (
    Parameter("mtu", 1450, "paper", "MSS 1410"),
    Parameter("channel.rate_bps", 128_000, "paper", "return link, ST to BAS: the direction of the measured data"),
    Parameter("channel.down.rate_bps", 512_000, "paper", "forward link"),
    Parameter("channel.delay_ms", 400, "ours", "the paper's 250 ms, and 150 ms fitted to its tables"),
    Parameter("channel.framing", "aal5-llc", "ours", "ATM cells give 1 MB in 80 s; SLACP's header takes one more"),
    Parameter("channel.mac_buffer_bytes", 14_400, "paper", "with SLACP, both stations"),
    Parameter("channel.bare_buffer_bytes", 28_800, "paper", "without SLACP, both stations; there is no IP queue then"),
    Parameter("link.ip_queue_bytes", 40_000, "paper", "40 kbytes, read as 40000"),
    Parameter("channel.up.assignment.superframe_ms", 53, "ours", "one DVB-RCS frame"),
    Parameter("channel.up.assignment.signalling_ms", 900, "ours", "ST to scheduler and back, twice the delay and some"),
    Parameter("channel.up.assignment.timeout_ms", 1060, "ours", "RBDC: a request outlives the wait for the next"),
    Parameter("channel.up.assignment.drain_ms", 550, "ours", "RBDC: 0.55 s of the ceiling waiting ask for all of it"),
    Parameter("channel.up.assignment.wait_ms", (0, 0), "ours", "VBDC: without errors the paper's quartiles coincide"),
    Parameter("link.slacp.retransmissions", 1, "paper", ""),
    Parameter("link.slacp.redundancy", 1.0, "paper", "as many redundancy frames as actual ones"),
    Parameter("link.slacp.block_frames", 8, "ours", "fadelab's default"),
    Parameter("link.slacp.block_timer_ms", 100, "ours", "fadelab's default"),
    Parameter("link.slacp.ack_every", 4, "ours", "fadelab's default"),
    Parameter("link.slacp.in_order", True, "ours", "fadelab's default"),
    Parameter("limit_s", 10_800, "paper", "three hours: a transfer unfinished by then is reported as such"),
)

#: The paper's delay as it stands, and the request cycle that its text leaves: the least RTT of VBDC is 1.3 s, of which
#: two propagations take 0.5 s and a packet 0.1 s (docs/papers/slacp.md).
LITERAL = ("channel.delay_ms=250", "channel.up.assignment.signalling_ms=700")

#: The directions that have the cell's error model; the other has none. Ours: "satellite errors", and a burst "corrupts
#: all packets", so acknowledgements meet them, too.
ERROR_DIRECTIONS: tuple[Literal["up", "down"], ...] = ("up", "down")

#: Ours: 2^20 octets take the paper's time at 128 kbit/s.
ONE_MB = 1_048_576
#: Ours: four flows carry "the same amount of data".
QUARTER_MB = ONE_MB // 4
#: Ours: table 3's first 50 kbytes, of 1024 octets.
FIRST_BYTES = 51_200
#: Where table 3's time is taken. Ours: the sender's acknowledgements, since the paper's other times are elapsed times
#: of a sender, too.
FIRST_BYTES_AT: Literal["sender", "receiver"] = "sender"

#: the paper's TCPs, as hosts/tcp/profiles/ has them
TCP: Mapping[str, str] = {
    "ref": "reference",
    "enh": "enhanced",
    "enh+cbi": "enhanced-cbi",
    "enh-daass": "enhanced-no-daass",
}

#: The TCPs that learn from an earlier connection: a transfer of the same kind goes right before the one that counts.
#: Ours: the paper does not describe its previous connection.
WITH_PREDECESSOR = frozenset({"enh+cbi"})

#: The paper's; of the cells for which it gives medians alone it made five, which decide no statement.
REPLICATIONS = 32
