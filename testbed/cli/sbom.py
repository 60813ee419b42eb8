"""`sbom`: the bill of materials of a release, in CycloneDX's JSON.

Read first: the CycloneDX specification, version 1.6 (ECMA-424); purl, the package URLs in it.
"""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from testbed.errors import FadelabError
from testbed.paths import root
from testbed.results.whole_files import write_whole

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

#: locks of Python packages: what every command needs, and what few do
_LOCKS: Final = {"requirements.lock": True, "requirements-full.lock": False}
#: groups of packages.apt that every command needs
_REQUIRED: Final = frozenset({"first", "compilers", "base"})
_PINNED: Final = re.compile(r"(?m)^([a-z0-9][a-z0-9.-]*)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)")


@click.command(epilog="docs/security.md#a-bill-of-materials")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
def sbom(file: Path | None) -> None:
    """Write a bill of materials to FILE, or print it: all packages that fadelab is made of, in CycloneDX's JSON.

    The Python packages are those of the locks, with their SHA-256. Debian's are those of packages.apt, with their
    version where they are installed here.
    """
    text = bill(root())
    if file is None:
        click.echo(text)
        return
    try:
        write_whole(file, f"{text}\n".encode())
    except OSError as error:
        raise FadelabError(f"{file}: cannot be written: {error.strerror}") from None


COMMAND = sbom


def bill(folder: Path) -> str:
    """Return the bill of materials of the checkout in `folder`."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.license import DisjunctiveLicense
    from cyclonedx.output.json import JsonV1Dot6

    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    made = Bom(components=[*_python(folder), *_debian(folder)])
    made.metadata.component = program = Component(
        name=project["name"],
        version=project["version"],
        type=ComponentType.APPLICATION,
        bom_ref=project["name"],
        description=project["description"],
        licenses=[DisjunctiveLicense(id=project["license"]["text"])],
    )
    made.register_dependency(program, made.components)
    return str(JsonV1Dot6(made).output_as_string(indent=2))


def _python(folder: Path) -> "Iterator[Component]":
    """Yield the packages of the locks. A package has the hashes of all files that pip may choose from."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component, ComponentScope
    from packageurl import PackageURL

    for lock, required in _LOCKS.items():
        for name, version, hashes in _PINNED.findall((folder / lock).read_text()):
            purl = PackageURL("pypi", name=name, version=version)
            yield Component(
                name=name,
                version=version,
                purl=purl,
                bom_ref=purl.to_string(),
                scope=ComponentScope.REQUIRED if required else ComponentScope.OPTIONAL,
                hashes=[
                    HashType(alg=HashAlgorithm.SHA_256, content=content)
                    for content in re.findall(r"sha256:([0-9a-f]+)", hashes)
                ],
            )


def _debian(folder: Path) -> "Iterator[Component]":
    """Yield the packages of packages.apt."""
    from cyclonedx.model.component import Component, ComponentScope
    from packageurl import PackageURL

    groups = apt_packages((folder / "packages.apt").read_text())
    versions = _installed([name for names in groups.values() for name in names])
    for group, names in groups.items():
        for name in names:
            version = versions.get(name)
            purl = PackageURL("deb", "debian", name, version, {"distro": "debian-12"})
            yield Component(
                name=name,
                version=version,
                purl=purl,
                bom_ref=purl.to_string(),
                scope=ComponentScope.REQUIRED if group in _REQUIRED else ComponentScope.OPTIONAL,
            )


def apt_packages(text: str) -> dict[str, list[str]]:
    """Return the packages of packages.apt by group."""
    groups: dict[str, list[str]] = {}
    group: list[str] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words and words[0].startswith("["):
            group = groups.setdefault(words[0].strip("[]"), [])
        elif words:
            group.append(words[0])
    return groups


def _installed(names: list[str]) -> dict[str, str]:
    """Return the versions of those Debian packages that are installed; none where there is no dpkg."""
    form = "${Package} ${Version} ${db:Status-Status}\n"
    try:
        told = subprocess.run(
            ["dpkg-query", "--show", f"--showformat={form}", *names], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return {}
    rows = (line.split(" ") for line in told.stdout.splitlines())
    return {row[0]: row[1] for row in rows if row[-1] == "installed"}
