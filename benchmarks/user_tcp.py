"""The userspace TCP on hosts of live runs: `sudo .venv/bin/python -m benchmarks.user_tcp`.

`lossy`: transfers both ways at once across an emulated link without ARQ, frames lost in both directions with some
probability: ours with Linux's (h1 `user:sack-ecn`, h2 `cubic-ecn`) and with itself. Each is intact by SHA-256 at both
ends, agrees on timestamps, SACK, window scaling and ECN, and tshark finds nothing malformed, or the benchmark fails.

`speed`: how much goodput one process with our TCP sends or receives over a veth, Linux's TCP (cubic) on the other side,
and what of a core it needs. The payload is random, hashed and compared at both ends, as in every run.
"""

import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import click

from common.sides import SIDES
from hosts import kernel_profiles
from hosts.network import Network
from hosts.workloads import agent_config
from hosts.workloads.bulk import Bulk
from testbed.live.capture import capture_path
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.schema import Scenario
from tests.hosts.harness import agents, go, run_name
from tests.interop import Handshake, handshake, wrong

PORTS = {"up": 5001, "down": 5002}
MTU = 1500
AGREED = Handshake(timestamps=True, sack=True, window_scaling=True, ecn=True, mss=(MTU - 40, MTU - 40))


def scenario(per: float, nbytes: int, seed: int, rate_bps: int, tcp_h2: str) -> Scenario:
    """Transfers against each other, each through a drop-tail queue in front of the link."""
    return Scenario.model_validate(
        {
            "name": "user-tcp",
            "seed": seed,
            "mtu": MTU,
            "tcp": "user:sack-ecn",
            "tcp_h2": tcp_h2,
            "capture": True,
            "link": {"scheme": "none"},
            "channel": {"rate_bps": rate_bps, "delay_ms": 5, "per": per},
            "workloads": [
                {"kind": "bulk", "flow": flow, "direction": flow, "bytes": nbytes, "port": port}
                for flow, port in PORTS.items()
            ],
        }
    )


def checked(summary: Summary) -> Summary:
    """The run, unless something about it is not as it has to be."""
    assert summary.folder is not None
    folder = Path(summary.folder)
    captures = [capture_path(folder, side) for side in SIDES]
    for complaint, holds in (
        ("a transfer is not complete", summary.finished),
        ("a transfer is not intact", summary.intact),
        ("the machine was too slow", summary.on_time),
        ("tshark finds malformed segments", [wrong(path, PORTS.values()) for path in captures] == [0, 0]),
        ("an option was not agreed on", {handshake(captures[0], port) for port in PORTS.values()} == {AGREED}),
    ):
        if not holds:
            sys.exit(f"{complaint}: {folder}")
    return summary


@click.group()
def main() -> None:
    """Measure the userspace TCP on live hosts."""


@main.command()
@click.option("--bytes", "nbytes", default=10_000_000, show_default=True, help="Of each transfer.")
@click.option("--per", "pers", multiple=True, default=(0.0, 0.01, 0.05), show_default=True)
@click.option("--rate", "rate_bps", default=20_000_000, show_default=True, help="Of the link, bit/s.")
@click.option("--seed", default=1, show_default=True, help="Of the first run.")
@click.option("--repeat", default=1, show_default=True)
@click.option("--json", "json_", is_flag=True)
def lossy(nbytes: int, pers: tuple[float, ...], rate_bps: int, seed: int, repeat: int, json_: bool) -> None:
    """Transfer both ways across a lossy link."""
    rows: list[dict[str, Any]] = []
    with _kept_when_failed() as folder:
        for tcp_h2 in ("cubic-ecn", "user:sack-ecn"):
            for per in pers:
                for run in range(repeat):
                    made = scenario(per, nbytes, seed + run, rate_bps, tcp_h2)
                    summary = checked(run_once(made, folder, lambda progress: None))
                    for flow in summary.flows:
                        sender = made.tcp if flow.direction == "up" else tcp_h2
                        receiver = tcp_h2 if flow.direction == "up" else made.tcp
                        rows.append(
                            {
                                "sender": sender,
                                "receiver": receiver,
                                "per": per,
                                "seed": seed + run,
                                "goodput_bps": flow.goodput_bps,
                                "retransmissions": flow.retransmits,
                                "timeouts": flow.timeouts,
                            }
                        )
                        if not json_:
                            print(
                                f"{sender:14} to {receiver:14} PER {per:<5} seed {seed + run}: "
                                f"{flow.goodput_bps / 1e6:6.2f} Mbit/s, {flow.retransmits} retransmissions, "
                                f"{flow.timeouts} timeouts",
                                flush=True,
                            )
    if json_:
        print(json.dumps(rows))


@contextmanager
def _kept_when_failed() -> Iterator[Path]:
    """A folder for runs, which is removed unless a run was not as it has to be."""
    folder = Path(tempfile.mkdtemp(prefix="user-tcp-"))
    yield folder
    shutil.rmtree(folder)


@main.command()
@click.option("--seconds", default=5.0, show_default=True)
@click.option("--runs", default=3, show_default=True)
def speed(seconds: float, runs: int) -> None:
    """Fill a veth in one direction at a time."""
    for direction in ("up", "down"):
        rates, shares = zip(*(_fill(direction, seconds) for _ in range(runs)), strict=True)
        does = "sends" if direction == "up" else "receives"
        print(
            f"{does:8} {median(rates) / 1e6:5.0f} Mbit/s ({min(rates) / 1e6:.0f} to {max(rates) / 1e6:.0f}), "
            f"{median(shares):.2f} of a core"
        )


def _fill(direction: str, seconds: float) -> tuple[float, float]:
    """One transfer between h1 and its neighbour st; its goodput, and what of a core h1's process took."""
    work = [Bulk(duration_s=seconds, drain_s=30.0, direction="up" if direction == "up" else "down")]
    with Network(run_name(), mtu=MTU) as network:
        here, there = network.namespaces["h1"], network.namespaces["st"]
        kernel_profiles.apply(here, kernel_profiles.kernel_profile("user:sack"))
        ours = agent_config("h1", work, peer=str(network.addresses.st_lan.ip), namespace=here, tcp="user:sack")
        theirs = agent_config("h2", work, peer=network.address("h1"), namespace=there)
        with agents(theirs):
            pass  # the interpreter's files are in memory
        with agents(theirs) as [neighbour]:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            with agents(ours) as [host]:
                go([neighbour, host])
                host.wait_for("done")
                neighbour.wait_for("done")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        results = {result["role"]: result for agent in (host, neighbour) for result in agent.all("result")}
    if not results["receiver"]["intact"] or not results["sender"]["complete"]:
        sys.exit(f"the transfer failed: {results}")
    took_s = (results["sender"]["finished_ns"] - results["sender"]["started_ns"]) / 1e9
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return results["receiver"]["bytes"] * 8 / took_s, spent_s / took_s


if __name__ == "__main__":
    main()
