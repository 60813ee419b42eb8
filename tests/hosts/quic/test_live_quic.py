"""QUIC over UDP sockets of real hosts, and Wireshark's reading of it."""

from pathlib import Path

import pytest

from testbed.running import run_once
from tests.harness.live_runs import folder_of, tell_lateness
from tests.harness.scenarios import scenario
from tests.harness.tshark import needs_tshark, rows
from tests.hosts.harness import needs_network

pytestmark = needs_network

SIZE = 200_000
STREAMS = 3


@needs_tshark
@pytest.mark.light
def test_wireshark_reads_every_octet_of_the_streams_with_the_key_log(tmp_path: Path) -> None:
    work = {"kind": "quic", "bytes": SIZE, "streams": STREAMS, "keylog": True, "qlog": True}
    made = scenario(link={"scheme": "none"}, channel={"per": 0.02}, workloads=[work], capture=True)
    summary = run_once(made, tmp_path, lambda progress: None)
    tell_lateness(summary)
    assert summary.finished
    assert summary.intact
    folder = folder_of(summary)
    keys = ("-o", f"tls.keylog_file:{folder / 'keylog-quic.txt'}")
    fields = ("quic.stream.stream_id", "quic.stream.offset", "quic.stream.length", "quic.stream.fin")
    found = rows(folder / "air-bas.pcapng", *fields, where="quic.stream.stream_id && udp.dstport == 5001", more=keys)
    octets: dict[str, set[int]] = {}
    for row in found:
        numbers, lengths = row["quic.stream.stream_id"], row["quic.stream.length"]
        # the first frame of a stream has no offset field (RFC 9000 section 19.8)
        offsets = row.get("quic.stream.offset", ["0"] * len(numbers))
        for number, offset, length in zip(numbers, offsets, lengths, strict=True):
            begin = int(offset)
            octets.setdefault(number, set()).update(range(begin, begin + int(length)))
    assert octets.keys() == {"0", "4", "8"}
    assert sum(len(found) for found in octets.values()) == SIZE
    # without the keys there are no streams to see
    assert rows(folder / "air-bas.pcapng", *fields, where="quic.stream.stream_id") == []
    assert {path.name for path in folder.glob("*.sqlog")} == {"qlog-quic-h1.sqlog", "qlog-quic-h2.sqlog"}


@pytest.mark.light
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_live_transfer_is_complete_and_intact(tmp_path: Path, direction: str) -> None:
    work = {"kind": "quic", "duration_s": 2, "direction": direction, "congestion_control": "reno"}
    made = scenario(link={"scheme": "slacp", "fast": {"protocols": []}}, channel={"per": 0.05}, workloads=[work])
    summary = run_once(made, tmp_path, lambda progress: None)
    tell_lateness(summary)
    [flow] = summary.flows
    assert flow.finished
    assert flow.intact
    assert flow.bytes > 100_000
    assert not list(folder_of(summary).glob("*log-*"))
