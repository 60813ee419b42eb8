"""Captures are read as they were written."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.pcapng import CapturedFrame, CaptureError, Direction, PcapngWriter, read_capture

FRAMES = [
    CapturedFrame(1_700_000_000_123_456_789, "slacp", b"12345", Direction.OUTBOUND, "up: packet 7", False),
    CapturedFrame(1_700_000_000_123_456_790, "none", b"", Direction.INBOUND, "", True),
    CapturedFrame(
        1_700_000_001_000_000_000, "slacp", bytes(400), Direction.INBOUND, "\N{GREEK SMALL LETTER MU}", False
    ),
]


def written(path: Path) -> Path:
    with PcapngWriter(path, application="test") as writer:
        numbers: dict[str, int] = {}
        for frame in FRAMES:
            if frame.interface not in numbers:
                numbers[frame.interface] = writer.interface(147, name=frame.interface, description="a radio")
            writer.packet(
                numbers[frame.interface],
                frame.time_ns,
                frame.octets,
                direction=frame.direction,
                comment=frame.comment,
                crc_error=frame.crc_error,
                dropped=3,
            )
    return path


def test_frames_are_those_that_were_written(tmp_path: Path) -> None:
    assert list(read_capture(written(tmp_path / "a.pcapng"))) == FRAMES


@given(cut=st.integers(1, 1000))
def test_a_capture_that_was_cut_short_has_its_first_frames(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = written(tmp_path_factory.mktemp("cut") / "a.pcapng")
    path.write_bytes(path.read_bytes()[:-cut] or b"\n")
    try:
        found = list(read_capture(path))
    except CaptureError as error:
        assert len(path.read_bytes()) < 12, str(error)  # noqa: PT017
        return
    assert found == FRAMES[: len(found)]
    assert len(found) < len(FRAMES)


@given(at=st.integers(0, 1000), octet=st.integers(0, 255))
def test_a_damaged_capture_has_no_other_error(at: int, octet: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = written(tmp_path_factory.mktemp("damaged") / "a.pcapng")
    data = bytearray(path.read_bytes())
    data[at % len(data)] = octet
    path.write_bytes(data)
    try:
        assert len(list(read_capture(path))) <= len(FRAMES)
    except CaptureError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("data", "complaint"), [(None, "cannot be read"), (b"", "is empty"), (bytes(40), "is no capture of fadelab")]
)
def test_what_is_no_capture_is_one_line(data: bytes | None, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(CaptureError, match=complaint):
        list(read_capture(path))
