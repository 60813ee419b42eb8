"""Reports of campaigns: numbers, documents, bundles, and the check of a bundle."""

import hashlib
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.campaigns.engine import run_campaign
from testbed.campaigns.executing import failed
from testbed.campaigns.file import CampaignError
from testbed.cli import app
from testbed.paths import root
from testbed.reports import felt
from testbed.reports.bundle import write_bundle
from testbed.reports.differing import first_difference
from testbed.reports.document import Block, Code, Heading, Paragraph, Picture, Table, markdown, page
from testbed.reports.numbers import adjust, judge, level, read_campaign
from testbed.reports.report import compared, write_report
from testbed.reports.words import number
from testbed.results.statistics import Interval, describe, paired
from testbed.sources import sources
from tests.harness.campaigns import CLAIMS, InProcess, campaign_file, opened
from tests.harness.live_runs import Capture, done, refused

pytestmark = pytest.mark.slow

REFERENCE = [{"source": "Kojo 2004", "metric": "duration_s", "at": {"link.scheme": "slacp"}, "value": 0.5}]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a campaign that has ended."""
    folder: Path = tmp_path_factory.mktemp("campaign")
    lossy, seeds = {"channel.per": 0.15}, {"count": 12}
    changes = {"set": lossy, "seeds": seeds, "hypotheses": CLAIMS, "reference": REFERENCE}
    with opened(folder / "out", campaign_file(folder, **changes)) as campaign:
        run_campaign(campaign, InProcess)
    return folder / "out"


class FailsHalf(InProcess):
    """Workers with which every other run fails."""

    calls = 0

    def submit(self, call: Callable[[Any], Any], task: Any) -> "Future[Any]":
        self.calls += 1
        return super().submit((lambda task: failed(task.run, ValueError("no"))) if self.calls % 2 else call, task)


def test_report_tells_what_users_feel_without_being_asked(made: Path) -> None:
    campaign = read_campaign(made)
    heading, table, note = felt.blocks(campaign)
    assert (heading, isinstance(note, Paragraph)) == (Heading(2, "What users feel"), True)
    assert isinstance(table, Table)
    point = campaign.plan.points[0]
    delays = sorted(campaign.summary(row)["quality"]["one_way"]["p50_ms"] for row in campaign.rows_of(point))
    assert table.rows[0][:2] == [point.label, f"{(delays[5] + delays[6]) / 2:.4g}"]
    assert (table.headings[1], "SRTT p50 (ms)" in table.headings) == ("one way p50 (ms)", False)
    # no figure of energy stands without the powers that it assumes
    assert "energy (µJ/bit)" in table.headings
    assert "assumed powers: transmit 1.327 W, receive 0.967 W, idle 0.844 W" in str(note)


def test_a_report_says_how_many_runs_are_done_and_failed(tmp_path: Path) -> None:
    with opened(tmp_path / "out", campaign_file(tmp_path)) as campaign:
        workers = FailsHalf()
        run_campaign(campaign, lambda: workers)
    write_report(read_campaign(tmp_path / "out"), tmp_path)
    head = "2 points, 6 runs: 3 whole, 3 failed (left out). Tier model; TCP sack; seeds 1 to 3."
    assert head in (tmp_path / "report.md").read_text()


#: of a metric that has the same values


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def test_numbers_are_those_of_the_runs(made: Path) -> None:
    campaign = read_campaign(made)
    for point in campaign.plan.points:
        durations = [
            json.loads((made / "runs" / f"{point.name}-s{seed}" / "summary.json").read_text())["duration_s"]
            for seed in range(1, 13)
        ]
        assert campaign.sample(point, "duration_s") == describe(durations, bounds=(0.0, math.inf))
    assert campaign.complete
    slower, faster = judge(campaign)
    none, slacp = (list(campaign.values(point, "duration_s").values()) for point in campaign.plan.points)
    assert slower.difference.pairs == paired(none, slacp)
    assert (slower.verdict, faster.verdict) == ("holds", "the opposite holds")
    assert slower.p == faster.p == paired(none, slacp).p


def test_adjusted_probabilities_bound_the_rate_of_false_discoveries() -> None:
    # Benjamini and Hochberg (1995): p times the number of tests over its rank, and never above a greater p's
    assert adjust([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.04, None, 0.04])
    assert adjust([0.9, 0.8]) == [0.9, 0.9]
    assert adjust([None]) == [None]


@given(st.lists(st.one_of(st.none(), st.integers(1, 2**12).map(lambda n: n / 2**12)), max_size=20))
def test_level_is_that_of_the_differences_found(probabilities: list[float | None]) -> None:
    alpha = level(probabilities)
    for p, adjusted in zip(probabilities, adjust(probabilities), strict=True):
        # but for rounding where both are the limit
        assert p is None or adjusted is None or (p <= alpha) == (adjusted <= 0.05 * (1 + 1e-9))
    known = [p for p in probabilities if p is not None]
    assert 0.05 / max(1, len(known)) <= alpha <= 0.05 * (1 + 1e-8)


def test_report_never_contradicts_itself(made: Path, tmp_path: Path) -> None:
    for each in judge(read_campaign(made)):
        assert isinstance(each.interval, Interval)
        assert (each.interval.side(0) != 0) == (each.p is not None and each.p <= 0.05) == (each.verdict != "not shown")
    [_, text] = write_report(read_campaign(made), tmp_path)
    assert "| 95 % interval |" in text.read_text()
    assert "of the median, interpolated order statistics, from 6 runs" in text.read_text()
    assert "none: n < 20" in text.read_text()


def test_pairs_are_runs_of_the_same_seed(copy: Path) -> None:
    shutil.rmtree(copy / "runs" / "0-none-s3")
    campaign = read_campaign(copy)
    assert not campaign.complete
    slower, _ = judge(campaign)
    none, slacp = (campaign.values(point, "duration_s") for point in campaign.plan.points)
    seeds = [seed for seed in range(1, 13) if seed != 3]
    assert slower.difference.pairs == paired([none[seed] for seed in seeds], [slacp[seed] for seed in seeds])


def test_campaigns_are_compared_at_their_common_points(made: Path, tmp_path: Path) -> None:
    changes = {"set": {"channel.per": 0.15, "mtu": 600}, "sweep": {"grid": {"link.scheme": ["none", "snoop"]}}}
    with opened(tmp_path / "other", campaign_file(tmp_path, **changes)) as campaign:
        run_campaign(campaign, InProcess)
    table, _ = compared(read_campaign(made), read_campaign(tmp_path / "other"))
    assert [(row[0], row[1], row[4]) for row in table.rows] == [
        ("duration_s", "scheme=none", "3"),
        ("goodput_bps", "scheme=none", "3"),
    ]
    apart = campaign_file(tmp_path / "apart", sweep={"grid": {"mtu": [600, 700]}})
    with opened(tmp_path / "apart" / "out", apart):
        pass
    with pytest.raises(CampaignError, match="have no points with the same settings"):
        compared(read_campaign(made), read_campaign(tmp_path / "apart" / "out"))


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (0.0123456, "0.01235"), (1234567.8, "1,234,568"), (-2.5, "-2.5"), (0.0, "0")]
)
def test_numbers_have_four_digits(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_document_is_the_same_in_both_forms() -> None:
    blocks: list[Block] = [
        Heading(2, "a < b"),
        Paragraph("x & y"),
        Code("./fadelab run"),
        Table(["name", "n"], [["a|b", "1"]]),
        Picture("p", "of it", '<?xml version="1.0"?>\n<svg id="1"></svg>'),
    ]
    text, whole = markdown(blocks, "figures"), page(blocks)
    assert "## a < b" in text
    assert "| name | n |\n| --- | ---: |\n| a&#124;b | 1 |" in text
    assert "![of it](figures/p.svg)" in text
    assert "<h2>a &lt; b</h2>" in whole
    assert '<td>a|b</td><td class="n">1</td>' in whole
    assert '<figure><svg id="1"></svg><figcaption>of it</figcaption></figure>' in whole


def test_report_has_the_origin_of_every_number_and_needs_no_other_file(made: Path, tmp_path: Path) -> None:
    html, text = write_report(read_campaign(made), tmp_path)
    whole, plain = html.read_text(), text.read_text()
    assert not re.search(r'(?:src|href)="(?!#)', whole)
    assert not re.search(r"url\((?!#)", whole)
    assert whole.count("<figure>") == plain.count("![") == 2 + 4
    for found in re.findall(r"!\[.*\]\((.*)\)", plain):
        assert (tmp_path / found).read_text().startswith("<?xml")
    [origin] = [line for line in plain.splitlines() if "| scheme=none | model |" in line]
    assert "| 1 to 12 |" in origin
    assert "fadelab run runs/0-none-s1/scenario.yaml --repeat 12 --out AGAIN" in origin
    assert f"| {sources().digest[:12]} |" in origin
    assert "Kojo 2004" in plain
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*.*")}
    write_report(read_campaign(made), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_command_of_the_report_gives_the_number_again(made: Path, tmp_path: Path, capsys: Capture) -> None:
    scenario = made / "runs" / "1-slacp-s1" / "scenario.yaml"
    lines = done(capsys, "run", scenario, "--repeat", "12", "--json", "--out", tmp_path).splitlines()
    again = [json.loads(line)["duration_s"] for line in lines]
    campaign = read_campaign(made)
    assert describe(again, bounds=(0.0, math.inf)) == campaign.sample(campaign.plan.points[1], "duration_s")


@pytest.fixture(scope="module")
def plain(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the campaign."""
    folder: Path = tmp_path_factory.mktemp("bundle")
    copy = shutil.copytree(made, folder / "copy")
    bundle = write_bundle(read_campaign(Path(copy)), folder / "b.zip", source=False)
    shutil.rmtree(copy)
    return bundle


