"""The kernel's `struct tcp_info`, as far as this project uses it.

Read first: include/uapi/linux/tcp.h of the kernel (field order is the ABI; new fields are only ever
appended).

pyroute2 0.9 has the structure up to tcpi_snd_wnd only, without tcpi_total_rto (Linux 6.7). `probes.py` reads it by
netlink, `tcp_flows.py` from its own sockets.
"""

import socket
import struct

from hosts.engine.probe import TcpInfo

#: snd_ssthresh before the first loss (TCP_INFINITE_SSTHRESH in include/net/tcp.h)
INFINITE_SSTHRESH = 0x7FFFFFFF
#: include/net/tcp_states.h; in FIN_WAIT2 our FIN has been acknowledged
SYN_SENT = 2
_FIN_WAIT2 = 5
#: more than any kernel's tcp_info; the kernel returns the actual size
_TCP_INFO_MAX = 512

# Offsets in octets from the start of struct tcp_info.
_RTO_TO_MSS = struct.Struct("=III")  # rto, ato, snd_mss
_RTT_TO_CWND = struct.Struct("=IIII")  # rtt, rttvar, snd_ssthresh, snd_cwnd
_TOTAL_RETRANS = struct.Struct("=I")
_BYTES = struct.Struct("=Q")
_TOTAL_RTO = struct.Struct("=H")
_AT_RTO, _AT_RTT, _AT_TOTAL_RETRANS, _AT_BYTES_ACKED, _AT_BYTES_SENT, _AT_TOTAL_RTO = 8, 68, 100, 120, 200, 240


def parse(payload: bytes) -> TcpInfo:
    """Parse the tcp_info of any kernel since 4.1; raises ValueError when it is shorter."""
    if len(payload) < _AT_BYTES_ACKED + 8:
        raise ValueError(f"tcp_info of {len(payload)} octets")
    rto_us, _, mss = _RTO_TO_MSS.unpack_from(payload, _AT_RTO)
    rtt_us, _, ssthresh, cwnd = _RTT_TO_CWND.unpack_from(payload, _AT_RTT)
    acked = _BYTES.unpack_from(payload, _AT_BYTES_ACKED)[0]
    has_bytes_sent = len(payload) >= _AT_BYTES_SENT + 8
    has_timeouts = len(payload) >= _AT_TOTAL_RTO + 2
    return TcpInfo(
        cwnd_bytes=cwnd * mss,
        ssthresh_bytes=None if ssthresh >= INFINITE_SSTHRESH else ssthresh * mss,
        srtt_ms=rtt_us / 1000 if rtt_us else None,
        rto_ms=rto_us / 1000,
        bytes_acked=max(0, acked - 1 - (payload[0] == _FIN_WAIT2)),
        retransmits=_TOTAL_RETRANS.unpack_from(payload, _AT_TOTAL_RETRANS)[0],
        timeouts=_TOTAL_RTO.unpack_from(payload, _AT_TOTAL_RTO)[0] if has_timeouts else None,
        bytes_sent=_BYTES.unpack_from(payload, _AT_BYTES_SENT)[0] if has_bytes_sent else 0,
    )


def of_socket(sock: socket.socket) -> TcpInfo:
    """Return the kernel's state of one of our own sockets, also after its connection has ended."""
    return parse(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_MAX))
