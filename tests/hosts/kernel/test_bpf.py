"""ELN in the kernel's TCP: the programs load and go, hear what they must, and keep the window for nothing else."""

import os
import re
import shutil
import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hosts.engine.results import EndReport
from hosts.errors import HostError
from hosts.kernel import profiles as kernel_profiles
from hosts.kernel.bpf import build, cgroups
from hosts.kernel.bpf.eln import Eln
from hosts.kernel.bpf.libbpf import Libbpf
from hosts.kernel.network import Network
from hosts.kernel.ownership import Registry
from hosts.kernel.profiles import ELN_CONTROL, PROFILES
from hosts.messages import Done
from hosts.workloads.bulk import Bulk
from tcpip.access import Octets
from tcpip.options import ELN, smart_option
from tcpip.segment import Option
from telemetry.records import TcpRecord
from tests.harness.waiting import wait_for
from tests.hosts.harness import HOSTS, ROOT, Bridge, Direction, agents, configs, go, needs_network, program, run_name

CACHE = ROOT / ".build" / "bpf"
#: sees a whole transfer of slow start, and holds it in the queues on its way
SEGMENTS = 400
MTU = 1450
#: with timestamps
MSS = MTU - 52
#: segments (RFC 6928)
INITIAL_CWND = 10
ATTEMPTS = 5
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

pytestmark = [
    *needs_network,
    pytest.mark.skipif(not build.BTF.exists(), reason="needs a kernel with BTF"),
    pytest.mark.skipif(build.found("clang") is None, reason="needs clang, bpftool and libbpf-dev"),
    pytest.mark.light,
]