def changed(bundle: Path, target: Path, file: str, change: Callable[[bytes], bytes]) -> Path:
    """A bundle with a changed file."""
    with zipfile.ZipFile(bundle) as source, zipfile.ZipFile(target, "w") as archive:
        for entry in source.infolist():
            content = source.read(entry)
            archive.writestr(entry, change(content) if entry.filename == f"small/{file}" else content)
    return target


def verified(path: Path, *options: str) -> int:
    return app.main(["report", "verify", str(path), "--workers", "1", *options])


def test_bundle_of_another_folder_agrees(plain: Path, tmp_path: Path, capsys: Capture) -> None:
    assert verified(plain, "--sample", "4") == 0
    out = capsys.readouterr().out
    assert "made again: 4 of 24 runs of tier model" in out
    assert out.splitlines()[-1] == "all that was checked agrees"
    with zipfile.ZipFile(plain) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "unpacked")
    assert {f"small/{name}" for name in ("plan.json", "report.html", "README.txt", "SHA256SUMS")} <= names
    assert "ro-crate-metadata.json" in names
    assert "small/lock" not in names
    assert verified(tmp_path / "unpacked", "--sample", "0") == 0


def test_same_folder_gives_the_same_bundle(copy: Path, tmp_path: Path) -> None:
    first, second = (write_bundle(read_campaign(copy), tmp_path / name, source=False) for name in ("a.zip", "b.zip"))
    assert first.read_bytes() == second.read_bytes()


