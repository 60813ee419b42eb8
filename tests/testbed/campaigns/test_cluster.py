"""A campaign on a real Dask cluster of this machine."""

import gc
import signal
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dask.config
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from testbed.campaigns.cluster import Cluster, ClusterError
from testbed.campaigns.engine import Status, run_campaign
from testbed.campaigns.processes import Processes
from tests.harness.campaigns import campaign_file, edited_sources, opened, result_files
from tests.harness.clusters import cluster
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.slow


def test_cluster_gives_the_same_files_as_local_processes_even_if_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = campaign_file(tmp_path, seeds={"count": 10})
    with opened(tmp_path / "local", file) as folder:
        run_campaign(folder, lambda: Processes(2))
    with cluster([()] * 4, tmp_path / "dask") as (address, workers):
        with monkeypatch.context() as patched:
            edited_sources(patched)
            with pytest.raises(ClusterError, match=r"worker tcp://\S+ has fadelab .*, sources \w{12}, and this is"):
                Cluster(address)

        def connect() -> Cluster:
            made = Cluster(address)
            wait_for(lambda: made.room == 12)
            return made

        def kill(status: Status) -> None:
            if status.ended == 5 and workers[0].poll() is None:
                workers[0].send_signal(signal.SIGKILL)
                workers[0].wait()

        with opened(tmp_path / "far", file) as folder:
            rows = run_campaign(folder, connect, afar=True, show=kill)
        assert workers[0].poll() == -signal.SIGKILL
    assert [row.error for _, row in rows if row.status == "failed"] == []
    assert len(rows) == 20
    assert result_files(tmp_path / "far") == result_files(tmp_path / "local")


# -- TLS -----------------------------------------------------------------------------------------------------------


def certify(folder: Path) -> dict[str, Any]:
    """Make a certificate that is its own authority; return Dask's configuration with it."""
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cluster")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    folder.mkdir()
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    found: dict[str, Any] = {"default-scheme": "tls", "require-encryption": True, "tls.ca-file": str(cert)}
    for role in ("scheduler", "worker", "client"):
        found |= {f"tls.{role}.cert": str(cert), f"tls.{role}.key": str(private)}
    return {f"distributed.comm.{key}": value for key, value in found.items()}


def test_by_tls_only_those_with_a_certificate_of_the_cluster_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, others = certify(tmp_path / "ours"), certify(tmp_path / "others")
    with monkeypatch.context() as patched:
        for name, value in ours.items():
            patched.setenv(f"DASK_{name.upper().replace('.', '__').replace('-', '_')}", str(value))
        stack = ExitStack()
        address, _ = stack.enter_context(cluster([()], tmp_path / "dask"))
    with stack:
        assert address.startswith("tls://")
        plain = address.replace("tls://", "tcp://")
        monkeypatch.setattr("testbed.campaigns.cluster._CONNECT_S", 3)
        for known, asked in (({}, plain), ({}, address), (others, address), (ours, plain)):
            with dask.config.set(known), pytest.raises(ClusterError, match="no Dask scheduler answers") as caught:
                Cluster(asked)
            assert "\n" not in str(caught.value)
        monkeypatch.undo()
        file = campaign_file(tmp_path, seeds={"count": 2})
        with dask.config.set(ours), opened(tmp_path / "far", file) as folder:
            rows = run_campaign(folder, lambda: Cluster(address), afar=True)
    assert [row.status for _, row in rows] == ["done"] * len(rows)
    assert rows


def test_a_client_that_was_refused_does_not_hold_up_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector closed it in the thread in which the next one begins, and both waited for one lock."""
    from distributed.config import get_loop_factory

    def collecting() -> Callable[..., Any] | None:
        gc.collect()
        return get_loop_factory()

    monkeypatch.setattr("distributed.utils.get_loop_factory", collecting)
    demands = {"distributed.comm.require-encryption": True, "distributed.comm.default-scheme": "tls"}
    gc.disable()
    try:
        for _ in range(2):
            with dask.config.set(demands), pytest.raises(ClusterError, match="encryption required"):
                Cluster("tcp://127.0.0.1:9")
    finally:
        gc.enable()
