"""The tools of those who forge a bundle: rows, sums and reports that fit what was changed."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from testbed.campaigns.folder import results_of
from testbed.cli import app
from testbed.reports.bundle import SUMS
from testbed.reports.crate import METADATA
from testbed.reports.numbers import read_campaign
from testbed.reports.report import write_report
from tests.harness.live_runs import Capture


def check(folder: Path, *options: str) -> int:
    return app.main(["report", "verify", str(folder.parent), "--workers", "1", *options])


def sum_again(folder: Path) -> None:
    """Write the checksums of all files anew, and the sizes in the metadata, as a forger does."""
    lines = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != SUMS:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{digest}  {path.relative_to(folder).as_posix()}\n")
    (folder / SUMS).write_text("".join(lines))
    metadata = folder.parent / METADATA
    if metadata.exists() and "@graph" in (about := json.loads(metadata.read_text())):
        for each in about["@graph"]:
            if "contentSize" in each and (folder.parent / each["@id"]).exists():
                each["contentSize"] = str((folder.parent / each["@id"]).stat().st_size)
        metadata.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def change_rows(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    index = folder / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    index.write_text("".join(json.dumps(change(row) if "run" in row else row) + "\n" for row in rows))


def tell_anew(folder: Path) -> None:
    """Write results, report and checksums as the index has them now."""
    campaign = read_campaign(folder)
    rows = [each for runs in campaign.runs.values() for each in runs]
    for name, text in results_of(campaign.plan, rows, complete=True).items():
        (folder / name).write_text(text)
    write_report(campaign, folder)
    sum_again(folder)


def zipped(path: Path, files: Mapping[Any, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def first(folder: Path, capsys: Capture) -> str:
    """What `report verify` says first of a forged bundle with new sums."""
    sum_again(folder)
    assert check(folder, "--sample", "0") == 2
    return capsys.readouterr().err.partition("the first: ")[2].strip()