def flip(at: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def rewrite(content: bytes) -> bytes:
    """The records with one value changed, as a valid file."""
    table = pq.read_table(pa.BufferReader(content))
    values = table["bytes_received"].to_pylist()
    values[2] += 1
    index = table.schema.get_field_index("bytes_received")
    out = io.BytesIO()
    pq.write_table(table.set_column(index, table.schema.field(index), pa.array(values, pa.int64())), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("file", "change", "named"),
    [
        ("runs/1-slacp-s2/flow.parquet", rewrite, r"row 2, bytes_received is \d+, made again"),
        ("runs/1-slacp-s2/tcp.parquet", flip(300), r"(row \d+, \w+ is|differs at byte 300)"),
        (
            "runs/0-none-s4/summary.json",
            lambda content: content.replace(b'"timeouts": ', b'"timeouts": 1'),
            r"line \d+ is '\"timeouts\": 1\d,', made again '\"timeouts\": \d,'",
        ),
        (
            "results.json",
            lambda content: content.replace(b'"goodput_bps": 1', b'"goodput_bps": 9', 1),
            r"0-none-s\d+: goodput_bps is 9\d+.\d+, and 1",
        ),
        ("runs/0-none-s1/manifest.json", flip(20), "differs from its checksum"),
    ],
    ids=["record", "byte of a record", "summary", "results", "manifest"],
)
def test_first_difference_is_named(
    file: str, change: Callable[[bytes], bytes], named: str, plain: Path, tmp_path: Path, capsys: Capture
) -> None:
    bundle = changed(plain, tmp_path / "b.zip", file, change)
    # none by chance: the checksums alone lead there
    assert verified(bundle, "--sample", "0") == 2
    assert re.search(f"the first: {file}: {named}", capsys.readouterr().err)


@pytest.mark.skipif(not (root() / ".git").exists(), reason="a bundle takes its source from git")
def test_another_checkout_verifies_a_bundle_and_names_what_was_changed(copy: Path, tmp_path: Path) -> None:
    """The checkout is made of the source in the bundle, as a stranger has it."""
    bundle = write_bundle(read_campaign(copy), tmp_path / "small.zip")
    with zipfile.ZipFile(bundle) as archive, tarfile.open(fileobj=archive.open("source.tar.gz")) as source:
        source.extractall(tmp_path / "stranger")
    checkout = tmp_path / "stranger" / "fadelab"
    path = os.pathsep.join([str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "FADELAB_ROOT": str(checkout)}

    def verify(bundle: Path, sample: int) -> "subprocess.CompletedProcess[str]":
        words = ["-m", "testbed", "report", "verify", str(bundle), "--sample", str(sample), "--workers", "1"]
        command = [sys.executable, "-P", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    good = verify(bundle, 3)
    # a slow machine is told how far it is
    complaints = [line for line in good.stderr.splitlines() if not line.startswith("verify: ")]
    assert (good.returncode, good.stdout.splitlines()[-1], complaints) == (0, "all that was checked agrees", [])
    assert "made again: 3 of 24 runs" in good.stdout

    bad = verify(changed(bundle, tmp_path / "changed.zip", "runs/1-slacp-s2/flow.parquet", rewrite), 0)
    assert bad.returncode == 2
    assert re.search(r"the first: runs/1-slacp-s2/flow.parquet: row 2, bytes_received is \d+, made", bad.stderr)


def test_changed_record_with_new_checksums_is_found_by_making_the_run_again(copy: Path, capsys: Capture) -> None:
    record = copy / "runs" / "1-slacp-s2" / "flow.parquet"
    old = hashlib.sha256(record.read_bytes()).hexdigest()
    record.write_bytes(rewrite(record.read_bytes()))
    new = hashlib.sha256(record.read_bytes()).hexdigest()
    for name in ("index.jsonl", "results.json"):
        (copy / name).write_text((copy / name).read_text().replace(old, new))
    assert verified(copy, "--sample", "0") == 0
    assert verified(copy, "--all") == 2
    err = capsys.readouterr().err
    assert "1 difference, the first: runs/1-slacp-s2/flow.parquet: row 2, bytes_received is" in err


def test_difference_of_texts_is_a_line() -> None:
    assert first_difference("a.json", b"x\ny\n", b"x\nz\n") == "line 2 is 'y', made again 'z'"
    assert first_difference("a.json", b"x\n", b"x\nz\n") == "line 2 is missing, made again 'z'"
    assert first_difference("a.json", b"x\n", b"x") == "differs at byte 1"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["report", "nothing"], "nothing: is no campaign's folder"),
        (["report", "verify", "nothing"], "nothing: no such bundle"),
        (["report", "verify", "text"], "text: is no bundle"),
        (["report", "verify", "."], "is neither a bundle nor a campaign's folder"),
        (["report", "compare", "out", "nothing"], "is no campaign's folder"),
        (["report", "bundle", "part"], "24 runs are missing: end it first"),
    ],
)
def test_wrong_requests_are_one_line(
    words: list[str], complaint: str, copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(copy.parent)
    (copy.parent / "text").write_text("text")
    copy.rename("out")
    part = Path(shutil.copytree("out", "part"))
    shutil.rmtree(part / "runs")
    assert complaint in refused(capsys, *words)
