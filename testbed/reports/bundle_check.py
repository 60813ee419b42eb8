"""The check of what a bundle has around the results: which files it has, its documents, and the program in it.

Rules kept
- A file in a bundle that no checksum names is refused; one that belongs to no campaign is a difference.
- What can be made again from the campaign is made again and compared: README.txt, metadata, program.
- What cannot be checked here is said, with the reason.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from common.plain_json import object_of
from testbed.campaigns.file import CampaignError, load_campaign
from testbed.campaigns.folder import DIFFERING, FAILED, INDEX, PROGRESS, RESULTS, RUNS, SOURCE, SOURCES
from testbed.campaigns.plan import FILES
from testbed.campaigns.rows import MANIFEST
from testbed.errors import FadelabError
from testbed.reports.bundle import BESIDE, KEPT, PROGRAM, README, REPORTS, SUMS, about_bundle, kept_files, readme
from testbed.reports.crate import METADATA, published
from testbed.reports.differing import check_file, first_difference
from testbed.reports.numbers import Campaigned
from testbed.reports.received import LARGEST_FILE, Received
from testbed.reports.report import FIGURES
from testbed.source_files import is_source
from testbed.sources import SourcesError, digest_of_archive, program, unpack

#: files of a campaign's folder that say nothing of its results
_OF_THE_SESSION = {"lock", PROGRESS}
_COMMIT = re.compile(r"[0-9a-f]{40}")


def refuse_unnamed(received: Received, sums: Iterable[tuple[str, str]]) -> None:
    """Raise CampaignError for a file in a bundle that no line of SHA256SUMS names."""
    stated = {name for name, _ in sums}
    folder = received.folder
    around = {folder.name, PROGRAM, METADATA, *BESIDE}
    names = [f"{folder.name}/{name}" for name in _names(folder) if name not in stated and name != SUMS]
    if received.packed and received.bundle is not None:
        names += [name for name in _names(received.bundle) if name.split("/")[0] not in around]
    if names:
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        raise CampaignError(f"{names[0]}{more}: is refused: it is in the bundle, and no checksum names it")


def _names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]


def foreign(campaign: Campaigned) -> list[str]:
    """Return the files in a campaign's folder that belong to no campaign, so that nothing is compared with them."""
    done = {row.run for row in campaign.rows if row.status == "done"}
    failed = {row.run for row in campaign.rows if row.status == "failed"}

    def belongs(name: str) -> bool:
        first, *rest = PurePosixPath(name).parts
        if not rest:
            return first in {*KEPT, *REPORTS, README, SUMS, *_OF_THE_SESSION}
        if first in (RUNS, FAILED):
            return len(rest) == 2 and rest[0] in (done if first == RUNS else failed)
        # figures are compared with those of the report
        return first == FIGURES or (first == FILES and name in campaign.plan.files)

    return [name for name in _names(campaign.path) if not belongs(name)]


def check_campaign_file(campaign: Campaigned) -> Iterator[str]:
    """Yield how campaign.yaml is not the campaign of the plan."""
    try:
        found = load_campaign(campaign.path / SOURCE)
    except FadelabError as error:
        yield f"{SOURCE}: cannot be compared with the plan: {' '.join(str(error).split())}"
        return
    ours, theirs = found.model_dump(mode="json"), campaign.plan.campaign.model_dump(mode="json")
    for key, value in ours.items():
        if value != theirs[key]:
            yield f"{SOURCE}: {key} is not that of the plan"


