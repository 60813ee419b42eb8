"""A bundle: one archive with all that a stranger needs to check a campaign.

NAME/            the campaign's folder: file, plan and hash, scenarios, traces, records, results, report
NAME/README.txt  what to do with it
NAME/SHA256SUMS  of all files above
source.tar.gz    the program that made it: the commit's tracked files
requirements.lock, requirements-full.lock

Rule kept: the same folder and checkout give the same archive to the byte.
"""

import gzip
import hashlib
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from testbed.campaigns.file import CampaignError
from testbed.campaigns.folder import FAILED, INDEX, PLAN, PLAN_HASH, RESULTS, RUNS, SOURCE, TABLE
from testbed.campaigns.plan import FILES
from testbed.paths import root
from testbed.reports.numbers import Campaigned
from testbed.reports.report import FIGURES, write_report
from testbed.sources import fadelab_version

SUMS = "SHA256SUMS"
_PARTS = (SOURCE, PLAN, PLAN_HASH, INDEX, RESULTS, TABLE, "report.html", "report.md", FIGURES, FILES, RUNS, FAILED)
#: the time of all entries: the earliest that the format knows
_DATE = (1980, 1, 1, 0, 0, 0)

_README = """\
A campaign of fadelab, made by version {version}.

report.html      tables and figures; report.md is the same as text
campaign.yaml    the campaign's file; plan.json is its plan, hashed before the first run
runs/            a folder per run: scenario, seed, versions, records, result
SHA256SUMS       of all these files: sha256sum --check SHA256SUMS

To check it, recompute a sample of its runs and compare them file by file:

    ./fadelab report verify BUNDLE

fadelab itself is in source.tar.gz of the bundle, if it is not installed; docs/install.md there says how to install it.
"""


def write_bundle(campaign: Campaigned, target: Path, *, source: bool = True) -> Path:
    """Write a campaign with a new report as a zip archive; with `source` the program, too. Raises CampaignError."""
    if not campaign.complete:
        raise CampaignError(f"{campaign.path}: {campaign.planned - len(campaign.rows)} runs are missing: end it first")
    write_report(campaign, campaign.path)
    name, sums = campaign.plan.campaign.name, []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}")
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in (
                *_files(campaign),
                ("README.txt", _README.format(version=fadelab_version()).encode()),
            ):
                sums.append(f"{hashlib.sha256(content).hexdigest()}  {path}\n")
                _add(archive, f"{name}/{path}", content)
            _add(archive, f"{name}/{SUMS}", "".join(sums).encode())
            for lock in sorted(root().glob("requirements*.lock")):
                _add(archive, lock.name, lock.read_bytes())
            if source:
                _add(archive, "source.tar.gz", _source())
        beside.replace(target)
    except OSError as error:
        raise CampaignError(f"{target}: cannot be written: {error.strerror}") from None
    return target


def _files(campaign: Campaigned) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a campaign's folder that belong to it."""
    for part in _PARTS:
        start = campaign.path / part
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if path.is_file():
                yield path.relative_to(campaign.path).as_posix(), path.read_bytes()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def _source() -> bytes:
    """Return the tracked files of this checkout's commit. Raises CampaignError where that is not possible."""
    command = ["git", "-C", str(root()), "archive", "--format=tar", "--prefix=fadelab/", "HEAD"]
    try:
        made = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise CampaignError(f"{root()}: is no git checkout, so that there is no source: use --no-source") from None
    return gzip.compress(made.stdout, mtime=0)
