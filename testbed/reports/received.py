"""A bundle from elsewhere: opened within limits, and refused where it leads outside itself.

Rules kept
- Sizes and names are looked at before anything is unpacked or read.
- Only regular files and folders are read, and only those below the bundle. Links, devices and pipes are refused.
- The names that its files state (checksums, plan, index) are names within it.
- Each refusal is one line.
"""

import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.campaigns.file import CampaignError
from testbed.campaigns.folder import PLAN
from testbed.campaigns.plan import is_inside
from testbed.reports.bundle import BESIDE, PROGRAM
from testbed.reports.crate import METADATA

#: octets of all files, and of one, unpacked
MOST_OCTETS, LARGEST_FILE = 20_000_000_000, 2_000_000_000
MOST_FILES = 1_000_000
#: octets per octet of the archive, beyond the first 100 MB; bundles have some 2
HIGHEST_RATIO, RATIO_FROM = 100, 100_000_000
_FLAG_ENCRYPTED = 1


@dataclass(frozen=True)
class Received:
    """A bundle or a campaign's folder, opened."""

    #: the campaign's
    folder: Path
    #: the bundle's, with the program's source; None: this is a campaign's folder
    bundle: Path | None
    #: whether it is an archive, in which nothing else may be
    packed: bool = False
    #: files that the archive has damaged
    damaged: list[str] = field(default_factory=list)


@contextmanager
def opened(path: Path) -> Iterator[Received]:
    """Yield a bundle, packed or not, or a campaign's folder. Raises CampaignError for another path, or if refused."""
    if path.is_dir():
        alone = (path / PLAN).exists()
        folder = path if alone else _only_campaign(path, path)
        # a stranger unpacks other things beside it, the program for one
        _check([] if alone else [*(path / name for name in (PROGRAM, METADATA, *BESIDE)), folder], path)
        _check(folder.rglob("*"), path)
        yield Received(folder, None if alone else path)
        return
    if path.exists() and not path.is_file():
        raise CampaignError(f"{path}: is no bundle: it is no regular file")
    with TemporaryDirectory(prefix="fadelab-verify-") as made:
        scratch = Path(made)
        try:
            with zipfile.ZipFile(path) as archive:
                entries = archive.infolist()
                _check_entries(entries, path)
                damaged = [why for entry in entries if (why := _extract(archive, entry, scratch))]
        except FileNotFoundError:
            raise CampaignError(f"{path}: no such bundle") from None
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise CampaignError(f"{path}: is no bundle: {error}") from None
        yield Received(_only_campaign(scratch, path, damaged), scratch, True, damaged)


def _only_campaign(folder: Path, path: Path, damaged: list[str] | None = None) -> Path:
    found = sorted(folder.glob(f"*/{PLAN}"))
    if len(found) != 1:
        first = f": {damaged[0]}" if damaged else ""
        raise CampaignError(f"{path}: is neither a bundle nor a campaign's folder{first}")
    return found[0].parent


# -- before anything is unpacked -------------------------------------------------------------------------------


def _check_entries(entries: list[zipfile.ZipInfo], path: Path) -> None:
    """Raise CampaignError for an archive whose table of contents is beyond a limit or leads outside."""
    _check_sizes([entry.file_size for entry in entries], path)
    total, packed = sum(entry.file_size for entry in entries), path.stat().st_size
    if total > RATIO_FROM and total > HIGHEST_RATIO * packed:
        raise CampaignError(
            f"{path}: is refused: {packed:,} octets would unpack to {total:,}, more than {HIGHEST_RATIO} times as many"
        )
    seen = set()
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if not is_inside(entry.filename) or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise CampaignError(f"{path}: is refused: {entry.filename!r} leads outside, or is no regular file")
        if entry.filename in seen:
            raise CampaignError(f"{path}: is refused: {entry.filename!r} is there twice")
        if entry.flag_bits & _FLAG_ENCRYPTED or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CampaignError(f"{path}: is refused: {entry.filename!r} is packed as bundles are not")
        seen.add(entry.filename)


def _check_sizes(sizes: list[int], path: Path) -> None:
    if len(sizes) > MOST_FILES:
        raise CampaignError(f"{path}: is refused: it has {len(sizes):,} files, and {MOST_FILES:,} are allowed")
    for name, size, most in (("all files", sum(sizes), MOST_OCTETS), ("a file", max(sizes, default=0), LARGEST_FILE)):
        if size > most:
            raise CampaignError(f"{path}: is refused: {name} would have {size:,} octets, and {most:,} are allowed")


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, scratch: Path) -> str:
    """Unpack a file; return the damage to it in words, empty without."""
    try:
        # at most file_size octets, which was looked at: the module reads no more
        archive.extract(entry, scratch)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        return f"{entry.filename}: is damaged in the archive: {error}"
    return ""


# -- before anything is read -----------------------------------------------------------------------------------


def _check(paths: Iterable[Path], bundle: Path) -> None:
    """Raise CampaignError for other paths than regular files and folders, and beyond a limit."""
    sizes = []
    for each in paths:
        try:
            found = each.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISREG(found.st_mode):
            sizes.append(found.st_size)
        elif not stat.S_ISDIR(found.st_mode):
            raise CampaignError(f"{bundle}: is refused: {each} is no regular file")
    _check_sizes(sizes, bundle)
