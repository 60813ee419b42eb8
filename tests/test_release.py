"""The files of a release agree: version, changelog, citation, bill of materials."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from testbed.cli.sbom import bill

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: https://semver.org: three numbers, and a pre-release
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")


def test_the_version_is_a_semantic_one_and_the_newest_of_the_changelog() -> None:
    assert VERSION.fullmatch(PROJECT["version"])
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    versions, dates = zip(
        *(heading.strip("[]").replace("] ", " ").split(" - ") for heading in headings[1:]), strict=True
    )
    assert versions[0] == PROJECT["version"]
    assert all(VERSION.fullmatch(version) for version in versions)
    assert list(dates) == sorted(dates, reverse=True)
    kinds = set(re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_names_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    # required by the Citation File Format 1.2.0
    assert citation.keys() >= {"authors", "cff-version", "message", "title"}
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]["text"]


@pytest.mark.parametrize("part", ["native", "vusrp"])
def test_packages_in_cpp_have_this_version(part: str) -> None:
    rules = (ROOT / "flowgraphs" / part / "CMakeLists.txt").read_text()
    assert re.findall(r"^project\(\S+ VERSION (\S+) ", rules, re.MULTILINE) == [PROJECT["version"]]


def test_manifest_of_native_blocks_has_this_licence_and_the_gnu_radio_that_cmake_demands() -> None:
    folder = ROOT / "flowgraphs" / "native"
    manifest = yaml.safe_load((folder / "MANIFEST.md").read_text().split("---")[0])
    assert manifest["license"] == PROJECT["license"]["text"]
    assert f"find_package(Gnuradio {manifest['gr_supported_version']} " in (folder / "CMakeLists.txt").read_text()


def test_bill_of_materials_is_valid_and_has_every_package_that_is_locked_or_listed() -> None:
    text = bill(ROOT)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    made = json.loads(text)
    program = made["metadata"]["component"]
    assert (program["name"], program["version"]) == (PROJECT["name"], PROJECT["version"])
    found = {part["purl"]: part for part in made["components"]}
    locks = [(ROOT / name).read_text() for name in ("requirements.lock", "requirements-full.lock")]
    for lock, scope in zip(locks, ("required", "optional"), strict=True):
        blocks = re.split(r"(?m)^(?=[a-z0-9])", lock)[1:]
        for block in blocks:
            name, _, version = block.split()[0].partition("==")
            part = found.pop(f"pkg:pypi/{name}@{version}")
            assert part["scope"] == scope
            assert {each["content"] for each in part["hashes"]} == set(re.findall("sha256:([0-9a-f]{64})", block))
    # what is left is Debian's
    listed = [
        line.split()[0] for line in (ROOT / "packages.apt").read_text().splitlines() if re.match("[a-z0-9]", line)
    ]
    assert sorted(part["name"] for part in found.values()) == sorted(listed)
    assert all(purl.startswith("pkg:deb/debian/") for purl in found)
