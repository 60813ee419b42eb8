"""Workers of a Dask cluster.

Rules kept
- Workers send back whole runs, so that they need no common disk; the traces that a scenario names are the exception.
- All workers run the version of this checkout, since another one may give other results.
- A run whose worker dies is made by another one. Dask gives it up when it has killed several.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from typing_extensions import override

from testbed.campaigns.processes import Workers
from testbed.errors import FadelabError
from testbed.paths import fadelab_version

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
        from distributed import Client

        try:
            self._client = Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ClusterError(f"--scheduler {address}: no Dask scheduler answers: {reason}") from None
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
        versions, ours = self._client.run(fadelab_version), fadelab_version()
        for worker, version in versions.items():
            if version != ours:
                raise ClusterError(f"--scheduler {address}: worker {worker} has fadelab {version}, and this is {ours}")
