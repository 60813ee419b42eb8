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

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click

from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.schema import Scenario

TCPS = ("eln", "reno", "cubic")
_ATTEMPTS = 3


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


class Runs:
    """Runs one scenario after the other and says how far it is."""

    def __init__(self, folder: Path, of: int) -> None:
        self._folder, self._of, self._done = folder, of, 0

    def run(self, scenario: Scenario, label: str) -> Summary:
        """The result of a run that kept the clock."""
        for _ in range(_ATTEMPTS):
            summary = run_once(scenario, self._folder, lambda progress: None)
            if not summary.intact:
                sys.exit(f"{label}: the transfer is not intact: {summary.folder}")
            if summary.on_time:
                self._done += 1
                said = ", ".join(f"{flow.goodput_bps / 1e6:.2f}" for flow in summary.flows)
                print(f"{self._done}/{self._of} {label}: {said} Mbit/s", file=sys.stderr, flush=True)
                return summary
            print(
                f"{label}: late ({summary.late_events} of {summary.events} events), again", file=sys.stderr, flush=True
            )
        sys.exit(f"{label}: this machine did not keep the clock in {_ATTEMPTS} runs: free it")


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index: 1 for equal shares, 1/n where one has all."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


def _row(summary: Summary, **more: Any) -> dict[str, Any]:
    return {
        **more,
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


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """Where runs go: there, or nowhere for long."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="kernel-eln-") as folder:
        yield Path(folder)


@click.group()
def main() -> None:
    """Measure ELN in the kernel's TCP."""


_rate = click.option("--rate", "rate_bps", default=5_000_000, show_default=True, help="Of the link, bit/s.")
_delay = click.option("--delay-ms", default=25.0, show_default=True, help="Each way.")
_pers = click.option("--per", "pers", multiple=True, type=float, default=(0.02, 0.03, 0.05), show_default=True)
_seed = click.option("--seed", default=1, show_default=True, help="Of the first run.")
_repeat = click.option("--repeat", default=3, show_default=True, help="Runs of a setting, with consecutive seeds.")
_out = click.option("--out", type=click.Path(path_type=Path), help="Keep the runs there.")
_json = click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")


@main.command()
@_rate
@_delay
@_pers
@_seed
@_repeat
@click.option("--seconds", default=30.0, show_default=True)
@_out
@_json
def loss(
    rate_bps: int,
    delay_ms: float,
    pers: tuple[float, ...],
    seed: int,
    repeat: int,
    seconds: float,
    out: Path | None,
    json_: bool,
) -> None:
    """Goodput with corruption losses, beside Reno and CUBIC."""
    link = Link(rate_bps, delay_ms, seconds)
    rows: list[dict[str, Any]] = []
    with _folder(out) as folder:
        runs = Runs(folder, len(pers) * repeat * len(TCPS))
        for per in pers:
            for number in range(seed, seed + repeat):
                for tcp in TCPS:
                    made = link.scenario(number, {"model": "bernoulli", "per": per}, tcp=tcp)
                    rows.append(_row(runs.run(made, f"PER {per} seed {number} {tcp}"), per=per))
    goodput = {(row["per"], row["seed"], row["tcp"]): row["goodput_bps"] for row in rows}
    ratios = [
        {
            "per": per,
            **{tcp: median(goodput[per, s, tcp] for s in range(seed, seed + repeat)) for tcp in TCPS},
            **{
                f"over_{tcp}": median(goodput[per, s, "eln"] / goodput[per, s, tcp] for s in range(seed, seed + repeat))
                for tcp in TCPS[1:]
            },
        }
        for per in pers
    ]
    if json_:
        print(json.dumps({"rate_bps": rate_bps, "delay_ms": delay_ms, "runs": rows, "medians": ratios}))
        return
    for found in ratios:
        print(
            f"PER {found['per']:<5} "
            + ", ".join(f"{tcp} {found[tcp] / 1e6:.2f}" for tcp in TCPS)
            + f" Mbit/s: {found['over_reno']:.2f} times Reno, {found['over_cubic']:.2f} times CUBIC"
        )


@main.command()
@_rate
@_delay
@_seed
@_repeat
@click.option("--seconds", default=60.0, show_default=True)
@click.option("--against", default="reno", show_default=True, help="The other flow's congestion control.")
@_out
@_json
def fair(
    rate_bps: int,
    delay_ms: float,
    seed: int,
    repeat: int,
    seconds: float,
    against: str,
    out: Path | None,
    json_: bool,
) -> None:
    """Share a queue of one bandwidth-delay product with a flow of Reno; the same with two flows of Reno."""
    link = Link(rate_bps, delay_ms, seconds)
    rows: list[dict[str, Any]] = []
    with _folder(out) as folder:
        runs = Runs(folder, repeat * 2)
        for number in range(seed, seed + repeat):
            for tcp in ("eln", against):
                work = {"kind": "bulk", "duration_s": seconds, "drain_s": 2}
                made = link.scenario(
                    number,
                    {"model": "none"},
                    tcp=tcp,
                    link={"scheme": "none", "eln": "ends", "ip_queue_bytes": link.bdp_bytes},
                    workloads=[{**work, "flow": tcp}, {**work, "flow": "other", "congestion_control": against}],
                )
                summary = runs.run(made, f"seed {number} {tcp} and {against}")
                shares = [flow.goodput_bps for flow in summary.flows]
                rows.append(_row(summary, against=against, shares_bps=shares, jain=jain(shares)))
    if json_:
        print(json.dumps({"rate_bps": rate_bps, "delay_ms": delay_ms, "queue_bytes": link.bdp_bytes, "runs": rows}))
        return
    for row in rows:
        shares = " and ".join(f"{share / 1e6:.2f}" for share in row["shares_bps"])
        print(
            f"{row['tcp']} and {row['against']} seed {row['seed']}: {shares} Mbit/s, Jain {row['jain']:.3f}, "
            f"{row['congestion_losses']} drops"
        )


@main.command()
@_rate
@_delay
@_pers
@_seed
@_repeat
@click.option("--seconds", default=30.0, show_default=True)
@_out
@_json
def agree(
    rate_bps: int,
    delay_ms: float,
    pers: tuple[float, ...],
    seed: int,
    repeat: int,
    seconds: float,
    out: Path | None,
    json_: bool,
) -> None:
    """The same losses for our own TCP in virtual time."""
    link = Link(rate_bps, delay_ms, seconds)
    rows: list[dict[str, Any]] = []
    with _folder(out) as folder:
        runs = Runs(folder, len(pers) * repeat * 2)
        for per in pers:
            for number in range(seed, seed + repeat):
                made = link.scenario(number, {"model": "bernoulli", "per": per}, tcp="eln")
                live = runs.run(made, f"PER {per} seed {number} eln")
                assert live.folder is not None
                trace = {"model": "trace", "path": str(Path(live.folder) / "trace-up.parquet"), "by": "index"}
                again = link.scenario(number, trace, tier="model", tcp="sack-eln", trace=False)
                model = runs.run(again, f"PER {per} seed {number} sack-eln, tier model")
                rows.append(
                    {
                        "per": per,
                        "seed": number,
                        "kernel": _row(live),
                        "model": _row(model),
                        "ratio": model.goodput_bps / live.goodput_bps,
                    }
                )
    if json_:
        print(json.dumps({"rate_bps": rate_bps, "delay_ms": delay_ms, "runs": rows}))
        return
    for row in rows:
        print(
            f"PER {row['per']:<5} seed {row['seed']}: kernel {row['kernel']['goodput_bps'] / 1e6:.2f}, "
            f"virtual time {row['model']['goodput_bps'] / 1e6:.2f} Mbit/s, ratio {row['ratio']:.3f}"
        )


if __name__ == "__main__":
    main()
