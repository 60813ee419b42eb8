"""ELN in the kernel's TCP, measured: `sudo .venv/bin/python -m benchmarks.kernel_eln loss`. docs/kernel-eln.md.

Tier `emulated`, scheme `none` (no ARQ), data from h1 to h2, stations that mark (`link.eln: ends`) for every TCP.

`loss`: frames of the data direction are lost to corruption with some probability: goodput of `eln` beside Linux's Reno
and CUBIC, the same seeds for each; ratios are medians over the seeds of the ratio with one seed.
`fair`: no corruption, a drop-tail queue of one bandwidth-delay product; one flow of `eln` and one of Reno from the same
host, Jain's index of their goodputs.
`agree`: a run of `eln` again in virtual time, the fates of its frames taken one by one from its channel trace, with
our own TCP `sack-eln` as the sender.

A run that did not keep the clock does not count: it is repeated, three times at most.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import Column, Results, parser, run_on_time, whole
from testbed.results.summary import Summary
from testbed.scenario.schema import Scenario

TCPS = ("eln", "reno", "cubic")


@dataclass(frozen=True, slots=True)
class Link:
    """What all runs of a measurement share."""

    rate_bps: int
    delay_ms: float
    seconds: float

    @property
    def bdp_bytes(self) -> int:
        """Bandwidth times round-trip time."""
        return round(self.rate_bps / 8 * 2 * self.delay_ms / 1000)

    def scenario(self, seed: int, errors: Mapping[str, Any], **changes: Any) -> Scenario:
        """One transfer for so many seconds, with such losses of data."""
        return Scenario.model_validate(
            {
                "name": "kernel-eln",
                "seed": seed,
                "link": {"scheme": "none", "eln": "ends"},
                "channel": {"rate_bps": self.rate_bps, "delay_ms": self.delay_ms, "up": {"errors": dict(errors)}},
                "workloads": [{"kind": "bulk", "duration_s": self.seconds, "drain_s": 2}],
                **changes,
            }
        )


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index: 1 for equal shares, 1/n where one has all."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


def _row(summary: Summary) -> dict[str, Any]:
    return {
        "tcp": summary.tcp,
        "tier": summary.tier,
        "seed": summary.seed,
        "goodput_bps": summary.goodput_bps,
        "retransmissions": summary.retransmissions,
        "timeouts": summary.timeouts,
        "corruption_losses": summary.link["up"].corruption_losses,
        "congestion_losses": summary.link["up"].congestion_losses,
        "max_late_ms": summary.max_late_ms,
    }


def loss(link: Link, options: argparse.Namespace, folder: Path) -> None:
    """Goodput with corruption losses, beside Reno and CUBIC."""
    columns = {"per": Column("PER", "g"), **{tcp: Column(tcp, ".2f", 1e-6) for tcp in TCPS}} | {
        f"over_{tcp}": Column(f"eln / {tcp}", ".2f") for tcp in TCPS[1:]
    }
    results = Results(options, "emulated", "Mbit/s, medians over the seeds", columns)
    for per in options.per:
        errors = {"model": "bernoulli", "per": per}
        rows = {
            tcp: [_row(run_on_time(link.scenario(seed, errors, tcp=tcp), folder)) for seed in _seeds(options)]
            for tcp in TCPS
        }
        goodputs = {tcp: [row["goodput_bps"] for row in runs] for tcp, runs in rows.items()}
        ratios = {
            f"over_{tcp}": median(eln / other for eln, other in zip(goodputs["eln"], goodputs[tcp], strict=True))
            for tcp in TCPS[1:]
        }
        results.add(per=per, **{tcp: median(found) for tcp, found in goodputs.items()}, **ratios, runs=rows)
    results.finish()


def fair(link: Link, options: argparse.Namespace, folder: Path) -> None:
    """Share a queue of one bandwidth-delay product with a flow of Reno; the same with two flows of Reno."""
    columns = {
        "flows": Column("flows"),
        "seed": Column("seed"),
        "first_bps": Column("first", ".2f", 1e-6),
        "other_bps": Column("other", ".2f", 1e-6),
        "jain": Column("Jain", ".3f"),
        "congestion_losses": Column("drops"),
    }
    results = Results(options, "emulated", f"Mbit/s, a queue of {link.bdp_bytes} octets", columns)
    for seed, tcp in product(_seeds(options), ("eln", options.against)):
        work = {"kind": "bulk", "duration_s": link.seconds, "drain_s": 2}
        made = link.scenario(
            seed,
            {"model": "none"},
            tcp=tcp,
            link={"scheme": "none", "eln": "ends", "ip_queue_bytes": link.bdp_bytes},
            workloads=[{**work, "flow": tcp}, {**work, "flow": "other", "congestion_control": options.against}],
        )
        summary = run_on_time(made, folder)
        shares = [flow.goodput_bps for flow in summary.flows]
        first, other = shares
        row = _row(summary) | {"first_bps": first, "other_bps": other, "jain": jain(shares)}
        results.add(flows=f"{tcp} and {options.against}", **row)
    results.finish(queue_bytes=link.bdp_bytes)


def agree(link: Link, options: argparse.Namespace, folder: Path) -> None:
    """The same losses for our own TCP in virtual time."""
    columns = {
        "per": Column("PER", "g"),
        "seed": Column("seed"),
        "kernel_bps": Column("kernel", ".2f", 1e-6),
        "model_bps": Column("virtual time", ".2f", 1e-6),
        "ratio": Column("ratio", ".3f"),
    }
    results = Results(options, "emulated and model", "Mbit/s", columns)
    for per, seed in product(options.per, _seeds(options)):
        live = run_on_time(link.scenario(seed, {"model": "bernoulli", "per": per}, tcp="eln"), folder)
        assert live.folder is not None
        trace = {"model": "trace", "path": str(Path(live.folder) / "trace-up.parquet"), "by": "index"}
        model = run_on_time(link.scenario(seed, trace, tier="model", tcp="sack-eln", trace=False), folder)
        bps = {"kernel_bps": live.goodput_bps, "model_bps": model.goodput_bps}
        ratio = model.goodput_bps / live.goodput_bps
        results.add(per=per, seed=seed, **bps, ratio=ratio, kernel=_row(live), model=_row(model))
    results.finish()


def _seeds(options: argparse.Namespace) -> range:
    return range(options.seed, options.seed + options.repetitions)


def main() -> None:
    """Measure and print."""
    kinds = {"loss": loss, "fair": fair, "agree": agree}
    options_of = parser(__doc__, repetitions=3)
    options_of.add_argument("kind", choices=kinds)
    options_of.add_argument("--rate", type=whole(1), default=5_000_000, help="of the link, bit/s (default 5000000)")
    options_of.add_argument("--delay-ms", type=float, default=25.0, help="each way (default 25)")
    options_of.add_argument("--per", type=float, nargs="+", default=[0.02, 0.03, 0.05], help="loss, agree: frame loss")
    options_of.add_argument("--seconds", type=float, default=30.0, help="of each run (default 30)")
    options_of.add_argument("--against", default="reno", help="fair: the other flow's congestion control")
    options_of.add_argument("--out", type=Path, help="keep the runs there")
    options = options_of.parse_args()
    link = Link(options.rate, options.delay_ms, options.seconds)
    with nullcontext(options.out) if options.out else tempfile.TemporaryDirectory(prefix="kernel-eln-") as folder:
        kinds[options.kind](link, options, Path(folder))


if __name__ == "__main__":
    main()
