"""Capture files, as tshark and capinfos read them."""

import platform
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from telemetry.pcapng import CaptureError, Direction, PcapngWriter
from tests.harness.processes import files_of_at_most, saying
from tests.harness.tshark import column, needs_tshark, rows

pytestmark = [needs_tshark, pytest.mark.slow]

USER0, USER1 = 147, 148
SECOND = 1_000_000_000
#: a time whose nanoseconds matter
AT = 1_790_000_000_123_456_789


writer = partial(PcapngWriter, application="a test")


def write_zeros(made: PcapngWriter, radio: int, count: int) -> None:
    for number in range(count):
        made.packet(radio, number, bytes(1000), direction=Direction.INBOUND, comment=str(number))


def capinfos(path: Path) -> str:
    return subprocess.run(["capinfos", path], capture_output=True, text=True, check=True).stdout


def test_everything_said_of_a_frame_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "air.pcapng"
    with writer(path) as made:
        first = made.interface(USER0, name="slacp", description="radio of ST")
        second = made.interface(USER1, name="none", description="the same radio")
        made.packet(first, AT, b"12345", direction=Direction.OUTBOUND, comment="up: süß × 3", dropped=7)
        made.packet(second, AT + 1, b"123", direction=Direction.INBOUND, comment="down", crc_error=True)
    fields = ("interface_name", "interface_description", "encap_type", "time_epoch", "len", "comment", "drop_count")
    flags = ("packet_flags_direction", "packet_flags_fcs_length", "packet_flags_crc_error")
    found = rows(path, *(f"frame.{name}" for name in (*fields, *flags)))
    assert [[row.get(f"frame.{name}") for name in fields] for row in found] == [
        [["slacp"], ["radio of ST"], ["45"], ["1790000000.123456789"], ["5"], ["up: süß × 3"], ["7"]],
        [["none"], ["the same radio"], ["46"], ["1790000000.123456790"], ["3"], ["down"], None],
    ]
    assert [[int(row[f"frame.{name}"][0], 0) for name in flags] for row in found] == [[2, 4, 0], [1, 4, 1]]


def test_the_file_says_who_wrote_it(tmp_path: Path) -> None:
    with writer(tmp_path / "air.pcapng") as made:
        made.interface(USER0, name="slacp", description="radio")
    shown = capinfos(tmp_path / "air.pcapng")
    machine = platform.uname()
    said = dict(line.strip().split(": ", 1) for line in shown.splitlines() if ": " in line)
    assert said["Capture hardware"].strip() == machine.machine
    assert said["Capture oper-sys"].strip() == f"{machine.system} {machine.release}"
    assert said["Capture application"].strip() == "a test"
    assert said["Number of packets"].strip() == "0"
    assert "Time resolution = 0x09" in shown


def test_frames_of_any_length_keep_their_octets(tmp_path: Path) -> None:
    path = tmp_path / "air.pcapng"
    frames = [bytes(range(length)) for length in (*range(1, 12), 255)]
    with writer(path) as made:
        radio = made.interface(USER0, name="slacp", description="radio")
        for number, frame in enumerate(frames):
            made.packet(radio, AT + number, frame, direction=Direction.INBOUND, comment="x" * number)
    assert column(path, "frame.len") == [str(len(frame)) for frame in frames]
    # nothing that reads this file knows the frames: tshark shows them as they are
    shown = rows(path, "data.data", "slacp.octets")
    assert [bytes.fromhex(next(iter(row.values()))[0].replace(":", "")) for row in shown] == frames


def test_frames_are_in_the_file_a_second_later(tmp_path: Path) -> None:
    path = tmp_path / "air.pcapng"
    with writer(path) as made:
        radio = made.interface(USER0, name="slacp", description="radio")
        for number in range(5):
            at = AT + number * SECOND // 2
            made.packet(radio, at, b"frame", direction=Direction.OUTBOUND, comment=str(number))
        # 0 is written at once, 1 s later 1 and 2, then 3 and 4
        assert column(path, "frame.comment") == ["0", "1", "2", "3", "4"]
        made.packet(radio, AT + 2 * SECOND + 1, b"frame", direction=Direction.OUTBOUND, comment="5")
        assert len(column(path, "frame.comment")) == 5
    assert len(column(path, "frame.comment")) == 6


_KILLED = """
import sys, time
from pathlib import Path
from telemetry.pcapng import Direction, PcapngWriter
made = PcapngWriter(Path(sys.argv[1]), application="a test")
radio = made.interface(147, name="slacp", description="radio")
for number in range(500):
    made.packet(radio, number, bytes(1000), direction=Direction.INBOUND, comment=str(number))
print("written", flush=True)
time.sleep(60)
"""


def test_a_killed_process_leaves_whole_frames(tmp_path: Path) -> None:
    path = tmp_path / "air.pcapng"
    with saying(_KILLED, path) as (process, said):
        assert said == "written"
    assert process.returncode == -signal.SIGKILL
    found = column(path, "frame.comment")
    assert found == [str(number) for number in range(len(found))]
    # 64 KiB at a time
    assert 500 - 66 < len(found) < 500


def test_full_disk_ends_the_capture_at_a_whole_frame(tmp_path: Path) -> None:
    path = tmp_path / "air.pcapng"
    made = writer(path)
    radio = made.interface(USER0, name="slacp", description="radio")
    too_large = pytest.raises(CaptureError, match=r"air\.pcapng: the capture cannot go on: File too large")
    with files_of_at_most(150_000), too_large as caught:
        write_zeros(made, radio, 500)
    made.close()
    assert "\n" not in str(caught.value)
    found = column(path, "frame.comment")
    assert found == [str(number) for number in range(len(found))]
    assert len(found) > 100


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"no/air\.pcapng: cannot write a capture there: No such file or directory"):
        writer(tmp_path / "no" / "air.pcapng")


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    made = writer(tmp_path / "air.pcapng")
    made.close()
    size = (tmp_path / "air.pcapng").stat().st_size
    made.close()
    assert (tmp_path / "air.pcapng").stat().st_size == size > 0
