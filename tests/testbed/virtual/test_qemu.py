"""Runs in virtual time whose TCP is a BPF program: in QEMU, the same files to the byte, and nothing else there."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import FadelabError
from testbed.results.summary import Summary
from testbed.running import check_tier, run_once
from testbed.scenario.resolver import resolve
from testbed.virtual import machine, qemu, stock_kernel
from testbed.virtual.kinds import QEMU, USER_MODE, kind_of
from testbed.virtual.memory_files import Archive
from tests.harness.live_runs import folder_of
from tests.harness.repeats import contents
from tests.harness.scenarios import scenario
from tests.testbed.virtual.conftest import needs_qemu

#: ELN is heard of losses on the air
ELN: dict[str, Any] = {
    "tcp": "eln",
    # the first frames arrive
    "seed": 3,
    "channel": {"per": 0.1},
    "link": {"scheme": "none", "eln": "ends"},
    "workloads": [{"kind": "bulk", "duration_s": 0.7}],
}


def made(place: Path) -> Summary:
    return run_once(scenario(clock="virtual", **ELN), place, lambda progress: None)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return made(tmp_path_factory.mktemp("runs"))


class TestInAMachine:
    pytestmark = needs_qemu

    def test_tcp_is_the_bpf_program_of_debians_kernel(self, run: Summary) -> None:
        manifest = json.loads((folder_of(run) / "manifest.json").read_text())
        assert manifest["clock"] == "virtual"
        assert manifest["machine"]["kind"] == "qemu"
        kernel = stock_kernel.fetched()
        assert kernel is not None
        assert manifest["versions"]["kernel"] == kernel.release == manifest["machine"]["release"]

    def test_losses_on_the_air_are_heard(self, run: Summary) -> None:
        assert run.intact
        assert run.confusion is not None
        heard = run.confusion["eln"]["corruption"]
        assert heard["corruption"] > heard["congestion"] + heard["late"]

    def test_runs_of_one_seed_agree_to_the_byte(self, run: Summary, tmp_path: Path) -> None:
        first, second = (contents(folder_of(each)) for each in (run, made(tmp_path / "a-name-of-another-length")))
        assert first == second
        assert {"tcp.parquet", "trace-up.parquet"} <= first.keys()


@pytest.mark.parametrize(("tcp", "kind"), [("cubic", USER_MODE), ("user:modern", USER_MODE), ("eln", QEMU)])
def test_qemu_is_for_tcp_that_is_a_bpf_program(tcp: str, kind: object) -> None:
    assert kind_of(resolve(scenario(clock="virtual", tcp=tcp))) is kind
    assert kind_of(resolve(scenario(clock="virtual", tcp="cubic", tcp_h2=tcp))) is kind


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tier": "vusrp"}, r"^TCP eln has no virtual clock on tier vusrp: its machine has no radios"),
        (
            {"workloads": [{"kind": "program", "tool": "iperf3"}]},
            r"^TCP eln has no virtual clock with workload program",
        ),
    ],
)
def test_what_the_machine_does_not_have_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FadelabError, match=said):
        check_tier(scenario(clock="virtual", **{**ELN, **changes}))


def test_missing_qemu_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FadelabError, match=r"^TCP that needs BPF .*: apt-get install .* qemu-system-x86$"):
        check_tier(scenario(clock="virtual", **ELN))


def test_missing_kernel_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(qemu, "version", lambda: "7.2")
    monkeypatch.setenv("FADELAB_ROOT", str(tmp_path))
    with pytest.raises(FadelabError, match=r"^the kernel of QEMU's machine is not there: .* fetches it$"):
        check_tier(scenario(clock="virtual", **ELN))


def entries(octets: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each file of a cpio archive, by name."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert octets[at : at + 6] == b"070701"
        words = [int(octets[at + 6 + 8 * index : at + 14 + 8 * index], 16) for index in range(13)]
        mode, size, name_size = words[1], words[6], words[11]
        name = octets[at + 110 : at + 110 + name_size - 1].decode()
        data = -(-(at + 110 + name_size) // 4) * 4
        at = -(-(data + size) // 4) * 4
        if name == "TRAILER!!!":
            assert at == len(octets)
            return found
        assert name not in found
        found[name] = (mode, octets[data : data + size])


def test_archive_has_each_file_once_below_its_folders() -> None:
    file = io.BytesIO()
    archive = Archive(file)
    archive.file("/a/b/one", b"12345", program=True)
    archive.file("a/two", b"")
    archive.file("a/two", b"a second time")
    archive.link("a/link", "two")
    # names are octets
    archive.file("a/läb", b"3")
    archive.end()
    found = entries(file.getvalue())
    assert list(found) == ["a", "a/b", "a/b/one", "a/two", "a/link", "a/läb"]
    assert found["a/b/one"] == (0o100755, b"12345")
    assert found["a/two"] == (0o100644, b"")
    assert found["a/link"] == (0o120777, b"two")


def test_files_of_the_machine_stay_in_the_orders_folders(tmp_path: Path) -> None:
    place, kept = tmp_path / "place", tmp_path / "kept"
    place.mkdir()
    names = ("run/machine/status", "run/kept/a/one", "run/kept/../../escaped", "etc/passwd", "run/kept-not")
    with tarfile.open(place / "files", "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    order = machine.Order(command=["true"], seed=1, folders={"/run/kept": kept})
    qemu._Qemu(order, place, lambda octets: None, lambda octets: None, io.BytesIO())._collect()
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {"place/files", "place/status", "kept/a/one"}
    assert (kept / "a" / "one").read_text() == "run/kept/a/one"


def test_machine_that_ends_early_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "files").write_bytes(b"")
    order = machine.Order(command=["true"], seed=1)
    qemu._Qemu(order, tmp_path, lambda octets: None, lambda octets: None, io.BytesIO())._collect()
    assert not (tmp_path / "status").exists()
