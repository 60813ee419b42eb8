"""Linux's TCP around 2.4, before RACK and PRR, with its enhancements off: the base of two papers' hosts.

3 s before the first sample (RFC 2988) and a variance term of 200 ms at least were Linux 2.4's.
"""

from typing import Final

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig

OLD_LINUX: Final = TcpConfig().but(
    recovery="newreno",
    initial_window=1,
    limited_transmit=False,
    impatient=False,
    window_scaling=False,
    timestamps=False,
    delayed_ack_ns=200 * MS,
    initial_rto_ns=3 * SECOND,
    min_rto_ns=200 * MS,
    max_rto_ns=120 * SECOND,
    granularity_ns=200 * MS,
)
