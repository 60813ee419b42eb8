"""The policies of loss recovery by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from hosts.tcp.config import TcpConfig
from hosts.tcp.recovery import LossRecovery, NewReno, Reno, Sack
from hosts.tcp.smart import Smart

if TYPE_CHECKING:
    from hosts.tcp.sender import Sender

POLICIES: Mapping[str, Callable[["Sender", TcpConfig], LossRecovery]] = MappingProxyType(
    {policy.name: policy for policy in (Reno, NewReno, Sack, Smart)}
)


def make_recovery(name: str, sender: "Sender", config: TcpConfig) -> LossRecovery:
    """Return the policy of that name for a sender."""
    return POLICIES[name](sender, config)
