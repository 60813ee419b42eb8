"""A bundle: one archive with all that a stranger needs to check a campaign.

NAME/            the campaign's folder: file, plan and hash, scenarios, traces, records, results, report
NAME/README.txt  what to do with it
NAME/SHA256SUMS  of all files above
source.tar.gz    the program that made the runs: its commit, with the sources that differed from it then
requirements.lock, requirements-full.lock, LICENSE: of that program
ro-crate-metadata.json   authors, licence, origin and parts (crate.py)

Rules kept
- The same folder, version and publication give the same archive to the byte.
- The program in it has the digest of sources that the rows name, and wrote the report. Otherwise there is no bundle.
"""

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from common.plain_json import object_of
from testbed.campaigns.file import CampaignError
from testbed.campaigns.folder import (
    DIFFERING,
    FAILED,
    INDEX,
    PLAN,
    PLAN_HASH,
    RESULTS,
    RUNS,
    SOURCE,
    SOURCES,
    TABLE,
)
from testbed.campaigns.plan import FILES
from testbed.campaigns.rows import MANIFEST
from testbed.reports.crate import METADATA, Publication, metadata
from testbed.reports.numbers import Campaigned
from testbed.reports.report import FIGURES, write_report
from testbed.sources import SourcesError, digest_of_archive, program, sources, unpack

SUMS, README, PROGRAM = "SHA256SUMS", "README.txt", "source.tar.gz"
KEPT = (SOURCE, PLAN, PLAN_HASH, INDEX, RESULTS, TABLE, SOURCES, DIFFERING)
REPORTS = ("report.html", "report.md")
_PARTS = (*KEPT, *REPORTS, FIGURES, FILES, RUNS, FAILED)
#: files of the program that stand beside it, too
BESIDE = ("LICENSE", "requirements.lock", "requirements-full.lock")
#: the time of all entries: the earliest that the format knows
_DATE = (1980, 1, 1, 0, 0, 0)

_README = """\
A campaign of fadelab, made by version {version}.

report.html      tables and figures; report.md is the same as text
campaign.yaml    the campaign's file; plan.json is the plan made of it, with the scenarios, hashed before the first run
sources.json     commit and digest of the program's sources; sources.tar.gz: those that no commit has, if there are any
runs/            a folder per run: scenario, seed, versions, records, result
SHA256SUMS       of all these files

The checksums, in this folder:

    sha256sum --check --quiet SHA256SUMS

{check}
"""
_WITH_PROGRAM = """\
A sample of the runs, made again and compared file by file, and the report, made again from the results; in the folder
above this one, where the bundle was unpacked (docs/install.md in fadelab/ says what the first start installs):

    tar xzf source.tar.gz
    fadelab/fadelab report verify ."""
_WITHOUT_PROGRAM = """\
A sample of the runs, made again and compared file by file, and the report, made again from the results; with the
program fadelab of this version, in the folder above this one, where the bundle was unpacked:

    fadelab report verify ."""


def write_bundle(
    campaign: Campaigned, target: Path, *, source: bool = True, publication: Publication | None = None
) -> Path:
    """Write a campaign with a new report as a zip archive; with `source` the program, too. Raises CampaignError."""
    if not campaign.complete:
        raise CampaignError(f"{campaign.path}: {campaign.planned - len(campaign.rows)} runs are missing: end it first")
    packed = _program(campaign) if source else b""
    _report(campaign, packed)
    name, sums = campaign.plan.campaign.name, []
    sizes: dict[str, int] = {}
    beside = {PROGRAM: packed} if packed else {}
    if packed:
        beside |= {path: content for path, content, _ in unpack(packed) if path in BESIDE}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}")
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            contents = ((path, (campaign.path / path).read_bytes()) for path in kept_files(campaign.path))
            for path, content in (*contents, (README, readme(campaign, program=bool(packed)).encode())):
                sums.append(f"{hashlib.sha256(content).hexdigest()}  {path}\n")
                sizes[f"{name}/{path}"] = _add(archive, f"{name}/{path}", content)
            sizes[f"{name}/{SUMS}"] = _add(archive, f"{name}/{SUMS}", "".join(sums).encode())
            for path, content in beside.items():
                sizes[path] = _add(archive, path, content)
            about = about_bundle(campaign, sizes, publication or Publication())
            _add(archive, METADATA, about.encode())
        unfinished.replace(target)
    except OSError as error:
        raise CampaignError(f"{target}: cannot be written: {error.strerror}") from None
    return target