def check_documents(received: Received, campaign: Campaigned, why: str) -> Iterator[str]:
    """Yield the differences of README.txt and the metadata; `why` is said where other sources made the runs."""
    folder, bundle = received.folder, received.bundle
    # seen from the campaign's folder alone, README.txt itself tells whether there is a program
    packed = PROGRAM.encode() in _content(folder / README) if bundle is None else (bundle / PROGRAM).exists()
    for line in check_file(folder, README, readme(campaign, program=packed).encode()):
        yield line + why
    if bundle is None:
        return
    names = [f"{folder.name}/{name}" for name in (*kept_files(folder), README, SUMS)]
    sizes = {
        name: (bundle / name).stat().st_size for name in (*names, PROGRAM, *sorted(BESIDE)) if (bundle / name).exists()
    }
    kept = _content(bundle / METADATA)
    try:
        made = about_bundle(campaign, sizes, published(kept.decode())).encode()
    except (ValueError, LookupError, TypeError, AttributeError, CampaignError):
        yield f"{METADATA}: {'does not describe this bundle' if kept else 'is missing'}"
        return
    if kept != made:
        yield f"{METADATA}: {first_difference(METADATA, kept, made)}{why}"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def check_program(
    received: Received, campaign: Campaigned, stated: Sequence[str], unchecked: list[str]
) -> Iterator[str]:
    """Yield the differences of the program, and of what the campaign says of it; `stated`: digests that the rows name.

    `unchecked` gets what cannot be checked.
    """
    try:
        about = object_of((campaign.path / SOURCES).read_text())
        commit, removed, digest = str(about["commit"]), [str(each) for each in about["removed"]], str(about["sources"])
        version = str(about["fadelab"])
    except (OSError, ValueError, LookupError, TypeError):
        if any(stated):
            yield f"{SOURCES}: cannot be read"
        return
    if stated and digest not in stated:
        yield f"{SOURCES}: names sources {digest[:12]}, and the runs were made by {_shown(stated)}"
    if version not in {row.fadelab for row in campaign.rows}:
        yield f"{SOURCES}: names fadelab {str(version)[:80]}, which made none of the runs"
    told = {"fadelab": version, "commit": commit, "sources": digest, "removed": removed}
    yield from check_file(campaign.path, SOURCES, (json.dumps(told, indent=1) + "\n").encode())
    if received.bundle is None:
        return
    path = received.bundle / PROGRAM
    if not path.exists():
        unchecked.append("the program that made the runs, which is not in the bundle")
        for name in BESIDE:
            if (received.bundle / name).exists():
                yield f"{name}: is of a program that is not in the bundle"
        return
    try:
        packed = path.read_bytes()
        found = digest_of_archive(packed, most=LARGEST_FILE)
        files = {name: (content, executable) for name, content, executable in unpack(packed)}
    except SourcesError as error:
        yield f"{PROGRAM}: {error}"
        return
    if list(stated) != [found]:
        yield f"{PROGRAM}: has sources {found[:12]}, and the runs were made by {_shown(stated)}"
    for name in BESIDE:
        if name in files:
            yield from check_file(received.bundle, name, files[name][0])
        elif (received.bundle / name).exists():
            yield f"{name}: is not in {PROGRAM}"
    try:
        differing = _content(campaign.path / DIFFERING)
        own = dict(_differing(differing, commit)) if differing else {}
    except SourcesError as error:
        yield f"{DIFFERING}: {error}"
        return
    for name, content in own.items():
        if files.get(name, (b"",))[0] != content:
            yield f"{DIFFERING}: {name} is not that of {PROGRAM}"
    try:
        if not _COMMIT.fullmatch(commit):
            raise SourcesError("it names no commit")
        made = {name: (content, mode) for name, content, mode in unpack(program(commit, differing, removed))}
    except SourcesError:
        others = len([name for name in files if not is_source(name)])
        unchecked.append(
            f"{PROGRAM}: {others} files that are no sources, such as its launcher and lists of packages: this checkout "
            f"does not have commit {commit[:12] or 'of the runs'}"
        )
        return
    for name in sorted(made.keys() | files.keys()):
        if made.get(name) != files.get(name):
            yield f"{PROGRAM}: {name} is not that of commit {commit[:12]}"


def _differing(archive: bytes, commit: str) -> Iterator[tuple[str, bytes]]:
    """Yield the sources in sources.tar.gz. Raises SourcesError for another file, where a commit has those."""
    for name, content, _ in unpack(archive, most=LARGEST_FILE):
        if commit and not is_source(name):
            raise SourcesError(f"{name} is no source")
        yield name, content


def _shown(digests: Sequence[str]) -> str:
    return ", ".join(each[:12] or "none recorded" for each in digests)


def uncheckable(received: Received, campaign: Campaigned) -> Iterator[str]:
    """Yield what no bundle can prove."""
    if received.bundle is not None:
        around = {received.folder.name, PROGRAM, METADATA, *BESIDE}
        if others := sorted(path.name for path in received.bundle.iterdir() if path.name not in around):
            yield f"beside the bundle, of which they are no part: {_some(others)}"
        yield f"authors, licence, publisher and DOI in {METADATA}: who made the bundle states them"
    elif (received.folder / SUMS).exists():
        yield "the folder above, where the bundle has its program and metadata: give that one"
    else:
        yield f"whether files changed that {INDEX}, {RESULTS} and plan do not name: a bundle has checksums of all"
        if others := foreign(campaign):
            yield f"files that belong to no campaign: {_some(others)}"
    yield f"in each {MANIFEST}: all but version, sources, machine and form of the cores; in {INDEX}: how long runs took"
    if any(row.status == "failed" for row in campaign.rows):
        yield f"errors of failed runs, and the files in {FAILED}/"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
