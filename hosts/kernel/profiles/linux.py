"""Linux as it is, with one congestion control or the other."""

from hosts.kernel.profiles import ELN_CONTROL, LINUX, TcpProfile

_NO_SACK = {**LINUX, "tcp_sack": "0", "tcp_dsack": "0"}

PROFILE = (
    TcpProfile(name="reno", summary="Linux with Reno", sysctls=LINUX),
    TcpProfile(name="reno-nosack", summary="Linux with Reno, SACK off", sysctls=_NO_SACK),
    TcpProfile(
        name="eln",
        summary="Linux with Reno that keeps its window where ELN marks the loss",
        sysctls=LINUX,
        congestion_control=ELN_CONTROL,
    ),
    TcpProfile(name="eln-nosack", summary="eln, SACK off", sysctls=_NO_SACK, congestion_control=ELN_CONTROL),
    TcpProfile(name="cubic", summary="Linux with CUBIC", sysctls=LINUX, congestion_control="cubic"),
    TcpProfile(
        name="cubic-ecn",
        summary="Linux with CUBIC, asking for ECN",
        sysctls={**LINUX, "tcp_ecn": "1"},
        congestion_control="cubic",
    ),
    TcpProfile(name="bbr", summary="Linux with BBR", sysctls=LINUX, congestion_control="bbr"),
)
