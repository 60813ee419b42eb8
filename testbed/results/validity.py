"""Which results may be used: of runs whose data arrived as they were sent, on a machine that kept the clock."""

from collections.abc import Iterable, Sequence

from testbed.errors import FadelabError
from testbed.results.summary import Summary


class CorruptError(FadelabError):
    """What arrived is not what was sent."""


class LateError(FadelabError):
    """A real-time tier did not keep the clock."""


def require_intact(summaries: Iterable[Summary]) -> None:
    """Raise CorruptError when a TCP receiver read other octets than were sent; UDP may lose packets."""
    for s in summaries:
        if not s.intact:
            flows = ", ".join(flow.flow for flow in s.flows if flow.intact is False)
            raise CorruptError(
                f"{s.run}: scenario {s.scenario}, flow {flows}: what arrived is not what was sent: this is a bug of "
                "fadelab or a fault of this machine; its folder is kept, report it with the folder"
            )


def require_valid(summaries: Sequence[Summary], allow_late: bool) -> None:
    """Raise CorruptError as above, and LateError when a run had too many late events, unless `allow_late`."""
    require_intact(summaries)
    late = [s for s in summaries if not s.on_time]
    if late and not allow_late:
        s = late[0]
        raise LateError(
            f"{s.run}: {s.lateness}: this machine did not keep up; "
            "lower the rate, free the machine, or accept it with --allow-late"
        )
