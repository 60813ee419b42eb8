"""Every choice behind the test cases of BBR's draft: one set for all, but for a case's own rate and RTT (`cases/`).

Rule kept: choices were made on seeds 1 to 6.
"""

from typing import Final

from testbed.papers.runs import Parameter

NETWORK: Final = (
    Parameter("profile", "bbr3", "ours", "RACK-TLP, F-RTO and D-SACK, which find spurious losses"),
    Parameter("rate_mbps", 10.0, "ours", "the draft: from 64 kbit/s to 10 Gbit/s"),
    Parameter("least_rtt_ms", 20.0, "ours", "the draft: from less than 1 ms to 1 s. A replication's path has its own"),
    Parameter("most_rtt_ms", 100.0, "ours", "RTT, between these two, by its seed"),
)
#: statements with one case each: so many are confirmed though one replication disagrees
REPLICATIONS: Final = 20
