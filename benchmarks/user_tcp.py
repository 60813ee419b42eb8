"""The userspace TCP on hosts of live runs: `sudo .venv/bin/python -m benchmarks.user_tcp`.

`lossy`: transfers both ways at once across an emulated link without ARQ, frames lost in both directions with some
probability: ours with Linux's (h1 `user:sack-ecn`, h2 `cubic-ecn`) and with itself. Each is intact by SHA-256 at both
ends; tests/hosts/test_agents.py looks at the segments of such transfers.

`speed`: how much goodput one process with our TCP sends or receives over a veth, Linux's TCP (cubic) on the other side,
and what of a core it needs. The payload is random, hashed and compared at both ends, as in every run.
"""

import argparse
import resource
import sys
import tempfile
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.common import Column, Results, parser, run_on_time, spread, whole
from hosts.kernel import profiles as kernel_profiles
from hosts.kernel.network import Network
from hosts.workloads import agent_config
from hosts.workloads.bulk import Bulk
from testbed.scenario.schema import Scenario
from tests.hosts.harness import agents, go, run_name

PORTS = {"up": 5001, "down": 5002}
MTU = 1500


def scenario(per: float, nbytes: int, seed: int, rate_bps: int, tcp_h2: str) -> Scenario:
    """Transfers against each other, each through a drop-tail queue in front of the link."""
    return Scenario.model_validate(
        {
            "name": "user-tcp",
            "seed": seed,
            "mtu": MTU,
            "tcp": "user:sack-ecn",
            "tcp_h2": tcp_h2,
            "trace": False,
            "link": {"scheme": "none"},
            "channel": {"rate_bps": rate_bps, "delay_ms": 5, "per": per},
            "workloads": [
                {"kind": "bulk", "flow": flow, "direction": flow, "bytes": nbytes, "port": port}
                for flow, port in PORTS.items()
            ],
        }
    )


def lossy(options: argparse.Namespace, folder: Path) -> None:
    """Transfer both ways across a lossy link."""
    columns = {
        "sender": Column("sender"),
        "receiver": Column("receiver".rjust(13)),
        "per": Column("PER", "g"),
        "seed": Column("seed"),
        "goodput_bps": Column("Mbit/s", ".2f", 1e-6),
        "retransmissions": Column("retransmissions"),
        "timeouts": Column("timeouts"),
    }
    results = Results(options, "emulated", "Mbit/s of goodput", columns)
    seeds = range(options.seed, options.seed + options.repetitions)
    for tcp_h2, per, seed in product(("cubic-ecn", "user:sack-ecn"), options.per, seeds):
        made = scenario(per, options.bytes, seed, options.rate, tcp_h2)
        for flow in run_on_time(made, folder).flows:
            sender, receiver = (made.tcp, tcp_h2) if flow.direction == "up" else (tcp_h2, made.tcp)
            counts = {"retransmissions": flow.retransmits, "timeouts": flow.timeouts}
            about = {"sender": sender, "receiver": receiver, "per": per, "seed": seed}
            results.add(**about, goodput_bps=flow.goodput_bps, **counts)
    results.finish()


def speed(options: argparse.Namespace, folder: Path) -> None:
    """Fill a veth in one direction at a time."""
    names = ("median", "min", "max")
    columns = {"does": Column(""), **{f"{name}_bps": Column(name, ".0f", 1e-6) for name in names}}
    results = Results(options, "emulated", "Mbit/s over a veth", {**columns, "core_share": Column("of a core", ".2f")})
    for does, direction in (("sends", "up"), ("receives", "down")):
        rates, shares = zip(*(_fill(direction, options.seconds) for _ in range(options.repetitions)), strict=True)
        results.add(does=does, **spread("bps", rates), core_share=median(shares))
    results.finish()


def main() -> None:
    """Measure and print."""
    kinds = {"lossy": lossy, "speed": speed}
    options_of = parser(__doc__, repetitions=1)
    options_of.add_argument("kind", choices=kinds)
    options_of.add_argument("--bytes", type=whole(1), default=10_000_000, help="lossy: of each transfer")
    options_of.add_argument("--per", type=float, nargs="+", default=[0.0, 0.01, 0.05], help="lossy: frame loss")
    options_of.add_argument("--rate", type=whole(1), default=20_000_000, help="lossy: of the link, bit/s")
    options_of.add_argument("--seconds", type=float, default=5.0, help="speed: of each transfer")
    options = options_of.parse_args()
    with tempfile.TemporaryDirectory(prefix="user-tcp-") as folder:
        kinds[options.kind](options, Path(folder))


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
