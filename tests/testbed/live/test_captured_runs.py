"""Captures of real runs, as tshark reads them: both stations' frames against each other and the run's counters."""

import functools
import itertools
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.sides import SIDES, Side, other
from testbed.live.capture import capture_path
from testbed.results.summary import Summary
from tests.harness.live_runs import ROOT, folder_of, run_schemes
from tests.harness.scenarios import scenario
from tests.harness.steered import Drive
from tests.harness.tshark import Row, needs_tshark, rows
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, needs_tshark, pytest.mark.light]

SCHEMES = ("none", "slacp")
#: display filter: sent by the station whose capture it is
OUTBOUND = "frame.packet_flags_direction == 2"


@pytest.fixture(scope="module")
def transfers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Summary]:
    """The same transfer without and with SLACP, bits flipped on the way there and frames erased on the way back."""
    channel = {
        "rate_bps": 4_000_000,
        "delay_ms": 15,
        "errors": {"model": "exponential", "mean_spacing_bytes": 30_000},
        "down": {"per": 0.05},
    }
    work = [{"kind": "bulk", "bytes": 300_000}]
    return run_schemes(SCHEMES, tmp_path_factory.mktemp("runs"), seed=4, capture=True, channel=channel, workloads=work)


@pytest.fixture(params=SCHEMES)
def transfer(request: pytest.FixtureRequest, transfers: dict[str, Summary]) -> Summary:
    return transfers[request.param]


def frames(run: Summary, side: Side) -> list[Row]:
    """Every frame in the capture of the station that transmits on `side`, with what both ends can compare."""
    return read(capture_path(folder_of(run), side))


@functools.cache
def read(path: Path) -> list[Row]:
    flags = ("frame.packet_flags_direction", "frame.packet_flags_crc_error")
    found = rows(path, "frame.comment", "slacp.flags.retransmission", "slacp.type", "frame.time_epoch", *flags)
    # as text, which keeps the nanoseconds
    times = [row["frame.time_epoch"][0] for row in found]
    assert times == sorted(times)
    return found


def sent(found: Sequence[Row]) -> list[Row]:
    return [row for row in found if int(row["frame.packet_flags_direction"][0], 0) == 2]


def heard(found: Sequence[Row]) -> list[Row]:
    return [row for row in found if int(row["frame.packet_flags_direction"][0], 0) == 1]


def test_a_capture_has_the_frames_the_result_counts(transfer: Summary) -> None:
    for side in SIDES:
        link = transfer.link[side]
        out = sent(frames(transfer, side))
        assert len(out) == link.frames > 50
        assert sum(" by the channel" in row["frame.comment"][0] for row in out) == link.corruption_losses > 0
        if transfer.scheme == "slacp":
            resent = [row for row in out if row.get("slacp.flags.retransmission") == ["1"]]
            assert all("up: retransmission of packet" in row["frame.comment"][0] for row in resent if side == "up")
            assert len(resent) == link.retransmissions > 0
            assert sum(row["slacp.type"] == ["2"] for row in out) == link.fec_frames
    assert transfer.intact


def test_what_one_station_sent_the_other_heard(transfer: Summary) -> None:
    for side in SIDES:
        out = [row["frame.comment"][0] for row in sent(frames(transfer, side))]
        arrived = heard(frames(transfer, other(side)))
        # those at the end were still under way
        come = [words for words in out if "erased" not in words][: len(arrived)]
        assert len(arrived) > 50
        for words, row in zip(come, arrived, strict=True):
            damaged = int(row["frame.packet_flags_crc_error"][0], 0) == 1
            assert damaged == ("damaged by the channel" in words)
            assert damaged or row["frame.comment"] == [words]


def test_tshark_finds_tcp_and_nothing_malformed(transfer: Summary) -> None:
    for side in SIDES:
        path = capture_path(folder_of(transfer), side)
        assert rows(path, "frame.number", where="_ws.malformed || slacp.packet.bad || bareframe.packet.bad") == []
        assert len(rows(path, "frame.number", where="tcp.dstport == 5001 && tcp.len > 0")) > 150
    # what h1's kernel sent twice went twice over the link, and the link's own repeats are not taken for that
    resent = rows(capture_path(folder_of(transfer), "up"), "frame.number", where="tcp.analysis.retransmission")
    assert len(resent) <= transfer.retransmissions


def test_a_capture_follows_a_change_of_scheme(tmp_path: Path) -> None:
    work = [{"kind": "bulk", "duration_s": 60}]
    drive = Drive(scenario(capture=True, channel={"rate_bps": 4_000_000, "delay_ms": 10}, workloads=work), tmp_path)
    try:
        for slacp in (False, True):
            drive.grows(drive.sink.received, 100_000)
            drive.steering.set("slacp", slacp)
            scheme = "slacp" if slacp else "none"
            drive.until(functools.partial(lambda wanted: drive.sink.links()[-1].scheme == wanted, scheme))
        drive.grows(drive.sink.received, 100_000)
    finally:
        run = drive.end()
    for side in SIDES:
        path = capture_path(folder_of(run), side)
        found = rows(path, "frame.interface_name", "slacp.check.status", "bareframe.crc.status", where=OUTBOUND)
        assert len(found) == run.link[side].frames
        by_scheme = [row["frame.interface_name"][0] for row in found]
        assert [scheme for scheme, _ in itertools.groupby(by_scheme)] == ["slacp", "none", "slacp"]
        # what was sent is whole, by the checks of its own scheme
        assert all(
            ("slacp.check.status" in row) == (scheme == "slacp") for scheme, row in zip(by_scheme, found, strict=True)
        )
        assert rows(path, "frame.number", where=f"{OUTBOUND} && _ws.expert.severity == error") == []


def test_the_documents_commands_have_answers(transfers: dict[str, Summary]) -> None:
    path = capture_path(folder_of(transfers["slacp"]), "up")
    lost = next(row["slacp.seq"][0] for row in rows(path, "slacp.seq", where='frame.comment contains "retransmission"'))
    commands = re.findall(r"```sh\n(tshark .*?)```", (ROOT / "docs" / "capture.md").read_text(), re.DOTALL)
    # the number first: a path may have it too
    asked = [re.sub(r"\b81\b", lost, command) for command in commands]
    one, every_second = (command.replace("air-st.pcapng", shlex.quote(str(path))) for command in asked)
    story = subprocess.run(one, shell=True, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"retransmission of packet {lost}" in story
    table = subprocess.run(every_second, shell=True, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    counts = [int(field) for line in table.splitlines() if "<>" in line for field in line.split("|")[2:-1:2]]
    out = sent(frames(transfers["slacp"], "up"))
    assert sum(counts[0::4]) == sum(" by the channel" in row["frame.comment"][0] for row in out)
