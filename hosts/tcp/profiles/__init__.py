"""The userspace TCPs by name: `--tcp user:NAME` on the live tiers, `--tcp NAME` on tier `model`. A file for each
family, which declares a `PROFILE` or a tuple of them.

A profile is a configuration of one machine. A name that the kernel's profiles (`hosts/kernel/profiles/`) have too is
the same TCP, as exactly as the papers put it.
"""

from dataclasses import dataclass
from typing import Final

from common.registry import Registry
from hosts.tcp.config import TcpConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProfile:
    """One named TCP; its `mss` is the scenario's to say (MTU - 40)."""

    name: str
    #: for the table in docs/tcp.md
    summary: str
    config: TcpConfig


USER_PROFILES: Final = Registry("hosts.tcp.profiles", "PROFILE", UserProfile)
