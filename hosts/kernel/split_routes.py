"""Routes that lead TCP across the base station to its proxy, in the present namespace.

    eth0 ─┐ nftables: tproxy, mark        ┌─ proxy's sockets, as any address
    fl0  ─┴─ rule: mark ─► local route ───┘

Read first: the kernel's Documentation/networking/tproxy.rst; nft(8), "TPROXY statement"; ip(7), IP_TRANSPARENT.

Rules kept
- Packets of a connection the proxy has, with either host, go to its socket; all others to the one port it listens on,
  where they keep the addresses they came with. Other packets are routed as before.
- Settings are those of this namespace, and `close` takes them back. A killed process leaves them without effect, and
  the next one replaces it.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence

from common.closing import Closing
from hosts.errors import HostError

_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_TIMEOUT_S = 10.0
_NFT_TABLE = "fadelab_split"
_MARK = 7793
_RULES = """
table ip {table} {{
    chain divert {{
        type filter hook prerouting priority mangle; policy accept;
        iifname {{ {names} }} meta l4proto tcp tproxy to :{port} meta mark set {mark} accept
    }}
}}
"""
#: a table is made where there is none, so that it can be deleted
_DELETE = f"table ip {_NFT_TABLE}; delete table ip {_NFT_TABLE}"
#: a routing table of our own, and the order of our rule
_TABLE, _PRIORITY = 7794, 2
# linux/rtnetlink.h
_LOOPBACK = 1


def check() -> None:
    """Raise HostError when the program is missing without which there is no proxy."""
    _program()


def probe() -> str:
    """Return the obstacle to a proxy in the present namespace, which stays unchanged; empty: none."""
    try:
        _nft(_RULES.format(table=_NFT_TABLE, names='"lo"', port=1, mark=_MARK))
        _nft(_DELETE)
    except HostError as error:
        return str(error)
    return ""


class SplitRoutes(Closing):
    """TCP that comes in by `interfaces` goes to a listening socket at `port` with IP_TRANSPARENT. Raises HostError."""

    def __init__(self, interfaces: Sequence[str], port: int) -> None:
        names = ", ".join(f'"{name}"' for name in interfaces)
        _nft(_DELETE)
        try:
            _nft(_RULES.format(table=_NFT_TABLE, names=names, port=port, mark=_MARK))
            self._route()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Take everything back; idempotent."""
        _nft(_DELETE)
        _remove_rule()

    def _route(self) -> None:
        from pyroute2 import IPRoute, NetlinkError  # 200 ms to import

        _remove_rule()
        with IPRoute() as ip:
            try:
                ip.route(
                    "replace",
                    family=socket.AF_INET,
                    dst="default",
                    type="local",
                    scope=254,
                    oif=_LOOPBACK,
                    table=_TABLE,
                )
                ip.rule("add", priority=_PRIORITY, table=_TABLE, fwmark=_MARK)
            except NetlinkError as error:
                raise HostError(f"cannot lead TCP to the proxy: {error.args[1]}") from None


def _remove_rule() -> None:
    from pyroute2 import IPRoute

    with IPRoute() as ip:
        for rule in ip.get_rules(family=socket.AF_INET):
            if rule.get("priority") == _PRIORITY:
                ip.rule("delete", priority=_PRIORITY)


def _program() -> str:
    program = shutil.which("nft", path=_PATH)
    if program is None:
        raise HostError("nft is missing: apt-get install nftables")
    return program


def _nft(commands: str) -> None:
    try:
        done = subprocess.run(
            [_program(), "-f", "-"], input=commands, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"nft has not answered for {_TIMEOUT_S:.0f} s") from None
    if done.returncode:
        first = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise HostError(f"nft cannot lead TCP to a proxy here ({first}): the kernel needs nf_tables with nft_tproxy")
