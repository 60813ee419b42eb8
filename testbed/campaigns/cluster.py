"""Workers of a Dask cluster.

Rules kept
- Workers send back whole runs, so that they need no common disk; the traces that a scenario names are the exception.
- All workers have the sources of this checkout, since others may give other results; each looks again at each run.
- A run whose worker dies is made by another one. Dask gives it up when it has killed several.
- Whoever reaches a scheduler or a worker on plain TCP may run any program there. TLS is Dask's own, by its
  configuration (docs/security.md), which its client reads itself.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from testbed.campaigns.processes import Workers
from testbed.errors import FadelabError
from testbed.sources import sources

if TYPE_CHECKING:
    from distributed import Client

Task = TypeVar("Task")
Answer = TypeVar("Answer")

#: runs under way or waiting, per thread of the cluster
_AHEAD = 3
_CONNECT_S = 10


class ClusterError(FadelabError):
    """A cluster that cannot be used."""


class Cluster(Workers):
    """Workers: those of the Dask scheduler at an address, as in tcp://10.0.0.1:8786."""

    def __init__(self, address: str) -> None:
        try:
            self._client = _connect(address)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ClusterError(
                f"--scheduler {address}: no Dask scheduler answers there, or not to us: {reason}"
            ) from None
        try:
            self._check(address)
        except BaseException:
            self.close()
            raise
        self._executor = self._client.get_executor(pure=False)

    @property
    @override
    def room(self) -> int:
        return _AHEAD * max(1, sum(int(count) for count in self._client.nthreads().values()))

    @override
    def submit(self, call: Callable[[Task], Answer], task: Task) -> "Future[Answer]":
        future: Future[Answer] = self._executor.submit(call, task)
        return future

    @override
    def revive(self) -> None:
        """A cluster mends itself."""

    @override
    def close(self) -> None:
        self._client.close(timeout=1)

    def _check(self, address: str) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            raise ClusterError(f"--scheduler {address}: the cluster has no workers") from None
        ours = sources()
        for worker, (version, digest) in self._client.run(_made_of).items():
            if digest != ours.digest:
                theirs, mine = f"{version}, sources {digest[:12]}", f"{ours.version}, sources {ours.digest[:12]}"
                raise ClusterError(f"--scheduler {address}: worker {worker} has fadelab {theirs}, and this is {mine}")


def _connect(address: str) -> "Client":
    """Return a client of the scheduler at an address. Raises what Dask raises.

    Dask leaves a client that was refused to the garbage collector, which closes it in whichever thread it runs. If that
    is the one in which the next client begins, both wait for one lock until Dask gives up after 10 s.
    """
    from distributed import Client

    class Connected(Client):
        """A client that closes itself if it cannot connect."""

        def start(self, **options: Any) -> None:
            try:
                super().start(**options)  # type: ignore[no-untyped-call]
            except BaseException:
                self.close(timeout=1)  # type: ignore[no-untyped-call]
                raise

    return Connected(address, timeout=_CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]


def _made_of() -> tuple[str, str]:
    """Return the version and the sources of this process."""
    return sources().version, sources().digest
