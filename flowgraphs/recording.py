"""Recordings of received IQ samples with metadata, in SigMF, and the frames in them.

Read first: the SigMF specification (https://sigmf.org), "Global", "Captures" and "Annotations Array"; docs/radios.md.

A recording is two files, TARGET.sigmf-data (the samples, as GNU Radio's file sink writes them) and TARGET.sigmf-meta.
The caller writes the samples first; `finish` writes the metadata. Names of our own have the prefix "fadelab":

    global       fadelab:phy, fadelab:phy_options   the PHY of its frames, as arguments of `make_phy`
                 fadelab:gaps                       number of gaps in the samples, between the radio and the file
    annotations  fadelab:sequence, crc_ok, snr_db, evm_db, cfo_hz, rssi_db   of a frame, as in `phy.Received`

Rules kept: the metadata are written atomically, with the SHA-512 of the data. So an interrupted recording has no
metadata, or metadata that do not match; both are errors when it is read. The sigmf package validates the metadata.
Every fault of a recording is a RecordingError that names the file.

Left out: several channels, archives, and data in files of other formats (SigMF's "non-conforming datasets").
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from warnings import catch_warnings

import numpy as np
import sigmf
from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sigmf.validate import validate

from channel.replay import Outcome
from channel.trace import TraceWriter
from common.plain_json import LONGEST, object_of
from flowgraphs.phy import Received, Samples, SequenceGaps

_DATA, _META = ".sigmf-data", ".sigmf-meta"
_RECORDER = "fadelab"
_EXTENSION = {"name": "fadelab", "version": "1.0.0", "optional": True}
#: bytes of a sample of the types read here
_SAMPLE_BYTES = {"cf32_le": 8, "ci16_le": 4}
#: UHD's full scale of sc16
FULL_SCALE = 32_767
_BLOCK = 1 << 16
#: of a sample rate and a carrier
_MOST_HZ = 1e12

#: keys of ours, which SigMF's schema does not know, and what each must be
_OURS: Final = (
    ("fadelab:phy", str, "text"),
    ("fadelab:phy_options", dict, "mapping"),
    ("fadelab:gaps", int, "whole number"),
)


class RecordingError(RuntimeError):
    """A recording that cannot be read or written; one line."""


def data_path(target: Path) -> Path:
    """Return the path of the samples of `target`, which may have the suffix of either file."""
    return _base(target).with_name(_base(target).name + _DATA)


def meta_path(target: Path) -> Path:
    """Return the path of the metadata of `target`."""
    return _base(target).with_name(_base(target).name + _META)


def finish(
    target: Path,
    *,
    rate_sps: float,
    frequency_hz: float,
    started: datetime,
    hardware: str,
    description: str = "",
    gaps: int = 0,
    phy: str | None = None,
    phy_options: Mapping[str, Any] | None = None,
    frames: Iterable[Received] = (),
    datatype: str = "cf32_le",
) -> Path:
    """Write the metadata of the samples at `data_path(target)`; return their path.

    An incomplete last sample is cut off. `frames` are the decoded frames. Raises RecordingError.
    """
    data, meta = data_path(target), meta_path(target)
    known = {
        "core:datatype": datatype,
        "core:version": sigmf.__specification__,
        "core:sample_rate": rate_sps,
        "core:hw": hardware,
        "core:recorder": _RECORDER,
        "core:extensions": [_EXTENSION],
        "fadelab:gaps": gaps,
    }
    if description:
        known["core:description"] = description
    if phy is not None:
        known |= {"fadelab:phy": phy, "fadelab:phy_options": dict(phy_options or {})}
    capture = {
        "core:sample_start": 0,
        "core:frequency": frequency_hz,
        "core:datetime": started.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    annotations = sorted(map(_annotation, frames), key=lambda annotation: annotation["core:sample_start"])
    try:
        whole = data.stat().st_size // _SAMPLE_BYTES[datatype] * _SAMPLE_BYTES[datatype]
        os.truncate(data, whole)
        known["core:sha512"] = _sha512(data)
        metadata = {"global": known, "captures": [capture], "annotations": annotations}
        validate(metadata)
        beside = meta.with_name(f".{meta.name}.{os.getpid()}")
        try:
            beside.write_text(json.dumps(metadata, indent=4) + "\n")
            beside.replace(meta)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise RecordingError(f"{error.filename or data}: {error.strerror}; the recording has no metadata") from None
    except ValidationError as error:
        raise RecordingError(f"{meta}: {error.message}; the recording has no metadata") from None
    return meta


@dataclass(frozen=True, slots=True)
class Recording:
    """An open recording; missing metadata are None or empty."""

    path: Path
    datatype: str
    rate_sps: float
    frequency_hz: float | None
    started: datetime | None
    hardware: str
    description: str
    gaps: int
    phy: str | None
    phy_options: Mapping[str, Any]
    annotations: tuple[Mapping[str, Any], ...]
    _stored: NDArray[Any]

    @classmethod
    def read(cls, target: Path) -> "Recording":
        """Open a recording, by its name or that of either file; raise RecordingError if it is not complete."""
        data, meta = data_path(target), meta_path(target)
        metadata = _read_metadata(data, meta)
        known, capture = metadata["global"], metadata["captures"][0] if metadata["captures"] else {}
        datatype = known["core:datatype"]
        if datatype not in _SAMPLE_BYTES:
            raise RecordingError(f"{meta}: samples are {datatype}; fadelab reads {' and '.join(_SAMPLE_BYTES)}")
        if known.get("core:num_channels", 1) != 1 or len(metadata["captures"]) > 1 or "core:dataset" in known:
            raise RecordingError(
                f"{meta}: fadelab reads recordings of one channel and one capture in a .sigmf-data file"
            )
        if "core:sample_rate" not in known:
            raise RecordingError(f"{meta}: does not say its sample rate; add core:sample_rate")
        carrier_hz = capture.get("core:frequency")
        if not 1 <= known["core:sample_rate"] <= _MOST_HZ or not (carrier_hz is None or abs(carrier_hz) <= _MOST_HZ):
            raise RecordingError(
                f"{meta}: its sample rate does not lie between 1 and 1e12 sps, or its carrier is beyond"
            )
        for key, kind, what in _OURS:
            if not isinstance(known.get(key, kind()), kind):
                raise RecordingError(f"{meta}: {key} is no {what}")
        try:
            if known.get("core:sha512") not in (None, _sha512(data)):
                raise RecordingError(f"{data}: does not match its metadata; it was cut short or written over")
            stored = _map(data, datatype)
        except OSError as error:
            raise RecordingError(f"{data}: {error.strerror}; the recording's samples are missing") from None
        return cls(
            path=data,
            datatype=datatype,
            rate_sps=known["core:sample_rate"],
            frequency_hz=carrier_hz,
            started=_started(meta, capture.get("core:datetime")),
            hardware=known.get("core:hw", ""),
            description=known.get("core:description", ""),
            gaps=known.get("fadelab:gaps", 0),
            phy=known.get("fadelab:phy"),
            phy_options=known.get("fadelab:phy_options", {}),
            annotations=tuple(metadata["annotations"]),
            _stored=stored,
        )

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def duration_s(self) -> float:
        """The duration of the recording."""
        return len(self) / self.rate_sps

    def samples(self, start: int = 0, stop: int | None = None) -> Samples:
        """Return samples as complex64, full scale 1; those of cf32_le are read from the file on access."""
        part = self._stored[start:stop]
        if self.datatype == "cf32_le":
            return part
        return (part.astype(np.float32) / FULL_SCALE).view(np.complex64)[:, 0]

    def blocks(self, size: int = _BLOCK) -> Iterator[Samples]:
        """Yield the samples in blocks."""
        for start in range(0, len(self), size):
            yield self.samples(start, start + size)


def write_trace(path: Path, frames: Iterable[Received], *, rate_sps: float, link: str, producer: str) -> None:
    """Write the channel trace of the received frames; times count from the first sample.

    Missed frames, known by the gaps in the sequence, are written at equal distances between their neighbours, with the
    size of the frame before them. Frames missed before the first and after the last one are unknown.
    """
    gaps = SequenceGaps()
    last_at = last_nbytes = 0
    with TraceWriter(path, link=link, producer=producer) as trace:
        for frame in sorted(frames, key=lambda frame: frame.sample):
            at = round(frame.sample * 1e9 / rate_sps)
            missed = gaps.handle(frame.sequence)
            for number in range(1, missed + 1):
                trace.write(last_at + (at - last_at) * number // (missed + 1), last_nbytes, Outcome.MISSED)
            outcome = Outcome.OK if frame.crc_ok else Outcome.PAYLOAD
            trace.write(at, len(frame.payload), outcome, frame.snr_db, frame.cfo_hz)
            last_at, last_nbytes = at, len(frame.payload)


def _base(target: Path) -> Path:
    return target.with_suffix("") if target.suffix in (_DATA, _META) else target


def _annotation(frame: Received) -> dict[str, Any]:
    figures = {name: getattr(frame, name) for name in ("sequence", "crc_ok", "snr_db", "evm_db", "cfo_hz", "rssi_db")}
    return {
        "core:sample_start": frame.sample,
        "core:sample_count": frame.nsamples,
        "core:label": f"{frame.sequence}" if frame.crc_ok else f"{frame.sequence} damaged",
        **{f"fadelab:{name}": figure for name, figure in figures.items() if figure is not None},
    }


def _read_metadata(data: Path, meta: Path) -> dict[str, Any]:
    try:
        metadata = object_of(meta.read_text(), LONGEST)
        with catch_warnings(action="ignore", category=DeprecationWarning):
            # others' extensions may be undeclared
            validate(metadata)
    except FileNotFoundError:
        why = (
            "has no metadata; its recording was not finished" if data.exists() else "no such recording; check the path"
        )
        raise RecordingError(f"{data if data.exists() else _base(meta)}: {why}") from None
    except OSError as error:
        raise RecordingError(f"{meta}: {error.strerror}; check the path") from None
    except (ValueError, ValidationError) as error:
        why = getattr(error, "message", str(error))
        raise RecordingError(f"{meta}: no SigMF metadata ({why})") from None
    return metadata


def _started(meta: Path, text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError as error:
        raise RecordingError(f"{meta}: core:datetime is no time ({error})") from None


def _map(data: Path, datatype: str) -> NDArray[Any]:
    """Return the file as an array of its samples: complex64, or int16 of shape (samples, 2)."""
    shape = (-1,) if datatype == "cf32_le" else (-1, 2)
    numpy_type = "<c8" if datatype == "cf32_le" else "<i2"
    if not data.stat().st_size:
        return np.empty(0, numpy_type).reshape(0, *shape[1:])
    if data.stat().st_size % _SAMPLE_BYTES[datatype]:
        raise RecordingError(f"{data}: does not end with a whole sample; it was cut short")
    return np.asarray(np.memmap(data, numpy_type, "r")).reshape(shape)


def _sha512(data: Path) -> str:
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha512").hexdigest()