def kept_files(folder: Path) -> Iterator[str]:
    """Yield the paths of the files of a campaign's folder that belong into a bundle, in its order."""
    for part in _PARTS:
        start = folder / part
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if path.is_file():
                yield path.relative_to(folder).as_posix()


def readme(campaign: Campaigned, *, program: bool) -> str:
    """Return README.txt of a bundle; `program`: whether the program is in it."""
    # none without any run
    version = next(iter(_versions(campaign)), "unknown")
    return _README.format(version=version, check=_WITH_PROGRAM if program else _WITHOUT_PROGRAM)


def about_bundle(campaign: Campaigned, sizes: Mapping[str, int], publication: Publication) -> str:
    """Return the bundle's metadata; `sizes` by path in the bundle. Raises CampaignError for a wrong publication."""
    return metadata(
        campaign.plan,
        sizes,
        publication=publication,
        ended=_ended(campaign),
        versions=_versions(campaign),
        sources=_digests(campaign),
    )


def _versions(campaign: Campaigned) -> list[str]:
    return sorted({row.fadelab for row in campaign.rows})


def _digests(campaign: Campaigned) -> list[str]:
    return sorted({row.sources for row in campaign.rows if row.status == "done"})


def _ended(campaign: Campaigned) -> str:
    """Return when the last run began. Raises CampaignError."""
    made = [campaign.path / RUNS / row.run / MANIFEST for row in campaign.rows if row.status == "done"]
    try:
        return max((str(object_of(path.read_text())["started"]) for path in made), default="")
    except (OSError, ValueError, LookupError):
        raise CampaignError(f"{campaign.path}: the {MANIFEST} of a run does not say when that began") from None


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> int:
    """Add a file; return its size."""
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)
    return len(content)


# -- the program that made the runs ----------------------------------------------------------------------------


def _program(campaign: Campaigned) -> bytes:
    """Return the program whose sources the rows name. Raises CampaignError where that is not possible."""
    path, digests = campaign.path, _digests(campaign)
    if len(digests) != 1 or not digests[0]:
        what = "several sources of fadelab" if len(digests) > 1 else "a fadelab that did not record its sources"
        raise CampaignError(f"{path}: its runs were made by {what}: make them again in one folder, or use --no-source")
    try:
        about = object_of((path / SOURCES).read_text())
        differing = (path / DIFFERING).read_bytes() if (path / DIFFERING).exists() else b""
        made = program(str(about["commit"]), differing, about["removed"])
        found = digest_of_archive(made)
    except (OSError, ValueError, LookupError, SourcesError) as error:
        raise CampaignError(
            f"{path}: the sources that made its runs ({_versions(campaign)[0]}) cannot be had ({error}): bundle it in "
            "a checkout that has that commit, or use --no-source"
        ) from None
    if found != digests[0]:
        raise CampaignError(
            f"{path}: its runs were made by sources {digests[0][:12]}, and {SOURCES} leads to {found[:12]}: use "
            "--no-source"
        )
    return made


def _report(campaign: Campaigned, packed: bytes) -> None:
    """Write the report, by the packed program if its sources are not those of this one. Raises CampaignError."""
    if not packed or _digests(campaign) == [sources().digest]:
        write_report(campaign, campaign.path)
        return
    with TemporaryDirectory(prefix="fadelab-bundle-") as made:
        folder = Path(made)
        for name, content, _ in unpack(packed):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        command = [sys.executable, "-P", "-m", "testbed", "report", "write", str(campaign.path.resolve())]
        environment = {**os.environ, "FADELAB_ROOT": made, "PYTHONPATH": made, "FADELAB_PURE": "1"}
        done = subprocess.run(command, cwd=made, env=environment, capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise CampaignError(f"{campaign.path}: {_versions(campaign)[0]} cannot write its report here: {last[0]}")
