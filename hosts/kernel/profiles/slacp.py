"""The SLACP paper's hosts, as nearly as Linux can be told (its sections 3 and 4)."""

from hosts.kernel.profiles import LINUX, TcpProfile

_REFERENCE = {
    **LINUX,
    "tcp_sack": "0",
    "tcp_dsack": "0",
    "tcp_window_scaling": "0",
    "tcp_timestamps": "0",
    "tcp_recovery": "0",
    "tcp_early_retrans": "0",
    "tcp_frto": "0",
    "tcp_max_reordering": "3",
    "tcp_ecn": "0",
}
_ENHANCED = {
    **_REFERENCE,
    "tcp_sack": "1",
    "tcp_dsack": "1",
    "tcp_window_scaling": "1",
    "tcp_frto": "2",
    "tcp_ecn": "2",
}

PROFILE = (
    TcpProfile(
        name="reference",
        summary="the SLACP paper's reference: NewReno, IW 1, no SACK, no window scaling, delayed ACK",
        sysctls=_REFERENCE,
        initcwnd=1,
        delayed_ack=True,
    ),
    TcpProfile(
        name="enhanced",
        summary="IW 4, window scaling, SACK, F-RTO; Linux's quick ACKs in slow start stand in for DAASS",
        sysctls=_ENHANCED,
        initcwnd=4,
    ),
    TcpProfile(
        name="enhanced-cbi",
        summary="enhanced, and ssthresh of the previous connection is reused",
        sysctls={**_ENHANCED, "tcp_no_metrics_save": "0", "tcp_no_ssthresh_metrics_save": "0"},
        initcwnd=4,
    ),
    TcpProfile(
        name="enhanced-daass",
        summary="enhanced, and the receiver acknowledges every segment",
        sysctls=_ENHANCED,
        initcwnd=4,
        quickack=True,
    ),
)
