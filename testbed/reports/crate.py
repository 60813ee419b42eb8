"""The metadata of a bundle as an RO-Crate (https://w3id.org/ro/crate/1.1): its parts, origin, authors and licence.

The root has the fields that a DOI needs (DataCite's mandatory ones): identifier, creator, title (`name`), publisher,
date of publication and type. Authors and licence are those of the program (CITATION.cff) unless others are given.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from common.plain_json import object_of
from testbed.campaigns.file import CampaignError
from testbed.campaigns.plan import CampaignPlan
from testbed.paths import root

METADATA = "ro-crate-metadata.json"
_PROGRAM_ID = "#fadelab"
_SPDX = "https://spdx.org/licenses/"
_ORCID = re.compile(r"(.+?)\s*<(?:https://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])>")
_DOI = re.compile(r"(?:https://doi\.org/|doi:)?(10\.\d{4,9}/\S+)")


@dataclass(frozen=True, slots=True)
class Publication:
    """What a bundle says of itself beside its content."""

    #: names, each perhaps with an ORCID: "Ada Lovelace <0000-0001-2345-6789>"; none: those of the program
    authors: Sequence[str] = ()
    #: an SPDX identifier, as in CC-BY-4.0; empty: that of the program
    licence: str = ""
    #: empty: it has none yet
    doi: str = ""
    publisher: str = ""


def metadata(
    plan: CampaignPlan,
    files: Mapping[str, int],
    *,
    publication: Publication,
    ended: str,
    versions: Sequence[str],
    sources: Sequence[str],
) -> str:
    """Return `ro-crate-metadata.json`.

    `files`: sizes by path in the bundle; `ended`: when the last run began (ISO 8601), the day of publication;
    `versions`, `sources`: of fadelab, that made the runs. Raises CampaignError for an author or a DOI of another form.
    """
    from rocrate.model import ContextEntity, DataEntity
    from rocrate.rocrate import ROCrate

    cited = yaml.safe_load((root() / "CITATION.cff").read_text())
    crate = ROCrate(version="1.1")
    doi = _doi(publication.doi)
    authors = [_author(each) for each in publication.authors or [author["name"] for author in cited["authors"]]]
    licence = _spdx(publication.licence or str(cited["license"]))
    own = _spdx(str(cited["license"]))
    title = f"fadelab campaign {plan.campaign.name}"
    for entity in (*authors, licence, *([own] if own != licence else [])):
        crate.add(ContextEntity(crate, entity["@id"], {key: value for key, value in entity.items() if key != "@id"}))
    program = {
        "@type": "SoftwareApplication",
        "name": "fadelab",
        "version": ", ".join(versions),
        "identifier": [f"urn:sha256:{digest}" for digest in sources if digest],
        "license": {"@id": own["@id"]},
    }
    crate.add(ContextEntity(crate, _PROGRAM_ID, program))
    folder = f"{plan.campaign.name}/"
    action = {
        "@type": "CreateAction",
        "name": f"the runs of {plan.campaign.name}",
        "endTime": ended,
        "instrument": {"@id": _PROGRAM_ID},
        "object": {"@id": f"{folder}plan.json"},
        "result": {"@id": folder},
    }
    crate.add(ContextEntity(crate, "#runs", action))
    beside = {name: _file(name, size) for name, size in files.items() if not name.startswith(f"{folder}runs/")}
    parts: dict[str, dict[str, Any]] = {
        folder: {
            "@type": "Dataset",
            "name": title,
            "identifier": f"urn:sha256:{plan.sha256}",
            "hasPart": [
                {"@id": each} for each in (*(name for name in beside if name.startswith(folder)), f"{folder}runs/")
            ],
        },
        f"{folder}runs/": {"@type": "Dataset", "name": "a folder per run: scenario, seed, versions, records, result"},
        **beside,
    }
    for name, about in parts.items():
        crate.add(DataEntity(crate, name, properties=about))
    dataset = crate.root_dataset
    dataset["name"] = title
    dataset["description"] = plan.campaign.description or f"All runs, results and the report of {title}"
    dataset["datePublished"] = ended[:10]
    dataset["identifier"] = doi or f"urn:sha256:{plan.sha256}"
    dataset["author"] = dataset["creator"] = [{"@id": each["@id"]} for each in authors]
    dataset["license"] = {"@id": licence["@id"]}
    dataset["publisher"] = publication.publisher or ", ".join(each["name"] for each in authors)
    dataset["keywords"] = list(cited["keywords"])
    dataset["mentions"] = {"@id": "#runs"}
    if doi:
        dataset["cite-as"] = doi
    return json.dumps(crate.metadata.generate(), indent=1, ensure_ascii=False) + "\n"


def published(text: str) -> Publication:
    """Return the publication that an `ro-crate-metadata.json` states.

    Raises ValueError, LookupError, TypeError or AttributeError for a file of another form.
    """
    graph = {each["@id"]: each for each in object_of(text)["@graph"]}
    dataset = graph["./"]
    authors = [(each["@id"], graph[each["@id"]]["name"]) for each in dataset["author"]]
    return Publication(
        tuple(f"{name} <{key}>" if key.startswith("https://orcid.org/") else name for key, name in authors),
        dataset["license"]["@id"].removeprefix(_SPDX),
        dataset.get("cite-as", ""),
        dataset["publisher"],
    )


def _author(words: str) -> dict[str, Any]:
    if (found := _ORCID.fullmatch(words)) is not None:
        return {"@id": f"https://orcid.org/{found[2]}", "@type": "Person", "name": found[1]}
    if not words.strip() or set("<>") & set(words):
        raise CampaignError(
            f"--author {words!r}: is neither NAME nor 'NAME <ORCID>', as in 'Ada <0000-0001-2345-6789>'"
        )
    kind = "Organization" if words.startswith("The ") else "Person"
    return {"@id": f"#{re.sub(r'[^A-Za-z0-9]+', '-', words).strip('-').lower()}", "@type": kind, "name": words}


def _doi(words: str) -> str:
    """Return a DOI as an address. Raises CampaignError."""
    if not words:
        return ""
    if (found := _DOI.fullmatch(words)) is None:
        raise CampaignError(f"--doi {words}: is no DOI, as in 10.5281/zenodo.1234567")
    return f"https://doi.org/{found[1]}"


def _spdx(identifier: str) -> dict[str, Any]:
    return {"@id": f"{_SPDX}{identifier}", "@type": "CreativeWork", "name": identifier}


_MEDIA = {
    "csv": "text/csv",
    "gz": "application/gzip",
    "html": "text/html",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "md": "text/markdown",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "yaml": "application/yaml",
}


def _file(name: str, size: int) -> dict[str, Any]:
    about: dict[str, Any] = {"@type": "File", "contentSize": str(size)}
    if (media := _MEDIA.get(name.rpartition(".")[2])) is not None:
        about["encodingFormat"] = media
    return about