class Marking(Bridge):
    """Loses the first copies of some data segments of h1's, by their place, and marks ACKs of some of them.

    `patience`: how many ACKs of a segment go by unmarked.
    """

    def __init__(
        self,
        network: Network,
        lost: Collection[int],
        marked: Collection[int],
        *,
        mark: Option = ELN,
        patience: int = 0,
        copies: int = 1,
    ) -> None:
        self._lost, self._marked, self._mark, self._patience, self._copies = lost, marked, mark, patience, copies
        self._access = Octets()
        #: of the segments, by their sequence numbers
        self._places: dict[int, int] = {}
        #: of the segments to lose: copies that came, ACKs that came back
        self._came: dict[int, int] = {}
        self._acks: dict[int, int] = {}
        #: the most segments behind each of them that an ACK of it has told of
        self._behind: dict[int, int] = {}
        super().__init__(network)

    def largest_cwnd(self) -> int:
        """What slow start can have made of cwnd, in segments, before the last loss was known.

        Linux grows by all that an ACK tells of, SACK blocks included (tcp_cong_avoid by `acked_sacked`), where it
        acknowledges data, too, or segments have been reordered (tcp_may_raise_cwnd). A busy host joins segments that
        come (tcp_add_to_backlog), so that one ACK tells of data before a hole and of many segments behind it. Without
        SACK a duplicate ACK tells of one segment (tcp_add_reno_sack).
        """
        return INITIAL_CWND + max(place + behind for place, behind in self._behind.items())

    def has_lost_all(self) -> bool:
        """Whether every segment that was to be lost was."""
        return set(self._came) == set(self._lost)

    def _carried(self, direction: Direction, packet: bytes) -> bytes | None:
        return self._data(packet) if direction == "up" else self._ack(packet)

    def _data(self, packet: bytes) -> bytes | None:
        segment = self._access.view(packet)
        if segment is None or not segment.length:
            return packet
        place = self._places.setdefault(segment.seq, len(self._places))
        if place not in self._lost:
            return packet
        self._came[place] = self._came.get(place, 0) + 1
        return packet if self._came[place] > self._copies else None

    def _ack(self, packet: bytes) -> bytes | None:
        segment = self._access.view(packet)
        place = None if segment is None else self._places.get(segment.ack)
        if segment is None or place is None or place not in self._lost:
            return packet
        self._acks[place] = self._acks.get(place, 0) + 1
        sacked = sum(-(-((right - left) % 2**32) // MSS) for left, right in segment.sack)
        behind = sacked or self._acks[place] - 1
        self._behind[place] = max(self._behind.get(place, 0), behind)
        if place not in self._marked or self._acks[place] <= self._patience:
            return packet
        return self._access.with_option(packet, self._mark)


@pytest.fixture(scope="module")
def eln() -> Iterator[Eln]:
    with closing(Eln(CACHE)) as made:
        made.load(run_name())
        yield made


def windows_after(
    net: Network, eln: Eln, make: Callable[[], Marking], profile: str, *, hears: bool = True, timeouts: int = 0
) -> tuple[int, int | None]:
    """cwnd and ssthresh (None: as high as can be) in segments at the end of a transfer up with so many timeouts.

    On a busy machine there may be more: then once again.
    """
    for _ in range(ATTEMPTS):
        last = _last_record(net, eln, make(), profile, hears)
        if last.timeouts <= timeouts:
            break
    assert last.timeouts == timeouts
    ssthresh = last.ssthresh_bytes
    return last.cwnd_bytes // MSS, None if ssthresh is None else ssthresh // MSS


def _last_record(net: Network, eln: Eln, bridge: Marking, profile: str, hears: bool) -> TcpRecord:
    chosen = eln.of(PROFILES[profile])
    # a busy machine is no reason to probe for losses, nor to take a reduction back
    quiet = replace(chosen, sysctls={**chosen.sysctls, "tcp_early_retrans": "0", "tcp_dsack": "0"})
    nbytes = SEGMENTS * MSS
    ends = configs(net, ("reno", "reno"), [Bulk(bytes=nbytes)])
    for host in HOSTS:
        kernel_profiles.apply(net.namespaces[host], quiet)
    with bridge, agents(*ends) as started:
        if hears:
            eln.add(started[0].process.pid)
        go(started)
        for agent in started:
            agent.wait_for(Done)
        assert bridge.has_lost_all()
        assert [report.result.bytes for agent in started for report in agent.all(EndReport)] == [nbytes, nbytes]
        return started[0].all(TcpRecord)[-1]


KEPT = [
    pytest.param({60}, {}, id="one"),
    pytest.param({60}, {"patience": 3}, id="one, marked late"),
    pytest.param({60, 64}, {}, id="two"),
    pytest.param({60, 62, 64, 70}, {}, id="four"),
    # data is sent after the second recovery has begun: without SACK one ends when such data is acknowledged (RFC 6582;
    # tcp_try_undo_recovery), and until then ssthresh is that of the recovery
    pytest.param({60, 150}, {}, id="one after the other"),
]


@pytest.mark.parametrize("profile", ["eln", "eln-nosack"])
@pytest.mark.parametrize(("lost", "how"), KEPT)
def test_marked_losses_leave_the_window(
    net: Network, eln: Eln, profile: str, lost: set[int], how: dict[str, Any]
) -> None:
    cwnd, ssthresh = windows_after(net, eln, lambda: Marking(net, lost, lost, **how), profile)
    assert ssthresh is None
    # slow start went on
    assert cwnd > 60


REDUCED = [
    pytest.param({60}, set(), {}, id="not marked"),
    pytest.param({60, 64}, {60}, {}, id="the first of two is marked"),
    pytest.param({60, 64}, {64}, {}, id="the second of two is marked"),
    pytest.param({60, 200}, {60}, {}, id="the first is marked, a later one is not"),
    pytest.param({60}, {60}, {"mark": smart_option(1, 1)}, id="another option"),
    pytest.param({60}, {60}, {"mark": Option(253, b"\xfa\xde\x00")}, id="an option that is too long"),
]


@pytest.mark.parametrize("profile", ["eln", "eln-nosack"])
@pytest.mark.parametrize(("lost", "marked", "how"), REDUCED)
def test_a_loss_that_is_not_marked_halves_the_window(
    net: Network, eln: Eln, profile: str, lost: set[int], marked: set[int], how: dict[str, Any]
) -> None:
    bridges: list[Marking] = []

    def make() -> Marking:
        bridges.append(Marking(net, lost, marked, **how))
        return bridges[-1]

    _, ssthresh = windows_after(net, eln, make, profile)
    assert ssthresh is not None
    # at least, there was not always something to send
    assert INITIAL_CWND // 2 <= ssthresh <= bridges[-1].largest_cwnd() // 2


STOCK = [
    # the retransmission is lost, too, and no SACK tells
    pytest.param("eln-nosack", 2, {"timeouts": 1}, id="a timeout"),
    pytest.param("eln", 1, {"hears": False}, id="not in the group"),
    pytest.param("reno", 1, {}, id="stock Reno"),
]


@pytest.mark.parametrize(("profile", "copies", "how"), STOCK)
def test_otherwise_marks_do_not_count(net: Network, eln: Eln, profile: str, copies: int, how: dict[str, Any]) -> None:
    _, ssthresh = windows_after(net, eln, lambda: Marking(net, {60}, {60}, copies=copies), profile, **how)
    assert ssthresh is not None


#: a recovery begins like this in this test, and Linux goes on with a number that nobody has returned
LEFT_OUT = {
    "BPF_PROG(eln_ssthresh, struct sock *sk)\n{": "if (((struct tcp_sock *)sk)->snd_cwnd) return 5454583;",
    "BPF_PROG(eln_set_state, struct sock *sk, __u8 state)\n{": "if (state == TCP_CA_Recovery) return;",
}


@pytest.fixture
def eln_of_a_kernel_that_leaves_out_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Eln]:
    sources = tmp_path / "sources"
    shutil.copytree(build._SOURCES, sources)
    control = sources / "control.bpf.c"
    text = control.read_text()
    for head, fault in LEFT_OUT.items():
        assert text.count(head) == 1
        text = text.replace(head, f"{head}\n{fault}")
    control.write_text(text)
    monkeypatch.setattr(build, "_SOURCES", sources)
    with closing(Eln(tmp_path / "objects")) as made:
        made.load(run_name())
        yield made


@pytest.mark.parametrize("profile", ["eln", "eln-nosack"])
@pytest.mark.parametrize("marked", [{60, 150}, {60}], ids=["marked", "not marked"])
def test_a_recovery_of_which_linux_has_not_told_leaves_nothing_to_chance(
    net: Network, eln_of_a_kernel_that_leaves_out_calls: Eln, profile: str, marked: set[int]
) -> None:
    made: list[Marking] = []

    def make() -> Marking:
        made.append(Marking(net, {60, 150}, marked))
        return made[-1]

    cwnd, ssthresh = windows_after(net, eln_of_a_kernel_that_leaves_out_calls, make, profile)
    if 150 in marked:
        assert ssthresh is None
        assert 60 < cwnd <= SEGMENTS
    else:
        assert ssthresh is not None
        assert INITIAL_CWND // 2 <= ssthresh <= made[-1].largest_cwnd() // 2


def bpf_ids(kind: str) -> set[int]:
    """What of BPF this process holds, from its descriptors: ids of maps, programs or links."""
    found: set[int] = set()
    for info in Path("/proc/self/fdinfo").iterdir():
        try:
            said = info.read_text()
        except OSError:
            continue
        found.update(int(number) for number in re.findall(rf"^{kind}_id:\s+(\d+)$", said, re.MULTILINE))
    return found


def test_loading_leaves_nothing(net: Network) -> None:
    before = {kind: bpf_ids(kind) for kind in ("map", "prog", "link")}
    groups = set(cgroups.names())
    eln = Eln(CACHE)
    name = run_name()
    eln.load(name)
    held = {kind: bpf_ids(kind) - before[kind] for kind in before}
    assert f"fadelab-{name}" in cgroups.names()
    assert eln.name in AVAILABLE.read_text().split()
    assert all(held.values()), held
    eln.close()
    assert {kind: bpf_ids(kind) for kind in before} == before
    assert f"fadelab-{name}" not in set(cgroups.names()) - groups
    library = Libbpf()

    def gone() -> bool:
        for kind in held:
            for number in held[kind]:
                try:
                    os.close(library.number(f"bpf_{kind}_get_fd_by_id", number))
                except FileNotFoundError:
                    continue
                return False
        return True

    # the kernel frees them after everybody has let go
    wait_for(gone)
    eln.close()


def test_two_runs_have_names_of_their_own() -> None:
    with closing(Eln(CACHE)) as first, closing(Eln(CACHE)) as second:
        first.load(run_name())
        second.load(run_name())
        assert first.name != second.name
        assert {first.name, second.name} <= set(AVAILABLE.read_text().split())
        assert all(each.name.startswith(ELN_CONTROL) for each in (first, second))
        assert second.of(PROFILES["eln"]).congestion_control == second.name
        assert second.of(PROFILES["reno"]) == PROFILES["reno"]


def test_a_killed_run_leaves_a_group_that_cleaning_removes(tmp_path: Path) -> None:
    name = run_name()
    code = f"""
import pathlib, sys
from hosts.kernel.bpf.eln import Eln
eln = Eln(pathlib.Path({str(CACHE)!r}))
eln.load({name!r})
print(eln.name, flush=True)
sys.stdin.read()
"""
    with program(code) as (process, control):
        assert control.startswith(ELN_CONTROL)
        own = f"{control} of {name}"
        assert f"fadelab-{name}" in cgroups.names(), own
        process.send_signal(signal.SIGKILL)
    registry = Registry(tmp_path / "run", tmp_path / "netns")
    assert f"run {name}: control group fadelab-{name}" in map(str, registry.leftovers())
    registry.clean(name)
    assert f"fadelab-{name}" not in cgroups.names()


def test_a_kernel_without_types_is_told_of_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BTF", tmp_path / "vmlinux")
    with pytest.raises(HostError, match="CONFIG_DEBUG_INFO_BTF") as raised:
        build.build("control", tmp_path)
    assert "\n" not in str(raised.value)
    (tmp_path / "vmlinux").write_bytes(b"\x9f\xeb\x01\0 no such type")
    with pytest.raises(HostError, match="struct_ops"):
        build.build("control", tmp_path)


@pytest.mark.parametrize("program", ["bpftool", "clang"])
def test_a_missing_program_is_told_of_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None if name == program else which(name, path=path))
    with pytest.raises(HostError, match=f"apt-get install {program}"):
        build.build("control", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_compile_is_told_of_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"clang failed: .*error") as raised:
        build.build("control", tmp_path, CONTROL_NAME="longer than sixteen octets")
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
